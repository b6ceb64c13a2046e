"""Streamable HTTP with credentials: what is sent again and what never is, true verdicts, and no token in any text."""

from __future__ import annotations

import asyncio
import secrets
import time
from pathlib import Path
from typing import Any

import pytest
from tests.oauth.clicker import click
from tests.upstream.authorized import authorized, reaching
from tests.upstream.oauth.machine import QUICK, machine
from tests.upstream.reaching import LEGACY_ANN
from tests.upstream.scripted import eventually

from interlock.manifest.config import OAuth, TokenSource
from interlock.model.verdict import Verdict

ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])


@ERAS
async def test_a_call_goes_out_with_the_token_and_only_with_it(tmp_path: Path, era: str) -> None:
    async with authorized(tmp_path, era=era) as reached:
        assert b"hello" in (await reached.call(value="hello")).body
        statuses = reached.one.lab.truth.statuses
        assert statuses[401] == 0
        assert reached.one.lab.counts["refreshes_ok"] == 0


@ERAS
async def test_a_401_with_a_challenge_resends_once_after_one_refresh(tmp_path: Path, era: str) -> None:
    async with authorized(tmp_path, era=era) as reached:
        await reached.call(value="before")
        reached.one.lab.revoke_access()
        await reached.call("write", key="k", text="t")
        assert reached.statuses("tools/call write") == [401, 200]
        assert reached.one.lab.truth.writes == {"k": 1}
        assert reached.one.lab.counts["refreshes_ok"] == 1


@ERAS
async def test_many_calls_at_an_early_401_cost_one_refresh_and_no_write_twice(tmp_path: Path, era: str) -> None:
    async with authorized(tmp_path, era=era) as reached:
        await reached.call(value="before")
        reached.one.lab.revoke_access()
        await asyncio.gather(*(reached.call("write", key=f"k{number}", text="t") for number in range(20)))
        assert reached.one.lab.truth.writes == {f"k{number}": 1 for number in range(20)}
        assert reached.one.lab.counts["refreshes_ok"] == 1
        assert reached.one.lab.counts["families_revoked"] == 0


@ERAS
async def test_a_401_without_a_challenge_never_resends_a_call_but_the_next_has_a_good_token(
    tmp_path: Path, era: str
) -> None:
    async with authorized(tmp_path, era=era) as reached:
        await reached.call(value="before")
        reached.one.lab.behave.challenge = "absent"
        reached.one.lab.revoke_access()
        fault = await reached.fault("write", key="k", text="t")
        assert (fault.slug, fault.verdict, fault.http_status) == ("unauthorized", Verdict.OUTCOME_UNKNOWN, 401)
        assert reached.statuses("tools/call write") == [401]
        await reached.call("write", key="k2", text="t")
        assert reached.one.lab.truth.writes == {"k2": 1}
        assert reached.one.lab.counts["refreshes_ok"] == 1


@ERAS
async def test_a_list_is_asked_again_also_without_a_challenge(tmp_path: Path, era: str) -> None:
    async with authorized(tmp_path, era=era) as reached:
        await reached.call(value="before")
        reached.one.lab.behave.challenge = "absent"
        reached.one.lab.revoke_access()
        assert b"whoami" in (await reached.listed()).body
        assert reached.one.lab.counts["refreshes_ok"] == 1


async def test_an_expired_token_is_renewed_before_anything_is_sent(tmp_path: Path) -> None:
    async with authorized(tmp_path) as reached:
        await reached.call(value="before")
        await reached.one.expire()
        reached.process.auth._known.look()
        await reached.call("write", key="k", text="t")
        assert reached.statuses("tools/call write") == [200]
        assert reached.one.lab.counts["refreshes_ok"] == 1


@ERAS
async def test_a_login_is_offered_at_once_and_the_call_after_the_click_goes_through(tmp_path: Path, era: str) -> None:
    async with authorized(tmp_path, era=era, signed_in=False, settings=OAuth()) as reached:
        fault = await reached.fault(value="x")
        assert (fault.slug, fault.verdict, fault.server) == ("login-needed", Verdict.WAIT, "srv")
        assert fault.authorize_url is not None
        assert fault.authorize_url in fault.message
        again = await reached.fault(value="x")
        assert again.authorize_url == fault.authorize_url
        assert (await click(fault.authorize_url)).landed
        await eventually(lambda: reached.process.auth.current())
        assert b"hello" in (await reached.call(value="hello")).body
        assert len(reached.process.browser) == 1


