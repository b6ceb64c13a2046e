"""The situations in which bridges were seen to fail, each played with one, five or thirty processes, and counted.

Each is a function of a `Stage`; what it leaves in the counts is judged by `problems`, the same for every bridge. The goal:
one refresh, no family revoked, one URL, no call unanswered, no write applied twice.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.lab.auth.resource_server import ServedEra

from . import bridges
from .acts import click_once, comes_back, first_url, from_the_start, heals, open_flow, until_url, visit_quietly
from .person import Person
from .stage import PATIENCE, Counts, Stage, stage
from .urls import redirect_uri

GRACE_SECONDS = 1.0
"""For bridges that wait a while before they believe a refusal; they are told to wait no longer."""
DEADLINE_SECONDS = 3.0
EXPIRY_SECONDS = 4.0
HALF_AN_HOUR = 1800.0

Play = Callable[[Stage, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Situation:
    """`refreshes` and `urls` are the most that are right; `good` says whether the last call of each process must succeed."""

    id: str
    title: str
    play: Play
    refreshes: int = 0
    urls: int = 0
    verdict: str | None = None
    """What every failed call must be said to be."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What must have been found, by name."""
    behave: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    signed_in: bool = True
    """Whether somebody has to be able to sign in; where not, a token that is given will do."""
    cost: int = 3
    """About how many seconds it takes with few processes."""


async def refused_early(on: Stage, processes: int) -> None:
    """The server refuses access tokens whose `expires_at` lies ahead (early revocation, a new key, a slow clock)."""
    await on.sign_in()
    await on.start(processes)
    await on.echo()
    on.begin()
    on.lab.revoke_access()
    await on.echo()
    on.facts["healed"] = all(not reply.failed for reply in await on.echo())


async def expired(on: Stage, processes: int) -> None:
    """The access token ran out while nothing was running, and all bridges start at once."""
    on.lab.behave.access_lifetime = EXPIRY_SECONDS
    await on.sign_in()
    await on.end_all()
    await asyncio.sleep(EXPIRY_SECONDS + 1)
    on.lab.behave.access_lifetime = 3600
    on.begin()
    await on.start(processes)
    await on.echo()
    on.facts["healed"] = all(not reply.failed for reply in await on.echo())


async def token_endpoint_down(on: Stage, processes: int) -> None:
    """The access token is refused and the token endpoint answers 503; later it is well again."""
    await on.sign_in()
    await on.start(processes)
    await on.echo()
    on.begin()
    on.lab.mishap("token", "status", status=503)
    on.lab.revoke_access()
    await on.echo()
    on.lab.behave.mishaps.clear()
    on.facts["healed"] = await heals(on)


async def grant_dead(on: Stage, processes: int) -> None:
    """The grant is dead, and nobody is at the screen: two calls of each bridge. Then somebody clicks once."""
    await on.sign_in()
    await on.start(processes)
    await on.echo()
    on.lab.kill_families()
    on.begin()
    await on.echo(seconds=PATIENCE / 2)
    replies = await on.everyone(lambda session: until_url(on, session))
    on.facts["URL in the answer"] = all(reply.urls for reply in replies)
    on.facts["landed"] = await click_once(on)
    on.facts["healed"] = await heals(on)


async def asked_to_leave(on: Stage, processes: int) -> None:
    """SIGTERM to every bridge while a sign-in is open; then the person clicks, and a new bridge is started."""
    on.begin()
    await open_flow(on, processes)
    for session in on.sessions:
        session.process.send_signal(signal.SIGTERM)
    await asyncio.sleep(1.0)
    on.facts["landed"] = await click_once(on)
    sessions, on.sessions = on.sessions, []
    try:
        on.facts["healed"] = await comes_back(on)
    finally:
        on.sessions += sessions


async def answer_lost(on: Stage, processes: int) -> None:
    """Each bridge sends a write; the server applies it, and the connection ends before the answer."""
    await on.sign_in()
    await on.start(processes)
    await on.echo()
    on.begin()
    on.lab.mishap("call", "drop", only=("write",), times=processes)
    await asyncio.gather(
        *(on.ask(session, "write", key=f"key-{number}", text="x") for number, session in enumerate(on.sessions))
    )
    on.facts["applied"] = len(on.lab.truth.applied) == processes


