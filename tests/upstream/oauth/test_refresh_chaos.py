"""Several processes, one grant, and an authorization server that fails at random: no family revoked, no login, no silence."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.upstream.oauth.machine import QUICK, Machine, Process, machine

from interlock.model.fault import Fault
from interlock.upstream.oauth import refresh

MISHAPS: tuple[dict[str, object], ...] = (
    {"kind": "drop", "applied": True},
    {"kind": "drop", "applied": False},
    {"kind": "reset", "applied": True},
    {"kind": "cut", "applied": True},
    {"kind": "status", "status": 503},
    {"kind": "status", "status": 502, "applied": True},
    {"kind": "status", "status": 400, "error": "server_error"},
    {"kind": "garbage"},
    {"kind": "garbage", "applied": True},
    {"kind": "delay", "seconds": 0.2},
    {"kind": "silent", "applied": True},
    {"kind": "silent", "applied": False},
)
WAITS = frozenset({"auth-unreachable", "token-rejected"})
"""What a caller may be told: a token that is revoked twice within a moment is not thought mended by a third one."""


async def caller(one: Machine, process: Process, dice: random.Random, calls: int, seen: Counter[str]) -> None:
    for _ in range(calls):
        await asyncio.sleep(dice.random() * 0.05)
        try:
            value = await process.value(5.0)
            if one.lab.families.refusal(value.removeprefix("Bearer ")) is not None:
                value = await process.after_401(value, seconds=5.0)
            seen["good"] += 1
        except Fault as fault:
            seen[fault.slug] += 1


async def trouble(one: Machine, dice: random.Random, ended: asyncio.Event) -> None:
    while not ended.is_set():
        await asyncio.sleep(0.02 + dice.random() * 0.3)
        one.lab.behave.mishaps.clear()
        what = dice.randrange(4)
        if what == 0:
            one.lab.revoke_access()
        elif what == 1:
            await one.expire()
        else:
            one.lab.mishap("token", times=1, **dice.choice(MISHAPS))  # type: ignore[arg-type]


async def play(home: Path, seed: int, processes: int, calls: int) -> Counter[str]:
    dice = random.Random(seed)
    async with machine(home, leeway=600.0) as one:
        all = [one.process(idle=True) for _ in range(processes)]
        for each in all:
            each.auth.start()
        seen: Counter[str] = Counter()
        ended = asyncio.Event()
        troubles = asyncio.ensure_future(trouble(one, dice, ended))
        callers = [
            caller(one, each, random.Random(f"{seed} {number}"), calls, seen) for number, each in enumerate(all * 3)
        ]
        try:
            await asyncio.gather(*callers)
        finally:
            ended.set()
            await troubles
        assert sum(seen.values()) == processes * 3 * calls  # nobody was left without an answer
        assert set(seen) <= WAITS | {"good"}, (seed, seen, one.log())
        one.lab.behave.mishaps.clear()
        await asyncio.sleep(QUICK.knock_seconds + 0.2)
        value = await all[0].value()
        if one.lab.families.refusal(value.removeprefix("Bearer ")) is not None:
            value = await all[0].after_401(value)
        assert one.lab.families.refusal(value.removeprefix("Bearer ")) is None
        assert one.lab.counts["families_revoked"] == one.lab.counts["reuse_detected"] == 0, seed
        assert one.lab.counts["authorize_requests"] == one.lab.counts["registrations"] == 0
        assert not any(each.browser for each in all)
        for secret in one.secrets():
            assert secret not in one.log()
        return seen


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_random_authorization_server(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "TOKEN_SECONDS", 1.0)
    seen = await play(tmp_path, seed, 4, 100)
    assert seen["good"] > 10


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(10, 30))
async def test_a_random_authorization_server_for_long(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "TOKEN_SECONDS", 1.0)
    await play(tmp_path, seed, 6, 400)
