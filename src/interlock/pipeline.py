"""The seven stages in order, for each thing that can happen: a list, a call, a subscription.

    DISCOVER -> DESCRIBE -> SELECT -> AUTHORIZE -> EXECUTE -> VALIDATE -> OBSERVE

This file hands one stage's output to the next and owns the one admission function that list and call share. What a stage
does is in its folder; none of them imports another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Final

from interlock.calls import answers
from interlock.catalog.catalogue import Catalogue, Recall, Remember
from interlock.catalog.naming import profile_for
from interlock.catalog.snapshot import Entry, Kind
from interlock.catalog.uris import expose_uri, rewrite_result_uris
from interlock.catalog.view import Route, View, build_view, page
from interlock.gates.static import judge
from interlock.gates.subject import Subject
from interlock.journal.audit import Journal
from interlock.journal.trace import new_trace_id
from interlock.manifest.config import Gateway, ServerConfig
from interlock.model.decision import Answer, Decision
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace
from interlock.model.verdict import Verdict
from interlock.relay.bridging import Bridge
from interlock.relay.consent import ask_person
from interlock.relay.exchange import Exchange
from interlock.relay.hub import Hub
from interlock.relay.rounds import Answered, Retry, Rounds
from interlock.relay.sink import ExchangeSink
from interlock.relay.watching import Watching
from interlock.routing import Routing
from interlock.upstream.contract import Outgoing, Reply
from interlock.upstream.server import Server
from interlock.wire import codes, messages, translate
from interlock.wire.eras import Era
from interlock.wire.headers import check_params
from interlock.wire.messages import Raw, WireError

_KIND_OF: Final[dict[str, Kind]] = {"tools/call": "tools", "prompts/get": "prompts", "resources/read": "resources"}


class Attempt:
    """One call on its way through the stages: what has been found out, and when the last stage ended."""

    __slots__ = ("admitted", "began", "ended", "exchange", "name", "retry", "route", "trace")

    def __init__(self, exchange: Exchange, trace: RouteTrace) -> None:
        self.exchange = exchange
        self.trace = trace
        self.route: Route | None = None
        self.name = ""
        self.retry = _FIRST
        self.admitted = False
        self.began = self.ended = perf_counter_ns()

    def mark(self, stage: Stage, decision: str, reason: str, rule: str | None = None) -> None:
        """This stage is over."""
        now = perf_counter_ns()
        self.trace.marks.append(Mark(stage, decision, reason, rule, (now - self.ended) // 1000))
        self.ended = now


class Pipeline:
    """One for each running Interlock."""

    def __init__(
        self,
        gateway: Gateway,
        servers: Mapping[str, Server],
        hub: Hub,
        journal: Journal,
        *,
        build: Callable[[], str],
        server_info: bytes,
        seal_key: bytes,
        remember: Remember,
        recall: Recall,
    ) -> None:
        self.gateway = gateway
        self.servers = servers
        self.hub = hub
        self.journal = journal
        self._build = build
        self.server_info = server_info
        self.rounds = Rounds(seal_key, server_info)
        self.restart: Callable[[Exchange], None] = lambda exchange: None
        """Serves an exchange from its beginning; set by the front."""
        self.notice: str | None = None
        """A sentence that the next tool's answer carries, once: a newer Interlock is out."""
        self.last_view: View | None = None
        """The view that was built last: what the next start may say of the servers at once."""
        self.verbatim = next((key for key, config in gateway.servers.items() if config.names == "verbatim"), None)
        self.catalogue = Catalogue(servers, remember=remember, recall_bytes=recall, changed=self._changed)
        self.routing = Routing(gateway, servers, self.catalogue, self.verbatim, view=self.view, admit=self.admit)
        self.bridge = Bridge(self.rounds, self.verbatim is None)
        self.watching = Watching(hub, servers, self._route_uri, lambda exchange: self.catalogue.settle(exchange.caller))
        hub.invalidate = self.catalogue.invalidate
        hub.session_up = self.catalogue.session_started
        hub.expose = self._exposed_uri
        hub.name_servers = self.verbatim is None

    @property
    def build(self) -> str:
        """The version that errors and results name. Worked out when first needed: it reads the installed files."""
        return self._build()

    # == the one admission function, for lists and calls alike =========================================================

    def admit(self, config: ServerConfig, kind: Kind, entry: Entry, host: str | None) -> Decision:
        return judge(Subject(config, kind, entry.canonical.item, host, entry.read_hint, entry.destructive_hint))

    # == a list ========================================================================================================

    async def list(self, exchange: Exchange, kind: Kind) -> bytes:
        """One page of one list, of all servers. Raises WireError for a cursor that is not ours."""
        attempt = Attempt(exchange, self._trace(exchange))
        cursor = exchange.params.get("cursor")
        complete = True
        if cursor is None:
            complete = await self.catalogue.settle(exchange.caller)  # DISCOVER, DESCRIBE
        view = self.view(exchange, complete)  # SELECT, AUTHORIZE
        exchange.client.listed.add(kind)
        body = page(view, kind, cursor, era=exchange.era, server_info=self.server_info)
        count = len(view.lists[kind].items)
        hidden = len(view.hidden[kind])
        missing = "" if complete else "; some servers have not answered yet"
        attempt.mark(Stage.DESCRIBE, "listed", f"{count} {kind}{missing}")
        attempt.mark(Stage.AUTHORIZE, "allow", f"{hidden} not admitted" if hidden else "all admitted")
        self._observe(attempt, "ok", len(body))
        return body

    def view(self, exchange: Exchange, complete: bool = True) -> View:
        """The catalogue as this client sees it, rebuilt only where something changed."""
        client = exchange.client
        key = (exchange.era, bytes(exchange.caller.capabilities or b""))
        view = client.views.get(key)
        if isinstance(view, View) and view.generation == self.catalogue.generation and view.complete >= complete:
            return view
        host = client.principal.host
        view = build_view(
            self.gateway.servers,
            self.catalogue.snapshots(exchange.caller),
            profile=profile_for(host),
            era=exchange.era,
            admit=lambda config, kind, entry: self.admit(config, kind, entry, client.asking_host),
            complete=complete,
            generation=self.catalogue.generation,
        )
        if len(client.views) >= 8:
            client.views.clear()
        client.views[key] = view
        self.last_view = view
        return view

    # == a call ========================================================================================================

    async def call(self, exchange: Exchange) -> tuple[bytes, bool]:
        """`tools/call`, `prompts/get`, `resources/read`: the result or error object, and whether it is an error.

        Raises WireError for requests that break the protocol; every other failure is an answer.
        """
        attempt = Attempt(exchange, self._trace(exchange))
        try:
            route = await self.routing.find(exchange, _KIND_OF[exchange.method], attempt.trace)
            self._describe(attempt, route)
            if _has_round(exchange):
                attempt.retry = self.rounds.take(exchange, route.server, attempt.name)
            how = None
            if route.decision.answer is Answer.ASK:
                how = await ask_person(
                    self.rounds, exchange, server=route.server, tool=attempt.name, retry=attempt.retry, decision=route.decision
                )  # fmt: skip
            self._authorized(attempt, route.decision, how)
            return self._conclude(attempt, await self._execute(attempt, route))
        except Answered as pause:
            if not attempt.admitted or not _asked_server(attempt):
                attempt.mark(Stage.AUTHORIZE, "ask", "a person has to answer first")
            else:
                attempt.mark(Stage.EXECUTE, "input_required", "the client has to answer the server's question first")
            self._observe(attempt, "input_required", len(pause.body))
            return pause.body, False
        except Fault as fault:
            return self._failed(attempt, fault)
        except WireError as error:
            attempt.mark(Stage.AUTHORIZE if attempt.admitted else Stage.DESCRIBE, "refused", error.message)
            self._observe(attempt, "error", 0)
            raise
        except asyncio.CancelledError:
            self._cancelled(attempt)
            raise

    def start(self, exchange: Exchange, answered: Callable[[Exchange, bytes, bool], None]) -> bool:
        """The same call without waiting for anything but the server, for the common case: the route is known, nobody has to
        be asked, a session is open, and both sides speak the same era. `answered` gets what `call` would return.

        False where the call has to go the long way. Takes no more than a few microseconds.
        """
        if exchange.method != "tools/call" or _has_round(exchange):
            return False
        exposed = exchange.params.get("name")
        route = self.view(exchange).routes["tools"].get(messages.try_str(exposed) or "")
        if route is None or route.decision.answer is not Answer.ALLOW or route.entry.headers:
            return False
        server = self.servers[route.server]
        session = server.open_session(exchange.caller) if server.bindings is None else None
        if session is None or session.era is not exchange.era:
            return False
        attempt = Attempt(exchange, self._trace(exchange))
        self._describe(attempt, route)
        self._authorized(attempt, route.decision, None)
        out = self._outgoing(attempt, route)
        out.sink = ExchangeSink(exchange, route.server, self.verbatim is None)

        def done(outcome: Reply | BaseException) -> None:
            exchange.abort = None
            if isinstance(outcome, Reply) and _wants_other_headers(outcome):
                again(exchange)  # the long way asks for its tools anew
            elif isinstance(outcome, Reply):
                try:
                    body, is_error = self._conclude(attempt, outcome)
                except Fault as fault:
                    body, is_error = self._failed(attempt, fault)
            elif isinstance(outcome, Fault):
                body, is_error = self._failed(attempt, outcome)
            else:  # the server forgot the session, so it did not act: the long way opens a new one
                again(exchange)
                return
            answered(exchange, body, is_error)

        def again(exchange: Exchange) -> None:
            exchange.params.pop("_meta", None)
            assert exposed is not None
            exchange.params["name"] = exposed
            self.restart(exchange)

        def abort() -> None:
            exchange.abort = None
            session.cancel(call)
            self._cancelled(attempt)
            answered(exchange, b"", False)

        try:
            call = session.start(out, done)
        except Fault as fault:
            answered(exchange, *self._failed(attempt, fault))
            return True
        if not call.settled:
            exchange.abort = abort
        return True

    # -- DISCOVER, DESCRIBE: which server, under which name of its own -------------------------------------------------

    def _describe(self, attempt: Attempt, route: Route) -> None:
        exchange = attempt.exchange
        entry = route.entry
        trace = attempt.trace
        attempt.route = route
        trace.server = route.server
        trace.name = attempt.name = str(entry.canonical)
        if entry.headers and exchange.headers is not None and exchange.era is Era.MODERN:
            check_params(exchange.headers, entry.headers, exchange.params.get("arguments"))
        server = self.servers[route.server]
        trace.marks.append(_READY if server.sessions else Mark(Stage.DISCOVER, server.state, _DISCOVERED, None, 0))
        attempt.mark(Stage.DESCRIBE, "found", attempt.name)
        trace.marks.append(_NAMED)  # SELECT: the client named it

    # -- AUTHORIZE: the gates, and a person where they say so ----------------------------------------------------------

    def _authorized(self, attempt: Attempt, decision: Decision, how: str | None) -> None:
        attempt.admitted = True
        reason = decision.reason if how is None else f"{decision.reason}; {how}"
        attempt.mark(Stage.AUTHORIZE, decision.answer.word, reason, decision.rule)

    # -- EXECUTE -------------------------------------------------------------------------------------------------------

    def _outgoing(self, attempt: Attempt, route: Route) -> Outgoing:
        """The request in the server's own words."""
        exchange = attempt.exchange
        config = self.gateway.servers[route.server]
        item = route.entry.canonical.item
        seconds = config.policy.tool_timeout_seconds
        override = config.tools.get(item) if route.kind == "tools" else None
        if override is not None and override.timeout_seconds is not None:
            seconds = override.timeout_seconds
        exchange.params["uri" if route.kind == "resources" else "name"] = messages.raw(item)
        return Outgoing(
            exchange.method, exchange.params, exchange.caller, seconds, exchange.meta.rest, None, exchange.token is not None, item,
            route.entry.headers,
        )  # fmt: skip

    async def _execute(self, attempt: Attempt, route: Route) -> Reply:
        """The server's answer. Raises Answered where a modern client has to give input first."""
        exchange = attempt.exchange
        server = self.servers[route.server]
        sealed = attempt.retry.sealed
        if sealed is not None:
            if sealed.purpose == "park":
                return await self.bridge.resume(exchange, server.key, attempt.name, attempt.retry)
            if sealed.purpose == "state" and sealed.had_state:
                exchange.params["requestState"] = messages.raw(sealed.data)
            elif sealed.purpose != "state":
                exchange.params.pop("inputResponses", None)
        reply = await self._send(attempt, route, server)
        if _wants_other_headers(reply) and route.kind == "tools":
            # It refused before it acted: its tools have changed since they were listed (2026-07-28, Custom Headers).
            await self.catalogue.refresh(server, exchange.caller)
            known = self.catalogue.snapshot(server, exchange.caller)
            entry = known.listings["tools"].entries.get(route.entry.canonical.item) if known is not None else None
            if entry is not None and entry.headers != route.entry.headers:
                decision = self.admit(server.config, "tools", entry, exchange.client.asking_host)
                if decision.answer is route.decision.answer:
                    return await self._send(attempt, Route(route.server, route.kind, entry, decision), server)
        return reply

    async def _send(self, attempt: Attempt, route: Route, server: Server) -> Reply:
        exchange = attempt.exchange
        out = self._outgoing(attempt, route)
        if exchange.era is Era.MODERN and server.speaks[Era.MODERN] is not True:
            return await self.bridge.call_for_modern(exchange, server, attempt.name, out)
        out.sink = ExchangeSink(exchange, server.key, self.verbatim is None)
        if exchange.era is Era.MODERN:
            return await server.request(out)
        return await self.bridge.call_for_legacy(exchange, server, attempt.name, out)

    # -- VALIDATE ------------------------------------------------------------------------------------------------------

    def _conclude(self, attempt: Attempt, reply: Reply) -> tuple[bytes, bool]:
        """EXECUTE is over: make the answer fit for the client, and write down what happened. Raises Fault."""
        attempt.trace.era_up = reply.era
        attempt.mark(Stage.EXECUTE, "error" if reply.is_error else "answered", _EXECUTED)
        body, status = self._validate(attempt, reply)
        if self.notice is not None and status == "ok" and attempt.exchange.method == "tools/call":
            body, self.notice = answers.with_notice(body, self.notice), None
        attempt.mark(Stage.VALIDATE, "passed", status)
        self._observe(attempt, status, len(body))
        return body, reply.is_error

    def _validate(self, attempt: Attempt, reply: Reply) -> tuple[bytes, str]:
        """The answer in the client's era, and what the trace calls it."""
        exchange, route = attempt.exchange, attempt.route
        assert route is not None
        if reply.is_error:
            return translate.error_for(reply.body, method=exchange.method, down=exchange.era), "error"
        body = reply.body
        members = messages.try_map(body)
        if members is None:
            raise _no_object(route.server, attempt.name)
        if self.verbatim is None and b'"uri' in body:
            body = rewrite_result_uris(body, route.server)
            members = messages.read_map(body)
        status = "tool_error" if translate.is_error_result(members) else "ok"
        if (
            reply.era is Era.MODERN
            and exchange.era is Era.MODERN
            and translate.result_type(members) == "input_required"
        ):
            asked = route.decision.answer is Answer.ASK or attempt.retry.sealed is not None
            self.rounds.reseal(
                exchange, route.server, attempt.name, members, asked=asked, name_server=self.verbatim is None
            )
            body = messages.write_map(members)
            status = "input_required"
        body = translate.result_for(
            members, body, method=exchange.method, up=reply.era, down=exchange.era, server_info=self.server_info
        )
        return body, status

    # == what is neither a list nor a call =============================================================================

    async def complete(self, exchange: Exchange) -> tuple[bytes, bool]:
        """`completion/complete`, routed by the prompt or template that it completes."""
        params = exchange.params
        ref = messages.try_map(params.get("ref")) or {}
        by_uri = messages.try_str(ref.get("type")) == "ref/resource"
        member = "uri" if by_uri else "name"
        exposed = messages.try_str(ref.get(member))
        if exposed is None:
            raise WireError(codes.INVALID_PARAMS, "params.ref names no prompt or resource", exchange.id)
        attempt = Attempt(exchange, self._trace(exchange))
        try:
            if by_uri:
                route = self.routing.resource(exchange, exposed, attempt.trace)
            else:
                params["name"] = ref[member]
                route = await self.routing.find(exchange, "prompts", attempt.trace)
                del params["name"]
            ref[member] = messages.raw(route.entry.canonical.item)
            params["ref"] = Raw(messages.write_map(ref))
            return await self._forward(attempt, self.servers[route.server])
        except Fault as fault:
            return self._failed(attempt, fault)

    async def pass_on(self, exchange: Exchange) -> tuple[bytes, bool]:
        """A method that Interlock knows nothing of: passed where there is a single server, else refused."""
        attempt = Attempt(exchange, self._trace(exchange))
        servers = list(self.catalogue.enabled())
        # The method becomes a header on the way to a modern server, so it must be able to stand in one.
        plain = (
            exchange.method.isascii() and exchange.method.isprintable() and exchange.method == exchange.method.strip()
        )
        if len(servers) != 1 or not plain or _means_a_known_method(exchange.method):
            attempt.mark(Stage.DISCOVER, "refused", "no rule says which server takes this method")
            self._observe(attempt, "error", 0)
            raise WireError(
                codes.METHOD_NOT_FOUND, f"Method not found: {exchange.method}", exchange.id, slug="unknown-method"
            )
        try:
            return await self._forward(attempt, servers[0])
        except Fault as fault:
            return self._failed(attempt, fault)

    async def _forward(self, attempt: Attempt, server: Server) -> tuple[bytes, bool]:
        exchange = attempt.exchange
        attempt.trace.server = server.key
        sink = ExchangeSink(exchange, server.key, self.verbatim is None)
        seconds = server.config.policy.tool_timeout_seconds
        out = Outgoing(
            exchange.method,
            exchange.params,
            exchange.caller,
            seconds,
            exchange.meta.rest,
            sink,
            exchange.token is not None,
        )
        reply = await server.request(out)
        attempt.trace.era_up = reply.era
        attempt.mark(Stage.EXECUTE, "error" if reply.is_error else "answered", _EXECUTED)
        body = reply.body
        if reply.is_error:
            body = translate.error_for(body, method=exchange.method, down=exchange.era)
        else:
            members = messages.try_map(body)
            if members is None:
                raise _no_object(server.key, None)
            body = translate.result_for(
                members, body, method=exchange.method, up=reply.era, down=exchange.era, server_info=self.server_info
            )
        self._observe(attempt, "error" if reply.is_error else "ok", len(body))
        return body, reply.is_error

    async def subscribe(self, exchange: Exchange, wanted: bool) -> None:
        """Legacy `resources/subscribe` and `unsubscribe`. Raises Fault or WireError."""
        attempt = Attempt(exchange, self._trace(exchange))
        attempt.trace.server = await self.watching.subscribe(exchange, wanted)
        self._observe(attempt, "ok", 2)

    def _route_uri(self, exchange: Exchange, exposed: str) -> tuple[str, str]:
        route = self.routing.resource(exchange, exposed, self._trace(exchange))
        return route.server, route.entry.canonical.item

    def _changed(self, server: str, binding: str, told: frozenset[Kind], found: frozenset[Kind]) -> None:
        """The catalogue changed: tell the clients that it concerns. What they have not listed yet cannot be stale."""
        for client in self.hub.registry.of_binding(binding):
            kinds = told | (found & client.listed)
            for kind in sorted({"resources" if kind == "templates" else kind for kind in kinds}):
                client.list_changed(kind)

    def client_gone(self, client_id: str) -> None:
        """A downstream client ended: its sessions, subscriptions and snapshots go with it."""
        self.watching.drop(client_id)
        for each in self.servers.values():
            each.release(client_id)
        self.catalogue.forget(client_id)

    def _exposed_uri(self, server: str, uri: str) -> str:
        return uri if self.verbatim == server else expose_uri(server, uri)

    # == OBSERVE =======================================================================================================

    def _trace(self, exchange: Exchange) -> RouteTrace:
        client = exchange.client
        principal = client.principal
        return RouteTrace(
            new_trace_id(), time.time_ns(), exchange.method, principal.id, client.id, principal.host, None, None, "open", None,
            None, exchange.era, "", exchange.size,
        )  # fmt: skip

    def _observe(self, attempt: Attempt, status: str, size: int) -> None:
        trace = attempt.trace
        trace.status = status
        trace.bytes_out = size
        trace.micros = (perf_counter_ns() - attempt.began) // 1000  # the clock on the wall may be set meanwhile
        trace.marks.append(_RECORDED)
        self.journal.record(trace)

    def _cancelled(self, attempt: Attempt) -> None:
        attempt.mark(Stage.EXECUTE, "cancelled", "the client gave up")
        verdict = Verdict.OUTCOME_UNKNOWN if attempt.admitted else Verdict.NEVER_REACHED
        attempt.trace.verdict = verdict.value
        self._observe(attempt, "cancelled", 0)

    def _failed(self, attempt: Attempt, fault: Fault) -> tuple[bytes, bool]:
        exchange, trace = attempt.exchange, attempt.trace
        denied = any(mark.stage is Stage.AUTHORIZE and mark.decision == "deny" for mark in trace.marks)
        trace.verdict = fault.verdict.value
        trace.slug = fault.slug
        trace.server = trace.server or fault.server
        attempt.mark(fault.stage, fault.verdict.value, fault.message)
        status = {
            "unknown-name": "denied" if denied else "error",
            "needs-approval": "needs_approval",
            "declined": "denied",
        }
        self._observe(attempt, status.get(fault.slug, fault.verdict.value), 0)
        # Found and let through as far as a person or the server: then a tool's failure is a result, which models understand.
        if attempt.route is not None and exchange.method == "tools/call":
            return answers.tool_result(fault, self.build, exchange.era), False
        code = None
        if fault.slug == "unknown-name" and exchange.method == "resources/read" and exchange.era is Era.LEGACY:
            code = codes.LEGACY_RESOURCE_NOT_FOUND
        return answers.error_body(fault, self.build, code), True

    async def close(self) -> None:
        self.bridge.close()
        self.catalogue.close()
        await asyncio.gather(*(server.close() for server in self.servers.values()), return_exceptions=True)


