"""Our own `subscriptions/listen` at each modern server, and `resources/subscribe` at legacy ones, kept in step."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from interlock.relay.resources import Subscriptions
from interlock.upstream.contract import Reply
from interlock.upstream.handshake import can_subscribe, listens_for
from interlock.upstream.server import Server
from interlock.upstream.session import Call, Session, SessionLost
from interlock.wire import codes, messages, translate
from interlock.wire.eras import Era

FIRST_RETRY, LONGEST_RETRY = 0.25, 30.0
"""Seconds after which a listen that broke is opened again: doubled each time that it does not last."""
LASTING_SECONDS = 10.0


class Listening:
    """One listen a modern session: list changes, and the resources that somebody wants to hear of."""

    def __init__(self, servers: Mapping[str, Server], subscriptions: Subscriptions) -> None:
        self._servers = servers
        self._subscriptions = subscriptions
        self._open: dict[tuple[str, str], Call] = {}
        self._retries: dict[tuple[str, str], float] = {}

    def refresh(self, server: str, binding: str) -> None:
        """Bring the server up to date after a session started or the set of wanted resources changed."""
        session = self._session(server, binding)
        if session is None:
            return
        if session.era is Era.MODERN:
            self._listen(session)

    def _session(self, server: str, binding: str) -> Session | None:
        found = self._servers.get(server)
        session = found.sessions.get(binding) if found is not None else None
        return session if session is not None and not session.closed else None

    def _listen(self, session: Session) -> None:
        place = (session.server, session.binding)
        wanted: dict[str, object] = dict.fromkeys(listens_for(session), True)
        uris = list(self._subscriptions.uris(*place))
        if uris and can_subscribe(session):
            wanted["resourceSubscriptions"] = uris
        before = self._open.pop(place, None)
        since = asyncio.get_running_loop().time()
        if wanted:
            # The new one is opened before the old one ends, so that nothing is missed in between.
            call = session.listen(messages.encode(wanted), lambda outcome: self._ended(place, session, outcome, since))
            if call is not None and not call.settled:
                self._open[place] = call
        if before is not None:
            session.unlisten(before)

    def _ended(self, place: tuple[str, str], session: Session, outcome: Reply | BaseException, since: float) -> None:
        """The listen is over, and not because we ended it."""
        self._open.pop(place, None)
        if session.closed:
            return
        if (
            isinstance(outcome, Reply)
            and outcome.is_error
            and translate.error_code(outcome.body) == codes.METHOD_NOT_FOUND
        ):
            return  # it has no subscriptions: asking again would not change that
        loop = asyncio.get_running_loop()
        delay = FIRST_RETRY if loop.time() - since > LASTING_SECONDS else self._retries.get(place, FIRST_RETRY)
        self._retries[place] = min(delay * 2, LONGEST_RETRY)
        loop.call_later(delay, self._again, place)

    def _again(self, place: tuple[str, str]) -> None:
        if place not in self._open:
            self.refresh(*place)

    async def subscribe(self, server: str, binding: str, uri: str, seconds: float) -> None:
        """The first holder of a resource appeared."""
        session = self._session(server, binding)
        if session is None:
            return
        if session.era is Era.MODERN:
            self._listen(session)
        elif can_subscribe(session):
            await _tell(session, "resources/subscribe", uri, seconds)

    async def unsubscribe(self, server: str, binding: str, uri: str, seconds: float) -> None:
        session = self._session(server, binding)
        if session is None:
            return
        if session.era is Era.MODERN:
            self._listen(session)
        elif can_subscribe(session):
            await _tell(session, "resources/unsubscribe", uri, seconds)

    async def restore(self, server: str, binding: str, seconds: float) -> None:
        """A legacy session was rebuilt: it has forgotten its subscriptions."""
        session = self._session(server, binding)
        if session is not None and session.era is Era.LEGACY and can_subscribe(session):
            for uri in self._subscriptions.uris(server, binding):
                await _tell(session, "resources/subscribe", uri, seconds)


async def _tell(session: Session, method: str, uri: str, seconds: float) -> None:
    """Raises Fault. A session that the server has lost ends here; the next one restores what was subscribed."""
    try:
        await session.raw_request(method, messages.encode({"uri": uri}), seconds)
    except SessionLost:
        session.lost("the server ended the session")
