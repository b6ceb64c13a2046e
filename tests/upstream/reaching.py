"""A `Server` for tests: its configuration, its caller, and a record of what it reports."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from interlock.manifest.config import HttpTransport, Origin, Policy, ServerConfig, Transport
from interlock.model.fault import Fault
from interlock.upstream.contract import Caller, ListKind, Outgoing, Reply
from interlock.upstream.server import Server
from interlock.wire import messages
from interlock.wire.eras import Era
from interlock.wire.messages import Raw, RawMap

ANN = Caller("ann", "ann", Raw(b"{}"))
BEN = Caller("ben", "ben", Raw(b"{}"))
LEGACY_ANN = Caller("ann", "ann", Raw(b"{}"), era=Era.LEGACY)
LEGACY_BEN = Caller("ben", "ben", Raw(b"{}"), era=Era.LEGACY)


@dataclass
class Heard:
    """What the server said outside any request."""

    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    changes: list[tuple[str, ListKind]] = field(default_factory=list)
    notes: list[tuple[str, str]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def list_changed(self, server: str, binding: str, kind: ListKind) -> None:
        self.changes.append((binding, kind))
        self.changed.set()

    def resource_updated(self, server: str, binding: str, params: RawMap) -> None:
        self.notes.append((binding, "resource"))

    def notification(self, server: str, binding: str, caller: Caller | None, method: str, params: RawMap) -> None:
        self.notes.append((binding, method))

    async def question(self, server: str, caller: Caller | None, method: str, params: Raw | None) -> Reply:
        return Reply(messages.error_body(-32601, "nobody is there"), True, Era.LEGACY)

    def log_level(self, caller: Caller | None) -> str | None:
        return None

    def session_started(self, server: str, binding: str) -> None:
        self.started.append(binding)

    def session_ended(self, server: str, binding: str) -> None:
        self.ended.append(binding)


@dataclass
class Reached:
    server: Server
    heard: Heard
    remembered: list[frozenset[Era]]

    async def call(self, caller: Caller = ANN, seconds: float = 5.0, **more: object) -> Reply:
        """One `tools/call`. Raises Fault."""
        params = {"name": messages.raw("tool"), "arguments": messages.raw(more)}
        return await self.server.request(Outgoing("tools/call", params, caller, seconds, name="tool"))

    async def fault(self, caller: Caller = ANN, seconds: float = 5.0) -> Fault:
        """The fault that one `tools/call` ends in."""
        try:
            reply = await self.call(caller, seconds)
        except Fault as fault:
            return fault
        raise AssertionError(f"the call was answered: {reply}")


@asynccontextmanager
async def reaching(
    where: str | Transport,
    *,
    known: frozenset[Era] = frozenset(),
    environ: Mapping[str, str] | None = None,
    redact: Callable[[str], str] = str,
    startup: float = 5.0,
    **more: object,
) -> AsyncIterator[Reached]:
    """A server at a URL, or by a transport. `more` goes into its configuration."""
    transport = HttpTransport("http", where) if isinstance(where, str) else where
    config = ServerConfig(
        "srv",
        "test.srv",
        "user",
        Origin(Path("/m.yaml"), 1),
        transport,
        Policy(startup_timeout_seconds=startup),
        **more,  # type: ignore[arg-type]
    )
    heard, remembered = Heard(), []
    server = Server(
        config,
        environ=environ or {},
        events=heard,
        client_info=b'{"name":"interlock","version":"0"}',
        user_agent="interlock/0",
        redact=redact,
        known_eras=lambda: known,
        remember_eras=remembered.append,
    )
    try:
        yield Reached(server, heard, remembered)
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                await server.close()
