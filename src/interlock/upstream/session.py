"""One session with one server: ids, progress tokens, deadlines and what the server says back, whatever carries it.

The carrier moves bytes (a pipe, HTTP posts, an SSE stream). Ids are ours on each session and mapped back, so no client
can name, answer or cancel another's request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from interlock.model.fault import Fault
from interlock.upstream import evidence
from interlock.upstream.contract import Caller, Events, ListKind, Outgoing, Progress, Reply
from interlock.upstream.secret_forms import without_secrets
from interlock.wire import codes, messages, translate
from interlock.wire.eras import MODERN_VERSION, SUBSCRIPTION_KEY, Era, legacy_meta, modern_meta
from interlock.wire.headers import param_headers
from interlock.wire.messages import NULL, Kind, Message, Raw, RawMap, WireError

LIST_KINDS: dict[str, ListKind] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}


Done = Callable[["Reply | BaseException"], None]
"""Told of a call's outcome, once."""
HOLD_SECONDS = 1800.0
"""How long the questions of one call may stop its clock, all together."""
MAX_QUESTIONS = 32
"""Questions of one session that may be open: a server must not use up what its neighbours may ask the same client."""
SWEEP_SECONDS = 0.1
"""How coarse deadlines are."""


def _ignore(outcome: Reply | BaseException) -> None:
    return


class Call:
    """One request that is open at the server. `context` is the carrier's own.

    It is settled once, by an answer or by a failure; whatever comes later is ignored.
    """

    __slots__ = (
        "_done", "_held_since", "_holds", "_left", "_patience", "_pending", "context", "expires", "id", "method", "outgoing",
        "seconds", "settled",
    )  # fmt: skip

    def __init__(
        self, id: int, method: str, outgoing: Outgoing | None, seconds: float, pending: dict[int, Call], done: Done
    ) -> None:
        self.id = id
        self.method = method
        self.outgoing = outgoing
        self.seconds = seconds
        self.expires = 0.0
        """On the loop's clock; 0 where it never expires."""
        self.context: object = None
        self.settled = False
        self._pending = pending
        self._done = done
        self._holds = 0
        self._held_since = self._left = 0.0
        self._patience = HOLD_SECONDS

    def hold(self, now: float) -> None:
        """A question of the server is open: the clock of the call stands still while a person thinks, but not for ever."""
        self._holds += 1
        if self._holds == 1 and self.expires:
            self._held_since, self._left = now, self.expires - now
            self.expires = now + self._left + self._patience

    def go_on(self, now: float) -> None:
        """A question is answered; the clock runs again where no other is open."""
        self._holds -= 1
        if not self._holds and self._held_since:
            over = now - self._held_since - self._patience
            self._patience, self._held_since = max(-over, 0.0), 0.0
            self.expires = now + self._left - max(over, 0.0)

    def settle(self, outcome: Reply | BaseException) -> None:
        if not self.settled:
            self.settled = True
            self._pending.pop(self.id, None)
            # The carrier's part points back at the call: without this only the garbage collector could free the two.
            self.context = None
            done, self._done = self._done, _ignore
            done(outcome)

    def succeed(self, reply: Reply) -> None:
        self.settle(reply)

    def fail(self, fault: BaseException) -> None:
        self.settle(fault)


class SessionLost(Exception):
    """The server no longer knows the session (HTTP 404). It did not act; a new session may be opened and the call sent."""


class Carrier(Protocol):
    """Moves messages to one server. Never blocks; failures reach the call through `call.fail`."""

    def send(self, call: Call, message: bytes, name: str | None, params: list[tuple[str, str]]) -> None: ...
    def tell(self, message: bytes) -> None:
        """A notification or a response to the server's question; lost silently where the connection is gone."""

    def cancel(self, call: Call) -> None: ...
    def sent(self, call: Call) -> bool:
        """False where it is certain that not one byte of the request has left."""
        ...

    async def close(self) -> None: ...