_FIRST: Final = Retry()
_READY: Final = Mark(Stage.DISCOVER, "ready", "declared in the manifest", None, 0)
_NAMED: Final = Mark(Stage.SELECT, "named", "called by name", None, 0)
_RECORDED: Final = Mark(Stage.OBSERVE, "recorded", "in the audit journal", None, 0)
_DISCOVERED: Final = "declared in the manifest"
_EXECUTED: Final = "the server answered"


def _asked_server(attempt: Attempt) -> bool:
    """True where the call got past a person: what asks now is the server."""
    return any(mark.stage is Stage.AUTHORIZE for mark in attempt.trace.marks)


def _no_object(server: str, tool: str | None) -> Fault:
    return Fault(
        "bad-answer",
        f"{server}: the result is not an object. The call may have taken effect: read the target again before a retry.",
        stage=Stage.VALIDATE, verdict=Verdict.OUTCOME_UNKNOWN, server=server, tool=tool,
    )  # fmt: skip


def _wants_other_headers(reply: Reply) -> bool:
    return reply.is_error and translate.error_code(reply.body) == codes.HEADER_MISMATCH


def _has_round(exchange: Exchange) -> bool:
    return exchange.era is Era.MODERN and ("requestState" in exchange.params or "inputResponses" in exchange.params)


def _letters(method: str) -> str:
    return "".join(char for char in method.lower() if char.isalnum())


_JUDGED: Final = frozenset(
    map(
        _letters,
        (
            "initialize", "ping", "server/discover", "subscriptions/listen", "logging/setLevel", "completion/complete",
            "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/templates/list",
            "resources/read", "resources/subscribe", "resources/unsubscribe",
        ),
    )
)  # fmt: skip


def _means_a_known_method(method: str) -> bool:
    """`Tools/Call` is none of ours, but a lenient server may take it for `tools/call`, past every gate. Nor may a request be
    dressed as a notification: it could cancel what another client has open."""
    letters = _letters(method)
    return letters in _JUDGED or letters.startswith("notifications")
