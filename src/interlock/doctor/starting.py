"""Starts one server once, as its host or Interlock would, measures each part of the start, asks for its tools, and ends it.

The parts are: the process is there, the handshake is answered, the tools are listed. What the server printed and how it
ended is kept for whoever explains it. Everything is bounded, and no part of it is a call of a tool.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from interlock import __version__
from interlock.catalog.listing import list_server
from interlock.catalog.snapshot import Snapshot, build
from interlock.journal.redact import redact
from interlock.manifest.config import EnvValue, HttpTransport, Origin, ServerConfig, StdioTransport
from interlock.model.fault import Fault
from interlock.upstream import handshake, strays
from interlock.upstream.contract import Caller, ListKind, Outgoing, Progress, Reply
from interlock.upstream.exits import Exit
from interlock.upstream.known_secrets import masker
from interlock.upstream.process import ChildProcess
from interlock.upstream.secret_forms import MIN_LENGTH, masked
from interlock.upstream.server import Server
from interlock.upstream.session import Session, SessionLost
from interlock.upstream.stdio import StdioCarrier
from interlock.wire import bounds, messages
from interlock.wire.eras import Era, implementation
from interlock.wire.messages import EMPTY_OBJECT, Raw, RawMap

Reached = Literal["nothing", "process", "handshake", "tools"]
"""The last part that came off."""
_CALLER = Caller("doctor", "local", EMPTY_OBJECT, era=Era.LEGACY)
FAILED = "tools/list failed"
_LAST_WORDS = 0.5
"""Seconds in which a server that has just ended may still be heard."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server that can be started. `environ` is that of whoever starts it."""

    name: str
    where: str
    transport: StdioTransport | HttpTransport
    environ: Mapping[str, str]
    config: ServerConfig | None = None
    """Of the manifest; None for a host's own entry."""
    host: str = ""
    doubts: tuple[str, ...] = ()
    """What of the host is not known and was assumed, in words."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values of a host's entry that may be secrets: nothing of them is shown."""

    @property
    def program(self) -> tuple[str, ...]:
        return self.transport.command if isinstance(self.transport, StdioTransport) else ()


@dataclass(slots=True)
class Started:
    """What came of it. Times are seconds; None where that part did not come off."""

    target: Target
    spawn: float | None = None
    handshake: float | None = None
    listing: float | None = None
    fault: Fault | None = None
    exit: Exit | None = None
    """How the process ended by itself; None where it ran until it was told to end."""
    stderr: list[str] = field(default_factory=list)
    banner: list[str] = field(default_factory=list)
    """What it printed on stdout that is no message."""
    too_long: bool = False
    """It printed a line that is longer than any message."""
    era: Era | None = None
    snapshot: Snapshot | None = None
    waited: float = 0.0

    @property
    def reached(self) -> Reached:
        if self.listing is not None:
            return "tools"
        if self.handshake is not None:
            return "handshake"
        return "nothing" if self.spawn is None else "process"


async def start(target: Target, seconds: float) -> Started:
    """Never raises for what the server does. At most `seconds` for all of it, and a moment to end it."""
    started = Started(target)
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            if isinstance(target.transport, StdioTransport):
                await _process(target, target.transport, seconds, started)
            else:
                await _connection(target, target.transport, seconds, started)
    except TimeoutError:
        pass  # `reached` says how far it came
    except Fault as fault:
        started.fault = fault
    except SessionLost:
        pass
    started.waited = time.monotonic() - began
    return started


