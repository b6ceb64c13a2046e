"""One grant under many real processes, and under kill -9 at every point of a refresh."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import programs
from tests.oauth.clicker import click
from tests.oauth.oidc import oidc_lab, provider_package
from tests.upstream.oauth.machine import QUICK, Machine, Process, fault_of, machine
from tests.upstream.scripted import eventually

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.upstream.oauth import refresh
from interlock.upstream.oauth.grant_store import GrantStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks, and sends SIGKILL")
SCRIPT = Path(__file__).with_name("refresh_children.py")
SOURCE = Path(__file__).resolve().parents[3] / "src"
POINTS = (
    "refresh-begins",
    "refresh-locked",
    "refresh-marked",
    "refresh-asking",
    "sent",
    "refresh-answered",
    "refresh-read",
    "refresh-stored",
    "refresh-done",
    "refresh-unlocked",
)
"""`sent`: the server has taken the token and its answer is on the way. There is no other name for it in the product."""
COSTLY = frozenset({"sent", "refresh-answered", "refresh-read"})
"""Between the server's act and the new pair on disk: a server that takes a token once, without any leeway, gives no second
answer, and nobody can have the pair but who died."""
LEEWAY = 120.0


@asynccontextmanager
async def child(one: Machine, command: str, *more: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), command, str(one.home), one.lab.url, one.lab.clients.preset, *more,
        env={**os.environ, "PYTHONPATH": str(SOURCE)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def together(one: Machine, number: int, mode: str) -> list[dict[str, Any]]:
    async with child(one, "together", str(number), mode) as process:
        out, err = await asyncio.wait_for(process.communicate(), 55)
        assert process.returncode == 0, err.decode()[-3000:]
        return [json.loads(line) for line in out.splitlines()]


async def killed_at(one: Machine, point: str) -> None:
    if point != "sent":
        async with child(one, "die", point) as process:
            _, err = await asyncio.wait_for(process.communicate(), 30)
            assert process.returncode == -signal.SIGKILL, (point, err.decode()[-2000:])
        return
    done = one.lab.counts["refreshes_ok"]
    mishap = one.lab.mishap("token", "silent", times=1, applied=True)
    async with child(one, "wait") as process:
        async with asyncio.timeout(30):
            while one.lab.counts["refreshes_ok"] == done:
                await asyncio.sleep(0.005)
                assert process.returncode is None, (await process.communicate())[1].decode()[-2000:]
        process.kill()
        await process.wait()
    one.lab.behave.mishaps.remove(mishap)


async def is_free(one: Machine) -> None:
    """No lock left behind, no half-written file."""
    started = time.monotonic()
    async with GrantStore(one.home).locked(one.id, 5):
        assert time.monotonic() - started < 1
    assert not [name for name in os.listdir(one.home / "grants") if name.endswith(".tmp")]


async def usable(one: Machine) -> None:
    """A process that comes later gets a good token, and no login is offered."""
    process = one.process()
    value = await process.value()
    token = value.removeprefix("Bearer ")
    if one.lab.families.refusal(token) is not None:
        value = await process.after_401(value)
    assert one.lab.families.refusal(value.removeprefix("Bearer ")) is None
    assert not process.browser


@pytest.mark.parametrize("mode", ["ready", "401", "idle"])
@pytest.mark.parametrize("number", [1, 5, 30])
async def test_n_processes_cost_one_refresh(tmp_path: Path, number: int, mode: str) -> None:
    async with machine(tmp_path) as one:
        if mode == "401":
            one.lab.revoke_access()
        elif mode == "idle":
            await one.change(obtained_at=time.time() - 580, expires_at=time.time() + 30)
        else:
            await one.expire()
        got = await together(one, number, mode)
        new = hashlib.sha256((one.grant.access_token or "").encode()).hexdigest()
        assert [each["fault"] for each in got] == [None] * number, got
        assert {each["token"] for each in got} == {new}
        assert one.lab.counts["refreshes_ok"] == 1
        assert one.lab.counts["families_revoked"] == one.lab.counts["reuse_detected"] == 0
        assert one.lab.counts["authorize_requests"] == 0
        assert one.lab.families.refusal(one.grant.access_token or "") is None
        for secret in one.secrets():
            assert secret not in one.log()


async def test_thirty_processes_in_an_outage_knock_once_and_are_all_answered(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.mishap("token", "status", status=503)
        got = await together(one, 30, "ready")
        assert {each["fault"] for each in got} == {"auth-unreachable"}
        assert len(got) == 30
        assert one.log().count("refresh-refused") <= 8  # at most one in each knock interval
        assert one.grant.refresh_token is not None
        one.lab.behave.mishaps.clear()
        await asyncio.sleep(0.4)
        await usable(one)
        assert one.lab.counts["refreshes_ok"] == 1


async def rounds(one: Machine, points: list[str]) -> None:
    for point in points:
        if random.Random(point).random() < 0.5:
            await one.expire()
        else:
            # A token that was fetched for a refused one is not thought refused again at once.
            await asyncio.sleep(one.timing.knock_seconds + 0.05)
            one.lab.revoke_access()
        await killed_at(one, point)
        await is_free(one)
        await usable(one)
        assert one.lab.counts["families_revoked"] == one.lab.counts["reuse_detected"] == 0, point
        assert one.lab.counts["authorize_requests"] == 0, point


async def test_kill_9_at_each_point_loses_no_grant(tmp_path: Path) -> None:
    async with machine(tmp_path, leeway=LEEWAY) as one:
        await rounds(one, list(POINTS))
        assert one.lab.counts["refreshes_ok"] >= len(POINTS) - 1


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_kill_9_at_each_point_many_times(tmp_path: Path) -> None:
    async with machine(tmp_path, leeway=LEEWAY) as one:
        points = list(POINTS) * 20
        random.Random(3).shuffle(points)
        await rounds(one, points)


async def at_calls(one: Machine, numbers: list[int]) -> None:
    for number in numbers:
        await one.expire()
        async with child(one, "die-at-call", str(number)) as process:
            _, err = await asyncio.wait_for(process.communicate(), 30)
            assert process.returncode in (-signal.SIGKILL, 0), (number, err.decode()[-2000:])
        await is_free(one)
        await usable(one)
        assert one.lab.counts["families_revoked"] == one.lab.counts["reuse_detected"] == 0, number


async def test_kill_9_at_some_calls_to_the_operating_system(tmp_path: Path) -> None:
    async with machine(tmp_path, leeway=LEEWAY) as one:
        await at_calls(one, random.Random(7).sample(range(1, 70), 10))


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_kill_9_at_every_call_to_the_operating_system(tmp_path: Path) -> None:
    async with machine(tmp_path, leeway=LEEWAY) as one:
        number, ended = 0, 0
        while ended != 0 or number == 0:
            number += 1
            await one.expire()
            async with child(one, "die-at-call", str(number)) as process:
                await asyncio.wait_for(process.communicate(), 30)
                ended = process.returncode or 0
            await is_free(one)
            await usable(one)
            assert one.lab.counts["families_revoked"] == one.lab.counts["reuse_detected"] == 0, number
        assert number > 30


async def strict(one: Machine, point: str) -> bool:
    """Whether a refresh that was killed at this point cost the login, at a server that takes a token only once."""
    await one.expire()
    await killed_at(one, point)
    await is_free(one)
    process = one.process()
    if process.auth.current():
        return False
    with contextlib.suppress(Fault):
        await process.auth.ready(20)
        return False
    assert one.lab.counts["reuse_detected"] == 1
    assert one.grant.state == "refused"
    await asyncio.sleep(one.timing.grace_seconds + 0.1)
    assert (await fault_of(process.auth.ready(20))).slug == "login-needed"
    return True


async def test_at_a_server_without_leeway_only_the_time_between_its_act_and_our_disk_costs_a_login(
    tmp_path: Path,
) -> None:
    lost = set()
    for point in POINTS:
        async with machine(tmp_path / point) as one:
            if await strict(one, point):
                lost.add(point)
    assert lost == COSTLY


async def test_a_process_that_is_stopped_in_a_refresh_delays_others_for_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "LOCK_SECONDS", 1.0)
    async with machine(tmp_path) as one:
        await one.expire()
        async with child(one, "stop", "refresh-asking") as stopped:
            await eventually(lambda: one.grant.state == "spent")
            process = one.process()
            faults = await asyncio.gather(*(fault_of(process.auth.ready(10)) for _ in range(5)))
            assert {each.slug for each in faults} == {"auth-unreachable"}
            stopped.send_signal(signal.SIGCONT)
            assert await asyncio.wait_for(stopped.wait(), 20) == 0
        await eventually(process.auth.current)
        assert one.lab.counts["refreshes_ok"] == 1
        assert one.lab.counts["families_revoked"] == 0


async def test_the_next_of_many_goes_on_where_the_first_was_killed(tmp_path: Path) -> None:
    async with machine(tmp_path, leeway=LEEWAY) as one:
        await one.expire()
        await killed_at(one, "refresh-answered")
        assert one.grant.state == "spent"
        got = await together(one, 8, "ready")
        assert [each["fault"] for each in got] == [None] * 8
        assert (one.lab.counts["refreshes_ok"], one.lab.counts["refreshes_repeated"]) == (1, 1)
        assert one.lab.counts["families_revoked"] == 0


async def test_the_real_authorization_server_sees_one_refresh_of_five_processes(tmp_path: Path) -> None:
    """oidc-provider: it revokes the grant when a spent token comes back, and has no leeway."""
    try:
        programs.node()
        provider_package()
    except programs.Missing as missing:
        pytest.skip(str(missing))
    async with oidc_lab() as lab:
        home = tmp_path / "home"
        settings = OAuth(client_id=lab.preset_client)
        all = [Process(home, lab.url, settings, QUICK, lambda step: None) for _ in range(5)]
        try:
            fault = await fault_of(all[0].after_401("", "Bearer"))
            assert fault.slug == "login-needed", fault.message
            seen = await click(fault.authorize_url or "")
            assert seen.landed, seen.page
            for each in all:
                await eventually(lambda each=each: each.auth.current())  # type: ignore[misc]
            used = all[0].auth.current() or ""
            values = await asyncio.gather(*(each.after_401(used) for each in all for _ in range(3)))
            assert len(set(values)) == 1
            assert values[0] != used
            assert lab.verifier.refusal(values[0].removeprefix("Bearer ")) is None
            counts = await lab.counts()
            assert counts["refreshes_ok"] == 1
            assert counts.get("reuse_detected", 0) == counts.get("grants_revoked", 0) == 0
            assert counts["logins_finished"] == 1
        finally:
            for each in all:
                await each.close()
