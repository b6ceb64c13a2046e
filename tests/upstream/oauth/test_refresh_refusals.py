"""What follows from a refusal of the token endpoint: the grace, the knock brake, and when a login is the only way."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.upstream.oauth.machine import QUICK, Machine, Process, fault_of, machine, until

from interlock.manifest.config import OAuth
from interlock.model.verdict import Verdict
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.refresh import renew


async def renewed(one: Machine, process: Process, rejected: str | None = None, *, waited: bool = True) -> Grant:
    return await renew(process.shared, "srv", one.id, one.found, rejected=rejected, waited=waited)


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


async def test_a_configured_secret_that_was_changed_is_used_at_the_next_refresh(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False) as one:
        machine_client = one.lab.clients.machine
        one.settings = OAuth(client_id=machine_client, client_secret_env="SECRET")
        await one.sign_in()
        old = msgspec.structs.replace(
            one.grant.registration, client_secret="the-secret-of-last-year", auth_method="client_secret_basic"
        )
        await one.change(registration=old)
        await one.expire()
        process = one.process()
        process.shared.environ = {"SECRET": one.lab.clients.machine_secret}
        assert await process.auth.ready(20)
        assert one.grant.registration.client_secret == one.lab.clients.machine_secret


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


async def test_the_wait_is_never_shorter_than_the_next_knock(tmp_path: Path) -> None:
    async with machine(tmp_path, timing=replace(QUICK, grace_seconds=2.0, knock_seconds=30.0)) as one:
        one.lab.kill_families()
        await one.expire()
        process = one.process()
        fault = await fault_of(process.auth.ready(20))
        assert (fault.slug, fault.verdict) == ("grant-refused", Verdict.WAIT)
        assert fault.wait_seconds is not None
        assert 29.0 <= fault.wait_seconds <= 30.0
        await asyncio.sleep(1.0)
        assert 27.0 <= ((await fault_of(process.auth.ready(20))).wait_seconds or 0.0) <= 29.5
    async with machine(tmp_path / "other", timing=replace(QUICK, grace_seconds=60.0, knock_seconds=1.0)) as one:
        one.lab.kill_families()
        await one.expire()
        fault = await fault_of(one.process().auth.ready(20))
        assert fault.wait_seconds == pytest.approx(60.0, abs=1.5)
