"""Refreshes against the lab: one for all, outages, refusals and their grace, early tokens, clocks, and what is kept on disk."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.upstream.oauth.machine import QUICK, Machine, Process, fault_of, machine, no_secret_in
from tests.upstream.scripted import eventually

from interlock.manifest.config import OAuth
from interlock.model.verdict import Verdict
from interlock.upstream.oauth import refresh
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.refresh import NeedLogin, refresh_at, renew, usable
from interlock.upstream.oauth.timing import Timing


async def renewed(one: Machine, process: Process, rejected: str | None = None, *, waited: bool = True) -> Grant:
    return await renew(process.shared, "srv", one.id, one.found, rejected=rejected, waited=waited)


async def until(seconds: float) -> None:
    """The clock itself is what is waited for."""
    await asyncio.sleep(seconds)


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


# -- refusals: the grace


async def test_login_only_where_the_refusal_stood_past_the_grace(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.kill_families()
        process, other = one.process(), one.process()
        first = await fault_of(process.auth.ready(20))
        assert (first.slug, first.verdict, first.authorize_url) == ("grant-refused", Verdict.WAIT, None)
        assert first.wait_seconds == pytest.approx(QUICK.grace_seconds, abs=0.2)
        assert one.grant.state == "refused"
        asked = one.lab.counts["dead_family"]
        # The knock brake holds for the machine: neither this process nor another asks again at once.
        assert (await fault_of(process.auth.ready(20))).slug == "grant-refused"
        assert (await fault_of(other.auth.ready(20))).slug == "grant-refused"
        assert one.lab.counts["dead_family"] == asked == 1
        await until(QUICK.knock_seconds + 0.1)
        assert (await fault_of(other.auth.ready(20))).slug == "grant-refused"
        assert one.lab.counts["dead_family"] == 2
        await until(QUICK.grace_seconds)
        login = await fault_of(process.auth.ready(20))
        assert (login.slug, login.verdict) == ("login-needed", Verdict.WAIT)
        again = await fault_of(other.auth.ready(20))
        assert again.authorize_url == login.authorize_url
        assert len(process.browser) + len(other.browser) == 1


async def test_a_refusal_that_passes_leaves_no_trace(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.behave.refuse_refresh = "invalid_grant"
        process = one.process()
        assert (await fault_of(process.auth.ready(20))).slug == "grant-refused"
        one.lab.behave.refuse_refresh = None
        await until(QUICK.knock_seconds + 0.1)
        assert await process.auth.ready(20)
        assert (one.grant.state, one.grant.refusal) == ("live", None)


async def test_no_grace_for_a_refresh_token_past_its_own_expiry(tmp_path: Path) -> None:
    async with machine(tmp_path, refresh_format="jwt", refresh_lifetime=1.0, access_lifetime=1.0) as one:
        await until(2.1)
        fault = await fault_of(one.process().auth.ready(20))
        assert fault.slug == "login-needed"
        assert one.lab.counts["refreshes_ok"] == 0


async def test_a_wrong_clock_alone_spends_no_login(tmp_path: Path) -> None:
    """The grant was fetched when this machine was a day behind; its clock has been set since. The token seems long dead."""
    async with machine(tmp_path, refresh_format="jwt", refresh_lifetime=7200.0) as one:
        await one.change(skew=86400.0, obtained_at=time.time() + 86400)
        process = one.process()
        assert await process.auth.ready(20)
        assert one.lab.counts["refreshes_ok"] == 1
        assert abs(one.grant.skew) < 2
        assert not process.browser


@pytest.mark.parametrize(
    "error", ["invalid_request", "invalid_scope", "invalid_target", "access_denied", "unsupported_grant_type"]
)
async def test_other_refusals_are_a_matter_of_settings_until_they_stood(tmp_path: Path, error: str) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.behave.refuse_refresh = error
        process = one.process()
        for _ in range(2):  # the second is braked, and says the same
            fault = await fault_of(process.auth.ready(20))
            assert (fault.slug, fault.verdict, fault.authorize_url) == (
                "auth-misconfigured",
                Verdict.NEVER_REACHED,
                None,
            )
            assert error in fault.message
        await until(QUICK.grace_seconds + 0.1)
        last = await fault_of(process.auth.ready(20))
        assert last.slug == "login-needed", last.message


async def test_a_page_of_html_is_no_refusal_however_long_it_stands(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.mishap("token", "status", status=403)
        process = one.process()
        assert (await fault_of(process.auth.ready(20))).slug == "auth-misconfigured"
        await until(QUICK.grace_seconds + 0.1)
        assert (await fault_of(process.auth.ready(20))).slug == "auth-misconfigured"
        one.lab.behave.mishaps.clear()
        await until(QUICK.knock_seconds + 0.1)
        assert await process.auth.ready(20)


async def test_refusals_of_different_kinds_do_not_add_up(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.behave.refuse_refresh = "invalid_request"
        process = one.process()
        await fault_of(process.auth.ready(20))
        await until(QUICK.grace_seconds + 0.1)
        one.lab.behave.refuse_refresh = "invalid_grant"
        assert (await fault_of(process.auth.ready(20))).slug == "grant-refused"
        assert one.grant.refusal is not None
        assert one.grant.refusal.count == 1


async def test_a_configured_client_that_is_refused_never_asks_a_person(tmp_path: Path) -> None:
    async with machine(tmp_path, settings=OAuth(client_id="nobody-knows-me")) as one:
        await one.expire()
        process = one.process()
        for pause in (0.0, QUICK.grace_seconds + 0.1):
            await until(pause)
            fault = await fault_of(process.auth.ready(20))
            assert (fault.slug, fault.authorize_url) == ("auth-misconfigured", None)
            assert "client id or secret that is configured" in fault.message


async def test_a_forgotten_client_is_registered_anew_once_and_the_rest_is_kept(tmp_path: Path) -> None:
    """Reports 10 and 39."""
    async with machine(tmp_path, settings=OAuth()) as one:
        one.store.keep_registration(Registration(issuer="https://other.test", client_id="kept", source="dynamic"))
        await one.expire()
        before = one.grant.registration.client_id
        one.lab.forget_clients()
        process, other = one.process(), one.process()
        assert (await fault_of(process.auth.ready(20))).slug == "grant-refused"  # a refusal alone is no verdict
        await until(QUICK.grace_seconds + 0.1)
        registrations = one.lab.counts["registrations"]
        login = await fault_of(process.auth.ready(20))
        assert login.slug == "login-needed"
        assert (await fault_of(other.auth.ready(20))).authorize_url == login.authorize_url
        assert one.lab.counts["registrations"] == registrations + 1
        kept = one.store.registration(one.lab.issuer, None)
        assert kept is not None
        assert kept.client_id != before
        assert one.store.registration("https://other.test", None) is not None


async def test_a_client_secret_that_has_expired_leads_to_a_login_at_once(tmp_path: Path) -> None:
    """Report 30."""
    async with machine(tmp_path, settings=OAuth(), client_auth="client_secret_basic", secret_lifetime=1.0) as one:
        await one.expire()
        await until(2.1)
        registrations = one.lab.counts["registrations"]
        fault = await fault_of(one.process().auth.ready(20))
        assert fault.slug == "login-needed"
        assert one.lab.counts["registrations"] == registrations + 1


# -- early refresh tokens


async def test_first_retry_now_then_the_hour(tmp_path: Path) -> None:
    async with machine(
        tmp_path, refresh_format="jwt", refresh_nbf=600.0, timing=replace(QUICK, knock_seconds=3.0)
    ) as one:
        await one.expire()
        process, other = one.process(), one.process()
        first = await fault_of(process.auth.ready(20))
        assert (first.slug, first.verdict, first.wait_seconds) == ("grant-refused", Verdict.WAIT, 1.0)
        assert "retry now" in first.message
        assert (await fault_of(other.auth.ready(20))).wait_seconds == 1.0
        assert one.lab.counts["early_refreshes"] == 1
        await until(1.1)
        second = await fault_of(other.auth.ready(20))
        assert second.wait_seconds is not None
        assert 500 < second.wait_seconds < 601
        assert "on the server's clock" in second.message
        assert "intact" in second.message
        assert one.lab.counts["early_refreshes"] == 2
        # From now on at most once in the knock interval, for the whole machine.
        for each in (process, other, process):
            assert (await fault_of(each.auth.ready(20))).wait_seconds == pytest.approx(second.wait_seconds, abs=3)
        assert one.lab.counts["early_refreshes"] == 2
        assert one.grant.state == "live"
        assert not process.browser
        assert not other.browser


async def test_an_early_token_is_not_presented_where_nobody_waits(tmp_path: Path) -> None:
    async with machine(tmp_path, refresh_format="jwt", refresh_nbf=600.0) as one:
        await one.expire()
        process = one.process()
        assert (await fault_of(renewed(one, process, waited=False))).slug == "grant-refused"
        assert one.lab.counts["early_refreshes"] == 0


async def test_an_early_refusal_long_ago_is_no_first_refusal_of_the_grant(tmp_path: Path) -> None:
    async with machine(tmp_path, refresh_format="jwt", refresh_nbf=1.0) as one:
        await one.expire()
        process = one.process()
        assert "retry now" in (await fault_of(process.auth.ready(20))).message
        await until(3.2)
        one.lab.kill_families()
        assert (await fault_of(process.auth.ready(20))).slug == "grant-refused"
        assert one.grant.state == "refused"  # and not dead


async def test_an_access_token_that_is_good_later_is_waited_for_and_not_renewed(tmp_path: Path) -> None:
    async with machine(tmp_path, access_nbf=30.0) as one:
        await one.expire()
        process = one.process()
        for _ in range(4):
            fault = await fault_of(process.auth.ready(20))
            assert (fault.slug, fault.verdict) == ("grant-refused", Verdict.WAIT)
            assert fault.wait_seconds is not None
            assert 20 < fault.wait_seconds <= 31
        assert one.lab.counts["refreshes_ok"] == 1


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


async def test_no_token_in_any_text(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        process = one.process()
        texts: list[str] = []
        with no_secret_in(one, lambda: "\n".join(texts), lambda: "\n".join(process.said)):
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