async def test_step_up_resends_after_the_click(tmp_path: Path) -> None:
    async with authorized(tmp_path, tool_scopes={"admin_write": "admin"}) as reached:
        fault = await reached.fault("admin_write", key="k", text="t")
        assert (fault.slug, fault.verdict) == ("insufficient-scope", Verdict.WAIT)
        assert reached.one.lab.truth.writes == {}
        assert (await click(fault.authorize_url or "")).landed
        async with asyncio.timeout(5):
            while "admin" not in reached.one.grant.scope:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
        await reached.call("admin_write", key="k", text="t")
        assert reached.one.lab.truth.writes == {"k": 1}


async def test_a_403_without_a_challenge_is_an_answer(tmp_path: Path) -> None:
    async with authorized(tmp_path) as reached:
        await reached.call(value="before")
        reached.one.lab.behave.forbid = True
        fault = await reached.fault("write", key="k", text="t")
        assert (fault.slug, fault.verdict) == ("forbidden", Verdict.OUTCOME_UNKNOWN)
        assert reached.statuses("tools/call write") == [403]
        assert not reached.process.browser
        assert reached.one.lab.counts["refreshes_ok"] == 0


@ERAS
async def test_calls_at_a_silent_authorization_server_are_answered_in_their_time(tmp_path: Path, era: str) -> None:
    async with authorized(tmp_path, era=era) as reached:
        await reached.call(value="before")
        await reached.one.expire()
        reached.process.auth._known.look()
        reached.one.lab.behave.as_silent = True
        started = time.monotonic()
        faults = await asyncio.gather(*(reached.fault("write", 1.0, key="k", text="t") for _ in range(10)))
        assert time.monotonic() - started < 3.0
        # The cause is told, not only that time ran out; and it is certain that nothing was sent.
        assert {(each.slug, each.verdict) for each in faults} == {("auth-unreachable", Verdict.WAIT)}
        assert reached.one.lab.truth.writes == {}
        await reached.one.lab.auth_listener.down()


