"""Calls through a bridge while its servers are restarted, cut, slowed and silenced at random, from a seed.

Each call has to be answered within its deadline, and what is said of each write has to be true of what the server really
applied: a result means once, `never_reached` and `wait` mean not at all, `outcome_unknown` leaves both open, and no write
may be applied twice.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from statistics import median

from interlock.lab.auth.behaviour import Mishap
from interlock.lab.auth.resource_server import ServedEra

from . import bridges
from .session import Reply, Session
from .stage import Stage, stage

DEADLINE_SECONDS = 3.0
SLACK_SECONDS = 1.5
"""For the way through pipes and a busy machine; the deadline itself is the bridge's."""
PATIENCE_SECONDS = 15.0
LONGEST_DELAY = 4.0
MOST_WAIT = 4.0
"""A caller that is told to wait does so, but no longer."""
UNSURE = (408, 409, 425, 499, 500, 502, 503, 504)
"""Statuses after which nobody can know; the servers apply half of these writes."""


@dataclass(slots=True)
class Outcome:
    """One call: what it was, when it was answered, and what was said of it. `state` as the caller saw it in time."""

    tool: str
    key: str
    state: str
    seconds: float | None
    verdict: str | None
    good: bool
    text: str = ""


@dataclass(slots=True)
class Report:
    """What a run came to. `untrue` and `late` name each call that breaks the promise."""

    bridge: str
    calls: int
    seed: int
    era: str = "modern"
    seconds: float = 0.0
    good: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    unanswered: int = 0
    late: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    applied: int = 0
    applied_twice: int = 0
    applied_of_unknown: int = 0
    """Writes said to be of unknown outcome that were applied."""
    deaths: int = 0
    """How often the bridge ended and had to be started again."""
    slowest: float = 0.0
    middle: float = 0.0
    acts: dict[str, int] = field(default_factory=dict)
    """What was done to the servers."""

    @property
    def kept(self) -> bool:
        return not (self.unanswered or self.late or self.untrue or self.applied_twice or self.deaths)


class Disturber:
    """Does something to the servers every now and then."""

    def __init__(self, on: Stage, dice: random.Random) -> None:
        self._on = on
        self._dice = dice
        self.acts: Counter[str] = Counter()
        self._acts: dict[str, tuple[int, Callable[[], Awaitable[None]]]] = {
            "restarted": (1, self._restart),
            "cut": (1, self._cut),
            "slowed": (3, self._mishap("delay")),
            "silenced": (4, self._mishap("silent")),
            "dropped": (3, self._mishap("drop")),
            "reset": (3, self._mishap("reset")),
            "cut off in the middle": (3, self._mishap("cut")),
            "refused": (3, self._refuse),
            "garbage": (3, self._mishap("garbage")),
            "sessions forgotten": (3, self._forget),
            # Rarer, for all calls have to wait after them, and then the run shows little else. Restarts and cuts are rare as
            # well, for they end the silence and the slowness of all calls that are open.
            "token revoked": (1, self._revoke),
            "token endpoint down": (1, self._auth_down),
        }

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(self._dice.uniform(0.02, 0.25))
            weights = [weight for weight, _ in self._acts.values()]
            (name,) = self._dice.choices(list(self._acts), weights)
            self.acts[name] += 1
            await self._acts[name][1]()

    async def calm(self) -> None:
        """Everything is up and honest again."""
        self._on.lab.behave.mishaps.clear()
        await self._on.lab.mcp_listener.up()
        await self._on.lab.auth_listener.up()

    async def _restart(self) -> None:
        await self._on.lab.mcp_listener.down()
        await asyncio.sleep(self._dice.uniform(0.0, 0.3))
        await self._on.lab.mcp_listener.up()

    async def _auth_down(self) -> None:
        await self._on.lab.auth_listener.down()
        await asyncio.sleep(self._dice.uniform(0.0, 0.4))
        await self._on.lab.auth_listener.up()

    async def _cut(self) -> None:
        self._on.lab.mcp_listener.cut()

    async def _revoke(self) -> None:
        self._on.lab.revoke_access()

    async def _forget(self) -> None:
        self._on.lab.forget_sessions()

    def _mishap(self, kind: str) -> Callable[[], Awaitable[None]]:
        async def add() -> None:
            applied = None if kind in ("cut", "garbage", "silent") else self._dice.random() < 0.5
            self._on.lab.behave.mishaps.append(
                Mishap(
                    "call",
                    kind,  # type: ignore[arg-type]
                    times=self._dice.randint(1, 3),
                    applied=applied,
                    seconds=self._dice.uniform(0.1, LONGEST_DELAY),
                )
            )

        return add

    async def _refuse(self) -> None:
        """An honest 429 says when to come again and has done nothing; what the other statuses say is no proof."""
        if self._dice.random() < 0.3:
            self._on.lab.mishap("call", "status", status=429, retry_after=1, times=1, applied=False)
        else:
            self._on.lab.mishap(
                "call",
                "status",
                status=self._dice.choice(UNSURE),
                times=self._dice.randint(1, 3),
                applied=self._dice.random() < 0.5,
            )


