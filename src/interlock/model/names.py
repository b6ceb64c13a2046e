"""Canonical names: `server/item`, the one name that audit, approvals, lockfile and gates use."""

from __future__ import annotations

from typing import NamedTuple


class CanonicalName(NamedTuple):
    """A tool, prompt or other item of one server.

    `server` is the manifest's key and never contains `/`; `item` is the server's own name for the thing, kept as it is
    (it may contain `/`), and never what `serverInfo` claims.
    """

    server: str
    item: str

    @classmethod
    def parse(cls, text: str) -> CanonicalName:
        """Split at the first `/`. Raises ValueError where there is none or a side is empty."""
        server, slash, item = text.partition("/")
        if not slash or not server or not item:
            raise ValueError(f"{text!r} is not a canonical name: write it as SERVER/TOOL")
        return cls(server, item)

    def __str__(self) -> str:
        return f"{self.server}/{self.item}"
