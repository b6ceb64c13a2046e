"""One declared server: the eras it speaks, its sessions, and bringing them up when they are first needed.

Which eras a server speaks is a property of the server: found by trying, remembered, tried again when it no longer holds.
One that speaks both is spoken to in the client's own, so that nothing has to be translated. A modern server has one shared
session (the protocol is stateless). A legacy one gets a session for each downstream client and set of capabilities, as
hosts give it today, unless the manifest says `shared`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from interlock.manifest.config import HttpTransport, ServerConfig, StdioTransport
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream import declared, evidence, handshake
from interlock.upstream.authorization import Authorization
from interlock.upstream.bindings import Bindings
from interlock.upstream.contract import Caller, Events, Outgoing, Reply
from interlock.upstream.exits import explain_exit
from interlock.upstream.handshake import Found
from interlock.upstream.http import HttpCarrier
from interlock.upstream.http1 import Pool
from interlock.upstream.known_secrets import known_values, masker
from interlock.upstream.restart import RestartPolicy
from interlock.upstream.session import Session, SessionLost
from interlock.upstream.sse import SseCarrier
from interlock.wire.eras import Era
from interlock.wire.levels import at_least
from interlock.wire.messages import Raw, encode, try_map, try_str

State = Literal["cold", "starting", "ready", "failed", "crash-loop", "disabled", "blocked"]
SHARED = ""
"""The binding of the modern session, which all clients use."""
SHARED_LEGACY = "*"
"""The binding of a legacy session that the manifest lets all clients use."""
EVERYTHING = Raw(b'{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}}')
"""What a shared legacy session declares: it serves clients whose capabilities differ, and asks are judged per call."""
MAX_BINDINGS_PER_CLIENT = 4
IDLE_SESSION_SECONDS = 600.0
RESTART_PATIENCE = 1.0
"""The longest rest of a crashed server that a request waits for; a longer one is answered with how long it takes."""
AUTHORIZED_PROBE_SECONDS = 20.0
"""How long the first request of a session may take where it has to be authorized."""
LOG_LEVEL_SECONDS = 2.0
"""How long a server may take to set its log level; what was asked for goes on without it."""
OTHER = {Era.MODERN: Era.LEGACY, Era.LEGACY: Era.MODERN}


Authorize = Callable[[str, HttpTransport, str], "Authorization | None"]
"""Given a server's key, its transport and its URL: what authorizes requests to it."""


