"""Whether a host's entry leads to Interlock: by its command, or by an address of this machine behind which `interlock up` may be."""

from __future__ import annotations

from urllib.parse import urlsplit

from interlock.hosts.declaration import Declaration
from interlock.hosts.ours import ours
from interlock.wire.address import is_loopback


def leads_to_us(declaration: Declaration) -> bool:
    entry = declaration.runs
    if entry is None:
        return False
    return ours(entry) == "connect" or (entry.url is not None and is_loopback(urlsplit(entry.url).hostname or ""))
