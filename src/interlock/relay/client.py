"""A downstream client: a legacy session, a `connect` process, or a credential that modern requests come with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interlock.model.decision import Decision
from interlock.model.principal import Principal
from interlock.upstream.contract import Caller, Progress, Reply
from interlock.wire import messages
from interlock.wire.eras import LATEST_LEGACY, OWNED, SUBSCRIPTION_KEY, Era
from interlock.wire.levels import at_least
from interlock.wire.messages import Id, Raw, RawMap

if TYPE_CHECKING:
    from interlock.relay.exchange import Exchange


@dataclass(slots=True)
class Listen:
    """One open modern `subscriptions/listen`."""

    id: Id
    kinds: frozenset[str]
    uris: frozenset[str]
    exchange: Exchange


class Client:
    """State that outlives one request. `push` sends a message outside any request; None where the client has no such way."""

    def __init__(self, id: str, principal: Principal, era: Era = Era.LEGACY) -> None:
        self.id = id
        self.principal = principal
        self.era = era
        self.version = LATEST_LEGACY
        self.capabilities: Raw | None = None
        self.log_level: str | None = None
        """What a legacy client set by `logging/setLevel`; None: everything."""
        self.ready = False
        """True once a legacy client has sent `notifications/initialized` (or anything after `initialize`)."""
        self.push: Callable[[bytes], None] | None = None
        self.asking_host = principal.host
        """The host whose own asking may count (`approval: host`): the principal's, unless that host is not really there."""
        self.approve: Callable[[str, Decision, Raw | None], Awaitable[bool | None]] | None = None
        """Asks the person directly, where Interlock itself is at the terminal (`interlock call`). None: nobody could be asked."""
        self.open: dict[Id, Exchange] = {}
        self.listens: dict[int, Listen] = {}
        self.subscriptions: set[str] = set()
        self.questions: dict[int, asyncio.Future[Reply]] = {}
        self.progress: dict[int, Progress] = {}
        """Who wants to hear of the client's progress on a question, by the question's id."""
        self.listed: set[str] = set()
        """The kinds of list that it was given, so that a change of them is news."""
        self._next_question = 0
        self._caller: Caller | None = None
        self._modern_caller: Caller | None = None
        self.last_seen = 0.0
        self.root: str | None = None
        """The project that a `connect` process serves, where it said so."""
        self.views: dict[tuple[Era, bytes], object] = {}
        """Views built for this client, kept by `pipeline`."""

    def caller(self) -> Caller:
        """The one caller of a legacy client: its capabilities were fixed by `initialize`."""
        if self._caller is None:
            self._caller = Caller(self.id, self.principal.id, self.capabilities, era=Era.LEGACY)
        return self._caller

    def modern_caller(self, capabilities: Raw, log_level: Raw | None) -> Caller:
        """The caller of one modern request. Clients say the same of themselves each time, so there is mostly one."""
        known = self._modern_caller
        if known is None or known.capabilities is not capabilities or known.log_level is not log_level:
            known = self._modern_caller = Caller(self.id, self.principal.id, capabilities, log_level)
        return known

    def remember_caller(self, caller: Caller) -> None:
        """The caller that requests of this client are made for from now on (its log level changed)."""
        self._caller = caller

    def initialized(self, capabilities: Raw | None, version: str) -> None:
        self.capabilities = Raw(bytes(capabilities)) if capabilities is not None else None
        self.version = version
        self._caller = None

    def wants_log(self, level: str | None) -> bool:
        return at_least(level, self.log_level)

    # -- out of band
    def tell(self, method: str, params: RawMap | None) -> None:
        """A notification that belongs to no request (legacy)."""
        if self.push is not None and self.ready:
            body = messages.write_map(params) if params else None
            self.push(messages.notification(method, body))

    def list_changed(self, kind: str) -> None:
        """`kind` is tools, prompts or resources."""
        method = f"notifications/{kind}/list_changed"
        if self.era is Era.LEGACY:
            self.tell(method, None)
        for listen in list(self.listens.values()):
            if kind in listen.kinds:
                self._to_listen(listen, method, {})

    def resource_updated(self, exposed: str, params: RawMap) -> None:
        meta = messages.try_map(params.get("_meta"))
        if meta and not OWNED.isdisjoint(meta):
            # The subscription that it came on is one of ours at the server; it means nothing to a client.
            meta = {key: value for key, value in meta.items() if key not in OWNED}
            params = {**params, "_meta": Raw(messages.write_map(meta))}
            if not meta:
                del params["_meta"]
        if exposed in self.subscriptions:
            self.tell("notifications/resources/updated", {**params, "uri": messages.raw(exposed)})
        for listen in list(self.listens.values()):
            if exposed in listen.uris:
                self._to_listen(listen, "notifications/resources/updated", {**params, "uri": messages.raw(exposed)})

    def _to_listen(self, listen: Listen, method: str, params: RawMap) -> None:
        meta = messages.try_map(params.get("_meta")) or {}
        meta[SUBSCRIPTION_KEY] = messages.raw(listen.id)
        params = {**params, "_meta": Raw(messages.write_map(meta))}
        listen.exchange.channel.notify(messages.notification(method, messages.write_map(params)))

    # -- questions of ours to a legacy client
    def new_question(self) -> tuple[int, asyncio.Future[Reply]]:
        """Raises OverflowError where too many are open: a client that never answers must not fill the memory."""
        if len(self.questions) >= 256:
            raise OverflowError
        self._next_question = id = self._next_question + 1
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.questions[id] = future
        return id, future

    def skip_questions(self, last: int) -> None:
        """Ids up to `last` were used for this client already, by the process that served it before."""
        self._next_question = max(self._next_question, last)

    def answered(self, id: Id | None, body: Raw, is_error: bool) -> None:
        """A response from the client. One to nothing that is open is ignored."""
        own = messages.own_id(id)
        future = self.questions.pop(own, None) if own is not None else None
        if future is not None and not future.done():
            future.set_result(Reply(bytes(body), is_error, Era.LEGACY))

    def progressed(self, params: RawMap) -> None:
        """The client tells how far it is with a question. A token of nothing that is open is ignored."""
        token = messages.try_json(params.pop("progressToken", None))
        progress = self.progress.get(token) if isinstance(token, int) else None
        if progress is not None:
            progress(params)

    def cancel(self, id: object) -> None:
        """The client cancels a request of its own. A finished or unknown id is ignored: one real host sends these always."""
        exchange = self.open.get(id) if isinstance(id, int | str) and not isinstance(id, bool) else None
        if exchange is not None:
            exchange.cancel()

    def close(self) -> None:
        for exchange in [*self.open.values(), *(listen.exchange for listen in self.listens.values())]:
            exchange.cancel()
        for future in self.questions.values():
            future.cancel()
        self.questions.clear()
        self.listens.clear()


@dataclass(slots=True)
class Registry:
    """All downstream clients, by id."""

    clients: dict[str, Client] = field(default_factory=dict)

    def of_binding(self, binding: str) -> list[Client]:
        """Whom a session serves: everybody where it is shared, else the one client named in the binding."""
        if "#" not in binding:
            return list(self.clients.values())
        client = self.clients.get(binding.rpartition("#")[0])
        return [client] if client is not None else []
