"""One search for metadata documents: its deadline, what was seen on the way, and the error in which it may end."""

from __future__ import annotations

import time

from interlock.upstream.oauth.fetch import Answer, Fetcher, FetchFailed
from interlock.wire.address import Address, shown, take_apart


class DiscoveryFailed(Exception):
    """`what`: for people, what was tried and seen, and what to do. `unreachable`: an outage that may pass by itself."""

    def __init__(self, what: str, *, unreachable: bool, todo: str = "", seen: str = "", gone: bool = False) -> None:
        said = " ".join(filter(None, (what, todo, seen)))
        super().__init__(said)
        self.what = said
        self.problem = " ".join(filter(None, (what, seen)))
        """The same without what to do."""
        self.todo = todo
        self.unreachable = unreachable
        self.gone = gone
        """The MCP server itself cannot be reached at this address, or there is none: no authorization server is to blame."""


class Search:
    """One discovery: its deadline, and what was seen so far, for the error."""

    def __init__(self, fetch: Fetcher, server: Address | None, seconds: float) -> None:
        self._fetch = fetch
        self._server = server
        self._end = time.monotonic() + seconds
        self._share = seconds / 3
        self.seen: list[str] = []
        self.outage = False

    async def document(self, url: str) -> dict[str, object] | None:
        """The JSON object at an address; None where there is none, which is then noted.

        Raises DiscoveryFailed where the MCP server's own host gives no connection: then nothing else is to be learned.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            self.outage = True
            self.seen.append(f"{shown(url)}: not tried, the time was up")
            return None
        try:
            # One address that hangs must leave time for the others.
            answer = await self._fetch.get(url, min(left, max(self._share, 1.0)))
        except FetchFailed as failure:
            if failure.unconnected and self._server is not None and take_apart(url).origin == self._server.origin:
                raise _gone(failure.what) from None
            self.outage = True
            self.seen.append(failure.what.rstrip("."))
            return None
        document = answer.json() if answer.status == 200 else None
        if document is None:
            self._note(url, answer)
        return document

    def _note(self, url: str, answer: Answer) -> None:
        if answer.status >= 500 or answer.status in (408, 429):
            self.outage = True
        if 300 <= answer.status < 400:
            what = f"HTTP {answer.status}, which leads to another origin and was not followed"
        elif answer.status == 200:
            what = "no JSON object"
        else:
            what = f"HTTP {answer.status}"
        self.seen.append(f"{shown(url)}: {what}")

    async def has_no_mcp_server(self, url: str) -> bool:
        """Whether the server itself says that there is nothing at this address, to a POST and to a GET: endpoints of 2024-11-05
        know only the latter. A 404 that is JSON-RPC speaks of the method (2026-07-28, transports). Raises DiscoveryFailed."""
        for post in (True, False):
            left = min(max(self._end - time.monotonic(), 0.0), max(self._share, 1.0))
            try:
                answer = await (self._fetch.post_json(url, _KNOCK, left) if post else self._fetch.get(url, left))
            except FetchFailed as failure:
                if failure.unconnected:
                    raise _gone(failure.what) from None
                return False
            if answer.status != 404 or "www-authenticate" in answer.headers:
                return False
            if (answer.json() or {}).get("jsonrpc") is not None:
                return False
        return True

    def failure(self, what: str, todo: str) -> DiscoveryFailed:
        """The error. An outage anywhere on the way outweighs: what was not reached may have been the right one."""
        seen = f"Seen: {'; '.join(self.seen[:12])}." if self.seen else ""
        advice = "It may pass by itself; try again later." if self.outage else todo
        return DiscoveryFailed(what, todo=advice, seen=seen, unreachable=self.outage)


_KNOCK = {"jsonrpc": "2.0", "id": "interlock-discovery", "method": "server/discover", "params": {}}


def _gone(why: str) -> DiscoveryFailed:
    todo = "Start the server, or correct its URL."
    return DiscoveryFailed(f"{why.rstrip('.')}.", todo=todo, unreachable=True, gone=True)


def no_mcp_server(url: str) -> DiscoveryFailed:
    """The address answers 404 and asks for no sign-in."""
    return DiscoveryFailed(
        f"HTTP 404: there is no MCP server at {shown(url)}.",
        todo="Check the path of its URL.",
        unreachable=False,
        gone=True,
    )
