"""What an entry is called in a host's configuration: short, and spelt so that no host has to change it."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from interlock.install.hosts import Host

MAX_DEFAULT = 12
"""Tool names are prefixed with it, and hosts cut long ones; this leaves room everywhere."""
_ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_NOISE = frozenset({"mcp", "www", "api", "app", "server", "sse", "remote"})


def from_url(url: str) -> str:
    """`linear` for https://mcp.linear.app/mcp, `local` for this machine."""
    host = (urlsplit(url).hostname or "").lower()
    if host in ("localhost", "::1") or re.fullmatch(r"[0-9.]+|.*:.*", host):
        return "local" if host in ("localhost", "::1") or host.startswith("127.") else "remote"
    labels = host.split(".")
    telling = [label for label in labels[:-1] if label not in _NOISE] or labels
    name = re.sub(r"[^a-z0-9]+", "-", telling[-1]).strip("-")
    name = name if name[:1].isalpha() else f"s{name}"
    return name[:MAX_DEFAULT].strip("-") or "remote"


def trouble_with(name: str, host: Host) -> str | None:
    """Why a host may not take the name; None where all do."""
    if not _ALLOWED.match(name):
        return f"{name!r} cannot be an entry's name: letters, digits, `-` and `_`, at most 64"
    adapter = host.adapter
    if adapter is None:
        return None
    if name in adapter.reserved:
        return f"{host.label} keeps the name {name!r} for itself"
    pattern = adapter.server_names.value
    if pattern is not None and not re.fullmatch(pattern, name):
        return f"{host.label} starts no server with the name {name!r}"
    return None
