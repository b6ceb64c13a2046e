"""What discovery found, kept for the next start: a process that has a grant asks no metadata document before its first call."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from interlock.upstream.oauth import private_files
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant_file import Damaged, Newer, decode, encode
from interlock.upstream.oauth.grant_ids import digest
from interlock.upstream.oauth.private_files import Unfit

RULES = 1
"""What was found under earlier rules (resource_fit.py) is looked up again: it may be what is refused now."""
KEPT = 8
"""Of one URL (a resource may change, and a setting may name another); the oldest go."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds. `override`: the resource that a setting named in place of the server's."""

    found: Discovered
    override: str | None = None
    rules: int = 0


class DiscoveryStore:
    """Files `HASH_OF_URL-HASH_OF_RESOURCE.found.json`. The last one written counts; there is nothing to merge, so no lock."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def remember(self, found: Discovered, override: str | None) -> None:
        """Raises StoreTrouble."""
        id = f"{digest('url', found.server_url)}-{digest('resource', found.resource, override)}"
        private_files.make(self._root)
        private_files.write(
            self._root / f"{id}.found.json", encode("found", id, Entry(found=found, override=override, rules=RULES))
        )
        for _, name in self._entries(found.server_url)[KEPT:]:
            with contextlib.suppress(OSError):
                os.unlink(self._root / name)
        private_files.sweep(self._root)

    def recalled(self, server_url: str, resource: str | None) -> Discovered | None:
        """The newest for the URL that was found for this resource or, with None, without a setting for it."""
        if not private_files.present(self._root):
            return None
        for _, name in self._entries(server_url):
            entry = self._read(name)
            if entry is None or entry.found.server_url != server_url or entry.rules < RULES:
                continue
            if entry.override is None if resource is None else entry.found.resource == resource:
                return entry.found
        return None

    def _read(self, name: str) -> Entry | None:
        try:
            content = private_files.read(self._root / name)
            return None if content is None else decode("found", name.removesuffix(".found.json"), content, Entry)[0]
        except (Unfit, Damaged, Newer):
            # It is found again by asking.
            return None

    def _entries(self, server_url: str) -> list[tuple[int, str]]:
        """(time of change, name), newest first."""
        return private_files.newest(self._root, f"{digest('url', server_url)}-", ".found.json")
