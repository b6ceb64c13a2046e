"""Legacy sessions over HTTP: unguessable ids, bound to the principal that opened them, gone when idle."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from interlock.model.principal import Principal
from interlock.relay.client import Client
from interlock.serve.http1 import Responder
from interlock.serve.streams import Stream, Streams
from interlock.wire.eras import Era

IDLE_SECONDS = 3600.0
MAX_SESSIONS_PER_PRINCIPAL = 1000


@dataclass(slots=True)
class HttpSession:
    """One session. `out_of_band` is the stream for what belongs to no request; it keeps a little until a GET picks it up."""

    id: str
    client: Client
    streams: Streams = field(default_factory=Streams)
    out_of_band: Stream | None = None
    last_used: float = 0.0

    def push(self, message: bytes) -> None:
        if self.out_of_band is None:
            self.out_of_band = self.streams.new()
        self.out_of_band.send(message)

    def attach(self, responder: Responder) -> None:
        """A GET without `Last-Event-ID`: what was not yet delivered goes out first."""
        stream = self.out_of_band
        if stream is None:
            stream = self.out_of_band = self.streams.new()
            stream.attach(responder, None)
        else:
            stream.attach(responder, stream.delivered)


class Sessions:
    """`ended` is called for every session that goes, however it goes."""

    def __init__(self, ended: Callable[[Client], None]) -> None:
        self._sessions: dict[str, HttpSession] = {}
        self._ended = ended

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, principal: Principal, now: float) -> HttpSession:
        """A new session. Where one principal has too many, its least used one ends."""
        mine = [each for each in self._sessions.values() if each.client.principal == principal]
        if len(mine) >= MAX_SESSIONS_PER_PRINCIPAL:
            self.close(min(mine, key=lambda each: each.last_used).id)
        id = secrets.token_urlsafe(24)
        # The client's id is logged and stored; the session's id is a secret and is not.
        client = Client(f"session-{secrets.token_hex(6)}", principal, Era.LEGACY)
        session = HttpSession(id, client, last_used=now)
        client.push = session.push
        self._sessions[id] = session
        return session

    def find(self, id: str, principal: Principal, now: float) -> HttpSession | None:
        """The session, for its own principal only: for anybody else it does not exist."""
        session = self._sessions.get(id)
        if session is None or session.client.principal != principal:
            return None
        session.last_used = now
        return session

    def close(self, id: str) -> None:
        session = self._sessions.pop(id, None)
        if session is not None:
            if session.out_of_band is not None:
                session.out_of_band.end()
            self._ended(session.client)

    def close_idle(self, now: float) -> None:
        for session in list(self._sessions.values()):
            listening = session.out_of_band is not None and session.out_of_band.responder is not None
            if not session.client.open and not listening and now - session.last_used > IDLE_SECONDS:
                self.close(session.id)

    def close_revoked(self, valid: Callable[[Principal], bool]) -> None:
        for session in list(self._sessions.values()):
            if not valid(session.client.principal):
                self.close(session.id)

    def close_all(self) -> None:
        for id in list(self._sessions):
            self.close(id)
