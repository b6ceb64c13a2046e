"""Who wants to hear of which resource's updates, and what servers were told of it."""

from __future__ import annotations

from collections.abc import Iterable


class Subscriptions:
    """Holders (a client, or one of its listens) by server, binding and the server's own URI."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, str], dict[str, set[str]]] = {}

    def add(self, server: str, binding: str, uri: str, holder: str) -> bool:
        """True where this is the first holder: the server has to be told."""
        holders = self._holders.setdefault((server, binding), {}).setdefault(uri, set())
        first = not holders
        holders.add(holder)
        return first

    def remove(self, server: str, binding: str, uri: str, holder: str) -> bool:
        """True where this was the last holder: the server may be told."""
        uris = self._holders.get((server, binding), {})
        holders = uris.get(uri)
        if holders is None or holder not in holders:
            return False
        holders.discard(holder)
        if not holders:
            del uris[uri]
            return True
        return False

    def drop_holder(self, holder: str) -> list[tuple[str, str, str]]:
        """Remove a holder and those that belong to it (`HOLDER\\0...`); returns what no longer has any."""
        inside = f"{holder}\0"
        gone: list[tuple[str, str, str]] = []
        for (server, binding), uris in self._holders.items():
            for uri in list(uris):
                uris[uri] = {each for each in uris[uri] if each != holder and not each.startswith(inside)}
                if not uris[uri]:
                    del uris[uri]
                    gone.append((server, binding, uri))
        return gone

    def uris(self, server: str, binding: str) -> Iterable[str]:
        return sorted(self._holders.get((server, binding), {}))
