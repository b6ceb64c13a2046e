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
from interlock.catalog.uris import UriRouter, expose_uri, rewrite_result_uris
from interlock.catalog.view import Route, View, build_view, page
from interlock.gates.static import judge
from interlock.gates.subject import Subject
from interlock.journal.audit import Journal
from interlock.journal.trace import new_trace_id
from interlock.manifest.config import Gateway, ServerConfig
from interlock.model.decision import Answer, Decision
from interlock.model.fault import Fault
from interlock.model.names import CanonicalName
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace
from interlock.model.verdict import Verdict
from interlock.relay.client import Listen
from interlock.relay.exchange import Exchange
from interlock.relay.hub import Hub
from interlock.relay.parking import MAX_PARKED, Lot, OpenCall
from interlock.relay.questions import ask
from interlock.relay.rounds import (
    APPROVAL_KEY,
    MAX_ROUNDS,
    Retry,
    Rounds,
    answer_for_legacy,
    approval_params,
    approved,
    request_of,
)
from interlock.relay.sink import ExchangeSink
from interlock.upstream.contract import Outgoing, Reply
from interlock.upstream.server import Server
from interlock.wire import codes, messages, translate
from interlock.wire.eras import SUBSCRIPTION_KEY, Era, has_capability
from interlock.wire.headers import check_params
from interlock.wire.messages import Raw, WireError
from interlock.wire.seal import Sealed

_KIND_OF: Final[dict[str, Kind]] = {"tools/call": "tools", "prompts/get": "prompts", "resources/read": "resources"}


