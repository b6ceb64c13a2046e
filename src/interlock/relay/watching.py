"""Clients that want to hear of changes: legacy `resources/subscribe`, modern `subscriptions/listen`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from interlock.model.fault import Fault
from interlock.relay.client import Listen
from interlock.relay.exchange import Exchange
from interlock.relay.hub import Hub
from interlock.upstream.server import Server
from interlock.upstream.session import SessionLost
from interlock.wire import codes, messages
from interlock.wire.eras import SUBSCRIPTION_KEY
from interlock.wire.messages import WireError

RouteUri = Callable[[Exchange, str], tuple[str, str]]
"""The server and its own URI that an exposed URI leads to. Raises Fault where there is none."""
_KINDS = ("tools", "prompts", "resources")


class Watching:
    """Keeps servers told of what clients want to hear. `settle` makes sure that changes can be noticed at all."""

    def __init__(
        self, hub: Hub, servers: Mapping[str, Server], route: RouteUri, settle: Callable[[Exchange], Awaitable[object]]
    ) -> None:
        self._hub = hub
        self._servers = servers
        self._route = route
        self._settle = settle
        self._tasks: set[asyncio.Task[None]] = set()

    async def subscribe(self, exchange: Exchange, wanted: bool) -> str:
        """Legacy `resources/subscribe` and `unsubscribe`; returns the server's key. Raises Fault or WireError."""
        exposed = messages.try_str(exchange.params.get("uri"))
        if exposed is None:
            raise WireError(codes.INVALID_PARAMS, "params.uri must be a string", exchange.id)
        key, uri = self._route(exchange, exposed)
        client = exchange.client
        if wanted:
            client.subscriptions.add(exposed)
            await self._hold(exchange, key, uri, client.id)
        else:
            client.subscriptions.discard(exposed)
            server = self._servers[key]
            session = await server.session(exchange.caller)
            if self._hub.subscriptions.remove(key, session.binding, uri, client.id):
                seconds = server.config.policy.startup_timeout_seconds
                await self._hub.listening.unsubscribe(key, session.binding, uri, seconds)
        return key

    async def _hold(self, exchange: Exchange, key: str, uri: str, holder: str) -> None:
        server = self._servers[key]
        session = await server.session(exchange.caller)
        if self._hub.subscriptions.add(key, session.binding, uri, holder):
            seconds = server.config.policy.startup_timeout_seconds
            await self._hub.listening.subscribe(key, session.binding, uri, seconds)

    async def listen(self, exchange: Exchange, draining: asyncio.Event) -> bytes:
        """Modern `subscriptions/listen`: acknowledged at once, then open until the client leaves or we drain."""
        client = exchange.client
        wanted = messages.read_map(exchange.params.get("notifications"))
        kinds = [kind for kind in _KINDS if messages.try_json(wanted.get(f"{kind}ListChanged")) is True]
        asked = [
            text
            for raw in messages.try_list(wanted.get("resourceSubscriptions")) or []
            if (text := messages.try_str(raw)) is not None
        ]
        routable = {uri: route for uri in asked if (route := self._routed(exchange, uri)) is not None}
        agreed: dict[str, object] = {f"{kind}ListChanged": True for kind in kinds}
        if routable:
            agreed["resourceSubscriptions"] = list(routable)
        params = {"_meta": {SUBSCRIPTION_KEY: exchange.id}, "notifications": agreed}
        exchange.channel.notify(
            messages.notification("notifications/subscriptions/acknowledged", messages.encode(params))
        )
        # Not by the request's id: two connections with one credential may well use the same.
        client.listens[id(exchange)] = Listen(exchange.id, frozenset(kinds), frozenset(routable), exchange)
        holder = f"{client.id}\0{id(exchange)}"
        try:
            for key, uri in routable.values():
                try:
                    await self._hold(exchange, key, uri, holder)
                except (Fault, SessionLost):
                    continue  # that server is not there now; its list change will tell
            if kinds:
                await self._settle(exchange)
            await draining.wait()
        finally:
            client.listens.pop(id(exchange), None)
            self.drop(holder)
        return messages.encode({"resultType": "complete", "_meta": {SUBSCRIPTION_KEY: exchange.id}})

    def _routed(self, exchange: Exchange, exposed: str) -> tuple[str, str] | None:
        try:
            return self._route(exchange, exposed)
        except Fault:
            return None

    def drop(self, holder: str) -> None:
        """This holder, and all that belong to it, want nothing any more; servers are told where nobody else does."""
        for server, binding, uri in self._hub.subscriptions.drop_holder(holder):
            task = asyncio.get_running_loop().create_task(self._unsubscribe(server, binding, uri))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _unsubscribe(self, server: str, binding: str, uri: str) -> None:
        try:
            await self._hub.listening.unsubscribe(server, binding, uri, 10.0)
        except Fault:
            return
