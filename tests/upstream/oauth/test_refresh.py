"""Refreshes against the lab: one for all, outages, odd tokens and restarts, and no secret in any text."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.upstream.oauth.machine import QUICK, Machine, Process, fault_of, machine, no_secret_in, until
from tests.upstream.scripted import eventually

from interlock.model.verdict import Verdict
from interlock.upstream.oauth import refresh
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.refresh import NeedLogin, refresh_at, renew, usable
from interlock.upstream.oauth.timing import Timing


async def renewed(one: Machine, process: Process, rejected: str | None = None, *, waited: bool = True) -> Grant:
    return await renew(process.shared, "srv", one.id, one.found, rejected=rejected, waited=waited)


# -- judging and planning


def grant(**fields: object) -> Grant:
    made: dict[str, object] = {
        "server_url": "https://rs.test/mcp",
        "resource": "https://rs.test/mcp",
        "issuer": "https://as.test",
        "registration": Registration(issuer="https://as.test", client_id="c", source="preset"),
        "access_token": "a",
        "refresh_token": "r",
        "obtained_at": 1000.0,
    }
    return Grant(**(made | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "now", "expected"),
    [
        ({"expires_at": 4600.0}, 1000.0, True),
        ({"expires_at": 4600.0}, 4594.0, True),
        ({"expires_at": 4600.0}, 4596.0, False),
        ({"expires_at": None}, 9e9, True),
        ({"expires_at": 1004.0}, 1002.9, True),  # a short life has a short margin
        ({"expires_at": 1004.0}, 1003.1, False),
        ({"expires_at": 4600.0, "not_before": 1030.0}, 1010.0, False),
        ({"expires_at": 4600.0, "not_before": 1030.0}, 1030.0, True),
        ({"access_token": None}, 1000.0, False),
        # This machine's clock was set back by an hour since: the token was good at its issue, so it is good now.
        ({"expires_at": 4600.0, "not_before": 1000.0, "obtained_at": 1000.0}, -2600.0, True),
    ],
)
def test_a_token_may_be_sent_while_it_lives(fields: dict[str, object], now: float, expected: bool) -> None:
    assert usable(grant(**fields), now) is expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"expires_at": 4600.0}, 4540.0),
        ({"expires_at": 1040.0}, 1030.0),
        ({"expires_at": 4600.0, "refresh_token": None}, None),
        ({"expires_at": 4600.0, "state": "dead"}, None),
        ({"expires_at": 4600.0, "refresh_not_before": 4590.0}, 4593.0),
        ({"expires_at": 90000.0, "refresh_expires_at": 5000.0}, 4000.0),
        ({"expires_at": None, "refresh_expires_at": 1040.0}, 1020.0),
        ({"expires_at": 4600.0, "refresh_expires_at": 900.0}, 4540.0),  # past when it came: a wrong clock
        ({"expires_at": None}, 1000.0 + 86400),  # nobody says how long it lives: it must not rot
    ],
)
def test_when_a_grant_is_renewed_by_itself(fields: dict[str, object], expected: float | None) -> None:
    assert refresh_at(grant(**fields), 60.0) == expected


# -- one refresh for all


@pytest.mark.parametrize("rejected", [False, True], ids=["expired", "early-401"])
@pytest.mark.parametrize(("processes", "callers"), [(1, 1), (1, 20), (5, 4), (30, 1)])
async def test_n_callers_cost_one_refresh(tmp_path: Path, processes: int, callers: int, rejected: bool) -> None:
    async with machine(tmp_path) as one:
        all = [one.process() for _ in range(processes)]
        used = all[0].auth.current()
        assert used
        if rejected:
            one.lab.revoke_access()
            values = await asyncio.gather(*(each.after_401(used) for each in all for _ in range(callers)))
        else:
            await one.expire()
            values = await asyncio.gather(*(each.auth.ready(20) for each in all for _ in range(callers)))
        assert len(set(values)) == 1
        assert values[0] == f"Bearer {one.grant.access_token}" != used
        assert one.lab.families.refusal(values[0].removeprefix("Bearer ")) is None
        assert one.lab.counts["refreshes_ok"] == 1
        assert one.lab.counts["families_revoked"] == one.lab.counts["reuse_detected"] == 0
        assert not any(each.browser for each in all)


async def test_who_gives_up_in_the_middle_does_not_tear_the_refresh_in_two(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.mishap("token", "delay", seconds=0.6, times=1)
        process = one.process()
        caller = asyncio.ensure_future(process.auth.ready(10))
        await eventually(lambda: one.lab.counts["refreshes_ok"])
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await process.auth.close()
        assert one.grant.state == "live"
        assert one.lab.families.refusal(one.grant.access_token or "") is None
        assert one.lab.counts["refreshes_ok"] == 1


# -- outages: never a login, the grant is kept


OUTAGES = {
    "503": {"kind": "status", "status": 503},
    "429": {"kind": "status", "status": 429},
    "502 of a proxy": {"kind": "status", "status": 502},
    "OAuth error 503": {"kind": "status", "status": 503, "error": "temporarily_unavailable"},
    "server_error": {"kind": "status", "status": 400, "error": "server_error"},
    "garbage": {"kind": "garbage"},
    "dropped before it took effect": {"kind": "drop", "applied": False},
    "reset before it took effect": {"kind": "reset", "applied": False},
    "cut": {"kind": "cut", "applied": False},
}


@pytest.mark.parametrize("outage", OUTAGES, ids=str)
async def test_an_outage_costs_no_login_and_passes(tmp_path: Path, outage: str) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.mishap("token", **OUTAGES[outage])  # type: ignore[arg-type]
        process = one.process()
        first = await fault_of(process.auth.ready(20))
        # The caller is told to wait, and for how long; whoever comes too soon does not knock.
        asked = sum(one.lab.truth.token_requests.values()) or len(one.lab.behave.mishaps)
        second = await fault_of(process.auth.ready(20))
        for fault in (first, second):
            assert (fault.slug, fault.verdict, fault.authorize_url) == ("auth-unreachable", Verdict.WAIT, None)
            assert fault.wait_seconds is not None
        assert one.grant.refresh_token is not None
        assert (sum(one.lab.truth.token_requests.values()) or 1) == asked
        one.lab.behave.mishaps.clear()
        await until(QUICK.knock_seconds + 0.1)
        value = await process.auth.ready(20)
        assert one.lab.families.refusal(value.removeprefix("Bearer ")) is None
        assert one.lab.counts["refreshes_ok"] == 1
        assert one.grant.unanswered_at is None
        assert not process.browser
        assert one.lab.counts["registrations"] == 0
        assert not list((tmp_path / "grants").glob("*.flow.json"))


async def test_a_server_that_is_down_leaves_the_grant_unspent(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        await one.lab.auth_listener.down()
        process = one.process()
        fault = await fault_of(process.auth.ready(20))
        assert (fault.slug, fault.verdict) == ("auth-unreachable", Verdict.WAIT)
        assert one.grant.state == "live"  # not one byte left
        await one.lab.auth_listener.up()
        await until(QUICK.knock_seconds + 0.1)
        await process.auth.ready(20)
        assert one.lab.counts["refreshes_ok"] == 1


async def test_a_lost_answer_then_a_server_that_is_down_stays_known_as_spent(tmp_path: Path) -> None:
    async with machine(tmp_path, leeway=60.0) as one:
        await one.expire()

        async def go_down() -> None:
            while not one.lab.counts["answers_dropped"]:  # noqa: ASYNC110
                await asyncio.sleep(0)
            await one.lab.auth_listener.down()

        one.lab.mishap("token", "drop", times=1)
        down = asyncio.ensure_future(go_down())
        process = one.process()
        fault = await fault_of(process.auth.ready(20))
        await down
        assert fault.slug == "auth-unreachable"
        assert one.grant.state == "spent"
        await one.lab.auth_listener.up()
        await until(QUICK.knock_seconds + 0.1)
        await process.auth.ready(20)
        assert (one.lab.counts["refreshes_ok"], one.lab.counts["refreshes_repeated"]) == (1, 1)
        assert one.grant.state == "live"


async def test_a_silent_server_is_asked_once_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refresh, "TOKEN_SECONDS", 1.0)
    async with machine(tmp_path, timing=replace(QUICK, knock_seconds=5.0)) as one:
        await one.expire()
        one.lab.behave.as_silent = True
        all = [one.process() for _ in range(5)]
        started = time.monotonic()
        faults = await asyncio.gather(*(fault_of(each.auth.ready(10)) for each in all for _ in range(4)))
        assert {each.slug for each in faults} == {"auth-unreachable"}
        assert time.monotonic() - started < 8
        assert one.log().count("refresh-answer-lost") == 1
        assert one.grant.refresh_token is not None


async def test_ten_calls_at_a_silent_server_are_answered_in_their_time(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.behave.as_silent = True
        process = one.process()
        started = time.monotonic()
        faults = await asyncio.gather(*(fault_of(process.auth.ready(1.0)) for _ in range(10)))
        assert {(each.slug, each.verdict) for each in faults} == {("auth-unreachable", Verdict.WAIT)}
        assert 0.5 < time.monotonic() - started < 2.5
        await one.lab.auth_listener.down()  # lets the close end


async def test_a_slow_answer_is_taken(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.mishap("token", "delay", seconds=1.5, times=1)
        await one.process().auth.ready(10)
        assert one.lab.counts["refreshes_ok"] == 1
        assert one.lab.counts["refreshes_repeated"] == one.lab.counts["reuse_detected"] == 0


@pytest.mark.parametrize("kind", ["drop", "reset", "cut"])
async def test_an_answer_lost_after_it_took_effect_is_had_by_asking_again(tmp_path: Path, kind: str) -> None:
    async with machine(tmp_path, leeway=30.0) as one:
        await one.expire()
        one.lab.mishap("token", kind, times=1, applied=True)  # type: ignore[arg-type]
        value = await one.process().auth.ready(20)
        assert one.lab.families.refusal(value.removeprefix("Bearer ")) is None
        assert (one.lab.counts["refreshes_ok"], one.lab.counts["refreshes_repeated"]) == (1, 1)
        assert one.lab.counts["families_revoked"] == 0
        assert "refresh-answer-lost" in one.log()


async def test_an_answer_lost_at_a_server_without_leeway_costs_the_login_after_the_grace(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.mishap("token", "drop", times=1, applied=True)
        process = one.process()
        first = await fault_of(process.auth.ready(20))
        assert (first.slug, first.authorize_url) == ("grant-refused", None)
        assert "the answer to the refresh before was lost" in first.message
        await until(QUICK.grace_seconds + 0.1)
        login = await fault_of(process.auth.ready(20))
        assert login.slug == "login-needed"
        assert login.authorize_url is not None
        assert one.grant.state == "dead"


# -- odd tokens, restarts


@pytest.mark.parametrize("expires_in", ["number", "string", "absent"])
@pytest.mark.parametrize("form", ["jwt", "opaque"])
async def test_a_restart_with_an_old_access_token_refreshes_and_opens_no_browser(
    tmp_path: Path, expires_in: str, form: str
) -> None:
    """Reports 5 and 28."""
    async with machine(tmp_path, access_format=form, expires_in=expires_in) as one:
        one.lab.revoke_access()
        if one.grant.expires_at is not None:
            await one.expire()
        process = one.process()
        used = process.auth.current()
        value = await process.after_401(used) if used else await process.auth.ready(20)
        assert one.lab.families.refusal(value.removeprefix("Bearer ")) is None
        assert one.lab.counts["refreshes_ok"] == 1
        assert not process.browser
        assert sum(one.lab.truth.token_requests.values()) == 1


async def test_a_server_that_does_not_rotate_keeps_the_refresh_token(tmp_path: Path) -> None:
    async with machine(tmp_path, rotation=False) as one:
        token = one.grant.refresh_token
        await one.expire()
        await one.process().auth.ready(20)
        assert one.grant.refresh_token == token
        one.lab.behave.issue_refresh = False
        await one.expire()
        await one.process().auth.ready(20)
        assert one.grant.refresh_token == token


async def test_without_a_refresh_token_a_login_is_the_way(tmp_path: Path) -> None:
    async with machine(tmp_path, issue_refresh=False) as one:
        await one.expire()
        with pytest.raises(NeedLogin, match="no refresh token"):
            await renewed(one, one.process())


async def test_room_for_the_answer_is_taken_before_the_token_leaves(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        seen: dict[str, tuple[str, list[int]]] = {}

        def reached(step: str) -> None:
            kept = [path.stat().st_size for path in (tmp_path / "grants").glob(".*.tmp")]
            grant = one.store.read(one.id)
            assert grant is not None
            seen[step] = (grant.state, kept)

        await one.process(reached=reached).auth.ready(20)
        assert list(seen) == [
            "refresh-begins", "refresh-locked", "refresh-marked", "refresh-asking", "refresh-answered", "refresh-read",
            "refresh-stored", "refresh-done", "refresh-unlocked",
        ]  # fmt: skip
        assert seen["refresh-locked"] == ("live", [])
        state, room = seen["refresh-asking"]
        assert state == "spent"
        assert room[0] >= 16 * 1024
        assert seen["refresh-stored"] == ("live", [])


async def test_a_store_that_refuses_is_told_and_nothing_is_presented(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        process = one.process()
        (tmp_path / "grants" / f"{one.id}.lock").unlink()
        (tmp_path / "grants" / f"{one.id}.lock").mkdir()
        fault = await fault_of(process.auth.ready(20))
        assert fault.verdict is Verdict.NEVER_REACHED
        assert "grants of this machine cannot be used" in fault.message
        assert one.lab.counts["refreshes_ok"] == 0


# -- secrets


async def test_no_token_in_any_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with machine(tmp_path) as one:
        process = one.process()
        process.shared.environ = {"SOME_SECRET": one.grant.refresh_token or ""}
        texts: list[str] = []
        with no_secret_in(one, lambda: "\n".join(texts), lambda: "\n".join(process.said), lambda: caplog.text):
            token = one.grant.refresh_token
            one.lab.behave.refuse_description = f"this token is bad: {token}"
            for error in ("invalid_grant", "invalid_request", "invalid_client", "temporarily_unavailable", None):
                await one.expire()
                await one.change(refusal=None, unanswered_at=None)
                one.lab.behave.refuse_refresh = error
                if error is not None:
                    fault = await fault_of(process.auth.ready(20))
                    texts += [fault.message, repr(fault), str(fault.__cause__), repr(fault.__context__)]
                    await until(QUICK.knock_seconds + 0.05)
                else:
                    value = await process.auth.ready(20)
                    texts += [repr(one.grant), repr(process.auth), repr(process.shared), repr(process.auth._known)]
                    assert process.auth.mask(f"{value} {token}") == "Bearer [redacted] [redacted]"


def test_quick_timing_is_a_fraction_of_the_real_one() -> None:
    real = Timing()
    assert (real.grace_seconds, real.knock_seconds) == (120.0, 10.0)
    assert refresh.TOKEN_SECONDS < refresh.LOCK_SECONDS
