"""The protocol's revisions by name. No imports: this is read before anything else when a host starts `connect`."""

from __future__ import annotations

MODERN_VERSION = "2026-07-28"
MODERN_VERSIONS = (MODERN_VERSION,)
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
LATEST_LEGACY = LEGACY_VERSIONS[0]

PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = PREFIX + "protocolVersion"
CAPABILITIES_KEY = PREFIX + "clientCapabilities"
SERVER_INFO_KEY = PREFIX + "serverInfo"


def pick_legacy(requested: str) -> str:
    """The revision that we answer to a legacy `initialize`: the client's where we know it, else our latest."""
    return requested if requested in LEGACY_VERSIONS else LATEST_LEGACY
