"""DISCOVER and DESCRIBE of one call: which server an exposed name belongs to, under which name of its own, and how it is judged.

A name that is denied and one that does not exist give the same answer; the reason stands only in the trace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from interlock.catalog.catalogue import Catalogue
from interlock.catalog.snapshot import Entry, Kind
from interlock.catalog.uris import UriRouter
from interlock.catalog.view import Route, View
from interlock.manifest.config import Gateway, ServerConfig
from interlock.model.decision import Answer, Decision
from interlock.model.fault import Fault
from interlock.model.names import CanonicalName
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace
from interlock.model.verdict import Verdict
from interlock.relay.exchange import Exchange
from interlock.upstream.server import Server
from interlock.wire import codes, messages
from interlock.wire.messages import WireError

Admit = Callable[[ServerConfig, Kind, Entry, "str | None"], Decision]


class Routing:
    """`view` is the catalogue as a client sees it; `admit` is the one admission function (pipeline.py)."""

    def __init__(
        self,
        gateway: Gateway,
        servers: Mapping[str, Server],
        catalogue: Catalogue,
        verbatim: str | None,
        *,
        view: Callable[[Exchange], View],
        admit: Admit,
    ) -> None:
        self._gateway = gateway
        self._servers = servers
        self._catalogue = catalogue
        self._verbatim = verbatim
        self._view = view
        self._admit = admit
        self._router = UriRouter(gateway.servers)

    async def find(self, exchange: Exchange, kind: Kind, trace: RouteTrace) -> Route:
        """Raises Fault `unknown-name`, the same for a denied name as for one that does not exist."""
        member = "uri" if kind == "resources" else "name"
        exposed = messages.try_str(exchange.params.get(member))
        if exposed is None:
            raise WireError(codes.INVALID_PARAMS, f"params.{member} must be a string", exchange.id)
        if kind == "resources":
            return self.resource(exchange, exposed, trace)
        view = self._view(exchange)
        route = view.routes[kind].get(exposed)
        if route is not None:
            return route
        if self._verbatim is not None:
            return await self._unlisted(exchange, kind, exposed, trace)
        hidden = view.hidden[kind].get(exposed)
        if hidden is None:
            candidates = [
                server.key
                for server in self._catalogue.enabled()
                if may_belong(exposed, server.key)
                and ((known := self._catalogue.snapshot(server, exchange.caller)) is None or known.remembered)
            ]
            if candidates:
                await self._catalogue.settle(exchange.caller, candidates)
                view = self._view(exchange)
                route = view.routes[kind].get(exposed)
                if route is not None:
                    return route
                hidden = view.hidden[kind].get(exposed)
                for key in candidates:
                    if self._catalogue.snapshot(self._servers[key], exchange.caller) is None:
                        trace.server = key
                        # The same object each time: without this its traceback would grow with every call.
                        raise (self._servers[key].last_fault or _not_ready(key)).with_traceback(None)
        raise self._unknown(kind, exposed, hidden, trace)

    async def _unlisted(self, exchange: Exchange, kind: Kind, exposed: str, trace: RouteTrace) -> Route:
        """With verbatim names the one server itself says what it does not know; the gates judge the name all the same.

        Where lists hide tools, what is not listed is unknown: the server's own words would tell a denied tool from none.
        """
        key = self._verbatim or ""
        config = self._gateway.servers[key]
        hides = kind == "tools" and (config.allow is not None or bool(config.deny))
        view = self._view(exchange)
        hidden = view.hidden[kind].get(exposed)
        if hidden is None and not view.routes[kind] and self._servers[key].state != "ready":
            await self._catalogue.settle(exchange.caller, [key])
            found = self._view(exchange).routes[kind].get(exposed)
            if found is not None:
                return found
        entry = Entry(CanonicalName(key, exposed), b"{}")
        decision = (
            hidden.decision if hidden is not None else self._admit(config, kind, entry, exchange.client.asking_host)
        )
        route = Route(key, kind, entry, decision)
        if decision.answer is Answer.DENY:
            raise self._unknown(kind, exposed, route, trace)
        if hides:
            raise self._unknown(kind, exposed, None, trace)
        return route

    def resource(self, exchange: Exchange, exposed: str, trace: RouteTrace) -> Route:
        found = (self._verbatim, exposed) if self._verbatim is not None else self._router.route(exposed)
        config = self._gateway.servers.get(found[0]) if found is not None else None
        if found is None or config is None:
            raise self._unknown("resources", exposed, None, trace)
        entry = Entry(CanonicalName(config.key, found[1]), b"{}")
        decision = self._admit(config, "resources", entry, exchange.client.asking_host)
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
        else:
            # For the person who reads the trace; the caller learns nothing of servers that it may not use.
            trace.marks += [
                Mark(Stage.DISCOVER, server.state, f"{key}: {config.blocked or 'switched off'}", str(config.origin), 0)
                for key, config in self._gateway.servers.items()
                if (server := self._servers[key]).state in ("blocked", "disabled") and may_belong(exposed, key)
            ]
        word = {"tools": "tool", "prompts": "prompt"}.get(kind, "resource")
        return Fault(
            "unknown-name", f"Unknown {word}: {exposed}",
            stage=Stage.DESCRIBE, verdict=Verdict.NEVER_REACHED, retry="never",
        )  # fmt: skip


def _not_ready(key: str) -> Fault:
    return Fault(
        "startup-timeout",
        f"{key}: the server has not answered yet, so what it offers is not known; the request was not sent to it. Retry in a "
        "moment.",
        stage=Stage.DISCOVER, verdict=Verdict.NEVER_REACHED, server=key,
    )  # fmt: skip


def may_belong(exposed: str, key: str) -> bool:
    """True where an exposed name could be of this server: names begin with the key, cleaned and perhaps cut."""

    def plain(text: str) -> str:
        return re.sub("[^a-z0-9]+", "_", text.lower()).strip("_")

    start = plain(key)
    # What is too short to be cut is followed by the separator: `git` is not asked for what is of `github`.
    start = start + "_" if len(start) <= 12 else start[:12].rstrip("_")
    return start == "_" or f"{plain(exposed)}_".startswith((start, f"s{start}"))