class Session:
    """Ready to take requests once the handshake has set `era` and the rest."""

    def __init__(self, server: str, binding: str, caller: Caller | None, events: Events, client_info: bytes) -> None:
        self.server = server
        self.binding = binding
        self.caller = caller
        """The one client that this session belongs to, or None where it is shared."""
        self.events = events
        self.client_info = client_info
        self.mask: Callable[[str], str] = str
        """Takes the secrets that the server was given out of its own words, before they are shown or cut."""
        self.secrets: Callable[[], Sequence[str]] = tuple
        """Those secrets, for what is passed on byte for byte where none of them stands in it."""
        self.carrier: Carrier | None = None
        self.era = Era.LEGACY
        self.version = MODERN_VERSION
        self.capabilities: RawMap = {}
        self.server_info: Raw | None = None
        self.instructions: str | None = None
        self.log_level: str | None = None
        """What a legacy server was last told to log from."""
        self.closed = False
        self.pending: dict[int, Call] = {}
        self.junk = 0
        """Lines or messages from the server that could not be read."""
        self.last_used = 0.0
        self._next_id = 0
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self.listens: dict[int, Call] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._asking: dict[messages.Id, asyncio.Task[None]] = {}
        """Questions of the server that are open, by its ids."""
        self._said: tuple[Raw | None, Raw | None] | None = None
        self._said_meta = NULL

    # -- out ---------------------------------------------------------------------------------------------------------

    async def request(self, out: Outgoing) -> Reply:
        """Send one request and wait for its answer. Raises Fault, SessionLost or, where our caller gave up, CancelledError."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        return await self._wait(self.start(out, lambda outcome: _put(future, outcome)), future)

    def start(self, out: Outgoing, done: Done) -> Call:
        """Send one request; `done` gets its answer, or the Fault or SessionLost that it ended in. Raises Fault."""
        id = self._next_id + 1
        params = out.params
        if self.era is Era.MODERN:
            params["_meta"] = self._meta(out, id if out.wants_progress else None)
        else:
            meta = legacy_meta(out.meta, id if out.wants_progress else None)
            if meta is not None:
                params["_meta"] = meta
        body: bytes | None = messages.encode(params) if params or self.era is Era.MODERN else None
        mirrored = param_headers(out.header_params, params.get("arguments")) if out.header_params else []
        return self._send(out.method, out, out.seconds, body, out.name, mirrored, done)

    def _meta(self, out: Outgoing, token: int | None) -> Raw:
        """`_meta` for a modern request; made once for as long as callers say the same of themselves."""
        caller = out.caller
        if out.meta or token is not None:
            return modern_meta(out.meta, self.client_info, caller.capabilities, caller.log_level, token, self.version)
        said = (caller.capabilities, caller.log_level)
        if self._said is None or self._said[0] is not said[0] or self._said[1] is not said[1]:
            self._said = said
            self._said_meta = modern_meta({}, self.client_info, said[0], said[1], None, self.version)
        return self._said_meta

    async def raw_request(self, method: str, params: bytes | None, seconds: float, name: str | None = None) -> Reply:
        """A request of our own (handshake, ping, subscribe), already in its final shape."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        call = self._send(method, None, seconds, params, name, [], lambda outcome: _put(future, outcome))
        return await self._wait(call, future)

    def _send(
        self,
        method: str,
        out: Outgoing | None,
        seconds: float,
        params: bytes | None,
        name: str | None,
        mirrored: list[tuple[str, str]],
        done: Done,
    ) -> Call:
        carrier = self.carrier
        if self.closed or carrier is None:
            raise evidence.not_sent(self.server, "the connection ended")
        self._next_id = id = self._next_id + 1
        call = Call(id, method, out, seconds, self.pending, done)
        self.pending[id] = call
        self.last_used = now = self._loop.time()
        if seconds:
            call.expires = now + seconds
            if self._sweeper is None:
                self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        carrier.send(call, messages.request(id, method, params), name, mirrored)
        return call

    async def _wait(self, call: Call, future: asyncio.Future[Reply]) -> Reply:
        try:
            return await future
        except asyncio.CancelledError:
            self.cancel(call)
            raise

    def cancel(self, call: Call) -> None:
        """Our caller gave up: tell the server, and ignore what may still come."""
        if not call.settled:
            call.settled = True
            self.pending.pop(call.id, None)
            if self.carrier is not None:
                self.carrier.cancel(call)
            call.context = None

    def _sweep(self) -> None:
        """Fail what is past its deadline. One coarse timer for all calls costs the hot path nothing."""
        self._sweeper = None
        now = self._loop.time()
        for call in [each for each in self.pending.values() if each.expires and each.expires <= now]:
            sent = self.carrier is not None and self.carrier.sent(call)
            if self.carrier is not None:
                self.carrier.cancel(call)
            too_late = evidence.timed_out if sent else evidence.never_connected
            call.fail(too_late(self.server, call.method, call.seconds))
        if self.pending:
            self._sweeper = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def listen(self, filters: bytes, ended: Done) -> Call | None:
        """Open a modern `subscriptions/listen`. It stays open until the session ends or `unlisten`; `ended` says how."""
        meta = modern_meta({}, self.client_info, None, None, None, self.version)
        params = b'{"notifications":' + filters + b',"_meta":' + bytes(meta) + b"}"

        def over(outcome: Reply | BaseException) -> None:
            self.listens.pop(call.id, None)
            ended(outcome)

        try:
            call = self._send("subscriptions/listen", None, 0.0, params, None, [], over)
        except Fault:
            return None
        if not call.settled:
            self.listens[call.id] = call
        return call

    def unlisten(self, call: Call) -> None:
        if self.listens.pop(call.id, None) is not None:
            self.cancel(call)

    def notify(self, method: str, params: bytes | None) -> None:
        if self.carrier is not None and not self.closed:
            self.carrier.tell(messages.notification(method, params))

    # -- in ----------------------------------------------------------------------------------------------------------

    def received(self, data: bytes, call: Call | None = None) -> bool:
        """One message from the server. `call` is the request on whose stream it came, where the transport tells.

        False where it is not a message at all.
        """
        try:
            message = messages.parse(data)
        except WireError as error:
            self.junk += 1
            target = self.pending.get(error.response_id) if isinstance(error.response_id, int) else call
            if error.response_id is None or target is None:
                return False
            # It was meant as this call's answer, and no other will come.
            target.fail(evidence.bad_answer(self.server, f"its answer breaks the protocol ({error.message})"))
            return True
        kind = message.kind
        if kind is Kind.RESULT or kind is Kind.ERROR:
            self._answer(message, call)
        elif kind is Kind.NOTIFICATION:
            self._notification(message, call)
        else:
            self._question(message, call)
        return True

    def _answer(self, message: Message, call: Call | None) -> None:
        id = message.id
        target = self.pending.get(id) if id.__class__ is int else None
        if target is None:
            if call is None or id is not None:
                return  # an answer to nothing that is open: late, cancelled or made up
            target = call  # an error whose id the server could not read, on the request's own stream
        is_error = message.kind is Kind.ERROR
        body = bytes(message.body)
        if is_error and not translate.well_formed_error(body):
            target.fail(evidence.bad_answer(self.server, "the error in its answer is malformed"))
            return
        # Results stay as they are; an error's words are the server's own, and servers repeat what they refuse.
        target.succeed(Reply(without_secrets(body, self.secrets()) if is_error else body, is_error, self.era))

    def _notification(self, message: Message, call: Call | None) -> None:
        method, raw = message.method, message.params
        if method == "notifications/message" and raw is not None:
            raw = Raw(without_secrets(bytes(raw), self.secrets()))
        params = messages.try_map(raw) or {}
        if method == "notifications/progress":
            token = messages.try_json(params.pop("progressToken", None))
            target = self.pending.get(token) if token.__class__ is int else None
            out = target.outgoing if target is not None else None
            if out is not None and out.sink is not None and out.wants_progress:
                out.sink.on_notification(method, params)
            return
        kind = LIST_KINDS.get(method)
        if kind is not None:
            self.events.list_changed(self.server, self.binding, kind)
        elif method == "notifications/resources/updated":
            self.events.resource_updated(self.server, self.binding, params)
        elif method == "notifications/cancelled":
            id = messages.try_json(params.get("requestId"))
            if self.era is Era.LEGACY and isinstance(id, int | str) and id in self._asking:
                self._asking[id].cancel()  # the server no longer wants an answer to its question
            elif isinstance(id, int) and id in self.listens:
                self.listens[id].fail(evidence.lost(self.server, "the server ended the subscription"))
        elif method == "notifications/subscriptions/acknowledged":
            return
        else:
            meta = messages.try_map(params.get("_meta"))
            if meta and SUBSCRIPTION_KEY in meta:
                del meta[SUBSCRIPTION_KEY]
                params["_meta"] = Raw(messages.write_map(meta))
            target = call or self._oldest()
            sink = target.outgoing.sink if target is not None and target.outgoing is not None else None
            if sink is not None:
                sink.on_notification(method, params)
            else:
                self.events.notification(self.server, self.binding, self.caller, method, params)

    def _oldest(self) -> Call | None:
        """The oldest open call of the one client that uses this session; None where several principals share it.

        Parked calls come last: their servers wait for an answer that is on its way.
        """
        found: Call | None = None
        parked: Call | None = None
        principal: str | None = None
        for call in self.pending.values():
            out = call.outgoing
            if out is None or out.sink is None:
                continue
            if principal is not None and principal != out.caller.principal:
                return None
            principal = out.caller.principal
            if out.sink.parked:
                parked = parked or call
            else:
                found = found or call
        return found or parked

    def _question(self, message: Message, call: Call | None) -> None:
        id = message.id
        assert id is not None
        if message.method == "ping":
            self._respond(messages.result(id, b"{}"))
            return
        if self.era is Era.MODERN:
            text = "a server of this revision may not send requests (2026-07-28, basic/patterns/mrtr)"
            self._respond(messages.error(id, messages.error_body(codes.METHOD_NOT_FOUND, text)))
            return
        if id in self._asking or len(self._asking) >= MAX_QUESTIONS:
            text = "too many questions are open" if id not in self._asking else "a question with this id is still open"
            self._respond(messages.error(id, messages.error_body(codes.INVALID_REQUEST, text)))
            return
        task = self.spawn(self._ask(id, message.method, message.params, call or self._oldest()))
        self._asking[id] = task
        task.add_done_callback(lambda _: self._asking.pop(id, None))

    async def _ask(self, id: messages.Id, method: str, params: Raw | None, call: Call | None) -> None:
        sink = call.outgoing.sink if call is not None and call.outgoing is not None else None
        progress = self._progress_back(params)
        if call is not None:
            call.hold(self._loop.time())
        try:
            if sink is not None:
                reply = await sink.on_question(method, params, progress)
            else:
                reply = await self.events.question(self.server, self.caller, method, params, progress)
            answer = messages.error(id, reply.body) if reply.is_error else messages.result(id, reply.body)
        except Fault as fault:
            answer = messages.error(id, messages.error_body(codes.code_of(fault.slug), fault.message))
        finally:
            if call is not None:
                call.go_on(self._loop.time())
        self._respond(answer)

    def _progress_back(self, params: Raw | None) -> Progress:
        """Takes a client's progress on a question to the server, under the token that the server gave."""
        members = messages.try_map(params) or {}
        meta = messages.try_map(members.get("_meta")) or {}
        token = meta.get("progressToken")

        def progress(told: RawMap) -> None:
            if token is not None:
                told = {"progressToken": token, **told}
                self.notify("notifications/progress", messages.write_map(told))

        return progress

    def _respond(self, message: bytes) -> None:
        if self.carrier is not None and not self.closed:
            self.carrier.tell(message)

    def spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Run something beside the calls; it ends with the session."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- end ---------------------------------------------------------------------------------------------------------

    def lost(self, how: str, sent: Fault | None = None) -> None:
        """The connection is gone: every open call ends with what is known of it."""
        self.retire()
        for call in list(self.pending.values()):
            call.fail(sent or evidence.lost(self.server, how))
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for task in list(self._tasks):
            task.cancel()

    def retire(self) -> None:
        """Take no more requests. What is open goes on to its own end: each POST has its own answer, whatever became of others."""
        if not self.closed:
            self.closed = True
            self.events.session_ended(self.server, self.binding)

    async def close(self) -> None:
        self.lost("Interlock closed the connection")
        if self.carrier is not None:
            await self.carrier.close()


def _put(future: asyncio.Future[Reply], outcome: Reply | BaseException) -> None:
    if future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
