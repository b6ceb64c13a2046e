"""Client credentials against the lab: one token for all processes, outages, wrong secrets, and nobody to sign in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.upstream.oauth.machine import QUICK, Machine, Process, fault_of, machine

from interlock.manifest.config import OAuth
from interlock.model.verdict import Verdict
from interlock.upstream.oauth.grant_store import grant_id


@asynccontextmanager
async def machines(home: Path, secret: str | None = None, **behave: object) -> AsyncIterator[Machine]:
    async with machine(home, signed_in=False, **behave) as one:
        one.settings = OAuth(
            flow="client-credentials", client_id=one.lab.clients.machine, client_secret_env="SECRET", scopes=("mcp",)
        )
        one.id = grant_id(one.lab.url, one.lab.issuer, one.lab.clients.machine)
        yield one


def process(one: Machine, secret: str | None = None) -> Process:
    made = one.process()
    made.shared.environ = {"SECRET": one.lab.clients.machine_secret if secret is None else secret}
    return made


async def first(each: Process) -> str:
    return await each.after_401("", "Bearer")


async def test_one_token_for_all_callers_of_all_processes(tmp_path: Path) -> None:
    async with machines(tmp_path) as one:
        all = [process(one) for _ in range(5)]
        values = await asyncio.gather(*(first(each) for each in all for _ in range(3)))
        assert len(set(values)) == 1
        assert one.lab.families.refusal(values[0].removeprefix("Bearer ")) is None
        assert one.lab.counts["client_credentials_ok"] == 1
        form = one.lab.truth.token_forms[-1]
        assert (form["resource"], form["scope"]) == (one.lab.url, "mcp")
        assert one.grant.refresh_token is None


async def test_expired_and_revoked_tokens_are_replaced_once(tmp_path: Path) -> None:
    async with machines(tmp_path) as one:
        each = process(one)
        old = await first(each)
        await one.change(expires_at=time.time() - 5)
        values = await asyncio.gather(*(each.auth.ready(20) for _ in range(5)))
        assert set(values) != {old}
        assert len(set(values)) == 1
        one.lab.revoke_access()
        values = await asyncio.gather(*(each.after_401(values[0]) for _ in range(5)))
        assert one.lab.families.refusal(values[0].removeprefix("Bearer ")) is None
        assert one.lab.counts["client_credentials_ok"] == 3


async def test_a_server_that_refuses_every_token_is_not_given_one_after_the_other(tmp_path: Path) -> None:
    async with machines(tmp_path) as one:
        one.timing = replace(QUICK, knock_seconds=30.0)
        each = process(one)
        one.lab.behave.refuse_access = True
        used = await each.after_401(await first(each))
        for _ in range(4):
            assert (await fault_of(each.after_401(used))).slug == "token-rejected"
        assert one.lab.counts["client_credentials_ok"] == 2


@pytest.mark.parametrize(("kind", "more"), [("status", {}), ("garbage", {}), ("drop", {"applied": False})])
async def test_an_outage_is_waited_for(tmp_path: Path, kind: str, more: dict[str, object]) -> None:
    async with machines(tmp_path) as one:
        one.lab.mishap("token", kind, **more)  # type: ignore[arg-type]
        each = process(one)
        for _ in range(3):
            fault = await fault_of(first(each))
            assert (fault.slug, fault.verdict) == ("auth-unreachable", Verdict.WAIT)
        one.lab.behave.mishaps.clear()
        await asyncio.sleep(QUICK.knock_seconds + 0.1)
        assert await each.auth.ready(20)


async def test_a_wrong_secret_is_named_tried_once_and_never_shown(tmp_path: Path) -> None:
    async with machines(tmp_path) as one:
        one.timing = replace(QUICK, knock_seconds=30.0)
        each = process(one, "wrong-secret-of-nobody")
        for _ in range(5):
            fault = await fault_of(first(each))
            assert (fault.slug, fault.verdict, fault.authorize_url) == (
                "auth-misconfigured",
                Verdict.NEVER_REACHED,
                None,
            )
            assert "invalid_client" in fault.message
            assert "wrong-secret" not in fault.message
        assert one.lab.truth.token_requests["client_credentials"] == 1
        assert "wrong-secret" not in one.log()
        assert not each.browser


async def test_no_secret_at_all_is_a_matter_of_settings(tmp_path: Path) -> None:
    async with machines(tmp_path) as one:
        fault = await fault_of(first(process(one, "")))
        assert fault.slug == "auth-misconfigured"
        assert "SECRET" in fault.message


async def test_a_token_that_is_good_later_is_waited_for(tmp_path: Path) -> None:
    async with machines(tmp_path, access_nbf=30.0) as one:
        each = process(one)
        for _ in range(3):
            fault = await fault_of(first(each))
            assert (fault.slug, fault.verdict) == ("grant-refused", Verdict.WAIT)
        assert one.lab.counts["client_credentials_ok"] == 1


async def test_a_client_that_registers_itself_does_so_once_and_again_when_it_was_forgotten(tmp_path: Path) -> None:
    async with machine(tmp_path, signed_in=False, client_auth="client_secret_basic") as one:
        one.settings = OAuth(flow="client-credentials")
        one.id = grant_id(one.lab.url, one.lab.issuer, None)
        each = one.process()
        await first(each)
        await one.expire()
        await each.auth.ready(20)
        assert one.lab.counts["registrations"] == 1
        one.lab.forget_clients()
        await one.expire()
        assert (await fault_of(each.auth.ready(20))).slug == "auth-misconfigured"
        await asyncio.sleep(QUICK.knock_seconds + 0.1)
        assert await each.auth.ready(20)
        assert one.lab.counts["registrations"] == 2


@pytest.mark.parametrize("clock", [1800.0, -1800.0])
async def test_clocks_half_an_hour_apart(tmp_path: Path, clock: float) -> None:
    async with machines(tmp_path, clock=clock, access_lifetime=600.0) as one:
        each = process(one)
        value = await first(each)
        assert await each.value() == value
        assert one.grant.skew == pytest.approx(clock, abs=3)
        assert one.lab.counts["client_credentials_ok"] == 1
        assert "clock-skew" in one.log()
        for secret in (*one.secrets(), one.lab.clients.machine_secret):
            assert secret not in one.log()
