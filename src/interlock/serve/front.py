"""From a client's message to the pipeline and back: the same for stdio and HTTP, for both eras.

`initialize` and `server/discover` are answered here and at once, before any server is ready.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Final

from interlock.calls import answers
from interlock.catalog.snapshot import Kind
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.pipeline import Pipeline
from interlock.relay.client import Client
from interlock.relay.exchange import Channel, Exchange
from interlock.upstream.contract import Caller
from interlock.wire import codes, hello, messages, translate
from interlock.wire.eras import (
    MODERN_VERSIONS,
    VERSION_KEY,
    Era,
    RequestMeta,
    pick_legacy,
    take_meta,
)
from interlock.wire.headers import NAME_SOURCE, check_standard
from interlock.wire.levels import LEVELS
from interlock.wire.messages import EMPTY_OBJECT, Id, Message, Raw, RawMap, WireError
from interlock.wire.messages import Kind as MessageKind

_LISTS: Final[dict[str, Kind]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "templates",
}
_LEGACY_ONLY: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
_MODERN_ONLY: Final = frozenset({"server/discover", "subscriptions/listen"})
_LEGACY_LOG_LEVEL: Final = Raw(b'"info"')
"""What we ask of modern servers for a legacy client that has set no level: it expects to hear something."""
Work = Callable[[Exchange], Awaitable[tuple[bytes, bool]]]


class Front:
    """Shared by all connections of one running Interlock."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.draining = asyncio.Event()
        self._ending = False
        """True once requests that are still open are given up, at the end of draining."""
        self._open: set[Exchange] = set()
        self._empty = asyncio.Event()
        """Set when the last open exchange is over while draining."""
        pipeline.restart = self._serve_anew
        self._loop = asyncio.get_running_loop()
        self._work: dict[str, Work] = {
            "tools/call": pipeline.call,
            "prompts/get": pipeline.call,
            "resources/read": pipeline.call,
            "completion/complete": pipeline.complete,
            "server/discover": self._discover,
            "initialize": self._initialize,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "subscriptions/listen": self._listen,
            **dict.fromkeys(_LISTS, self._list),
        }

    # -- in ------------------------------------------------------------------------------------------------------------

    def line(self, client: Client, data: bytes, channel: Channel) -> None:
        """One message of a stdio client. Never raises."""
        try:
            if messages.is_batch(data):
                raise WireError(codes.INVALID_REQUEST, "batches are not supported over stdio: send one message a line")
            message = messages.parse(data, strict=True)
            if message.kind is not MessageKind.REQUEST:
                self.aside(client, message)
                return
            params = messages.read_map(message.params)
            meta = take_meta(params)
            modern = meta.version is not None or message.method in _MODERN_ONLY
            self.request(client, message, params, meta, Era.MODERN if modern else Era.LEGACY, channel, None, len(data))
        except WireError as error:
            if error.response_id is not None:
                self.answered_badly(client, error)
                return
            id = error.id if error.id is not None else _id_of(data)
            channel.answer(messages.error(id, self.refusal(error)))

    def refusal(self, error: WireError) -> bytes:
        """The error object for a message that breaks the protocol. It was not passed on, whoever it was for."""
        data: dict[str, object] = {}
        if isinstance(error, _Unsupported):
            # What the protocol itself wants there (2026-07-28, basic/versioning).
            data = {"supported": list(MODERN_VERSIONS), "requested": error.requested}
        data |= {
            "interlock": self.pipeline.build,
            "error": error.slug,
            "server": None,
            "stage": Stage.DISCOVER.value,
            "verdict": Verdict.NEVER_REACHED.value,
            "retry": "never",
        }
        return messages.error_body(error.code, error.message, data)

    def aside(self, client: Client, message: Message) -> None:
        """A notification, or a response to a question of ours."""
        kind = message.kind
        if kind is MessageKind.RESULT or kind is MessageKind.ERROR:
            client.answered(message.id, message.body, kind is MessageKind.ERROR)
            return
        method = message.method
        if method == "notifications/cancelled":
            params = messages.try_map(message.params) or {}
            client.cancel(messages.try_json(params.get("requestId")))
        elif method == "notifications/progress":
            client.progressed(messages.try_map(message.params) or {})
        elif method == "notifications/initialized":
            client.ready = True
        elif method == "notifications/roots/list_changed":
            self._tell_servers(client, message)

    def answered_badly(self, client: Client, error: WireError) -> None:
        """The client's answer to a question of ours cannot be read: whoever asked gets to know, and need not wait."""
        client.answered(error.response_id, Raw(messages.error_body(error.code, error.message)), True)

    def _tell_servers(self, client: Client, message: Message) -> None:
        params = bytes(message.params) if message.params is not None else None
        for server in self.pipeline.servers.values():
            for session in server.sessions.values():
                if session.caller is not None and session.caller.client == client.id and session.era is Era.LEGACY:
                    session.notify(message.method, params)

    def request(
        self,
        client: Client,
        message: Message,
        params: RawMap,
        meta: RequestMeta,
        era: Era,
        channel: Channel,
        headers: dict[bytes, bytes] | None,
        size: int,
    ) -> Exchange:
        """Start serving one request. Raises WireError where it breaks the protocol."""
        id = message.id
        assert id is not None
        method = message.method
        caller = (
            self._modern_caller(client, method, params, meta, headers, id)
            if era is Era.MODERN
            else _legacy_caller(client)
        )
        work = self._work.get(method)
        if (era is Era.MODERN and method in _LEGACY_ONLY) or (era is Era.LEGACY and method in _MODERN_ONLY):
            raise WireError(codes.METHOD_NOT_FOUND, f"Method not found: {method}", id)
        if (era is Era.LEGACY or headers is None) and id in client.open:
            raise WireError(codes.INVALID_REQUEST, "a request with this id is still open", id)
        exchange = Exchange(client, id, method, params, meta, era, caller, channel, headers, size)
        if era is Era.LEGACY or headers is None:
            client.open[id] = exchange
        client.last_seen = self._loop.time()
        self._open.add(exchange)
        if self.draining.is_set() or not self.pipeline.start(exchange, self._answered):
            exchange.task = self._loop.create_task(self._serve(exchange, work or self.pipeline.pass_on))
        return exchange

    def _answered(self, exchange: Exchange, body: bytes, is_error: bool) -> None:
        """A call that went the short way is over; an empty body: it was cancelled."""
        self._over(exchange)
        if is_error:
            exchange.channel.answer(messages.error(exchange.id, body), http_status(body, exchange.era))
        elif body:
            exchange.channel.answer(messages.result(exchange.id, body))
        elif not self._ending:
            exchange.channel.dropped()
        else:
            self._cut_off(exchange)

    def _serve_anew(self, exchange: Exchange) -> None:
        exchange.task = self._loop.create_task(self._serve(exchange, self.pipeline.call))

    def _modern_caller(
        self,
        client: Client,
        method: str,
        params: RawMap,
        meta: RequestMeta,
        headers: dict[bytes, bytes] | None,
        id: Id,
    ) -> Caller:
        version = meta.version
        if version is None:
            if headers is not None and b"mcp-protocol-version" in headers:
                text = headers[b"mcp-protocol-version"].decode("latin-1")
                if text not in MODERN_VERSIONS and method not in _MODERN_ONLY:
                    raise _unsupported(text, id)
            raise WireError(codes.INVALID_PARAMS, f"_meta must name {VERSION_KEY}", id)
        try:
            if headers is not None:
                check_standard(headers, method, version, params.get(NAME_SOURCE.get(method, "")))
        except WireError as error:
            error.id = id
            raise
        if version not in MODERN_VERSIONS:
            raise _unsupported(version, id)
        if meta.capabilities is None or messages.try_map(meta.capabilities) is None:
            raise WireError(
                codes.INVALID_PARAMS, "_meta must hold io.modelcontextprotocol/clientCapabilities, an object", id
            )
        if meta.log_level is not None and messages.try_str(meta.log_level) not in LEVELS:
            raise WireError(codes.INVALID_PARAMS, "io.modelcontextprotocol/logLevel is not a log level", id)
        return client.modern_caller(meta.capabilities, meta.log_level)

    # -- serving -------------------------------------------------------------------------------------------------------

    async def _serve(self, exchange: Exchange, work: Work) -> None:
        id = exchange.id
        status = 200
        exchange.started = True
        try:
            if exchange.abandoned:
                raise asyncio.CancelledError
            if self.draining.is_set() and exchange.method not in ("ping", "initialize"):
                raise Fault(
                    "draining", "Interlock is shutting down; the request was not passed on. Retry after the restart.",
                    stage=Stage.DISCOVER, verdict=Verdict.WAIT, wait_seconds=5.0,
                )  # fmt: skip
            body, is_error = await work(exchange)
            if is_error:
                message = messages.error(id, body)
                status = http_status(body, exchange.era)
            else:
                message = messages.result(id, body)
        except WireError as error:
            body = self.refusal(error)
            status = http_status(body, exchange.era)
            message = messages.error(id, body)
        except Fault as fault:
            message = messages.error(id, answers.error_body(fault, self.pipeline.build))
        except asyncio.CancelledError:
            self._over(exchange)
            if not self._ending:
                exchange.channel.dropped()
                return
            self._cut_off(exchange)
            return
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            own = Fault(
                "internal",
                f"a fault in Interlock itself ({type(error).__name__}) ended this request. It may have taken effect: read the target "
                "again before a retry, and please report it.",
                stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN,
            )  # fmt: skip
            message = messages.error(id, answers.error_body(own, self.pipeline.build))
        self._over(exchange)
        exchange.channel.answer(message, status)

    def _cut_off(self, exchange: Exchange) -> None:
        late = Fault(
            "draining",
            "Interlock was shut down before the answer came. The call may have taken effect: read the target again before "
            "a retry.",
            stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN,
        )  # fmt: skip
        exchange.channel.answer(messages.error(exchange.id, answers.error_body(late, self.pipeline.build)))

    def _over(self, exchange: Exchange) -> None:
        exchange.done = True
        self._open.discard(exchange)
        if not self._open and self.draining.is_set():
            self._empty.set()
        if exchange.client.open.get(exchange.id) is exchange:
            del exchange.client.open[exchange.id]

    async def _list(self, exchange: Exchange) -> tuple[bytes, bool]:
        return await self.pipeline.list(exchange, _LISTS[exchange.method]), False

    async def _ping(self, exchange: Exchange) -> tuple[bytes, bool]:
        return b"{}", False

    async def _set_level(self, exchange: Exchange) -> tuple[bytes, bool]:
        level = messages.try_str(exchange.params.get("level"))
        if level not in LEVELS:
            raise WireError(codes.INVALID_PARAMS, f"params.level must be one of {', '.join(LEVELS)}", exchange.id)
        client = exchange.client
        client.log_level = level
        await asyncio.gather(*(server.set_log_level(client.id, level) for server in self.pipeline.servers.values()))
        return b"{}", False

    async def _subscribe(self, exchange: Exchange) -> tuple[bytes, bool]:
        await self.pipeline.subscribe(exchange, True)
        return b"{}", False

    async def _unsubscribe(self, exchange: Exchange) -> tuple[bytes, bool]:
        await self.pipeline.subscribe(exchange, False)
        return b"{}", False

    async def _listen(self, exchange: Exchange) -> tuple[bytes, bool]:
        return await self.pipeline.watching.listen(exchange, self.draining), False

    async def _initialize(self, exchange: Exchange) -> tuple[bytes, bool]:
        params = exchange.params
        requested = messages.try_str(params.get("protocolVersion"))
        if requested is None:
            raise WireError(codes.INVALID_PARAMS, "params.protocolVersion must be a string", exchange.id)
        client = exchange.client
        version = pick_legacy(requested)
        client.initialized(params.get("capabilities"), version)
        exchange.caller = client.caller()
        client.ready = True
        view = self.pipeline.view(exchange, complete=False)
        return messages.encode(hello.initialize_result(version, view.capabilities, view.instructions)), False

    async def _discover(self, exchange: Exchange) -> tuple[bytes, bool]:
        view = self.pipeline.view(exchange, complete=False)
        return messages.encode(hello.discover_result(view.capabilities, view.instructions)), False

    def greeted(self, client: Client, data: bytes) -> None:
        """The client's first message was answered already, before this existed (cli/early.py): catch up with it."""
        message = messages.parse(data)
        if message.method == "initialize":
            params = messages.read_map(message.params)
            client.initialized(
                params.get("capabilities"), pick_legacy(messages.try_str(params.get("protocolVersion")) or "")
            )
            client.ready = True

    # -- ends ----------------------------------------------------------------------------------------------------------

    def client_gone(self, client: Client) -> None:
        """The client ended: cancel what it left open and let its servers go."""
        self.pipeline.hub.registry.clients.pop(client.id, None)
        client.close()
        self.pipeline.client_gone(client.id)

    async def drain(self, grace: float) -> None:
        """Take no more calls; give those under way `grace` seconds."""
        self.draining.set()
        await self._emptied(grace)
        self._ending = True
        for exchange in list(self._open):
            exchange.cancel()
        await self._emptied(1.0)

    async def _emptied(self, seconds: float) -> None:
        if self._open:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._empty.wait(), seconds)


