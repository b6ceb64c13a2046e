"""A machine on which several bridges share one home, the servers that they talk to, and the counts of what happened."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.lab.auth import AuthLab
from interlock.lab.auth.resource_server import ServedEra

from . import bridges
from .browser import FakeBrowser
from .person import Person, Visit, follow
from .scenarios import Visitor
from .session import Published, Reply, Session

PATIENCE = 12.0
"""Seconds after which a host's caller gives a call up, and it counts as unanswered."""
SIGN_IN_CLICK = 1.5
"""The person takes so long in preparations: every bridge that was measured is then ready for the click."""
_SIGN_IN_SECONDS = 30.0
_START_SECONDS = 60.0


@dataclass(slots=True)
class Counts:
    """What one situation came to, from when it began. `calls` are the requests that a host made."""

    refreshes: int = 0
    families_revoked: int = 0
    urls: int = 0
    """Distinct authorize URLs, on any surface of any process."""
    tabs: int = 0
    """Browser windows opened."""
    calls: int = 0
    unanswered: int = 0
    good: int = 0
    """Calls with the result that was asked for."""
    applied_twice: int = 0
    applied: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    """Of calls answered with an error; `none` where no verdict was given."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else the situation is about, by name."""


@dataclass(slots=True)
class Stage:
    """`settings` may be changed before bridges are started; `person` at any time (None: nobody is at the screen)."""

    bridge: bridges.Bridge
    lab: AuthLab
    folder: Path
    settings: bridges.Settings = field(default_factory=lambda: bridges.Settings(browser=True))
    sessions: list[Session] = field(default_factory=list)
    person: Person | None = None
    urls: dict[str, None] = field(default_factory=dict)
    judged: list[tuple[Reply, str]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    visit: Callable[[str], Visit] = follow
    _tabs_before: int = 0

    @property
    def home(self) -> Path:
        return self.folder / "state"

    @property
    def browser(self) -> FakeBrowser:
        return FakeBrowser(self.folder / "browser")

    async def start(self, count: int = 1, *, opened: bool = True) -> list[Session]:
        """Start so many more bridges at once; `opened`: each has answered `initialize` (raises RuntimeError otherwise)."""
        started = await asyncio.gather(*(self._start_one() for _ in range(count)))
        self.sessions += started
        if opened:
            for reply in await asyncio.gather(*(session.open(seconds=_START_SECONDS) for session in started)):
                if reply.result is None:
                    raise RuntimeError(f"{self.bridge.name} did not open: {reply.state} {reply.text}")
        return started

    async def sign_in(self) -> None:
        """Give the machine a grant, as a person does who starts one bridge and clicks; that bridge ends again.

        A bridge that only takes a token is given one.
        """
        if self.bridge.name in bridges.TOKEN_ONLY:
            self.change(bearer=self.lab.personal_token)
            return
        self.person = Person(after=SIGN_IN_CLICK, visit=self.visit)
        (session,) = await self.start(1, opened=False)
        await session.open(seconds=_SIGN_IN_SECONDS)
        visitor = Visitor(session, self.person, {})
        reply = await visitor.until_answered("echo", lambda: session.call("echo", {"value": "x"}, seconds=PATIENCE))
        if reply.failed:
            raise RuntimeError(f"{self.bridge.name} could not sign in: {reply.state} {reply.text}\n{session.tail()}")
        self.person = None
        await self.end(session)

    def begin(self) -> None:
        """What happens from now on counts."""
        self.lab.truth.clear()
        self.urls.clear()
        self.judged.clear()
        self._tabs_before = len(self.browser.tabs())

    async def ask(self, session: Session, tool: str, seconds: float = PATIENCE, **arguments: Any) -> Reply:
        """A call that counts: unanswered where nothing came within `seconds`, whatever comes later."""
        reply = await session.call(tool, arguments, seconds=seconds)
        self.judged.append((reply, reply.state))
        return reply

    async def everyone(self, ask: Callable[[Session], Awaitable[Reply]]) -> list[Reply]:
        """The same of every running bridge, at the same time."""
        return list(await asyncio.gather(*(ask(session) for session in self.sessions)))

    async def echo(self, seconds: float = PATIENCE) -> list[Reply]:
        """One harmless call of every bridge."""
        return await self.everyone(lambda session: self.ask(session, "echo", seconds, value="x"))

    async def end(self, session: Session, *, seconds: float = 1.0) -> None:
        self.sessions = [other for other in self.sessions if other is not session]
        await session.close(seconds=seconds)

    async def end_all(self) -> None:
        sessions, self.sessions = self.sessions, []
        await asyncio.gather(*(session.close(seconds=1.0) for session in sessions))

    async def kill(self, session: Session) -> None:
        """kill -9."""
        session.signal(signal.SIGKILL)
        await self.end(session)

    def tally(self) -> Counts:
        """The counts so far."""
        truth = self.lab.truth
        verdicts: Counter[str] = Counter()
        for reply, state in self.judged:
            if state not in ("unanswered", "ended") and reply.failed:
                verdicts[reply.verdict or "none"] += 1
        tabs = self.browser.tabs()[self._tabs_before :]
        return Counts(
            refreshes=truth.counts["refreshes_ok"],
            families_revoked=truth.counts["families_revoked"],
            urls=len({*self.urls, *tabs}),
            tabs=len(tabs),
            calls=len(self.judged),
            unanswered=sum(state in ("unanswered", "ended") for _, state in self.judged),
            good=sum(state == "result" and not reply.failed for reply, state in self.judged),
            applied_twice=sum(count > 1 for count in truth.writes.values()),
            applied=len(truth.applied),
            verdicts=dict(verdicts),
            facts=dict(self.facts),
        )

    async def _start_one(self) -> Session:
        launch = self.bridge.launch(self.lab.url, self.home, self.settings)
        return await Session.start(
            launch.command,
            environment=bridges.environment_of(launch, self.folder, self.browser.environment()),
            on_url=self._notice,
        )

    def _notice(self, published: Published) -> None:
        self.urls[published.url] = None
        if self.person is not None:
            self.person.notice(published)

    def change(self, **settings: Any) -> None:
        """Settings of the bridges that are started from now on."""
        self.settings = dataclasses.replace(self.settings, **settings)


@asynccontextmanager
async def stage(
    bridge: bridges.Bridge, *, era: ServedEra = "modern", behave: Mapping[str, Any] | None = None
) -> AsyncIterator[Stage]:
    """Servers and an empty machine; everything that was started is ended."""
    folder = Path(tempfile.mkdtemp(prefix="bridge-stage-"))
    (folder / "state").mkdir(mode=0o700)
    try:
        async with AuthLab(era=era) as lab:
            for name, value in (behave or {}).items():
                setattr(lab.behave, name, value)
            made = Stage(bridge, lab, folder)
            made.browser.install()
            try:
                yield made
            finally:
                await made.end_all()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