async def test_a_session_that_opens_while_the_authorization_server_is_down_says_so(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        await one.lab.auth_listener.down()
        async with reaching(one) as reached:
            for _ in range(2):
                fault = await reached.fault("write", key="k", text="t")
                assert (fault.slug, fault.verdict) == ("auth-unreachable", Verdict.WAIT)
            await one.lab.auth_listener.up()
            await asyncio.sleep(QUICK.knock_seconds + 0.1)
            await reached.call("write", key="k", text="t")
            assert one.lab.truth.writes == {"k": 1}
            assert not reached.process.browser


@ERAS
async def test_a_write_whose_answer_is_lost_is_not_repeated_after_a_refresh(tmp_path: Path, era: str) -> None:
    async with authorized(tmp_path, era=era) as reached:
        await reached.call(value="before")
        reached.one.lab.revoke_access()
        reached.one.lab.mishap("call", "drop", times=1, only=("write",))
        fault = await reached.fault("write", key="k", text="t")
        assert fault.verdict is Verdict.OUTCOME_UNKNOWN
        assert reached.one.lab.truth.writes == {"k": 1}


async def test_a_caller_that_gives_up_while_a_credential_is_fetched_sends_nothing(tmp_path: Path) -> None:
    async with authorized(tmp_path) as reached:
        await reached.call(value="before")
        await reached.one.expire()
        reached.process.auth._known.look()
        reached.one.lab.mishap("token", "delay", seconds=0.5, times=1)
        caller = asyncio.ensure_future(reached.call("write", key="k", text="t"))
        await eventually(lambda: reached.one.lab.counts["refreshes_ok"])
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await reached.call("write", key="other", text="t")
        assert reached.one.lab.truth.writes == {"other": 1}
        assert reached.one.lab.counts["refreshes_ok"] == 1


@pytest.mark.parametrize("how", ["expired", "revoked"])
async def test_a_notification_is_told_with_a_good_token_too(tmp_path: Path, how: str) -> None:
    """It may be a person's answer to a question of the server, which came when the token of then was over."""
    async with authorized(tmp_path, era="legacy") as reached:
        await reached.call(value="before", caller=LEGACY_ANN)
        if how == "expired":
            await reached.one.expire()
            reached.process.auth._known.look()
        else:
            reached.one.lab.revoke_access()
        (session,) = reached.server.sessions.values()
        session.notify("notifications/roots/list_changed", None)
        await eventually(lambda: 202 in reached.statuses("notifications/roots/list_changed"))
        assert reached.statuses("notifications/roots/list_changed") == ([202] if how == "expired" else [401, 202])
        assert reached.one.lab.counts["refreshes_ok"] == 1


async def test_a_lost_legacy_session_and_a_revoked_token_at_once(tmp_path: Path) -> None:
    async with authorized(tmp_path, era="legacy") as reached:
        await reached.call(value="before", caller=LEGACY_ANN)
        reached.one.lab.revoke_access()
        reached.one.lab.forget_sessions()
        await reached.call("write", key="k", text="t", caller=LEGACY_ANN)
        assert reached.one.lab.truth.writes == {"k": 1}
        assert reached.one.lab.counts["refreshes_ok"] == 1


async def test_wrong_audience_is_told_to_the_caller(tmp_path: Path) -> None:
    async with authorized(tmp_path, wrong_audience="https://elsewhere.test/") as reached:
        fault = await reached.fault(value="x")
        assert (fault.slug, fault.verdict) == ("token-rejected", Verdict.NEVER_REACHED)
        assert "elsewhere.test" in fault.message


@ERAS
@pytest.mark.parametrize("clock", [1800.0, -1800.0])
async def test_clocks_half_an_hour_apart_cost_no_401(tmp_path: Path, era: str, clock: float) -> None:
    async with authorized(tmp_path, era=era, clock=clock, access_lifetime=900.0) as reached:
        for _ in range(3):
            await reached.call(value="x")
        await reached.one.expire()
        reached.process.auth._known.look()
        await reached.call(value="x")
        assert reached.one.lab.truth.statuses[401] == 0
        assert reached.one.lab.counts["refreshes_ok"] == 1
        assert (
            reached.one.log().count("clock-skew") == 1
        )  # by the refresh; what the other server's Date says is no news


@pytest.mark.parametrize("rs_date", [1800.0, -1800.0])
async def test_a_resource_server_with_a_wrong_date_costs_nothing(tmp_path: Path, rs_date: float) -> None:
    async with authorized(tmp_path, rs_date=rs_date, access_lifetime=900.0) as reached:
        for _ in range(4):
            await reached.call(value="x")
        assert reached.one.lab.truth.statuses[401] == 0
        assert reached.one.lab.counts["refreshes_ok"] == 0
        assert reached.one.log().count("clock-skew") == 1


# -- personal access tokens


@ERAS
async def test_a_personal_token_works_without_any_authorization_server(tmp_path: Path, era: str) -> None:
    async with machine(tmp_path, era=era, signed_in=False) as one:
        await one.lab.auth_listener.down()
        environ = {"PAT": one.lab.personal_token}
        async with reaching(one, token=TokenSource(env="PAT"), environ=environ) as reached:
            assert b"hello" in (await reached.call(value="hello")).body
            one.lab.behave.refuse_personal = True
            fault = await reached.fault("write", key="k", text="t")
            assert (fault.slug, fault.verdict, fault.http_status) == ("token-rejected", Verdict.NEVER_REACHED, 401)
            assert "variable PAT" in fault.message
            assert one.lab.personal_token not in fault.message
            assert reached.statuses("tools/call write") == [401]
        assert one.lab.counts["metadata_requests"] == one.lab.counts["resource_metadata_requests"] == 0
        assert not (tmp_path / "grants").exists()


async def test_a_personal_token_that_is_missing_sends_nothing(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False) as one, reaching(one, token=TokenSource(env="PAT")) as reached:
        fault = await reached.fault(value="x")
        assert (fault.slug, fault.verdict) == ("token-rejected", Verdict.NEVER_REACHED)
        assert not one.lab.truth.calls


# -- secrets


async def test_no_token_in_what_a_caller_sees(tmp_path: Path) -> None:
    async with authorized(tmp_path) as reached:
        await reached.call(value="before")
        seen: list[str] = []
        token = reached.one.grant.access_token or ""
        auth: Any = reached.process.auth
        challenge = f'Bearer error="invalid_token", error_description="bad {token}"'.encode()
        for status in (401, 403):
            for _ in range(3):
                try:
                    value = await auth.refused(f"Bearer {token}", status, {b"www-authenticate": challenge}, 20)
                except Exception as fault:
                    seen += [str(fault), repr(fault), repr(fault.__context__)]
                else:
                    token = value.removeprefix("Bearer ")
        reached.one.lab.kill_families()
        await reached.one.change(refusal=None)
        fault = await reached.fault("write", key=secrets.token_hex(4), text="t")
        seen += [fault.message, repr(fault), reached.one.log(), *reached.process.said, repr(reached.server)]
        for secret in reached.one.secrets():
            assert not any(secret in text for text in seen)