async def _process(target: Target, transport: StdioTransport, seconds: float, started: Started) -> None:
    session = Session(target.name, "", _CALLER, _Deaf(), implementation("interlock", __version__, "Interlock"))
    known = masker(transport, target.environ)

    def mask(text: str) -> str:
        return masked(known(text), (value for value in target.secrets if len(value) >= MIN_LENGTH))

    session.mask = mask
    trace = strays.new_mark()
    transport = replace(transport, env=(*transport.env, EnvValue(strays.NAME, literal=trace)))
    carrier = StdioCarrier(session)
    ended = asyncio.get_running_loop().create_future()

    def on_exit(exit: Exit) -> None:
        carrier.on_exit(exit)
        if not ended.done():
            ended.set_result(None)

    began = time.monotonic()
    child = carrier.child = await ChildProcess.start(
        transport, environ=target.environ, on_data=carrier.on_data, on_exit=on_exit, server=target.name,
        redact=lambda text: redact(mask(text)),
    )  # fmt: skip
    session.carrier = carrier
    started.spawn = time.monotonic() - began
    try:
        began = time.monotonic()
        await _introduce(session, seconds)
        started.handshake, started.era = time.monotonic() - began, session.era
        began = time.monotonic()
        started.snapshot = await _tools(session, seconds, began)
        started.listing = time.monotonic() - began
    except Fault:
        # What it said last, and with which code it ended, may come a moment after its output has.
        await asyncio.wait((ended,), timeout=_LAST_WORDS)
        raise
    finally:
        if ended.done():
            started.exit = carrier.exit
        started.too_long = carrier.too_long
        started.banner = [redact(mask(line)) for line in carrier.banner]
        started.stderr = child.stderr.lines(20)
        try:
            await asyncio.shield(session.close())
        finally:
            strays.end(trace)


async def _introduce(session: Session, seconds: float) -> None:
    """As most hosts do it: `initialize`, and for a server that knows only the later way, that."""
    try:
        await handshake.initialize(session, EMPTY_OBJECT, seconds)
    except Fault as refused:
        if refused.slug != "handshake-failed":
            raise
        if await handshake.discover(session, seconds) is not handshake.Found.MODERN:
            raise refused from None


async def _tools(session: Session, seconds: float, at: float) -> Snapshot:
    pages: list[RawMap] = []
    problems: list[str] = []
    cursor: Raw | None = None
    while "tools" in session.capabilities and len(pages) < bounds.MAX_LIST_PAGES:
        params: RawMap = {} if cursor is None else {"cursor": cursor}
        reply = await session.request(Outgoing("tools/list", params, _CALLER, seconds))
        result = messages.try_map(reply.body)
        if reply.is_error or result is None:
            problems.append(f"{session.server}: {FAILED}")
            break
        pages.append({key: Raw(bytes(value)) for key, value in result.items()})
        following = result.get("nextCursor")
        if following is None or messages.try_str(following) is None:
            break
        cursor = Raw(bytes(following))
    return build(
        session.server, session.era, {"tools": pages}, capabilities=session.capabilities,
        instructions=session.instructions, server_info=None, over_http=False, problems=problems, at=at,
    )  # fmt: skip


async def _connection(target: Target, transport: HttpTransport, seconds: float, started: Started) -> None:
    """A remote server: nothing is started, a session is opened and ended. No grant is renewed and nobody signs in."""
    config = target.config or ServerConfig(
        target.name, target.name, "named", Origin(Path(target.where), 0), transport=transport
    )
    server = Server(
        config, environ=target.environ, events=_Deaf(), client_info=implementation("interlock", __version__, "Interlock"),
        user_agent=f"interlock/{__version__}", redact=redact,
    )  # fmt: skip
    try:
        began = time.monotonic()
        session = await server.session(_CALLER)
        started.spawn, started.handshake, started.era = 0.0, time.monotonic() - began, session.era
        began = time.monotonic()
        started.snapshot = (await list_server(server, _CALLER))[0]
        started.listing = time.monotonic() - began
    finally:
        await asyncio.shield(server.close())


class _Deaf:
    """Nobody listens: what the server says by itself, and asks, has nobody to go to."""

    def list_changed(self, server: str, binding: str, kind: ListKind) -> None:
        return

    def resource_updated(self, server: str, binding: str, params: RawMap) -> None:
        return

    def notification(self, server: str, binding: str, caller: Caller | None, method: str, params: RawMap) -> None:
        return

    async def question(
        self, server: str, caller: Caller | None, method: str, params: Raw | None, progress: Progress
    ) -> Reply:
        return Reply(b'{"code":-32601,"message":"Nobody is here to answer"}', True, Era.LEGACY)

    def log_level(self, caller: Caller | None) -> str | None:
        return None

    def session_started(self, server: str, binding: str) -> None:
        return

    def session_ended(self, server: str, binding: str) -> None:
        return
