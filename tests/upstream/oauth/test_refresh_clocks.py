"""Clocks that are wrong: measured, kept, judged by, and never the cause of a login or of a storm of refreshes."""

from __future__ import annotations

import time
from email.utils import formatdate
from pathlib import Path

import pytest
from tests.upstream.oauth.machine import QUICK, fault_of, machine, until

# -- clocks


@pytest.mark.parametrize("clock", [1800.0, -1800.0])
async def test_half_an_hour_apart_is_measured_kept_and_written_down(tmp_path: Path, clock: float) -> None:
    async with machine(tmp_path, clock=clock, access_lifetime=600.0) as one:
        process = one.process()
        assert process.auth.current()  # by this machine's own clock it would be over, or far ahead
        await one.expire()
        value = await process.auth.ready(20)
        assert one.lab.families.refusal(value.removeprefix("Bearer ")) is None
        assert one.grant.skew == pytest.approx(clock, abs=3)
        side = "behind" if clock > 0 else "ahead of"
        assert f"s {side} the server's" in one.log()
        assert "NTP" in one.log()
        for _ in range(5):
            assert await process.value() == value
        assert one.lab.counts["refreshes_ok"] == 1


@pytest.mark.parametrize("as_date", [1800.0, -1800.0])
@pytest.mark.parametrize("form", ["jwt", "opaque"])
async def test_a_date_that_lies_costs_no_storm_of_refreshes(tmp_path: Path, as_date: float, form: str) -> None:
    async with machine(tmp_path, as_date=as_date, access_format=form, access_lifetime=900.0) as one:
        process = one.process()
        await one.change(expires_at=time.time() + as_date - 10)
        value = await process.auth.ready(20)
        for _ in range(5):
            assert await process.value() == value
        assert one.lab.counts["refreshes_ok"] == 1


@pytest.mark.parametrize("date_header", ["absent", "garbage"])
@pytest.mark.parametrize("clock", [1800.0, -1800.0])
async def test_without_a_date_the_token_itself_tells_the_time(tmp_path: Path, clock: float, date_header: str) -> None:
    async with machine(
        tmp_path, clock=clock, date_header=date_header, access_lifetime=900.0, access_nbf=0.0, refresh_format="jwt",
        refresh_lifetime=900.0, refresh_nbf=0.0,
    ) as one:  # fmt: skip
        await one.change(skew=0.0, expires_at=time.time() - 10)
        process = one.process()
        value = await process.auth.ready(20)
        for _ in range(4):
            assert await process.value() == value
        assert one.grant.skew == pytest.approx(clock, abs=3)
        assert one.lab.counts["refreshes_ok"] == 1


async def test_a_pause_that_the_server_asks_for_is_kept_by_all(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.mishap("token", "status", status=429, retry_after=40, times=1)
        process, other = one.process(), one.process()
        assert (await fault_of(process.auth.ready(20))).wait_seconds == 40
        await until(QUICK.knock_seconds + 0.1)
        left = (await fault_of(other.auth.ready(20))).wait_seconds
        assert left is not None
        assert 35 < left < 40
        assert one.lab.counts["refreshes_ok"] == 0


async def test_a_small_difference_is_not_worth_a_line(tmp_path: Path) -> None:
    async with machine(tmp_path, clock=10.0) as one:
        await one.expire()
        await one.process().auth.ready(20)
        assert "clock-skew" not in one.log()


async def test_a_server_whose_date_jumps_does_not_fill_the_log(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        process = one.process()
        await process.value()
        for number in range(40):
            moment = time.time() + 86400.0 * (-1) ** number * (1 + number % 7)
            process.auth.heard({b"date": formatdate(moment, usegmt=True).encode()})
        assert one.log().count("clock-skew") == 1