class Server:
    """Hands out sessions. `remember_eras` and `known_eras` keep what was found across runs; `authorize` is for servers that
    want a grant or a token."""

    def __init__(
        self,
        config: ServerConfig,
        *,
        environ: Mapping[str, str],
        events: Events,
        client_info: bytes,
        user_agent: str,
        redact: Callable[[str], str],
        known_eras: Callable[[], frozenset[Era]] = frozenset,
        remember_eras: Callable[[frozenset[Era]], None] = lambda eras: None,
        authorize: Authorize | None = None,
    ) -> None:
        self.config = config
        self.key = config.key
        self.speaks: dict[Era, bool | None] = {Era.MODERN: None, Era.LEGACY: None}
        """True, False, or None where it was not tried."""
        if config.era != "auto":
            self.speaks[OTHER[Era(config.era)]] = False
        self._known_eras: Callable[[], frozenset[Era]] | None = known_eras
        self.last_fault: Fault | None = None
        self.sessions: dict[str, Session] = {}
        self.restarts = RestartPolicy()
        self.shared = config.processes == "shared"
        self._environ = environ
        self._events = events
        self._client_info = client_info
        self._user_agent = user_agent
        self._mask_known = masker(config.transport, environ)
        self._redact = lambda text: redact(self._mask(text))
        self._remember_eras = remember_eras
        self._authorize = authorize
        self._authorization: Authorization | None = None
        replay = config.transport.replay if isinstance(config.transport, HttpTransport) else ()
        self.bindings = Bindings(config.key, replay) if replay else None
        """What the server has to be told again when a session is rebuilt; None where the manifest names nothing."""
        self._starting: dict[str, asyncio.Task[Session]] = {}
        self._pool: Pool | None = None
        self._ready_shared: Session | None = None
        self._closing = False
        self._stopping: set[asyncio.Task[None]] = set()

    def _mask(self, text: str) -> str:
        text = self._mask_known(text)
        return text if self._authorization is None else self._authorization.mask(text)

    def _secrets(self) -> Sequence[str]:
        more = self._authorization.secrets() if self._authorization is not None else ()
        return (*known_values(self.config.transport, self._environ), *more)

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

    def era_for(self, caller: Caller) -> Era:
        """The era in which this caller's requests will go out, unless the server is known not to speak it: the caller's own,
        or the one without sessions that could be lost, where nothing of the other is of use to the caller."""
        if self._known_eras is not None and self.config.era == "auto":
            for era in self._known_eras():
                self.speaks[era] = True
        self._known_eras = None
        wanted = caller.era
        if wanted is Era.LEGACY and self.config.era_choice == "modern" and not _answers_questions(caller):
            wanted = Era.MODERN
        return wanted if self.speaks[wanted] is not False else OTHER[wanted]

    def binding_for(self, caller: Caller) -> str:
        """Which session serves this caller. Clients never share a legacy session unasked."""
        if self.era_for(caller) is Era.MODERN:
            return SHARED
        if self.shared:
            return SHARED_LEGACY
        capabilities = bytes(caller.capabilities or b"")
        return f"{caller.client}#{hashlib.sha256(capabilities).hexdigest()[:12]}"

    # -- sessions ----------------------------------------------------------------------------------------------------

    def open_session(self, caller: Caller) -> Session | None:
        """The caller's session where it is open already, else None."""
        ready = self._ready_shared
        if ready is not None and caller.era is Era.MODERN:
            return None if ready.closed else ready
        session = self.sessions.get(self.binding_for(caller)) if self.sessions else None
        return None if session is None or session.closed else session

    async def session(self, caller: Caller) -> Session:
        """A ready session for this caller; started where there is none. Raises Fault."""
        ready = self._ready_shared
        if (
            ready is not None
            and not ready.closed
            and (caller.era is Era.MODERN or self.speaks[Era.LEGACY] is False)
            and self.speaks[Era.MODERN] is True
        ):
            return ready
        binding = self.binding_for(caller)
        session = self.sessions.get(binding)
        if session is not None and not session.closed:
            return session  # whatever became of the processes of other clients
        wait = self.restarts.wait_seconds(time.monotonic())
        if 0 < wait <= RESTART_PATIENCE and not self._closing:
            await asyncio.sleep(wait)  # it has just crashed and comes back in a moment: nobody has to hear of that
            return await self.session(caller)
        self._check_may_run()
        task = self._starting.get(binding)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._start(caller))
            self._starting[binding] = task
            task.add_done_callback(lambda done: self._started(binding, done))
        session = await asyncio.shield(task)
        if binding == SHARED and session.binding != self.binding_for(caller):
            # It was asked for as the shared one, and the server turned out to be legacy: that one is somebody else's.
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

    async def _start(self, caller: Caller) -> Session:
        seconds = self.config.policy.startup_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                session = await self._connect(caller, seconds)
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
            self.last_fault = _before_the_request(fault)
            if fault.slug == "connection-lost" and isinstance(self.config.transport, StdioTransport):
                fault.slug = "server-exited"
            raise
        if self.bindings is not None and session.era is Era.LEGACY:
            await self._bind(session, caller)
        self.last_fault = None
        session.last_used = asyncio.get_running_loop().time()
        there = self.sessions.get(session.binding)
        if there is not None and not there.closed:
            # Two clients tried at once, and the server turned out to be one that they share.
            self._discard(session)
            return there
        self.sessions[session.binding] = session
        if session.binding == SHARED:
            self._ready_shared = session
        self._trim(caller.client)
        self._events.session_started(self.key, session.binding)
        return session

    async def _bind(self, session: Session, caller: Caller) -> None:
        """Tell a rebuilt session who calls, before anything else goes through it. Raises Fault."""
        assert self.bindings is not None
        try:
            await self.bindings.replay(session, caller.client)
        except SessionLost:
            self._discard(session)
            raise evidence.not_sent(self.key, "the server ended the session while it was rebuilt") from None

    async def _connect(self, caller: Caller, seconds: float) -> Session:
        """Try the eras in order until one is spoken. Raises Fault where nothing is, or where the attempt settles nothing."""
        transport = self.config.transport
        if isinstance(transport, HttpTransport) and transport.kind == "sse":
            return self._settle(await self._connect_sse(transport, caller, seconds), Era.LEGACY, caller)
        first = self.era_for(caller)
        session: Session | None = None
        refusal: Fault | None = None
        unsettled: Fault | None = None
        silent = False
        # Last comes what was found not to be spoken before: the server may have changed.
        order = sorted((first, OTHER[first]), key=lambda era: self.speaks[era] is False)
        for attempt, era in enumerate((*order, first)):
            if self.config.era not in ("auto", era.value):
                continue
            if attempt == 2 and not silent:
                break  # one that was silent at first, because it was still starting, is asked once more
            if session is None or session.closed or isinstance(transport, HttpTransport):
                session = await self._open(transport, caller)
            try:
                await self._introduce(session, era, caller, seconds)
                return self._settle(session, era, caller)
            except _NotSpoken as no:
                refusal = no.fault or refusal
                silent = no.silent or silent
                if not no.silent:
                    self.speaks[era] = False
            except Fault as fault:
                # This settles nothing, but a server that is known to speak the other era may be asked in that.
                self._discard(session)
                session, unsettled = None, unsettled or fault
                if self.speaks[OTHER[era]] is not True or attempt > 0:
                    raise unsettled from None
            except BaseException:
                self._discard(session)
                raise
        if session is not None:
            self._discard(session)
        if isinstance(transport, HttpTransport) and self.config.era != "modern":
            with contextlib.suppress(Fault):
                return self._settle(await self._connect_sse(transport, caller, seconds), Era.LEGACY, caller)
        self._reset_eras()
        raise (
            unsettled
            or refusal
            or evidence.not_sent(self.key, "the server speaks no revision of MCP that Interlock knows")
        )

    def _reset_eras(self) -> None:
        """What was found does not hold: the next start tries both again."""
        for era in Era:
            self.speaks[era] = None if self.config.era in ("auto", era.value) else False

    async def _open(self, transport: StdioTransport | HttpTransport, caller: Caller) -> Session:
        if isinstance(transport, StdioTransport):
            return await self._spawn(transport, caller)
        url, pool, headers, auth = self._http(transport)
        session = self._new_session(caller)
        opening = declared.headers(self.key, transport.session_headers, self._environ)
        session.carrier = HttpCarrier(session, pool, url, headers, self._user_agent, auth, opening)
        return session

    async def _introduce(self, session: Session, era: Era, caller: Caller, seconds: float) -> None:
        """The handshake of one era. Raises _NotSpoken, or a Fault that settles nothing."""
        try:
            if era is Era.MODERN:
                # Where a credential has to be found first, that takes its time too.
                patience = handshake.PROBE_SECONDS if self._authorization is None else AUTHORIZED_PROBE_SECONDS
                if await handshake.discover(session, min(seconds, patience)) is Found.LEGACY:
                    raise _NotSpoken(None)
                return
            if self.speaks[Era.MODERN] is True and self._authorization is None:
                seconds = min(seconds, handshake.PROBE_SECONDS)  # time must be left for what it is known to speak
            await handshake.initialize(session, EVERYTHING if self.shared else caller.capabilities, seconds)
        except Fault as fault:
            if fault.slug == "handshake-failed":
                raise _NotSpoken(fault) from None
            if isinstance(session.carrier, HttpCarrier):
                if _says_no(fault):
                    raise _NotSpoken(fault) from None
            elif era is Era.MODERN and fault.slug in ("timeout", "connection-lost"):
                # Silence, or a server that dies of a request before `initialize`: both mean legacy on stdio.
                raise _NotSpoken(None, silent=fault.slug == "timeout") from None
            raise
        carrier = session.carrier
        if isinstance(carrier, HttpCarrier):
            carrier.negotiated = True
            carrier.open_stream()
        await self._restore_log_level(session, caller)

    def _new_session(self, caller: Caller) -> Session:
        session = Session(self.key, SHARED, caller, self._events, self._client_info)
        session.mask, session.secrets = self._mask, self._secrets
        return session

    def _settle(self, session: Session, era: Era, caller: Caller) -> Session:
        """This era is spoken: remember it, and give the session its place."""
        if era is not caller.era:
            self.speaks[caller.era] = False  # for now: its callers get this session, and sessions like it
        if self.speaks[era] is not True:
            self.speaks[era] = True
            self._remember_eras(frozenset(each for each, spoken in self.speaks.items() if spoken))
        if era is Era.MODERN:
            session.binding, session.caller = SHARED, None
        elif self.shared:
            session.binding, session.caller = SHARED_LEGACY, None
        else:
            session.binding, session.caller = self.binding_for(caller), caller
        return session

    async def _spawn(self, transport: StdioTransport, caller: Caller) -> Session:
        from interlock.upstream.process import ChildProcess
        from interlock.upstream.stdio import StdioCarrier

        session = self._new_session(caller)
        carrier = StdioCarrier(session)
        started = time.monotonic()

        def ended(exit: object) -> None:
            carrier.on_exit(exit)  # type: ignore[arg-type]
            self._exited(session, carrier, time.monotonic() - started)

        self.restarts.started(started)
        carrier.child = await ChildProcess.start(
            transport,
            environ=self._environ,
            on_data=carrier.on_data,
            on_exit=ended,
            server=self.key,
            redact=self._redact,
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

    def _http(self, transport: HttpTransport) -> tuple[str, Pool, list[tuple[str, str]], Authorization | None]:
        url, origin = declared.address(self.key, transport, self._environ)
        headers = declared.headers(self.key, transport.headers, self._environ)
        if self._pool is None or self._pool.origin != origin:
            if self._pool is not None:
                self._pool.close()
            self._pool = Pool(origin)
        if self._authorization is None and self._authorize is not None:
            self._authorization = self._authorize(self.key, transport, url)
        return url, self._pool, headers, self._authorization

    async def _connect_sse(self, transport: HttpTransport, caller: Caller, seconds: float) -> Session:
        url, pool, headers, auth = self._http(transport)
        session = self._new_session(caller)
        session.era = Era.LEGACY
        opening = declared.headers(self.key, transport.session_headers, self._environ)
        carrier = SseCarrier(session, pool, url, headers + opening, self._user_agent, auth)
        try:
            await carrier.connect(seconds)
            session.carrier = carrier
            await handshake.initialize(session, EVERYTHING if self.shared else caller.capabilities, seconds)
        except BaseException:
            await carrier.close()
            raise
        carrier.negotiated = True
        await self._restore_log_level(session, caller)
        return session

    # -- requests ----------------------------------------------------------------------------------------------------

    async def request(self, out: Outgoing) -> Reply:
        """Send one request on the caller's session. A lost session is rebuilt once; nothing that may have run is resent."""
        session = await self.session(out.caller)
        caller = out.caller
        if caller.log_level is not None and caller.era is Era.MODERN and session.era is Era.LEGACY:
            await self._widen_log_level(session, try_str(caller.log_level))
        if self.bindings is not None:
            self.bindings.check(out)
        try:
            reply = await session.request(out)
        except SessionLost:
            self._forget(session)
            out.params.pop("_meta", None)
            session = await self.session(out.caller)
            if self.bindings is not None:
                self.bindings.check(out)
            try:
                reply = await session.request(out)
            except SessionLost:
                raise evidence.refused_twice(self.key) from None
        if self.bindings is not None:
            self.bindings.note(out, reply)
        return reply

    # -- log levels of legacy sessions: the client's own, also where the session is younger than its wish -------------

    async def set_log_level(self, client: str, level: str) -> None:
        """A legacy client has set its level: tell the sessions that serve it. A server's trouble shows in its next call."""
        for session in [each for each in self.sessions.values() if each.era is Era.LEGACY and not each.closed]:
            if session.caller is None:
                await self._widen_log_level(session, level)
            elif session.caller.client == client:
                await self._tell_log_level(session, level)

    async def _restore_log_level(self, session: Session, caller: Caller) -> None:
        level = self._events.log_level(None if self.shared else caller)
        if session.era is Era.LEGACY and level is not None:
            await self._tell_log_level(session, level)

    async def _widen_log_level(self, session: Session, level: str | None) -> None:
        """Where several want different levels the server logs from the least; each gets what it asked for."""
        if level is not None and (session.log_level is None or not at_least(level, session.log_level)):
            await self._tell_log_level(session, level)

    async def _tell_log_level(self, session: Session, level: str) -> None:
        if not handshake.has(session, "logging"):
            return
        session.log_level = level
        with contextlib.suppress(Fault, SessionLost):
            await session.raw_request("logging/setLevel", encode({"level": level}), LOG_LEVEL_SECONDS)

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
        if self.bindings is not None:
            self.bindings.forget(client)

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


def _answers_questions(caller: Caller) -> bool:
    """Some servers put their questions to clients of the legacy era only."""
    said = try_map(caller.capabilities) or {}
    return any(name in said for name in ("elicitation", "sampling", "roots"))


def _before_the_request(fault: Fault) -> Fault:
    """What went wrong while the server was started or greeted: the caller's own request has not been sent yet."""
    fault.stage = Stage.DISCOVER
    if fault.verdict is Verdict.OUTCOME_UNKNOWN:
        fault.verdict, fault.retry = Verdict.NEVER_REACHED, "safe"
        if fault.slug == "timeout":
            fault.slug = "startup-timeout"
            fault.message = (
                f"{fault.server}: the server did not answer the handshake in time; your request was not sent."
            )
        else:
            fault.message = fault.message.replace(evidence.MAY_HAVE_ACTED, "Your request was not sent.")
    return fault


class _NotSpoken(Exception):
    """The server does not speak the era that was tried. `fault` is what it said; `silent` where it said nothing in time."""

    def __init__(self, fault: Fault | None, silent: bool = False) -> None:
        self.fault = fault
        self.silent = silent


def _says_no(fault: Fault) -> bool:
    """The server does not take this. Anything else, and silence, settles nothing (2026-07-28, Backward Compatibility names
    400, 404 and 405; the others are what old servers answer to a request or a media type that they do not know)."""
    return fault.http_status in (400, 404, 405, 406, 415, 422, 501)