async def server_silent(on: Stage, processes: int) -> None:
    """The server takes a call and never answers; each bridge was given a deadline of 3 s, where it has a flag for one."""
    await on.sign_in()
    on.change(timeout=DEADLINE_SECONDS)
    await on.start(processes)
    await on.echo()
    on.begin()
    on.lab.mishap("call", "silent", only=("write",))
    await asyncio.gather(
        *(on.ask(session, "write", key=f"key-{number}", text="x") for number, session in enumerate(on.sessions))
    )


async def first_start(on: Stage, processes: int) -> None:
    """No grant, nobody at the screen: `initialize`, then one call of each bridge. Then somebody clicks once."""
    on.begin()
    sessions = await on.start(processes, opened=False)
    opened = await asyncio.gather(*(session.open(seconds=PATIENCE) for session in sessions))
    on.judged += [(reply, reply.state) for reply in opened]
    replies = await on.echo()
    on.facts["URL in the answer"] = all(reply.urls for reply in replies)
    on.facts["landed"] = await click_once(on)
    on.facts["healed"] = await heals(on)


async def redirected_at_once(on: Stage, processes: int) -> None:
    """The identity provider knows the person and redirects at once, and GET on the server answers 405."""
    on.begin()
    on.person = Person(after=0.0, most=1, visit=on.visit)
    await on.start(processes, opened=False)
    await asyncio.gather(*(session.open(seconds=PATIENCE) for session in on.sessions))
    await on.echo()
    await on.person.settled()
    on.facts["landed"] = [click.visit.landing for click in on.person.clicks if click.visit] == ["landed"]
    on.facts["healed"] = await heals(on)


async def forged_callback(on: Stage, processes: int) -> None:
    """While a sign-in is open, somebody else's page calls the callback: no state, a made-up one, an error."""
    on.begin()
    await open_flow(on, processes)
    callback = redirect_uri(first_url(on))
    for query in ("error=access_denied", "code=forged", "code=forged&state=forged", "error=access_denied&state=forged"):
        await asyncio.to_thread(visit_quietly, f"{callback}?{query}")
    await asyncio.sleep(0.5)
    on.facts["landed"] = await click_once(on)
    on.facts["healed"] = await heals(on)


async def owner_killed(on: Stage, processes: int) -> None:
    """kill -9 of the bridge that published the URL; another takes over; then the old URL is clicked."""
    on.begin()
    (owner,) = await on.start(1, opened=False)
    await owner.open(seconds=PATIENCE / 4)
    await owner.call("echo", {"value": "x"}, seconds=PATIENCE / 4)
    await owner.wait_for(lambda: bool(on.urls), seconds=PATIENCE)
    old = first_url(on)
    await on.start(processes, opened=False)
    await on.kill(owner)
    await asyncio.gather(*(session.open(seconds=from_the_start(processes)) for session in on.sessions))
    await on.echo(seconds=from_the_start(processes))
    on.facts["landed"] = (await asyncio.to_thread(on.visit, old)).landing == "landed"
    on.facts["healed"] = await heals(on)


async def clocks_apart(on: Stage, processes: int) -> None:
    """The server's clock is half an hour away: calls while the token is good, then all start after it ran out."""
    await on.sign_in()
    await on.start(processes)
    on.begin()
    for _ in range(3):
        await on.echo()
    on.facts["refreshed while the token was good"] = on.lab.counts["refreshes_ok"]
    await on.end_all()
    on.lab.behave.access_lifetime = EXPIRY_SECONDS
    on.lab.revoke_access()
    await on.start(1)
    await on.echo()
    await on.end_all()
    await asyncio.sleep(EXPIRY_SECONDS + 1)
    on.lab.behave.access_lifetime = 3600
    on.lab.truth.clear()
    await on.start(processes)
    await on.echo()
    on.facts["healed"] = all(not reply.failed for reply in await on.echo())
    on.facts["refused for expiry"] = sum(status == 401 for method, status in on.lab.truth.calls if method != "GET")


