"""What Interlock says of itself: the results of `initialize` and `server/discover`, as plain values and with no imports to speak of."""

from __future__ import annotations

from collections.abc import Mapping

from interlock import __version__
from interlock.wire.revisions import LEGACY_VERSIONS, MODERN_VERSIONS, SERVER_INFO_KEY

SERVER_INFO = {"name": "interlock", "version": __version__, "title": "Interlock"}
DISCOVER_TTL_MS = 60_000
# A superset: it is said before any server has answered, and hosts take it once for the whole session.
CAPABILITIES: dict[str, object] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}


def initialize_result(version: str, extra: Mapping[str, object], instructions: str | None) -> dict[str, object]:
    """`extra` are capabilities of known servers beyond the core; `instructions` are theirs, each under its server's name."""
    result: dict[str, object] = {
        "protocolVersion": version,
        "capabilities": {**CAPABILITIES, **extra},
        "serverInfo": SERVER_INFO,
    }
    if instructions is not None:
        result["instructions"] = instructions
    return result


def discover_result(extra: Mapping[str, object], instructions: str | None) -> dict[str, object]:
    """The modern counterpart. Private and short-lived: servers may still appear."""
    result: dict[str, object] = {
        "supportedVersions": [*MODERN_VERSIONS, *LEGACY_VERSIONS[:3]],
        "capabilities": {**CAPABILITIES, **extra},
    }
    if instructions is not None:
        result["instructions"] = instructions
    result["resultType"] = "complete"
    result["ttlMs"] = DISCOVER_TTL_MS
    result["cacheScope"] = "private"
    result["_meta"] = {SERVER_INFO_KEY: SERVER_INFO}
    return result