class Answered(Exception):
    """A round that ends before the server has answered: the client has to give input first."""

    def __init__(self, body: bytes) -> None:
        self.body = body


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
        self.lot = Lot()
        self.last_view: View | None = None
        """The view that was built last: what the next start may say of the servers at once."""
        self._tasks: set[asyncio.Task[None]] = set()
        self.router = UriRouter(gateway.servers)
        self.verbatim = next((key for key, config in gateway.servers.items() if config.names == "verbatim"), None)
        self.catalogue = Catalogue(servers, remember=remember, recall_bytes=recall, changed=self._changed)
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
        started = perf_counter_ns()
        trace = self._trace(exchange)
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
        self._mark(trace, Stage.DESCRIBE, "listed", f"{count} {kind}{missing}")
        self._mark(trace, Stage.AUTHORIZE, "allow", f"{hidden} not admitted" if hidden else "all admitted")
        self._observe(trace, "ok", started, len(body))
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
            admit=lambda config, kind, entry: self.admit(config, kind, entry, host),
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
        started = perf_counter_ns()
        trace = self._trace(exchange)
        kind = _KIND_OF[exchange.method]
        admitted = False
        try:
            # DISCOVER, DESCRIBE: which server, under which name of its own
            route = await self._route(exchange, kind, trace)
            config = self.gateway.servers[route.server]
            server = self.servers[route.server]
            entry = route.entry
            item = entry.canonical.item
            trace.server = route.server
            trace.name = name = str(entry.canonical)
            if entry.headers and exchange.headers is not None and exchange.era is Era.MODERN:
                check_params(exchange.headers, entry.headers, exchange.params.get("arguments"))
            now = perf_counter_ns()
            trace.marks.append(_READY if server.has_session else Mark(Stage.DISCOVER, server.state, _DISCOVERED, None, 0))
            trace.marks.append(Mark(Stage.DESCRIBE, "found", name, None, (now - started) // 1000))
            # SELECT: the client named it
            trace.marks.append(_NAMED)
            # AUTHORIZE: the gates, then a person where they say so
            admitted = True
            retry = self.rounds.take(exchange, route.server, name) if _has_round(exchange) else _FIRST
            decision = route.decision
            if decision.answer is Answer.ASK:
                await self._ask_person(exchange, route, name, retry, decision)
            before = now
            now = perf_counter_ns()
            trace.marks.append(
                Mark(Stage.AUTHORIZE, decision.answer.word, decision.reason, decision.rule, (now - before) // 1000)
            )
            before = now
            # EXECUTE
            seconds = config.policy.tool_timeout_seconds
            if kind == "tools":
                override = config.tools.get(item)
                if override is not None and override.timeout_seconds is not None:
                    seconds = override.timeout_seconds
            reply = await self._execute(exchange, server, entry, retry, seconds)
            now = perf_counter_ns()
            trace.era_up = reply.era
            outcome = "error" if reply.is_error else "answered"
            trace.marks.append(Mark(Stage.EXECUTE, outcome, _EXECUTED, None, (now - before) // 1000))
            before = now
            # VALIDATE
            body, status = self._validate(exchange, route.server, name, reply, retry, decision)
            now = perf_counter_ns()
            trace.marks.append(Mark(Stage.VALIDATE, "passed", status, None, (now - before) // 1000))
            # OBSERVE
            self._observe(trace, status, started, len(body))
            return body, reply.is_error
        except Answered as pause:
            self._mark(trace, Stage.EXECUTE, "input_required", "the client has to answer a question first")
            self._observe(trace, "input_required", started, len(pause.body))
            return pause.body, False
        except Fault as fault:
            return self._failed(exchange, trace, fault, started, admitted)
        except WireError as error:
            self._mark(trace, Stage.AUTHORIZE if admitted else Stage.DESCRIBE, "refused", error.message)
            self._observe(trace, "error", started, 0)
            raise
        except asyncio.CancelledError:
            self._mark(trace, Stage.EXECUTE, "cancelled", "the client gave up")
            trace.verdict = Verdict.OUTCOME_UNKNOWN.value if admitted else Verdict.NEVER_REACHED.value
            self._observe(trace, "cancelled", started, 0)
            raise

    async def _route(self, exchange: Exchange, kind: Kind, trace: RouteTrace) -> Route:
        """Raises Fault `unknown-name`, the same for a denied name as for one that does not exist."""
        member = "uri" if kind == "resources" else "name"
        exposed = messages.try_str(exchange.params.get(member))
        if exposed is None:
            raise WireError(codes.INVALID_PARAMS, f"params.{member} must be a string", exchange.id)
        if kind == "resources":
            return self._route_resource(exchange, exposed, trace)
        view = self.view(exchange)
        route = view.routes[kind].get(exposed)
        if route is not None:
            return route
        if self.verbatim is not None:
            return await self._route_unlisted(exchange, kind, exposed, trace)
        hidden = view.hidden[kind].get(exposed)
        if hidden is None:
            candidates = [
                server.key
                for server in self.catalogue.enabled()
                if _may_belong(exposed, server.key)
                and ((known := self.catalogue.snapshot(server, exchange.caller)) is None or known.remembered)
            ]
            if candidates:
                await self.catalogue.settle(exchange.caller, candidates)
                view = self.view(exchange)
                route = view.routes[kind].get(exposed)
                if route is not None:
                    return route
                hidden = view.hidden[kind].get(exposed)
                for key in candidates:
                    fault = self.servers[key].last_fault
                    if fault is not None and self.catalogue.snapshot(self.servers[key], exchange.caller) is None:
                        trace.server = key
                        raise fault
        raise self._unknown(kind, exposed, hidden, trace)

    async def _route_unlisted(self, exchange: Exchange, kind: Kind, exposed: str, trace: RouteTrace) -> Route:
        """With verbatim names the one server itself says what it does not know; the gates judge the name all the same."""
        key = self.verbatim or ""
        config = self.gateway.servers[key]
        view = self.view(exchange)
        hidden = view.hidden[kind].get(exposed)
        if hidden is None and not view.routes[kind] and self.servers[key].state != "ready":
            await self.catalogue.settle(exchange.caller, [key])
            found = self.view(exchange).routes[kind].get(exposed)
            if found is not None:
                return found
        entry = Entry(CanonicalName(key, exposed), b"{}")
        decision = (
            hidden.decision if hidden is not None else self.admit(config, kind, entry, exchange.client.principal.host)
        )
        route = Route(key, kind, entry, decision)
        if decision.answer is Answer.DENY:
            raise self._unknown(kind, exposed, route, trace)
        return route

    def _route_resource(self, exchange: Exchange, exposed: str, trace: RouteTrace) -> Route:
        found = (self.verbatim, exposed) if self.verbatim is not None else self.router.route(exposed)
        config = self.gateway.servers.get(found[0]) if found is not None else None
        if found is None or config is None:
            raise self._unknown("resources", exposed, None, trace)
        entry = Entry(CanonicalName(config.key, found[1]), b"{}")
        decision = self.admit(config, "resources", entry, exchange.client.principal.host)
        route = Route(config.key, "resources", entry, decision)
        if decision.answer is Answer.DENY:
            raise self._unknown("resources", exposed, route, trace)
        return route

    def _unknown(self, kind: Kind, exposed: str, hidden: Route | None, trace: RouteTrace) -> Fault:
        if hidden is not None:
            trace.server = hidden.server
            trace.name = str(hidden.entry.canonical)
            decision = hidden.decision
            trace.marks.append(Mark(Stage.AUTHORIZE, "deny", f"{decision.gate}: {decision.reason}", decision.rule, 0))
        word = {"tools": "tool", "prompts": "prompt"}.get(kind, "resource")
        return Fault(
            "unknown-name", f"Unknown {word}: {exposed}",
            stage=Stage.DESCRIBE, verdict=Verdict.NEVER_REACHED, retry="never",
        )  # fmt: skip

    # -- AUTHORIZE: a person -------------------------------------------------------------------------------------------

    async def _ask_person(self, exchange: Exchange, route: Route, name: str, retry: Retry, decision: Decision) -> None:
        """Returns where the person said yes, now or in an earlier round. Raises Fault or Answered."""
        sealed = retry.sealed
        if sealed is not None and sealed.purpose != "approve":
            return  # a later round of a call that was approved: the seal says so
        client = exchange.client
        arguments = exchange.params.get("arguments")
        if sealed is not None:
            answer = (retry.responses or {}).get(APPROVAL_KEY)
            exchange.params.pop("inputResponses", None)
            if answer is not None:
                if approved(answer):
                    return
                raise self._declined(route, name)
        if client.approve is not None:
            if await client.approve(name, decision, arguments):
                return
            raise self._needs_approval(route, name, decision)
        capabilities = exchange.meta.capabilities if exchange.era is Era.MODERN else client.capabilities
        if not has_capability(capabilities, "elicitation/create"):
            raise self._needs_approval(route, name, decision)
        params = approval_params(name, arguments)
        if exchange.era is Era.MODERN:
            state = self.rounds.seal(exchange, name, self.rounds.new("approve", route.server))
            raise Answered(self.rounds.required({APPROVAL_KEY: request_of("elicitation/create", params)}, state))
        reply = await ask(client, exchange, "elicitation/create", params)
        if reply.is_error:
            raise self._needs_approval(route, name, decision)
        if not approved(reply.body):
            raise self._declined(route, name)

    def _needs_approval(self, route: Route, name: str, decision: Decision) -> Fault:
        where = f" ({decision.rule})" if decision.rule else ""
        return Fault(
            "needs-approval",
            f"needs approval: {decision.reason}{where}, and this client cannot ask a person. Run it once by hand with "
            f"`interlock call {name}`, or set the tool's `approval` or `policy.defaultApproval` in the manifest.",
            stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=route.server, tool=name, retry="later",
        )  # fmt: skip

    def _declined(self, route: Route, name: str) -> Fault:
        return Fault(
            "declined", f"a person declined the call of {name}. It was not made; do not repeat it unasked.",
            stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=route.server, tool=name, retry="never",
        )  # fmt: skip

    # -- EXECUTE -------------------------------------------------------------------------------------------------------

    async def _execute(self, exchange: Exchange, server: Server, entry: Entry, retry: Retry, seconds: float) -> Reply:
        """The server's answer. Raises Answered where a modern client has to give input first."""
        sealed = retry.sealed
        params = exchange.params
        if sealed is not None:
            if sealed.purpose == "park":
                return await self._resume(exchange, server, entry, sealed, retry)
            if sealed.purpose == "state" and sealed.had_state:
                params["requestState"] = messages.raw(sealed.data)
            elif sealed.purpose != "state":
                params.pop("inputResponses", None)
        item = entry.canonical.item
        member = "uri" if exchange.method == "resources/read" else "name"
        params[member] = messages.raw(item)
        out = Outgoing(
            exchange.method, params, exchange.caller, seconds, exchange.meta.rest, None, exchange.token is not None, item,
            entry.headers,
        )  # fmt: skip
        name_server = self.verbatim is None
        if exchange.era is Era.MODERN and server.speaks[Era.MODERN] is not True:
            open_call = OpenCall(exchange, server.key, name_server)
            out.sink = open_call
            open_call.work = asyncio.get_running_loop().create_task(server.request(out))
            return await self._attend(exchange, open_call, server, entry)
        out.sink = ExchangeSink(exchange, server.key, name_server)
        if exchange.era is Era.MODERN:
            return await server.request(out)
        # A legacy client: a modern server's questions become requests to it while its own request stays open.
        for _ in range(MAX_ROUNDS):
            reply = await server.request(out)
            if reply.is_error or reply.era is Era.LEGACY or b"input_required" not in reply.body:
                return reply
            members = messages.read_map(reply.body)
            if translate.result_type(members) != "input_required":
                return reply
            added = await answer_for_legacy(exchange, server.key, members, name_server=name_server)
            for key in ("inputResponses", "requestState", "_meta"):
                params.pop(key, None)
            params.update(added)
        raise Fault(
            "too-many-rounds",
            f"{server.key}: the server asked for input {MAX_ROUNDS} times in a row; the call was given up.",
            stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN, server=server.key, tool=str(entry.canonical),
        )  # fmt: skip

    async def _resume(self, exchange: Exchange, server: Server, entry: Entry, sealed: Sealed, retry: Retry) -> Reply:
        open_call = self.lot.take(sealed.data, exchange.client.principal.id)
        if open_call is None:
            raise Fault(
                "park-expired",
                f"{server.key}: the call that this answer belongs to is no longer open: it was not answered in time, was answered "
                "already, or Interlock was restarted. It may have taken effect: read the target again before a retry.",
                stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN, server=server.key, tool=str(entry.canonical),
            )  # fmt: skip
        open_call.exchange = exchange
        open_call.answer(retry.responses or {})
        return await self._attend(exchange, open_call, server, entry)

    async def _attend(self, exchange: Exchange, open_call: OpenCall, server: Server, entry: Entry) -> Reply:
        """Wait for the server's answer or its questions; park the call where the client has to answer them first."""
        try:
            reply = await open_call.next()
        except BaseException:
            open_call.abandon()
            raise
        name = str(entry.canonical)
        if reply is not None:
            if reply.is_error and (asked := translate.url_elicitations(reply.body)):
                # A legacy server did not act: it wants a URL visited first (-32042). The modern era asks for that instead.
                requests = {
                    f"url_{number}": request_of(
                        "elicitation/create", Raw(messages.write_map({**one, "mode": Raw(b'"url"')}))
                    )
                    for number, one in enumerate(asked, 1)
                }
                state = self.rounds.seal(exchange, name, self.rounds.new("retry", server.key))
                raise Answered(self.rounds.required(requests, state))
            return reply
        if self.lot.count(exchange.client.principal.id) >= MAX_PARKED:
            open_call.abandon()
            raise Fault(
                "too-many-parked",
                f"{server.key}: {MAX_PARKED} calls already wait for answers; this one was cancelled. It may have taken effect.",
                stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN, server=server.key, tool=name,
            )  # fmt: skip
        requests = {key: request_of(method, params) for key, method, params in open_call.asks()}
        handle = self.lot.park(open_call, lambda call: None)
        state = self.rounds.seal(exchange, name, self.rounds.new("park", server.key, handle))
        raise Answered(self.rounds.required(requests, state))

    # -- VALIDATE ------------------------------------------------------------------------------------------------------

    def _validate(
        self, exchange: Exchange, server: str, name: str, reply: Reply, retry: Retry, decision: Decision
    ) -> tuple[bytes, str]:
        """The answer in the client's era, and what the trace calls it."""
        if reply.is_error:
            return translate.error_for(reply.body, method=exchange.method, down=exchange.era), "error"
        body = reply.body
        members = messages.try_map(body)
        if members is None:
            raise Fault(
                "bad-answer",
                f"{server}: the result is not an object. The call may have taken effect: read the target again before a retry.",
                stage=Stage.VALIDATE, verdict=Verdict.OUTCOME_UNKNOWN, server=server, tool=name,
            )  # fmt: skip
        if self.verbatim is None and b'"uri' in body:
            body = rewrite_result_uris(body, server)
            members = messages.read_map(body)
        status = "tool_error" if translate.is_error_result(members) else "ok"
        if (
            exchange.era is Era.MODERN
            and reply.era is Era.MODERN
            and translate.result_type(members) == "input_required"
        ):
            asked = decision.answer is Answer.ASK or retry.sealed is not None
            self.rounds.reseal(exchange, server, name, members, asked=asked, name_server=self.verbatim is None)
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
        trace = self._trace(exchange)
        started = perf_counter_ns()
        try:
            if by_uri:
                route = self._route_resource(exchange, exposed, trace)
            else:
                exchange.params["name"] = ref[member]
                route = await self._route(exchange, "prompts", trace)
                del exchange.params["name"]
            ref[member] = messages.raw(route.entry.canonical.item)
            params["ref"] = Raw(messages.write_map(ref))
            return await self._forward(exchange, self.servers[route.server], trace, started)
        except Fault as fault:
            return self._failed(exchange, trace, fault, started, False)

    async def pass_on(self, exchange: Exchange) -> tuple[bytes, bool]:
        """A method that Interlock knows nothing of: passed where there is a single server, else refused."""
        trace = self._trace(exchange)
        started = perf_counter_ns()
        servers = list(self.catalogue.enabled())
        # The method becomes a header on the way to a modern server, so it must be able to stand in one.
        plain = exchange.method.isascii() and exchange.method.isprintable() and exchange.method == exchange.method.strip()
        if len(servers) != 1 or not plain:
            self._mark(trace, Stage.DISCOVER, "refused", "no rule says which server takes this method")
            self._observe(trace, "error", started, 0)
            raise WireError(codes.METHOD_NOT_FOUND, f"Method not found: {exchange.method}", exchange.id)
        try:
            return await self._forward(exchange, servers[0], trace, started)
        except Fault as fault:
            return self._failed(exchange, trace, fault, started, False)

    async def _forward(self, exchange: Exchange, server: Server, trace: RouteTrace, started: int) -> tuple[bytes, bool]:
        trace.server = server.key
        sink = ExchangeSink(exchange, server.key, self.verbatim is None)
        out = Outgoing(
            exchange.method, exchange.params, exchange.caller, server.config.policy.tool_timeout_seconds, exchange.meta.rest, sink,
            exchange.token is not None,
        )  # fmt: skip
        reply = await server.request(out)
        trace.era_up = reply.era
        self._mark(trace, Stage.EXECUTE, "error" if reply.is_error else "answered", _EXECUTED)
        body = reply.body
        if reply.is_error:
            body = translate.error_for(body, method=exchange.method, down=exchange.era)
        else:
            members = messages.try_map(body) or {}
            body = translate.result_for(
                members, body, method=exchange.method, up=reply.era, down=exchange.era, server_info=self.server_info
            )
        self._observe(trace, "error" if reply.is_error else "ok", started, len(body))
        return body, reply.is_error

    async def subscribe(self, exchange: Exchange, wanted: bool) -> None:
        """Legacy `resources/subscribe` and `unsubscribe`. Raises Fault or WireError."""
        exposed = messages.try_str(exchange.params.get("uri"))
        if exposed is None:
            raise WireError(codes.INVALID_PARAMS, "params.uri must be a string", exchange.id)
        trace = self._trace(exchange)
        route = self._route_resource(exchange, exposed, trace)
        client = exchange.client
        if wanted:
            client.subscriptions.add(exposed)
            await self._hold(exchange, route.server, route.entry.canonical.item, client.id)
        else:
            client.subscriptions.discard(exposed)
            await self._let_go(exchange, route.server, route.entry.canonical.item, client.id)
        self._observe(trace, "ok", perf_counter_ns(), 2)

    async def _hold(self, exchange: Exchange, key: str, uri: str, holder: str) -> None:
        server = self.servers[key]
        session = await server.session(exchange.caller)
        if self.hub.subscriptions.add(key, session.binding, uri, holder):
            await self.hub.listening.subscribe(key, session.binding, uri, server.config.policy.startup_timeout_seconds)

    async def _let_go(self, exchange: Exchange, key: str, uri: str, holder: str) -> None:
        server = self.servers[key]
        session = await server.session(exchange.caller)
        if self.hub.subscriptions.remove(key, session.binding, uri, holder):
            await self.hub.listening.unsubscribe(
                key, session.binding, uri, server.config.policy.startup_timeout_seconds
            )

    async def listen(self, exchange: Exchange, draining: asyncio.Event) -> bytes:
        """Modern `subscriptions/listen`: acknowledged at once, then open until the client leaves or we drain."""
        client = exchange.client
        wanted = messages.read_map(exchange.params.get("notifications"))
        kinds = frozenset(
            kind
            for kind in ("tools", "prompts", "resources")
            if messages.try_json(wanted.get(f"{kind}ListChanged")) is True
        )
        asked = [
            text
            for raw in messages.try_list(wanted.get("resourceSubscriptions")) or []
            if (text := messages.try_str(raw))
        ]
        routable = [uri for uri in asked if self.verbatim is not None or self.router.route(uri) is not None]
        listen = Listen(exchange.id, kinds, frozenset(routable), exchange)
        agreed: dict[str, object] = {
            f"{kind}ListChanged": True for kind in ("tools", "prompts", "resources") if kind in kinds
        }
        if routable:
            agreed["resourceSubscriptions"] = routable
        params = {"_meta": {SUBSCRIPTION_KEY: exchange.id}, "notifications": agreed}
        exchange.channel.notify(
            messages.notification("notifications/subscriptions/acknowledged", messages.encode(params))
        )
        client.listens[exchange.id] = listen
        holder = f"{client.id}\0{exchange.id!r}"
        try:
            for uri in routable:
                try:
                    route = self._route_resource(exchange, uri, self._trace(exchange))
                    await self._hold(exchange, route.server, route.entry.canonical.item, holder)
                except Fault:
                    continue  # that server is not there now; its list change will tell
            if kinds:
                await self.catalogue.settle(exchange.caller)
            await draining.wait()
        finally:
            client.listens.pop(exchange.id, None)
            for server, binding, uri in self.hub.subscriptions.drop_holder(holder):
                self._unsubscribe_later(server, binding, uri)
        return messages.encode({"resultType": "complete", "_meta": {SUBSCRIPTION_KEY: exchange.id}})

    def _unsubscribe_later(self, server: str, binding: str, uri: str) -> None:
        async def tell() -> None:
            try:
                await self.hub.listening.unsubscribe(server, binding, uri, 10.0)
            except Fault:
                return

        task = asyncio.get_running_loop().create_task(tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _changed(self, server: str, binding: str, told: frozenset[Kind], found: frozenset[Kind]) -> None:
        """The catalogue changed: tell the clients that it concerns. What they have not listed yet cannot be stale."""
        for client in self.hub.registry.of_binding(binding):
            kinds = told | (found & client.listed)
            for kind in sorted({"resources" if kind == "templates" else kind for kind in kinds}):
                client.list_changed(kind)

    def client_gone(self, client_id: str) -> None:
        """A downstream client ended: its sessions, subscriptions and snapshots go with it."""
        for server, binding, uri in self.hub.subscriptions.drop_holder(client_id):
            if "#" not in binding:
                self._unsubscribe_later(server, binding, uri)
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

    def _mark(self, trace: RouteTrace, stage: Stage, decision: str, reason: str) -> None:
        trace.marks.append(Mark(stage, decision, reason, None, 0))

    def _observe(self, trace: RouteTrace, status: str, started: int, size: int) -> None:
        trace.status = status
        trace.bytes_out = size
        trace.micros = (perf_counter_ns() - started) // 1000
        trace.marks.append(_RECORDED)
        self.journal.record(trace)

    def _failed(
        self, exchange: Exchange, trace: RouteTrace, fault: Fault, started: int, admitted: bool
    ) -> tuple[bytes, bool]:
        denied = any(mark.stage is Stage.AUTHORIZE and mark.decision == "deny" for mark in trace.marks)
        trace.verdict = fault.verdict.value
        trace.slug = fault.slug
        trace.server = trace.server or fault.server
        self._mark(trace, fault.stage, fault.verdict.value, fault.message)
        status = {
            "unknown-name": "denied" if denied else "error",
            "needs-approval": "needs_approval",
            "declined": "denied",
        }
        self._observe(trace, status.get(fault.slug, fault.verdict.value), started, 0)
        if admitted and exchange.method == "tools/call":
            return answers.tool_result(fault, self.build, exchange.era), False
        code = None
        if fault.slug == "unknown-name" and exchange.method == "resources/read" and exchange.era is Era.LEGACY:
            code = codes.LEGACY_RESOURCE_NOT_FOUND
        return answers.error_body(fault, self.build, code), True

    async def close(self) -> None:
        self.lot.close()
        self.catalogue.close()
        await asyncio.gather(*(server.close() for server in self.servers.values()), return_exceptions=True)


_FIRST: Final = Retry()
_READY: Final = Mark(Stage.DISCOVER, "ready", "declared in the manifest", None, 0)
_NAMED: Final = Mark(Stage.SELECT, "named", "called by name", None, 0)
_RECORDED: Final = Mark(Stage.OBSERVE, "recorded", "in the audit journal", None, 0)
_DISCOVERED: Final = "declared in the manifest"
_EXECUTED: Final = "the server answered"


def _has_round(exchange: Exchange) -> bool:
    return exchange.era is Era.MODERN and ("requestState" in exchange.params or "inputResponses" in exchange.params)


def _may_belong(exposed: str, key: str) -> bool:
    """True where an exposed name could be of this server: names begin with the key, cleaned and perhaps cut."""

    def plain(text: str) -> str:
        return "".join(char if char.isascii() and char.isalnum() else "_" for char in text.lower())

    start = plain(key)[:12].rstrip("_")
    return not start or plain(exposed).startswith(start) or plain(exposed).startswith("s" + start)
