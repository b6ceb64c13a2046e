"""Refreshes ahead of need in idle processes, and the clock that they are planned by."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.upstream.oauth.machine import QUICK, Process, become, fault_of, machine

from interlock.manifest.config import OAuth
from interlock.upstream.oauth import ahead, grant_log
from interlock.upstream.oauth.clock import skew_of
from interlock.upstream.oauth.grant_ids import filed_under

# -- clocks


async def test_the_resource_servers_clock_shows_that_this_one_was_set(tmp_path: Path) -> None:
    """The grant is young when its Date is heard, so the two servers are known to agree; then this machine's clock jumps."""
    async with machine(tmp_path) as one:
        known = one.process().auth._known
        headers = {b"date": b"Mon, 30 Nov 2026 12:00:00 GMT"}
        noon = 1796040000.0
        assert skew_of("Mon, 30 Nov 2026 12:00:00 GMT", noon) == 0
        known.clock.taken(msgspec.structs.replace(one.grant, skew=0.0, obtained_at=noon))
        assert known.clock.heard(headers, noon) is None
        assert known.clock.now(noon) == noon
        # Half an hour later by the servers; this machine was set back an hour in between.
        later = {b"date": b"Mon, 30 Nov 2026 12:30:00 GMT"}
        assert known.clock.heard(later, noon - 1800) == 3600
        assert known.clock.now(noon - 1800) == noon + 1800


@pytest.mark.parametrize("rs_date", [1800.0, -1800.0])
async def test_a_resource_server_whose_date_is_wrong_alone_moves_nothing(tmp_path: Path, rs_date: float) -> None:
    async with machine(tmp_path, access_lifetime=900.0) as one:
        process = one.process()
        lying = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + rs_date)).encode()
        process.auth.heard({b"date": lying})
        assert process.auth.current()
        assert process.auth._known.now() == pytest.approx(time.time(), abs=3)
        assert "clock-skew" in one.log()


async def test_a_stored_answer_says_nothing_about_the_clock(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        process = one.process()
        process.auth.heard({b"date": b"Mon, 30 Nov 2020 12:00:00 GMT", b"age": b"100"})
        assert "clock-skew" not in one.log()


# -- idle


@pytest.mark.parametrize("processes", [1, 5])
async def test_an_idle_grant_is_renewed_ahead_of_expiry_once_for_all(
    tmp_path: Path, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "SPREAD_SECONDS", 0.3)
    async with machine(tmp_path, access_lifetime=600.0) as one:
        all = [one.process(idle=True) for _ in range(processes)]
        for each in all:
            each.auth.start()
        old = one.grant.access_token
        await one.change(obtained_at=time.time() - 580, expires_at=time.time() + 20)  # in its last minute: due at once
        for each in all:
            each.auth._known.look()
        await become(lambda: one.lab.counts["refreshes_ok"])
        await asyncio.sleep(0.8)
        assert one.lab.counts["refreshes_ok"] == 1
        assert one.lab.counts["families_revoked"] == 0
        assert {each.auth.current() for each in all} == {f"Bearer {one.grant.access_token}"}
        assert one.grant.access_token != old


async def test_idle_in_an_outage_asks_ever_more_rarely_and_never_opens_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "SPREAD_SECONDS", 0.05)
    monkeypatch.setattr(grant_log, "REPEAT_SECONDS", 0.0)  # every line counts here
    async with machine(tmp_path, timing=replace(QUICK, knock_seconds=0.2)) as one:
        await one.change(expires_at=time.time() - 10)
        one.lab.mishap("token", "status", status=503)
        process = one.process(idle=True)
        process.auth.start()
        await asyncio.sleep(3.0)
        knocks = one.log().count("refresh-refused")
        assert 2 <= knocks <= 7, one.log()
        one.lab.behave.mishaps.clear()
        await become(lambda: one.grant.state == "live", 20)
        assert not process.browser


async def test_an_idle_process_believes_a_refusal_only_past_the_grace_and_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "SPREAD_SECONDS", 0.05)
    async with machine(tmp_path) as one:
        one.lab.kill_families()
        await one.change(expires_at=time.time() - 10)
        process = one.process(idle=True)
        process.auth.start()
        await become(lambda: one.grant.state == "dead", 15)
        refusal = one.grant.refusal
        assert refusal is not None
        assert refusal.last_at - refusal.first_at >= QUICK.grace_seconds
        assert not process.browser
        assert (await fault_of(process.auth.ready(20))).slug == "login-needed"


async def test_close_ends_what_may_end_and_waits_for_a_refresh(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.mishap("token", "delay", seconds=0.5, times=1)
        process = one.process(idle=True)
        caller = asyncio.ensure_future(fault_of(process.auth.ready(20)))
        await become(lambda: one.lab.counts["refreshes_ok"])
        await process.auth.close()
        assert (await caller).slug == "draining"
        assert one.grant.state == "live"
        assert one.lab.families.refusal(one.grant.access_token or "") is None


async def test_an_override_of_the_resource_is_not_remembered_for_those_without_it(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False, settings=OAuth()) as one:
        process = one.process()
        await process.auth._discover(None)
        assert one.store.recalled(one.lab.url, None) is not None
        other = Process(one.home, one.lab.url, OAuth(resource="https://named.test/x"), QUICK, lambda step: None)
        one.processes.append(other)
        assert other.auth._known.found is None
        await other.auth._discover(None)
        assert other.auth._known.found is not None
        assert other.auth._known.id == filed_under(other.auth._known.found, None)
        assert other.auth._known.found.resource == "https://named.test/x"
        again = one.store.recalled(one.lab.url, None)
        assert again is not None
        assert again.resource == one.lab.url
