"""Logins on another device (RFC 8628): one process asks, all say the same, and a successor goes on with the same code."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
import pytest
from tests.upstream.oauth.children import Died, child
from tests.upstream.oauth.logins import desk
from tests.upstream.oauth.scripted_as import ScriptedServer, scripted, until

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.upstream.oauth import device
from interlock.upstream.oauth.flow_note import read_note, read_snooze, write_note
from interlock.upstream.oauth.grant_store import GrantStore, grant_id

DEVICE = OAuth(flow="device")


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted() as made, asyncio.timeout(40):
        yield made


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has a second for each question here."""
    monkeypatch.setattr(device, "MIN_INTERVAL", 0.02)


def approve(server: ScriptedServer, state: str = "approved") -> None:
    """The person types the code in, somewhere else."""
    (code,) = [code for code, now in server.device_codes.items() if now == "pending"]
    server.device_codes[code] = state


async def test_the_code_and_address_are_shown_and_a_yes_makes_the_grant(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server, settings=DEVICE) as one:
        offer = await one.offer(scope=("a", "b"))
        assert (offer.url, offer.user_code, offer.mine) == (f"{server.root}/go?user_code=WDJB-MJHT", "WDJB-MJHT", True)
        assert 590 < offer.expires_at - time.time() <= 600
        assert server.device_requests == [{"client_id": "client-1", "resource": f"{server.root}/mcp", "scope": "a b"}]
        assert one.opened == []  # it is for a machine with nobody in front of it
        assert one.logins.open()
        await until(lambda: len(server.token_requests) >= 2)
        assert one.grant() is None
        approve(server)
        await until(lambda: one.grant() is not None)
        grant = one.grant()
        assert grant is not None
        assert (grant.scope, grant.resource) == (("a", "b"), f"{server.root}/mcp")
        await until(lambda: not one.logins.open())
        assert one.granted == [(one.id, grant)]
        assert read_note(one.root, one.id) is None
        assert server.token_requests[0]["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code"
        assert {request["resource"] for request in server.token_requests} == {f"{server.root}/mcp"}
        for secret in (*server.device_codes, grant.access_token, "WDJB-MJHT"):
            assert secret
            assert secret not in one.log()


async def test_all_processes_say_the_same_and_one_asks(tmp_path: Path, server: ScriptedServer) -> None:
    server.device_interval = 0.2
    async with AsyncExitStack() as stack:
        desks = [await stack.enter_async_context(desk(tmp_path, server, settings=DEVICE)) for _ in range(5)]
        offered = await asyncio.gather(*(each.offer() for each in desks for _ in range(2)))
        assert {(offer.url, offer.user_code) for offer in offered} == {(offered[0].url, "WDJB-MJHT")}
        assert sum(each.logins.open() for each in desks) == 1
        assert len(server.device_requests) == 1
        started, asked_before = time.monotonic(), len(server.token_requests)
        await asyncio.sleep(1.0)
        asked = len(server.token_requests) - asked_before
        assert asked <= (time.monotonic() - started) / 0.2 + 1  # the pace of one, not of five
        approve(server)
        await until(lambda: desks[0].grant() is not None)
        assert server.grants == 1


async def test_a_successor_goes_on_with_the_same_code(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "_HEIR_SECONDS", 0.05)
    async with desk(tmp_path, server, settings=DEVICE) as two:
        async with desk(tmp_path, server, settings=DEVICE) as one:
            first = await one.offer()
            assert (await two.offer()).mine is False
        await until(two.logins.open)  # without being called
        assert (await two.offer()).url == first.url
        approve(server)
        await until(lambda: two.grant() is not None)
        assert (len(server.device_requests), server.grants) == (1, 1)


async def test_the_next_call_goes_on_where_nobody_stood_by(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server, settings=DEVICE) as one:
        first = await one.offer()
    approve(server)
    async with desk(tmp_path, server, settings=DEVICE) as two:
        again = await two.offer()
        assert (again.url, again.user_code, again.mine) == (first.url, first.user_code, True)
        await until(lambda: two.grant() is not None)
        assert len(server.device_requests) == 1


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (1e-9, 1.0),
        (0, 5.0),
        (-1, 5.0),
        ("0.001", 5.0),
        ("7", 7.0),
        (2.5, 2.5),
        (3600, 60.0),
        (float("1e300"), 5.0),
    ],
)
async def test_the_interval_stays_within_reason(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, named: float | str, expected: float
) -> None:
    """RFC 8628 section 3.5: a server that names next to nothing is not asked a thousand times a second."""
    monkeypatch.setattr(device, "MIN_INTERVAL", 1.0)
    server.device_interval = named
    async with desk(tmp_path, server, settings=DEVICE) as one:
        await one.offer()
        note = read_note(one.root, one.id)
        assert note is not None
        assert note.interval == expected
        assert device._interval(msgspec.structs.replace(note, interval=1e-9)) == 1.0
        await asyncio.sleep(0.3)
        assert server.token_requests == []


async def test_slow_down_is_obeyed_and_remembered(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "SLOWER_BY", 0.3)
    server.token_answers = [(400, {"error": "slow_down"}), (400, {"error": "slow_down"})]
    async with desk(tmp_path, server, settings=DEVICE) as one:
        await one.offer()
        await until(lambda: len(server.token_requests) == 2)
        await until(lambda: (note := read_note(one.root, one.id)) is not None and (note.interval or 0) > 0.6)
        note = read_note(one.root, one.id)
        assert note is not None
        assert note.interval == pytest.approx(0.65)


