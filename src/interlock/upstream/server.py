"""One declared server: its era, its sessions, and bringing them up when they are first needed.

A modern server has one shared session (the protocol is stateless). A legacy one gets a session for each downstream client
and set of capabilities, as hosts give it today, unless the manifest says `shared`.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Literal

from interlock.manifest.config import HttpTransport, ServerConfig, StdioTransport
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream import evidence, handshake
from interlock.upstream.contract import Caller, Events, Outgoing, Reply
from interlock.upstream.environment import child_environment
from interlock.upstream.exits import explain_exit
from interlock.upstream.handshake import Found
from interlock.upstream.http import HttpCarrier
from interlock.upstream.http1 import Origin, Pool
from interlock.upstream.restart import RestartPolicy
from interlock.upstream.session import Session, SessionLost
from interlock.upstream.sse import SseCarrier
from interlock.wire.eras import Era
from interlock.wire.messages import Raw

State = Literal["cold", "starting", "ready", "failed", "crash-loop", "disabled", "blocked"]
SHARED = ""
"""The binding of a session that all clients use."""
EVERYTHING = Raw(b'{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}')
"""What a shared legacy session declares: it serves clients whose capabilities differ, and asks are judged per call."""
MAX_BINDINGS_PER_CLIENT = 4
IDLE_SESSION_SECONDS = 600.0


class Server:
    """Hands out sessions. `remember_era` and `known_era` keep the probe's outcome across runs."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        environ: Mapping[str, str],
        events: Events,
        client_info: bytes,
        user_agent: str,
        redact: Callable[[str], str],
        known_era: Callable[[], Era | None] = lambda: None,
        remember_era: Callable[[Era], None] = lambda era: None,
    ) -> None:
        self.config = config
        self.key = config.key
        self.era: Era | None = None
        self._known_era = known_era
        if config.era != "auto":
            self.era = Era(config.era)
        self.last_fault: Fault | None = None
        self.sessions: dict[str, Session] = {}
        self.restarts = RestartPolicy()
        self.shared = config.processes == "shared"
        self._environ = environ
        self._events = events
        self._client_info = client_info
        self._user_agent = user_agent
        self._redact = redact
        self._remember_era = remember_era
        self._starting: dict[str, asyncio.Task[Session]] = {}
        self._pool: Pool | None = None
        self._ready_shared: Session | None = None
        self._closing = False
        self._stopping: set[asyncio.Task[None]] = set()

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        if not self.config.enabled:
            return "disabled"
        if self.config.blocked is not None:
            return "blocked"
        if any(not session.closed for session in self.sessions.values()):
            return "ready"
        if self._starting:
            return "starting"
        if self.restarts.crash_looping(time.monotonic()):
            return "crash-loop"
        return "failed" if self.last_fault is not None else "cold"

    def binding_for(self, caller: Caller) -> str:
        """Which session serves this caller, once the era is known. Clients never share a legacy session unasked."""
        if self.shared or self.era is not Era.LEGACY:
            return SHARED
        capabilities = bytes(caller.capabilities or b"")
        return (
            f"{caller.client}#{hashlib.sha256(capabilities).hexdigest()[:12]}" if capabilities else f"{caller.client}#"
        )

    # -- sessions ----------------------------------------------------------------------------------------------------

    async def session(self, caller: Caller) -> Session:
        """A ready session for this caller; started where there is none. Raises Fault."""
        ready = self._ready_shared
        if ready is not None and not ready.closed:
            return ready
        self._check_may_run()
        binding = self.binding_for(caller)
        session = self.sessions.get(binding)
        if session is not None and not session.closed:
            return session
        # While the era is unknown everybody waits for the one probe; then a legacy server is asked for a session of one's own.
        task = self._starting.get(binding)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._start(binding, caller))
            self._starting[binding] = task
            task.add_done_callback(lambda done: self._started(binding, done))
        session = await asyncio.shield(task)
        if binding == SHARED and self.binding_for(caller) not in (SHARED, session.binding):
            return await self.session(caller)
        return session

    def _started(self, binding: str, done: asyncio.Task[Session]) -> None:
        if self._starting.get(binding) is done:
            del self._starting[binding]
        if not done.cancelled():
            done.exception()

    def _check_may_run(self) -> None:
        config = self.config
        if self._closing:
            raise Fault(
                "draining", f"{self.key}: Interlock is shutting down; the server did not get the request.",
                stage=Stage.EXECUTE, verdict=Verdict.NEVER_REACHED, server=self.key,
            )  # fmt: skip
        if not config.enabled or config.blocked is not None:
            why = config.blocked or f"it is switched off ({config.origin})"
            raise Fault(
                "server-disabled", f"{self.key}: {why}.",
                stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=self.key, retry="never",
            )  # fmt: skip
        now = time.monotonic()
        wait = self.restarts.wait_seconds(now)
        if wait > 0:
            looping = self.restarts.crash_looping(now)
            last = f" Last: {self.last_fault.message}" if self.last_fault is not None else ""
            raise Fault(
                "crash-loop" if looping else "server-exited",
                f"{self.key}: the server {'keeps crashing' if looping else 'has just crashed'}; the next start is in {wait:.0f} s."
                f"{last}",
                stage=Stage.DISCOVER, verdict=Verdict.WAIT, server=self.key, wait_seconds=round(wait, 1),
            )  # fmt: skip

    async def _start(self, binding: str, caller: Caller) -> Session:
        seconds = self.config.policy.startup_timeout_seconds
        if self.era is None:
            self.era = self._known_era()
        try:
            async with asyncio.timeout(seconds):
                session = await self._connect(binding, caller, seconds)
        except TimeoutError:
            fault = Fault(
                "startup-timeout",
                f"{self.key}: the server was not ready within {seconds:g} s; your request was not sent to it. "
                "policy.startupTimeoutSeconds sets the limit.",
                stage=Stage.DISCOVER, verdict=Verdict.NEVER_REACHED, server=self.key,
            )  # fmt: skip
            self.last_fault = fault
            raise fault from None
        except Fault as fault:
            # Whatever went wrong here, the caller's own request has not been sent yet.
            if fault.verdict is Verdict.OUTCOME_UNKNOWN:
                fault.verdict, fault.retry = Verdict.NEVER_REACHED, "safe"
                fault.message = fault.message.replace(
                    "The call may have taken effect: read the target again before a retry.",
                    "Your request was not sent yet.",
                )
            fault.stage = Stage.DISCOVER
            self.last_fault = fault
            raise
        self.last_fault = None
        session.last_used = asyncio.get_running_loop().time()
        self.sessions[session.binding] = session
        if session.binding == SHARED:
            self._ready_shared = session
        self._trim(caller.client)
        self._events.session_started(self.key, session.binding)
        return session

    async def _connect(self, binding: str, caller: Caller, seconds: float) -> Session:
        transport = self.config.transport
        if isinstance(transport, StdioTransport):
            return await self._connect_stdio(transport, caller, seconds)
        if transport.kind == "sse":
            return await self._connect_sse(transport, caller, seconds)
        return await self._connect_http(transport, caller, seconds)

    def _new_session(self, caller: Caller) -> Session:
        """Named for the caller; becomes the shared one where the server turns out to be modern."""
        session = Session(self.key, SHARED, None, self._events, self._client_info)
        if not self.shared:
            session.caller = caller
        return session

    def _settle(self, session: Session, era: Era, caller: Caller) -> None:
        """The era is known now: say so, and give the session its place."""
        if self.era is not era:
            self.era = era
            self._remember_era(era)
        if era is Era.MODERN or self.shared:
            session.binding, session.caller = SHARED, None
        else:
            session.binding, session.caller = self.binding_for(caller), caller

    def _declared(self, caller: Caller) -> Raw | None:
        return EVERYTHING if self.shared else caller.capabilities

    async def _connect_stdio(self, transport: StdioTransport, caller: Caller, seconds: float) -> Session:
        session = await self._spawn(transport, caller)
        try:
            if self.era is not Era.LEGACY:
                legacy = await self._probe_stdio(session)
                if not legacy:
                    self._settle(session, Era.MODERN, caller)
                    return session
                if session.closed:  # it died of the probe: some legacy servers do
                    session = await self._spawn(transport, caller)
            try:
                await handshake.initialize(session, self._declared(caller), seconds)
            except Fault:
                if self.config.era == "legacy" or session.closed or self.era is not Era.LEGACY:
                    raise
                # A remembered era that no longer holds: ask again.
                if await handshake.discover(session, handshake.PROBE_SECONDS) is not Found.MODERN:
                    raise
                self._settle(session, Era.MODERN, caller)
                return session
            self._settle(session, Era.LEGACY, caller)
            return session
        except BaseException:
            self._discard(session)
            raise

    async def _probe_stdio(self, session: Session) -> bool:
        """True where the server is legacy."""
        try:
            return await handshake.discover(session, handshake.PROBE_SECONDS) is Found.LEGACY
        except Fault as fault:
            if self.config.era == "modern" or fault.slug == "handshake-failed":
                raise
            session.era = Era.LEGACY
            return True

    async def _spawn(self, transport: StdioTransport, caller: Caller) -> Session:
        from interlock.upstream.process import ChildProcess
        from interlock.upstream.stdio import StdioCarrier

        session = self._new_session(caller)
        carrier = StdioCarrier(session)
        environ = child_environment(transport.env, self._environ, server=self.key)
        started = time.monotonic()

        def ended(exit: object) -> None:
            carrier.on_exit(exit)  # type: ignore[arg-type]
            self._exited(session, carrier, time.monotonic() - started)

        self.restarts.started(started)
        carrier.child = await ChildProcess.start(
            transport, environ=environ, on_data=carrier.on_data, on_exit=ended, server=self.key, redact=self._redact
        )
        session.carrier = carrier
        return session

    def _exited(self, session: Session, carrier: object, uptime: float) -> None:
        from interlock.upstream.stdio import StdioCarrier

        assert isinstance(carrier, StdioCarrier)
        self._forget(session)
        if carrier.exit is None or carrier.exit.cause == "requested" or self._closing:
            return
        self.restarts.exited(time.monotonic(), uptime)
        self.last_fault = Fault(
            "server-exited", f"{self.key}: {explain_exit(carrier.exit)}.",
            stage=Stage.DISCOVER, verdict=Verdict.NEVER_REACHED, server=self.key,
        )  # fmt: skip

    def _address(self, transport: HttpTransport) -> str:
        if transport.endpoint is not None:
            return transport.endpoint
        name = transport.endpoint_env or ""
        url = self._environ.get(name)
        if not url:
            raise Fault(
                "env-missing",
                f"{self.key}: the environment variable {name}, which holds the server's URL, is not set. The server did not "
                "get the request.",
                stage=Stage.DISCOVER, verdict=Verdict.NEVER_REACHED, server=self.key,
            )  # fmt: skip
        return url

    def _http(self, transport: HttpTransport) -> tuple[str, Pool, list[tuple[str, str]]]:
        url = self._address(transport)
        try:
            origin = Origin.of(url)
        except ValueError as error:
            raise Fault(
                "unreachable", f"{self.key}: its endpoint is {error}.",
                stage=Stage.DISCOVER, verdict=Verdict.NEVER_REACHED, server=self.key,
            ) from None  # fmt: skip
        headers: list[tuple[str, str]] = []
        for header in transport.headers:
            value = header.literal
            if header.source is not None:
                value = self._environ.get(header.source)
                if value is None:
                    raise Fault(
                        "env-missing",
                        f"{self.key}: the environment variable {header.source}, used for the header {header.name}, is not set.",
                        stage=Stage.DISCOVER, verdict=Verdict.NEVER_REACHED, server=self.key,
                    )  # fmt: skip
            headers.append((header.name, header.prefix + (value or "").strip()))
        if self._pool is None or self._pool.origin != origin:
            if self._pool is not None:
                self._pool.close()
            self._pool = Pool(origin)
        return url, self._pool, headers

    async def _connect_http(self, transport: HttpTransport, caller: Caller, seconds: float) -> Session:
        url, pool, headers = self._http(transport)

        def fresh() -> Session:
            session = self._new_session(caller)
            session.carrier = HttpCarrier(session, pool, url, headers, self._user_agent)
            return session

        session = fresh()
        if self.era is not Era.LEGACY:
            try:
                found = await handshake.discover(session, min(seconds, 2 * handshake.PROBE_SECONDS))
            except Fault as fault:
                if not _legacy_status(fault):
                    raise
                found = Found.LEGACY
            if found is Found.MODERN:
                self._settle(session, Era.MODERN, caller)
                return session
            if self.config.era == "modern":
                raise evidence.not_sent(self.key, "the server does not speak the modern era")
            session = fresh()
        try:
            await handshake.initialize(session, self._declared(caller), seconds)
        except Fault as fault:
            if _legacy_status(fault) and self.config.era != "legacy":
                if self.era is Era.LEGACY and await self._became_modern(session := fresh(), seconds):
                    self._settle(session, Era.MODERN, caller)
                    return session
                return await self._connect_sse(transport, caller, seconds)
            raise
        carrier = session.carrier
        assert isinstance(carrier, HttpCarrier)
        carrier.negotiated = True
        self._settle(session, Era.LEGACY, caller)
        carrier.open_stream()
        return session

    async def _became_modern(self, session: Session, seconds: float) -> bool:
        try:
            return await handshake.discover(session, min(seconds, handshake.PROBE_SECONDS)) is Found.MODERN
        except Fault:
            return False

    async def _connect_sse(self, transport: HttpTransport, caller: Caller, seconds: float) -> Session:
        url, pool, headers = self._http(transport)
        session = self._new_session(caller)
        session.era = Era.LEGACY
        carrier = SseCarrier(session, pool, url, headers, self._user_agent)
        try:
            await carrier.connect(seconds)
            session.carrier = carrier
            await handshake.initialize(session, self._declared(caller), seconds)
        except BaseException:
            await carrier.close()
            raise
        carrier.negotiated = True
        self._settle(session, Era.LEGACY, caller)
        return session

    # -- requests ----------------------------------------------------------------------------------------------------

    async def request(self, out: Outgoing) -> Reply:
        """Send one request on the caller's session. A lost session is rebuilt once; nothing that may have run is resent."""
        session = await self.session(out.caller)
        try:
            return await session.request(out)
        except SessionLost:
            self._forget(session)
            session.lost("the server ended the session")
            out.params.pop("_meta", None)
            session = await self.session(out.caller)
            try:
                return await session.request(out)
            except SessionLost:
                raise evidence.not_sent(self.key, "the server ended the session twice") from None

    # -- ends --------------------------------------------------------------------------------------------------------

    def _forget(self, session: Session) -> None:
        if self.sessions.get(session.binding) is session:
            del self.sessions[session.binding]
        if self._ready_shared is session:
            self._ready_shared = None

    def _discard(self, session: Session) -> None:
        """Close a session in the background; nobody waits for a bad server."""
        self._forget(session)
        task = asyncio.get_running_loop().create_task(session.close())
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    def _trim(self, client: str) -> None:
        """A client whose capabilities keep changing must not fill the machine with processes."""
        mine = [each for each in self.sessions.values() if each.caller is not None and each.caller.client == client]
        mine.sort(key=lambda each: each.last_used)
        for session in mine[:-MAX_BINDINGS_PER_CLIENT]:
            if not session.pending:
                self._discard(session)

    def release(self, client: str) -> None:
        """The downstream client is gone: its own sessions end."""
        for session in list(self.sessions.values()):
            if session.caller is not None and session.caller.client == client:
                self._discard(session)

    def close_idle(self, now: float) -> None:
        """End sessions of one client that nobody has used for a while."""
        for session in list(self.sessions.values()):
            idle = session.caller is not None and not session.pending and now - session.last_used > IDLE_SESSION_SECONDS
            if session.closed or idle:
                self._discard(session)

    async def close(self) -> None:
        self._closing = True
        for task in list(self._starting.values()):
            task.cancel()
        sessions = list(self.sessions.values())
        self._ready_shared = None
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
        if self._stopping:
            await asyncio.gather(*self._stopping, return_exceptions=True)
        if self._pool is not None:
            await asyncio.sleep(0)
            self._pool.close()


def _legacy_status(fault: Fault) -> bool:
    """A 4xx that says nothing modern: the server is legacy. 401, 403, 408, 429 and 5xx settle nothing."""
    status = fault.http_status
    return status is not None and 400 <= status < 500 and status not in (401, 403, 408, 429)