SITUATIONS = (
    Situation("V1", "token refused before its time", refused_early, refreshes=1, facts={"healed": True}),
    Situation("V2", "token ran out at rest", expired, refreshes=1, facts={"healed": True}, cost=8),
    Situation(
        "V3",
        "token endpoint answers 503",
        token_endpoint_down,
        refreshes=1,
        verdict="wait",
        facts={"healed": True},
        cost=14,
    ),
    Situation(
        "V4",
        "grant dead, nobody there",
        grant_dead,
        urls=1,
        verdict="wait",
        cost=14,
        facts={"URL in the answer": True, "landed": True, "healed": True},
    ),
    Situation(
        "V5",
        "SIGTERM with a sign-in open",
        asked_to_leave,
        urls=1,
        verdict="wait",
        facts={"landed": True, "healed": True},
    ),
    Situation(
        "V6",
        "write applied, answer lost",
        answer_lost,
        verdict="outcome_unknown",
        facts={"applied": True},
        signed_in=False,
    ),
    Situation("V7", "server silent", server_silent, verdict="outcome_unknown", cost=6, signed_in=False),
    Situation(
        "V8",
        "first start, nobody there",
        first_start,
        urls=1,
        verdict="wait",
        facts={"URL in the answer": True, "landed": True, "healed": True},
    ),
    Situation(
        "V9",
        "redirected at once, GET answers 405",
        redirected_at_once,
        urls=1,
        verdict="wait",
        facts={"landed": True, "healed": True},
        behave={"get_status": 405, "get_before_auth": True},
    ),
    Situation(
        "V10", "forged callbacks", forged_callback, urls=1, verdict="wait", facts={"landed": True, "healed": True}
    ),
    # A takeover publishes its own URL beside the old one, so two are right.
    Situation(
        "V11",
        "owner of the sign-in killed",
        owner_killed,
        urls=2,
        verdict="wait",
        facts={"landed": True, "healed": True},
    ),
    Situation(
        "V12+",
        "server's clock 30 min ahead",
        clocks_apart,
        refreshes=1,
        facts={"healed": True, "refreshed while the token was good": 0, "refused for expiry": 0},
        behave={"clock": HALF_AN_HOUR},
        cost=9,
    ),
    Situation(
        "V12-",
        "server's clock 30 min behind",
        clocks_apart,
        refreshes=1,
        facts={"healed": True, "refreshed while the token was good": 0, "refused for expiry": 0},
        behave={"clock": -HALF_AN_HOUR},
        cost=9,
    ),
)
BY_ID = {situation.id: situation for situation in SITUATIONS}


async def play(situation: Situation, bridge: bridges.Bridge, processes: int) -> Counts:
    """One situation from an empty machine to its counts."""
    # Those that take only a token speak the legacy era alone.
    era: ServedEra = "legacy" if bridge.name in bridges.TOKEN_ONLY else "modern"
    async with stage(bridge, era=era, behave=situation.behave) as on:
        on.change(grace_seconds=GRACE_SECONDS, **situation.settings)
        await situation.play(on, processes)
        return on.tally()


def problems(situation: Situation, counts: Counts) -> list[str]:
    """What is not as it should be, in words; empty where the goal was met."""
    found = []
    if counts.refreshes > situation.refreshes:
        found.append(f"{counts.refreshes} refreshes")
    if counts.families_revoked:
        found.append(f"{counts.families_revoked} families revoked")
    if counts.urls > situation.urls:
        found.append(f"{counts.urls} URLs")
    if counts.tabs > max(situation.urls, 0):
        found.append(f"{counts.tabs} tabs")
    if counts.unanswered:
        found.append(f"{counts.unanswered} of {counts.calls} calls unanswered")
    if counts.applied_twice:
        found.append(f"{counts.applied_twice} writes applied twice")
    wrong = {verdict: count for verdict, count in counts.verdicts.items() if verdict != situation.verdict}
    if wrong:
        found.append("verdicts " + ", ".join(f"{verdict} x{count}" for verdict, count in wrong.items()))
    found += [
        f"{name}: {counts.facts.get(name)}"
        for name, right in situation.facts.items()
        if counts.facts.get(name) != right
    ]
    return found
