"""A POST whose answer matters to nobody: a notification, or our answer to a server's question. It too needs its credential."""

from __future__ import annotations

import logging

from interlock.model.fault import Fault
from interlock.upstream.authorization import Authorization
from interlock.upstream.http1 import Pool
from interlock.upstream.session import Session

SECONDS = 30.0
_log = logging.getLogger(__name__)


class Told:
    """Sent with the credential at hand; where there is none, or it is refused with a challenge, once more with a fresh one.

    A person's answer may come long after the question, when the token of then is over.
    """

    __slots__ = ("_auth", "_head", "_headers", "_pool", "_rest", "_session", "_status", "_tries", "_used")

    def __init__(self, session: Session, pool: Pool, auth: Authorization | None, head: bytes, rest: bytes) -> None:
        """`head` and `rest` go out around the line with the credential."""
        self._session = session
        self._pool = pool
        self._auth = auth
        self._head = head
        self._rest = rest
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._tries = 0
        self._used = ""

    def start(self) -> None:
        value = self._auth.current() if self._auth is not None else ""
        if value is not None:
            self._send(value)
        else:
            self._session.spawn(self._authorize(refused=False))

    def _send(self, value: str) -> None:
        self._used = value
        line = f"authorization: {value}\r\n".encode("latin-1") if value else b""
        self._pool.send(self, self._head + line + self._rest)

    async def _authorize(self, *, refused: bool) -> None:
        assert self._auth is not None
        try:
            if refused:
                value = await self._auth.refused(self._used, self._status, self._headers, SECONDS)
            else:
                value = await self._auth.ready(SECONDS)
        except Fault as fault:
            _log.debug("%s: a notification was not sent (%s)", self._session.server, fault.slug)
            return
        self._send(value)

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status, self._headers = status, headers

    def on_body(self, data: bytes) -> None:
        return

    def on_end(self) -> None:
        # Only a 401 with a challenge proves that nothing was done with it.
        if self._auth is None or self._tries or self._status != 401 or b"www-authenticate" not in self._headers:
            return
        self._tries += 1
        if not self._session.closed:
            self._session.spawn(self._authorize(refused=True))

    def on_lost(self, error: BaseException | None, sent: bool) -> None:
        return