async def run(bridge: bridges.Bridge, *, calls: int, seed: int, at_once: int = 16, era: ServedEra = "modern") -> Report:
    """So many calls, two of three of them writes, `at_once` of them open at a time."""
    dice = random.Random(seed)
    report = Report(bridge.name, calls, seed, era)
    outcomes: list[Outcome] = []
    async with stage(bridge, era=era) as on:
        await on.sign_in()
        on.change(timeout=DEADLINE_SECONDS, grace_seconds=None)
        on.begin()
        disturber = Disturber(on, random.Random(seed + 1))
        keeper = _Keeper(on, report)
        await keeper.session()
        plan = [(("write", "write", "echo")[dice.randrange(3)], f"key-{number}") for number in range(calls)]
        began = time.monotonic()
        disturbing = asyncio.create_task(disturber.run())
        todo = iter(plan)

        async def caller() -> None:
            for tool, key in todo:
                session = await keeper.session()
                reply = await _call(session, tool, key)
                good = reply.state == "result" and not reply.failed
                outcomes.append(Outcome(tool, key, reply.state, reply.seconds, reply.verdict, good, reply.text[:300]))
                # A model thinks between calls, so the run sees many states of the servers; and it waits when it is told to.
                told = reply.details.get("wait_seconds")
                pause = min(float(told), MOST_WAIT) if isinstance(told, (int, float)) else 0.0
                await asyncio.sleep(pause + dice.uniform(0.05, 0.4))

        await asyncio.gather(*(caller() for _ in range(at_once)))
        disturbing.cancel()
        await asyncio.wait([disturbing])
        report.seconds = time.monotonic() - began
        report.acts = dict(disturber.acts)
        await disturber.calm()
        await asyncio.sleep(LONGEST_DELAY)  # a slowed server applies its last writes up to then
        judge(report, outcomes, on.lab.truth.writes)
    return report


async def _call(session: Session, tool: str, key: str) -> Reply:
    arguments = {"key": key, "text": "x"} if tool == "write" else {"value": key}
    return await session.call(tool, arguments, seconds=PATIENCE_SECONDS)


def judge(report: Report, outcomes: list[Outcome], writes: Counter[str]) -> None:
    """Fill the report: each outcome against how often its key was really written."""
    times = sorted(outcome.seconds for outcome in outcomes if outcome.seconds is not None)
    report.slowest, report.middle = (times[-1], median(times)) if times else (0.0, 0.0)
    report.applied = sum(count > 0 for count in writes.values())
    report.applied_twice = sum(count > 1 for count in writes.values())
    for outcome in outcomes:
        if outcome.state in ("unanswered", "ended") or outcome.seconds is None:
            report.unanswered += 1
            continue
        if outcome.seconds > DEADLINE_SECONDS + SLACK_SECONDS:
            report.late.append(f"{outcome.tool} {outcome.key}: {outcome.seconds:.1f} s")
        if outcome.good:
            report.good += 1
        else:
            verdict = outcome.verdict or "none"
            report.verdicts[verdict] = report.verdicts.get(verdict, 0) + 1
        if outcome.tool == "write":
            written = writes[outcome.key]
            report.applied_of_unknown += outcome.verdict == "outcome_unknown" and written > 0
            if not _true(outcome, written):
                said = "result" if outcome.good else outcome.verdict or "no verdict"
                report.untrue.append(f"{outcome.key}: {said}, applied {written} times: {outcome.text}")


def _true(outcome: Outcome, written: int) -> bool:
    if outcome.good:
        return written == 1
    return {"never_reached": written == 0, "wait": written == 0, "outcome_unknown": written <= 1}.get(
        outcome.verdict or "", False
    )


@dataclass(slots=True)
class _Keeper:
    """One running bridge; a new one where it has ended."""

    on: Stage
    report: Report
    _current: Session | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def session(self) -> Session:
        async with self._lock:
            if self._current is not None and self._current.process.returncode is not None:
                self.report.deaths += 1
                await self.on.end(self._current)
                self._current = None
            if self._current is None:
                (self._current,) = await self.on.start(1, opened=False)
                await self._current.open(seconds=PATIENCE_SECONDS)
            return self._current
