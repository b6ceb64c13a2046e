"""Many bridges and one grant of a real authorization server, which rotates refresh tokens and punishes reuse."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from tests.conformance import programs
from tests.oauth.clicker import click
from tests.oauth.oidc import OidcLab, oidc_lab

from interlock.lab.auth import AuthLab

from . import bridges
from .person import Visit
from .stage import Stage

ACCESS_SECONDS = 4


@pytest.fixture
async def oidc() -> AsyncIterator[OidcLab]:
    try:
        async with oidc_lab(access_seconds=ACCESS_SECONDS) as lab:
            yield lab
    except programs.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
async def machine(oidc: OidcLab, tmp_path: Any) -> AsyncIterator[Stage]:
    made = Stage(bridges.Interlock(), cast(AuthLab, oidc), tmp_path, visit=_visit)
    made.home.mkdir(mode=0o700)
    made.browser.install()
    try:
        yield made
    finally:
        await made.end_all()


def _visit(url: str) -> Visit:
    seen = asyncio.run(click(url))
    return Visit("landed" if seen.landed else "rejected", seen.status, page=seen.page)


@pytest.mark.parametrize("processes", [5])
async def test_one_refresh_when_the_token_ran_out_at_rest(oidc: OidcLab, machine: Stage, processes: int) -> None:
    await machine.sign_in()
    signed_in = time.monotonic()
    before = await oidc.counts()
    machine.begin()
    await asyncio.sleep(max(0.0, signed_in + ACCESS_SECONDS + 1 - time.monotonic()))
    await machine.start(processes)
    replies = await machine.echo()
    after = await oidc.counts()
    assert [reply.text for reply in replies] == ["x"] * processes
    assert after["refreshes_ok"] - before["refreshes_ok"] == 1
    assert (after["refreshes_refused"], after["reuse_detected"], after["grants_revoked"]) == (0, 0, 0)
    assert list(machine.urls) == []
    assert after["authorize_requests"] == before["authorize_requests"]
