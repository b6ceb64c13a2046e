"""Putting the parts of one running Interlock together from a loaded manifest, the same for `up`, `connect` and `call`."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from interlock import __version__
from interlock.build import build
from interlock.journal.audit import Journal
from interlock.journal.redact import redact
from interlock.manifest.config import Gateway, ServerConfig
from interlock.pipeline import Pipeline
from interlock.relay.client import Registry
from interlock.relay.hub import Hub
from interlock.serve import own_home
from interlock.serve.authorizing import Authorizing, SignIn
from interlock.serve.descriptors import make_room
from interlock.serve.front import Front
from interlock.serve.memory import give_back
from interlock.serve.seal_key import seal_key
from interlock.store.last_known import LastKnown
from interlock.store.sqlite import SqliteStore
from interlock.upstream.contract import Caller
from interlock.upstream.server import Server
from interlock.wire import messages
from interlock.wire.eras import Era, implementation
from interlock.wire.messages import Raw

if TYPE_CHECKING:
    from interlock.upstream.oauth.timing import Timing

IDLE_CHECK_SECONDS = 30.0


class Runtime:
    """Everything that serves one gateway. Made inside a running event loop; `close` ends all of it."""

    def __init__(
        self,
        gateway: Gateway,
        home: Path,
        environ: Mapping[str, str] | None = None,
        *,
        sign_in: SignIn = "address",
        timing: Timing | None = None,
    ) -> None:
        own_home.take(home)
        make_room()
        environ = os.environ if environ is None else environ
        self.gateway = gateway
        self.home = home
        server_info = implementation("interlock", __version__, "Interlock")
        store = SqliteStore(home)
        self._known = LastKnown(store)
        self._store = store
        self.journal = Journal(store)
        self.journal.start()
        self.registry = Registry()
        self.servers: dict[str, Server] = {}
        self.hub = Hub(self.registry, self.servers)
        user_agent = f"interlock/{__version__}"
        self.authorizing = Authorizing(
            home,
            environ,
            build=build,
            user_agent=user_agent,
            announce=self._announce,
            available=self._available,
            sign_in=sign_in,
            timing=timing,
        )
        for config in gateway.servers.values():
            self.servers[config.key] = Server(
                config,
                environ=environ,
                events=self.hub,
                client_info=server_info,
                user_agent=user_agent,
                redact=redact,
                known_eras=partial(self._known_eras, config),
                remember_eras=partial(self._keep_eras, config),
                authorize=self.authorizing.authorize,
            )
        self.pipeline = Pipeline(
            gateway,
            self.servers,
            self.hub,
            self.journal,
            build=build,
            server_info=server_info,
            seal_key=seal_key(home),
            remember=self._remember,
            recall=self._recall,
        )
        self.pipeline.catalogue.unlisted = self._unlisted
        self.aloud = False
        """True where a server that cannot be listed is told to the person and the host: an empty list says nothing."""
        self._told: dict[str, str] = {}
        self.front = Front(self.pipeline)
        self._idle = asyncio.get_running_loop().call_later(IDLE_CHECK_SECONDS, self._check_idle)

    def _known_eras(self, config: ServerConfig) -> frozenset[Era]:
        known = self._known.load_era(config.key, config_digest(config)) or ""
        return frozenset(Era(word) for word in known.split("+") if word in (Era.MODERN.value, Era.LEGACY.value))

    def _keep_eras(self, config: ServerConfig, eras: frozenset[Era]) -> None:
        self._known.save_era(config.key, config_digest(config), "+".join(sorted(eras)))

    def _remember(self, server: str, principal: str, payload: bytes) -> None:
        self._known.save_catalogue(server, config_digest(self.gateway.servers[server], principal), payload)

    def _recall(self, server: str, principal: str) -> bytes | None:
        config = self.gateway.servers[server]
        own = self._known.load_catalogue(server, config_digest(config, principal))
        return own or self._known.load_catalogue(server, config_digest(config))

    def settle_memory(self) -> None:
        """Take what is there for good out of the garbage collector's sight, and let it look less often: it is the largest cost
        of short-lived objects, and reference counts free nearly all of them."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(5_000, 10, 10)

    def start_eager(self) -> None:
        """Start the servers that the manifest wants at once, and look after the grants of all."""
        self.authorizing.keep_alive(self.gateway)
        caller = Caller("interlock", "interlock")
        eager = [key for key, config in self.gateway.servers.items() if config.start == "always"]
        if eager:
            self._eager = asyncio.get_running_loop().create_task(self.pipeline.catalogue.settle(caller, eager))

    def _announce(self, text: str) -> None:
        """For the person at the machine: hosts keep standard error in their logs, and show log messages where they show any."""
        sys.stderr.write(f"interlock: {text}\n")
        sys.stderr.flush()
        params = {"level": Raw(b'"warning"'), "logger": Raw(b'"interlock"'), "data": messages.raw(text)}
        for client in self.registry.clients.values():
            if client.era is Era.LEGACY and client.wants_log("warning"):
                client.tell("notifications/message", params)

    def _unlisted(self, server: str) -> None:
        fault = self.servers[server].last_fault
        # A sign-in is told with its address already.
        if not self.aloud or fault is None or fault.authorize_url is not None or self._told.get(server) == fault.slug:
            return
        self._told[server] = fault.slug
        self._announce(f"no tools of {server} are known yet: {fault.message}")

    def _available(self, server: str) -> None:
        self.pipeline.catalogue.available(server)

    def _check_idle(self) -> None:
        loop = asyncio.get_running_loop()
        for server in self.servers.values():
            server.close_idle(loop.time())
        give_back()
        self._idle = loop.call_later(IDLE_CHECK_SECONDS, self._check_idle)

    async def close(
        self, grace: float = 5.0, *, linger: float = 0.0, on_linger: Callable[[], None] = lambda: None
    ) -> None:
        """End everything. An open sign-in of ours is waited for at most `linger` seconds; `on_linger` is called before that."""
        self._idle.cancel()
        await self.front.drain(grace)
        await self.pipeline.close()
        await asyncio.to_thread(self.journal.close)
        await asyncio.to_thread(self._known.flush)
        self._store.close()
        if linger and self.authorizing.signing_in:
            on_linger()
            await self.authorizing.linger(linger)
        await self.authorizing.close()


def config_digest(config: ServerConfig, principal: str = "") -> str:
    """What makes one server's remembered facts valid: how it is reached, and for whom where that may matter."""
    return hashlib.sha256(f"{config.transport!r}\0{principal}".encode()).hexdigest()