@pytest.mark.parametrize(
    ("error", "words"),
    [("denied", "access_denied"), ("expired_token", "expired_token"), ("invalid_grant", "invalid_grant")],
)
async def test_an_end_without_a_grant_begins_the_pause(
    tmp_path: Path, server: ScriptedServer, error: str, words: str
) -> None:
    async with desk(tmp_path, server, settings=DEVICE) as one:
        await one.offer()
        approve(server, error)
        await until(lambda: not one.logins.open())
        assert words in one.log()
        pause = await one.offer()
        assert pause.url == ""
        assert pause.snoozed_until is not None
        assert (await one.offer(by_hand=True)).url
        assert len(server.device_requests) == 2


async def test_a_code_that_expires_unused_begins_the_pause(tmp_path: Path, server: ScriptedServer) -> None:
    server.device_expires = 0.3
    async with desk(tmp_path, server, settings=DEVICE) as one:
        await one.offer()
        await until(lambda: not one.logins.open())
        assert (await one.offer()).snoozed_until is not None


async def test_an_expired_code_of_a_dead_process_begins_the_pause_too(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server, settings=DEVICE) as one:
        await one.offer()
        note = read_note(one.root, one.id)
    assert note is not None
    write_note(tmp_path / "grants", one.id, msgspec.structs.replace(note, expires_at=time.time() - 1))
    async with desk(tmp_path, server, settings=DEVICE) as two:
        assert (await two.offer()).snoozed_until is not None


async def test_an_outage_is_waited_out(tmp_path: Path, server: ScriptedServer) -> None:
    server.token_answers = [(503, {}), None, (500, {"error": "server_error"})]
    async with desk(tmp_path, server, settings=DEVICE) as one:
        await one.offer()
        approve(server)
        await until(lambda: one.grant() is not None)
        assert len(server.token_requests) == 4


async def test_a_lost_answer_does_not_begin_a_pause(tmp_path: Path, server: ScriptedServer) -> None:
    """The person has done their part: the next call offers a login at once."""
    server.cut_after_applying = 1
    async with desk(tmp_path, server, settings=DEVICE) as one:
        first = await one.offer()
        approve(server)
        await until(lambda: not one.logins.open())
        assert read_snooze(one.root, one.id) is None
        second = await one.offer()
        assert (second.url, len(server.device_requests)) == (first.url, 2)


async def test_a_removed_note_ends_the_asking_in_silence(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server, settings=DEVICE) as one:
        await one.offer()
        (one.root / f"{one.id}.flow.json").unlink()
        await until(lambda: not one.logins.open())
        assert read_note(one.root, one.id) is None
        asked = len(server.token_requests)
        await asyncio.sleep(0.3)
        assert len(server.token_requests) == asked


@pytest.mark.parametrize(
    ("changes", "slug"),
    [({"device_authorization_endpoint": None}, "auth-misconfigured"), ({"token_endpoint": None}, "auth-misconfigured")],
)
async def test_a_server_without_it_is_told(
    tmp_path: Path, server: ScriptedServer, changes: dict[str, object], slug: str
) -> None:
    async with desk(tmp_path, server, settings=DEVICE) as one:
        with pytest.raises(Fault) as caught:
            await one.logins.offer(one.id, server.found(**changes), DEVICE, {}, scope=(), seconds=5)
        assert caught.value.slug == slug


@pytest.mark.parametrize("address", ["javascript:alert(1)", "http://elsewhere.test/go", "https://user@a.test/"])
async def test_an_address_not_to_open_is_refused(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    async def answer(path: str, body: bytes) -> tuple[int, dict[str, object]]:
        value: dict[str, object] = {"device_code": "d", "user_code": "u", "verification_uri": address, "expires_in": 60}
        return 200, value | {"client_id": "c"}

    monkeypatch.setattr(server, "answer", answer)
    async with desk(tmp_path, server, settings=DEVICE) as one:
        with pytest.raises(Fault, match="not one to open"):
            await one.offer()
        assert read_note(one.root, one.id) is None


# -- real processes


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("step", ["noted", "polling", "presenting"])
async def test_killed_and_gone_on_with(tmp_path: Path, server: ScriptedServer, step: str) -> None:
    async with child(tmp_path, server, flow="device") as two:
        async with child(tmp_path, server, flow="device", die_at=step) as one:
            try:
                first = await one.offer()
                await one.answer()
            except Died:
                first = {}
        again = await two.offer()
        assert again["mine"] is True
        assert again["user_code"] == "WDJB-MJHT"
        assert first.get("url", again["url"]) == again["url"]
        assert len(server.device_requests) == 1
        approve(server)
        id = grant_id(f"{server.root}/mcp", server.root, None)
        await until(lambda: GrantStore(tmp_path).read(id) is not None)
        assert server.grants == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
async def test_a_process_that_stood_by_goes_on_by_itself(tmp_path: Path, server: ScriptedServer) -> None:
    async with child(tmp_path, server, flow="device") as one, child(tmp_path, server, flow="device") as two:
        assert (await one.offer())["mine"] is True
        assert (await two.offer())["mine"] is False
        await one.kill()
        approve(server)
        id = grant_id(f"{server.root}/mcp", server.root, None)
        await until(lambda: GrantStore(tmp_path).read(id) is not None)
        assert (len(server.device_requests), server.grants) == (1, 1)
