"""The authorization of one server: challenges, step-up, a server that moves, and logins of other processes."""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.oauth.clicker import click
from tests.upstream.oauth.machine import PATIENT, QUICK, Machine, Process, become, fault_of, machine

from interlock.lab.auth import AuthLab
from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.model.verdict import Verdict
from interlock.upstream.oauth import authorizer, renewals, step_ups


def challenge(one: Machine, extra: str = "") -> str:
    where = one.lab.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    return f'Bearer error="invalid_token", resource_metadata="{where}"{extra}'


async def forbidden(process: Process, used: str, scope: str) -> str:
    headers = {b"www-authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'.encode()}
    return await process.auth.refused(used, 403, headers, 20)


async def signed_in_by_click(fault_url: str | None) -> None:
    assert fault_url is not None
    seen = await click(fault_url)
    assert seen.landed, (seen.status, seen.page, seen.refused)


# -- the first time


async def test_nothing_known_sends_nothing_then_the_challenge_leads_to_one_login(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False, settings=OAuth()) as one:
        process, other = one.process(), one.process()
        assert process.auth.current() == ""
        faults = await asyncio.gather(
            *(fault_of(each.after_401("", challenge(one))) for each in (process, other) for _ in range(4))
        )
        assert {(each.slug, each.verdict) for each in faults} == {("login-needed", Verdict.WAIT)}
        assert len({each.authorize_url for each in faults}) == 1
        assert len(process.browser) + len(other.browser) == 1
        assert one.lab.counts["registrations"] == 1
        await signed_in_by_click(faults[0].authorize_url)
        await become(lambda: process.auth.current() and other.auth.current())
        assert process.auth.current() == other.auth.current()
        assert one.lab.counts["authorize_requests"] == one.lab.counts["logins_finished"] == 1


async def test_available_is_called_once_the_click_has_landed_anywhere(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False, settings=OAuth()) as one:
        process, other = one.process(), one.process()
        fault = await fault_of(process.after_401("", challenge(one)))
        await fault_of(other.after_401("", challenge(one)))
        told: list[str] = []
        process.auth.available = lambda: told.append("owner")
        other.auth.available = lambda: told.append("follower")
        await signed_in_by_click(fault.authorize_url)
        await become(lambda: len(told) == 2)
        assert sorted(told) == ["follower", "owner"]


async def test_a_login_of_another_process_is_seen_by_a_running_one(tmp_path: Path) -> None:
    """Report 8."""
    async with machine(tmp_path) as one:
        process = one.process()
        old = process.auth.current()
        one.lab.kill_families()
        await one.sign_in()
        await become(lambda: process.auth.current() not in (None, old), 2)
        assert process.auth.current() == f"Bearer {one.grant.access_token}"
        assert one.lab.counts["refreshes_ok"] == 0


async def test_a_logout_of_another_process_is_seen(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        process = one.process()
        assert process.auth.current()
        assert one.store.forget(one.id)
        await become(lambda: process.auth.current() is None, 2)
        assert (await fault_of(process.auth.ready(20))).slug == "login-needed"


# -- outages on the way to a login


async def test_no_login_is_offered_while_the_authorization_server_is_down(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False, settings=OAuth()) as one:
        await one.lab.auth_listener.down()
        process = one.process()
        fault = await fault_of(process.after_401("", challenge(one)))
        assert (fault.slug, fault.verdict, fault.authorize_url) == ("auth-unreachable", Verdict.WAIT, None)
        assert not process.browser
        await one.lab.auth_listener.up()
        await asyncio.sleep(QUICK.knock_seconds + 0.1)
        assert (await fault_of(process.after_401("", challenge(one)))).slug == "login-needed"


async def test_a_server_that_is_gone_was_never_reached_and_no_grant_is_spoken_of(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False, settings=OAuth()) as one:
        await fault_of(one.process().after_401("", challenge(one)))  # what was discovered stays on disk
        later = one.process()
        assert later.auth.current() is None
        await one.lab.mcp_listener.down()
        fault = await fault_of(later.auth.ready(PATIENT))
        assert (fault.slug, fault.verdict, fault.wait_seconds) == ("unreachable", Verdict.NEVER_REACHED, None)
        assert "nothing listens at 127.0.0.1:" in fault.message
        assert "grant" not in fault.message
        await one.lab.mcp_listener.up()
        assert (await fault_of(later.auth.ready(PATIENT))).slug == "login-needed"  # at once: no brake for that


@pytest.mark.parametrize("signed_in", [True, False])
async def test_a_grant_is_kept_only_where_there_is_one(tmp_path: Path, signed_in: bool) -> None:
    async with machine(tmp_path, signed_in=signed_in, settings=OAuth()) as one:
        await one.lab.auth_listener.down()
        process = one.process()
        used = process.auth.current() or ""
        assert bool(used) is signed_in
        fault = await fault_of(process.after_401(used, challenge(one)))
        assert (fault.slug, "the grant is kept" in fault.message) == ("auth-unreachable", signed_in)


async def test_the_address_of_a_sign_in_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False, settings=OAuth()) as one:
        fault = await fault_of(one.process().after_401("", challenge(one)))
        assert fault.authorize_url
        assert fault.message.splitlines()[1] == f"  {fault.authorize_url}"


async def test_one_deadline_over_discovery_too(tmp_path: Path) -> None:
    """Report 11."""
    async with machine(tmp_path, signed_in=False, settings=OAuth()) as one:
        one.lab.behave.as_silent = True
        process = one.process()
        started = time.monotonic()
        faults = await asyncio.gather(
            *(fault_of(process.after_401("", challenge(one), seconds=1.0)) for _ in range(10))
        )
        assert {(each.slug, each.verdict) for each in faults} == {("auth-unreachable", Verdict.WAIT)}
        assert time.monotonic() - started < 2.5


async def test_the_brake_makes_a_fault_of_its_own_for_each_caller(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False, settings=OAuth()) as one:
        await one.lab.auth_listener.down()
        process = one.process()
        first, second = [await fault_of(process.after_401("", challenge(one))) for _ in range(2)]
        assert first is not second
        assert first.message == second.message


# -- 401


async def test_a_token_without_a_challenge_is_doubted_and_the_next_call_gets_another(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        process = one.process()
        used = process.auth.current()
        assert used
        one.lab.revoke_access()
        process.auth.doubted(used)
        assert process.auth.current() is None
        value = await process.auth.ready(20)
        assert value != used
        assert one.lab.families.refusal(value.removeprefix("Bearer ")) is None
        assert one.lab.counts["refreshes_ok"] == 1


async def test_a_server_that_takes_no_token_is_told_as_such_and_costs_few_refreshes(tmp_path: Path) -> None:
    async with machine(tmp_path, timing=replace(QUICK, knock_seconds=30.0)) as one:
        process = one.process()
        one.lab.behave.refuse_access = True
        used = await process.value()
        used = await process.after_401(used, challenge(one))
        for _ in range(5):
            fault = await fault_of(process.after_401(used, challenge(one, ', error_description="because"')))
            assert (fault.slug, fault.verdict, fault.http_status) == ("token-rejected", Verdict.NEVER_REACHED, 401)
            assert "because" in fault.message
            assert await process.auth.ready(20) == used  # the next call may try it again
        assert one.lab.counts["refreshes_ok"] == 1
        one.lab.behave.refuse_access = False
        assert process.auth.current() == used


async def test_a_refresh_that_nobody_waited_for_does_not_make_a_token_seem_hopeless(tmp_path: Path) -> None:
    async with machine(tmp_path, timing=replace(QUICK, knock_seconds=30.0)) as one:
        process = one.process()
        await process.auth._renew_ahead(one.grant)
        assert one.lab.counts["refreshes_ok"] == 1
        process.auth._known.look()
        used = await process.value()
        one.lab.revoke_access()
        value = await process.after_401(used, challenge(one))
        assert value != used
        assert one.lab.counts["refreshes_ok"] == 2


async def test_a_wrong_audience_is_diagnosed(tmp_path: Path) -> None:
    async with machine(tmp_path, wrong_audience="https://elsewhere.test/api") as one:
        process = one.process()
        used = await process.after_401(await process.value(), challenge(one))
        fault = await fault_of(process.after_401(used, challenge(one)))
        assert fault.slug == "token-rejected"
        assert "https://elsewhere.test/api" in fault.message
        assert one.lab.url in fault.message
        assert not process.browser


# -- a server that moves to another authorization server


@pytest.mark.parametrize("old", ["there", "gone"])
async def test_migration_registers_anew_and_leaves_the_old_grant_alone(
    tmp_path: Path, old: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with machine(tmp_path, settings=OAuth()) as one, AuthLab() as new:
        before = one.grant
        # The new issuer gives tokens for the same resource; the resource server trusts it alone.
        one.lab.behave.authorization_servers = (new.issuer,)
        new.behave.resource = one.lab.url
        one.lab.resource._verifier = new.families
        new.families._resource = one.lab.url
        if old == "gone":
            await one.lab.auth_listener.down()
        process = one.process()
        used = await process.value()
        fault = None
        for _ in range(3):  # a token of the old one may be fetched first
            try:
                used = await process.after_401(used, challenge(one))
            except Exception as error:
                fault = error
                break
        assert fault is not None
        assert getattr(fault, "slug", None) == "login-needed", fault
        url = fault.authorize_url  # type: ignore[attr-defined]
        assert url.startswith(new.issuer)
        assert f"now names another authorization server, {new.issuer}" in str(fault)
        assert f"from {one.lab.issuer} is of no use there" in str(fault)
        await signed_in_by_click(url)
        await become(process.auth.current)
        value = process.auth.current() or ""
        assert new.families.refusal(value.removeprefix("Bearer ")) is None
        assert new.counts["registrations"] == 1
        kept = one.grant
        assert (kept.issuer, kept.registration) == (before.issuer, before.registration)
        assert kept.refresh_token is not None
        assert one.store.registration(one.lab.issuer, None) == before.registration


async def test_a_grant_that_is_there_for_the_new_issuer_is_renewed_before_anybody_logs_in(tmp_path: Path) -> None:
    """Report 5: refresh before login."""
    async with machine(tmp_path) as one:
        process = one.process()
        # The old place is dead; what this machine has for the true place is over but can be renewed.
        stale = msgspec.structs.replace(one.found, issuer="http://127.0.0.1:9")
        process.auth._known.settle(stale)
        await one.expire()
        value = await process.auth.ready(20)
        assert value == f"Bearer {one.grant.access_token}"
        assert one.lab.counts["refreshes_ok"] == 1
        assert not process.browser


async def test_a_token_endpoint_that_has_moved_is_found_again(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        await one.expire()
        metadata = msgspec.structs.replace(one.found.metadata, token_endpoint=f"{one.lab.issuer}/old/token")
        one.store.remember(msgspec.structs.replace(one.found, metadata=metadata))
        process = one.process()
        try:
            value = await process.auth.ready(20)
        except Exception:  # the brake of the first knock may have to pass
            await asyncio.sleep(QUICK.knock_seconds + 0.1)
            value = await process.auth.ready(20)
        assert value == f"Bearer {one.grant.access_token}"
        assert one.lab.counts["refreshes_ok"] == 1


# -- 403


async def test_step_up_asks_for_the_union_and_goes_through_after_the_click(tmp_path: Path) -> None:
    async with machine(tmp_path, tool_scopes={"admin_write": "admin"}) as one:
        process = one.process()
        used = await process.value()
        fault = await fault_of(forbidden(process, used, "admin"))
        assert (fault.slug, fault.verdict) == ("insufficient-scope", Verdict.WAIT)
        assert "admin" in fault.message
        await signed_in_by_click(fault.authorize_url)
        await become(lambda: process.auth.current() not in (None, used))
        assert set(one.lab.truth.authorize_queries[-1]["scope"].split()) == {"mcp", "admin"}
        assert set(one.grant.scope) == {"mcp", "admin"}


async def test_step_up_ends_after_a_few_logins(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        process = one.process()
        offered = 0
        for _ in range(step_ups.MAX_STEP_UPS + 2):
            used = await process.value()
            for _ in range(6):  # many calls cost no more than one
                fault = await fault_of(forbidden(process, used, "admin"))
            if fault.authorize_url is None:
                break
            offered += 1
            await signed_in_by_click(fault.authorize_url)
            await become(lambda used=used: process.auth.current() not in (None, used))  # type: ignore[misc]
        assert offered == step_ups.MAX_STEP_UPS
        assert (fault.slug, fault.verdict, fault.retry) == ("insufficient-scope", Verdict.NEVER_REACHED, "never")
        assert "which was granted" in fault.message


async def test_refreshes_between_do_not_use_up_the_step_ups(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        process = one.process()
        for _ in range(step_ups.MAX_STEP_UPS + 2):
            await one.expire()
            used = await process.auth.ready(20)
            fault = await fault_of(forbidden(process, used, "admin"))
            assert fault.authorize_url is not None


async def test_a_machine_client_widens_its_scope_without_a_person(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False) as one:
        one.settings = OAuth(flow="client-credentials", client_id=one.lab.clients.machine, client_secret_env="SECRET")
        process = one.process()
        process.shared.environ = {"SECRET": one.lab.clients.machine_secret}
        used = await process.after_401("", challenge(one))
        value = await forbidden(process, used, "admin")
        assert value != used
        known = one.lab.families.holder(value.removeprefix("Bearer "))
        assert known is not None
        assert set(known.scope) == {"mcp", "admin"}
        assert not process.browser


async def test_a_server_that_wants_other_scopes_each_time_gets_three_offers_and_one_tab(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        process, other = one.process(), one.process()
        used = await process.value()
        faults = [await fault_of(forbidden((process, other)[number % 2], used, f"s{number}")) for number in range(12)]
        urls = {fault.authorize_url for fault in faults if fault.authorize_url is not None}
        assert 1 <= len(urls) <= QUICK.step_ups
        assert len(process.browser) + len(other.browser) == 1
        for fault in faults[QUICK.step_ups :]:
            assert (fault.slug, fault.verdict, fault.authorize_url) == ("insufficient-scope", Verdict.WAIT, None)
            assert fault.wait_seconds is not None
            assert QUICK.step_up_seconds - 60 < fault.wait_seconds <= QUICK.step_up_seconds
        # What was asked before is still offered, and nothing that came after the limit is in the address.
        again = await fault_of(forbidden(process, used, "s0"))
        assert again.authorize_url in urls
        assert "s5" not in again.authorize_url
        assert len(process.browser) + len(other.browser) == 1


async def test_a_machine_client_is_not_widened_without_end(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False) as one:
        one.settings = OAuth(flow="client-credentials", client_id=one.lab.clients.machine, client_secret_env="SECRET")
        process = one.process()
        process.shared.environ = {"SECRET": one.lab.clients.machine_secret}
        used = await process.after_401("", challenge(one))
        for number in range(12):
            try:
                used = await forbidden(process, used, f"s{number}")
            except Fault as fault:
                last = fault
        assert (last.slug, last.verdict) == ("insufficient-scope", Verdict.WAIT)
        assert last.wait_seconds is not None
        assert one.lab.truth.token_requests["client_credentials"] <= 1 + QUICK.step_ups


async def test_a_token_as_a_scope_goes_nowhere(tmp_path: Path) -> None:
    async with machine(tmp_path) as one:
        process = one.process()
        used = await process.value()
        token = used.removeprefix("Bearer ")
        fault = await fault_of(forbidden(process, used, f"{token} admin"))
        assert fault.authorize_url is not None
        assert token not in fault.authorize_url
        assert token not in fault.message
        assert "admin" in fault.authorize_url
        for file in (tmp_path / "grants").glob("*.flow.json"):
            assert token not in file.read_text()


async def test_resource_metadata_that_cannot_be_read_says_how_long_to_wait(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False, settings=OAuth()) as one:
        one.lab.mishap("resource-metadata", "status", status=503)
        process = one.process()
        for _ in range(2):
            fault = await fault_of(process.after_401("", challenge(one)))
            assert (fault.slug, fault.verdict) == ("auth-unreachable", Verdict.WAIT)
            assert fault.wait_seconds is not None
            assert fault.wait_seconds >= 1.0


async def test_a_registration_that_hangs_is_not_begun_again_by_the_next_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discovery and registration have one time together, and a second request of the same call does not double it."""
    monkeypatch.setattr(authorizer, "TOGETHER_SECONDS", 1.5)
    async with machine(tmp_path, signed_in=False, settings=OAuth(), timing=replace(QUICK, knock_seconds=30.0)) as one:
        one.lab.mishap("register", "silent")
        process = one.process()
        started = time.monotonic()
        for _ in range(3):
            fault = await fault_of(process.after_401("", challenge(one)))
            assert (fault.slug, fault.verdict) == ("auth-unreachable", Verdict.WAIT)
            assert fault.wait_seconds is not None
        assert time.monotonic() - started < 5.0


async def test_a_token_whose_time_is_far_off_is_tried_once_in_the_knock_interval(tmp_path: Path) -> None:
    """Promise 37: some clock is wrong, perhaps the one that made it."""
    async with machine(
        tmp_path, access_nbf=86400.0, access_lifetime=200000.0, timing=replace(QUICK, knock_seconds=1.0)
    ) as one:
        await one.expire()
        process = one.process()
        used = await process.auth.ready(20)
        assert used == f"Bearer {one.grant.access_token}"
        for _ in range(3):
            held = await fault_of(process.auth.ready(20))
            assert (held.slug, held.verdict) == ("grant-refused", Verdict.WAIT)
            assert held.wait_seconds == 1.0
        refused = await fault_of(process.after_401(used))
        assert (refused.slug, refused.verdict) == ("grant-refused", Verdict.WAIT)
        assert one.lab.counts["refreshes_ok"] == 1
        await asyncio.sleep(1.05)
        assert await process.auth.ready(20) == used
        process.auth.accepted(used)  # the server takes it: no more waiting
        for _ in range(3):
            assert await process.auth.ready(20) == used
        assert one.lab.counts["refreshes_ok"] == 1
        assert not process.browser


async def test_who_leaves_waits_for_a_token_that_has_left_and_for_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unseen.append(context))
    monkeypatch.setattr(renewals, "PARTING_SECONDS", 0.5)
    async with machine(tmp_path) as one:
        await one.expire()
        one.lab.mishap("token", "silent")
        process = one.process()
        call = asyncio.create_task(fault_of(process.auth.ready(20)))
        await become(lambda: one.grant.state == "spent")
        started = time.monotonic()
        await process.auth.close()
        assert 0.4 < time.monotonic() - started < 3.0
        assert (await call).slug == "draining"
        assert (await fault_of(process.auth.ready(20))).slug == "draining"
        assert one.grant.state == "spent"
    async with machine(tmp_path / "other", signed_in=False) as one:
        one.settings = OAuth(flow="client-credentials", client_id=one.lab.clients.machine, client_secret_env="SECRET")
        process = one.process()
        process.shared.environ = {"SECRET": one.lab.clients.machine_secret}
        one.lab.mishap("token", "silent")
        call = asyncio.create_task(fault_of(process.after_401("", challenge(one))))
        await become(lambda: bool(process.auth._renewals._open))
        started = time.monotonic()
        await process.auth.close()
        assert time.monotonic() - started < 0.4
        assert (await call).slug == "draining"
    gc.collect()
    assert unseen == []