def _legacy_caller(client: Client) -> Caller:
    caller = client.caller()
    level = client.log_level
    wanted = messages.raw(level) if level is not None else _LEGACY_LOG_LEVEL
    if caller.log_level is None or bytes(caller.log_level) != bytes(wanted):
        caller = Caller(caller.client, caller.principal, caller.capabilities or EMPTY_OBJECT, wanted, Era.LEGACY)
        client.remember_caller(caller)
    return caller


class _Unsupported(WireError):
    """Carries the versions that we do support (2026-07-28, basic/versioning)."""

    def __init__(self, requested: str, id: Id) -> None:
        super().__init__(codes.UNSUPPORTED_VERSION, "Unsupported protocol version", id)
        self.requested = requested


def _unsupported(version: str, id: Id) -> WireError:
    return _Unsupported(version, id)


def http_status(body: bytes, era: Era) -> int:
    """The HTTP status of a modern error (2026-07-28, Streamable HTTP); legacy errors are 200."""
    if era is Era.LEGACY:
        return 200
    code = translate.error_code(body)
    if code == codes.METHOD_NOT_FOUND:
        return 404
    if code in codes.MODERN_ERRORS or code in (codes.PARSE_ERROR, codes.INVALID_REQUEST):
        return 400
    return 200


def _id_of(data: bytes) -> Id | None:
    try:
        return messages.parse(data).id
    except WireError as error:
        return error.id
