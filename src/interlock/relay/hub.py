"""What servers say outside any request, brought to the clients that it concerns. Implements upstream's `Events`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from interlock.model.fault import Fault
from interlock.relay.client import Client, Registry
from interlock.relay.listening import Listening
from interlock.relay.questions import ask, refusal, with_server_name
from interlock.relay.resources import Subscriptions
from interlock.upstream.contract import Caller, ListKind, Progress, Reply
from interlock.upstream.server import Server
from interlock.wire import codes, messages
from interlock.wire.eras import Era
from interlock.wire.levels import LEVELS
from interlock.wire.messages import Raw, RawMap

RESTORE_SECONDS = 30.0


class Hub:
    """`invalidate` and `session_up` tell the catalogue; `expose` gives a server's URI its exposed form."""

    def __init__(self, registry: Registry, servers: Mapping[str, Server]) -> None:
        self.registry = registry
        self.subscriptions = Subscriptions()
        self.listening = Listening(servers, self.subscriptions)
        self.invalidate: Callable[[str, str, ListKind], None] = lambda server, binding, kind: None
        self.session_up: Callable[[str, str], None] = lambda server, binding: None
        self.expose: Callable[[str, str], str] = lambda server, uri: uri
        self.name_servers = True
        self._tasks: set[asyncio.Task[None]] = set()

    # -- Events
    def list_changed(self, server: str, binding: str, kind: ListKind) -> None:
        self.invalidate(server, binding, kind)

    def resource_updated(self, server: str, binding: str, params: RawMap) -> None:
        uri = messages.try_str(params.get("uri"))
        if uri is None:
            return
        exposed = self.expose(server, uri)
        for client in self.registry.of_binding(binding):
            client.resource_updated(exposed, params)

    def notification(self, server: str, binding: str, caller: Caller | None, method: str, params: RawMap) -> None:
        clients = self.registry.of_binding(binding)
        if "#" not in binding and len({client.principal.id for client in clients}) > 1:
            return  # nobody can tell whose it is, and nothing of one principal may reach another
        for client in clients:
            if client.era is Era.LEGACY:
                if method == "notifications/message" and not client.wants_log(messages.try_str(params.get("level"))):
                    continue
                client.tell(method, params)

    async def question(
        self, server: str, caller: Caller | None, method: str, params: Raw | None, progress: Progress
    ) -> Reply:
        client: Client | None = self.registry.clients.get(caller.client) if caller is not None else None
        if client is None or client.era is Era.MODERN:
            return refusal(codes.METHOD_NOT_FOUND, "No call of a client is open that this question could belong to")
        shown = with_server_name(server, method, params) if self.name_servers else params
        return await ask(client, None, method, shown, progress)

    def log_level(self, caller: Caller | None) -> str | None:
        if caller is not None:
            client = self.registry.clients.get(caller.client)
            return client.log_level if client is not None else None
        set_levels = [client.log_level for client in self.registry.clients.values() if client.log_level in LEVELS]
        return min(set_levels, key=lambda level: LEVELS.index(level or ""), default=None)

    def session_started(self, server: str, binding: str) -> None:
        self.listening.refresh(server, binding)
        self.session_up(server, binding)
        if any(True for _ in self.subscriptions.uris(server, binding)):
            self._spawn(server, binding)

    def session_ended(self, server: str, binding: str) -> None:
        return

    def _spawn(self, server: str, binding: str) -> None:
        async def restore() -> None:
            try:
                await self.listening.restore(server, binding, RESTORE_SECONDS)
            except Fault:
                return  # the server's state tells; the next call will too

        task = asyncio.get_running_loop().create_task(restore())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
