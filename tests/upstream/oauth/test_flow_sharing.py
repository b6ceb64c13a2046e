"""Several processes of one machine: one login, one URL, and somebody who goes on with it."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from tests.upstream.oauth.logins import asked, desk, port_in
from tests.upstream.oauth.scripted_as import ScriptedServer, click, scripted, until

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.upstream.oauth import file_lock, flow, ports, private_files, redeem
from interlock.upstream.oauth.callback import Listener, PortBusy
from interlock.upstream.oauth.flow import PortTaken
from interlock.upstream.oauth.flow_note import read_note, write_note
from interlock.upstream.oauth.grant import Grant, Registration


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted() as made, asyncio.timeout(40):
        yield made


async def test_every_process_answers_with_the_same_url(tmp_path: Path, server: ScriptedServer) -> None:
    async with AsyncExitStack() as stack:
        desks = [await stack.enter_async_context(desk(tmp_path, server)) for _ in range(6)]
        offered = await asyncio.gather(*(each.offer() for each in desks for _ in range(3)))
        assert len({offer.url for offer in offered}) == 1
        assert sum(len(each.opened) for each in desks) == 1
        assert len(server.registrations) == 1
        assert sum(each.logins.open() for each in desks) == 1
        await click(server.approve(offered[0].url))
        assert {each.grant() for each in desks} == {desks[0].grant()}
        assert server.grants == 1


async def test_the_next_process_goes_on_with_the_same_url_and_an_old_click_lands(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with desk(tmp_path, server) as two:
        async with desk(tmp_path, server) as one:
            first = await one.offer()
        with pytest.raises(OSError, match=r"."):
            await click(server.approve(first.url))
        second = await two.offer()
        assert (second.url, second.mine) == (first.url, True)
        assert (two.opened, len(server.registrations)) == ([], 1)
        assert "Signed in" in (await click(server.approve(first.url)))[1]
        assert two.grant() is not None


async def test_one_who_only_followed_goes_on_without_being_called(tmp_path: Path, server: ScriptedServer) -> None:
    """V11: kill -9 of the owner, then a click on its URL. Nobody makes a call in between."""
    async with AsyncExitStack() as stack:
        followers = [await stack.enter_async_context(desk(tmp_path, server)) for _ in range(4)]
        async with desk(tmp_path, server) as one:
            first = await one.offer()
            for each in followers:
                assert (await each.offer()).mine is False
            await asyncio.sleep(0.1)
        await until(lambda: any(each.logins.open() for each in followers))
        assert sum(each.logins.open() for each in followers) == 1
        assert "Signed in" in (await click(server.approve(first.url)))[1]
        assert server.grants == 1
        assert sum(len(each.granted) for each in followers) == 1
        assert "login-taken-over" in followers[0].log()


async def test_an_old_url_lands_after_a_new_one_was_published_elsewhere(tmp_path: Path, server: ScriptedServer) -> None:
    """The verifier is kept with each `state` (reports 18 and 19)."""
    async with desk(tmp_path, server) as one:
        first = await one.offer()
    async with desk(tmp_path, server) as two:
        second = await two.offer(scope=("more",))  # the old URL does not ask for it
        assert second.url != first.url
        note = read_note(two.root, two.id)
        assert note is not None
        assert len(note.pending) == 2
        assert len({each.verifier for each in note.pending}) == 2
        assert "Signed in" in (await click(server.approve(first.url)))[1]


async def test_a_login_that_was_done_meanwhile_is_not_offered_again(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one, desk(tmp_path, server) as two:
        await click(server.approve((await one.offer()).url))
        late = await two.offer(seen=0)  # it had looked before the click
        assert (late.url, late.grant, two.opened) == ("", one.grant(), [])
        assert (await two.offer(seen=1)).url


async def test_a_stale_note_of_a_dead_owner_is_no_login(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        await one.offer()
        note = read_note(one.root, one.id)
    assert note is not None
    old = tuple(msgspec.structs.replace(each, created=time.time() - 3000) for each in note.pending)
    write_note(tmp_path / "grants", one.id, msgspec.structs.replace(note, pending=old))
    async with desk(tmp_path, server) as two:
        offer = await two.offer()
        assert offer.url != note.url  # too old to be gone on with
        assert (await click(server.approve(note.url)))[0] == 200  # but it lands


async def test_a_stranger_on_the_notes_port_is_not_followed(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        first = await one.offer()
    port = port_in(first.url)

    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n{}")
        writer.close()

    foreign = await asyncio.start_server(stranger, "127.0.0.1", port)
    async with desk(tmp_path, server) as two:
        offer = await two.offer()
        assert offer.mine
        assert offer.url != first.url
        assert port_in(offer.url) in set(ports.candidates(one.id, OAuth())) - {port}
        assert "Signed in" in (await click(server.approve(offer.url)))[1]
    foreign.close()


async def test_a_fixed_port_that_is_taken_names_who_has_it(tmp_path: Path, server: ScriptedServer) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        async with desk(tmp_path, server, settings=OAuth(callback_port=port)) as one:
            with pytest.raises(PortTaken) as caught:
                await one.offer()
            assert caught.value.port == port
            assert f"loopback port {port}" in caught.value.message
            assert one.opened == []
            assert server.registrations == []
            assert read_note(one.root, one.id) is None


async def test_a_port_that_another_sign_in_of_ours_has_is_not_to_be_freed_by_force(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """Of another home, say: ending that process would end a sign-in that a person is in the middle of."""
    async with desk(tmp_path / "a", server) as other:
        port = port_in((await other.offer()).url)
        async with desk(tmp_path / "b", server, settings=OAuth(callback_port=port)) as one:
            with pytest.raises(PortTaken) as caught:
                await one.offer()
            assert caught.value.owner == f"another sign-in of Interlock (process {os.getpid()})"
            assert "End it" not in caught.value.message
            assert "Finish that one, or wait" in caught.value.message


async def test_no_free_port_is_said_and_no_tab_is_opened(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges that Windows reserves, or everything in use (reports 21 and 36): one error, no loop."""
    tried: list[int] = []

    def busy(port: int) -> Listener:
        tried.append(port)
        raise PortBusy

    monkeypatch.setattr(Listener, "bind", busy)
    monkeypatch.setattr(flow, "_FREED_SECONDS", 0.0)
    async with desk(tmp_path, server) as one:
        for _ in range(2):
            with pytest.raises(PortTaken, match="next candidates are taken too"):
                await one.offer()
        assert list(dict.fromkeys(tried)) == list(ports.candidates(one.id, OAuth()))
        assert (one.opened, server.registrations) == ([], [])


async def test_the_port_of_a_finished_login_is_let_go_to_who_asks(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one, desk(tmp_path, server) as two:
        first = await one.offer()
        await click(server.approve(first.url))
        again = await two.offer(by_hand=True)
        assert again.mine
        assert port_in(again.url) == port_in(first.url)


async def test_a_registration_is_used_again_with_its_port(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        await click(server.approve((await one.offer()).url))
        again = await one.offer(by_hand=True)
        assert asked(again.url)["client_id"] == "client-1"
        assert len(server.registrations) == 1
        assert server.registrations[0]["redirect_uris"] == [asked(again.url)["redirect_uri"]]


@pytest.mark.parametrize("damage", ["removed", "damaged"])
async def test_the_owner_ends_when_its_note_is_gone(tmp_path: Path, server: ScriptedServer, damage: str) -> None:
    async with desk(tmp_path, server) as one:
        first = await one.offer()
        note = one.root / f"{one.id}.flow.json"
        note.unlink() if damage == "removed" else note.write_text("{", encoding="ascii")  # a logout; a full disk
        await until(lambda: not one.logins.open(), 5)
        second = await one.offer()
        assert second.url != first.url
        assert "Signed in" in (await click(server.approve(second.url)))[1]


async def test_a_login_that_another_process_opens_is_waited_for_and_no_longer(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with desk(tmp_path, server) as one:
        one.root.mkdir(mode=0o700)
        async with file_lock.locked(one.root / f"{one.id}.login.lock", 1):
            started = time.monotonic()
            with pytest.raises(Fault, match="just opening or finishing") as caught:
                await one.offer(seconds=0.2)
            assert time.monotonic() - started < 5
            assert (caught.value.slug, caught.value.verdict) == ("login-needed", "wait")
        assert (await one.offer()).url


async def test_a_click_waits_for_the_grants_lock(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        landing = server.approve((await one.offer()).url)
        async with one.store.locked(one.id, 5):
            clicking = asyncio.ensure_future(click(landing))
            await server.asked.wait()
            assert not clicking.done()
        assert "Signed in" in (await clicking)[1]
        assert one.grant() is not None


async def test_a_listener_of_grants_that_fails_breaks_no_login(
    tmp_path: Path, server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(id: str, grant: Grant) -> None:
        raise RuntimeError("broken")

    async with desk(tmp_path, server) as one:
        one.logins.on_grant = fails
        assert "Signed in" in (await click(server.approve((await one.offer()).url)))[1]
        assert read_note(one.root, one.id) is None
    assert "telling of a new grant failed" in caplog.text


async def test_a_tab_that_is_closed_while_the_code_is_redeemed_loses_nothing(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.gate = asyncio.Event()
    async with desk(tmp_path, server) as one:
        clicking = asyncio.ensure_future(click(server.approve((await one.offer()).url)))
        await server.asked.wait()
        clicking.cancel()
        server.gate.set()
        await until(lambda: one.grant() is not None)
        await until(lambda: not one.logins.open())


async def test_a_full_disk_is_said_and_a_reload_helps(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desk(tmp_path, server) as one:
        landing = server.approve((await one.offer()).url)

        def full(path: Path, content: bytes, reserved: object = None) -> None:
            raise private_files.StoreTrouble(28, "no space is left", path)

        monkeypatch.setattr(private_files, "write", full)
        _, page = await click(landing)
        assert "no space is left" in page
        assert server.token_requests == []  # the code is not spent before it can be kept
        monkeypatch.undo()
        assert "Signed in" in (await click(landing))[1]


@pytest.mark.parametrize(
    ("change", "usable"),
    [({}, True), ({"tries": 1}, True), ({"tries": 2}, False), ({"at": 601.0}, False), ({"state": "other"}, False)],
)
async def test_a_code_that_was_left_behind_is_used_while_it_can_be(
    tmp_path: Path, server: ScriptedServer, change: dict[str, object], usable: bool
) -> None:
    async with desk(tmp_path, server) as one:
        offer = await one.offer()
        code = parse_qs(urlsplit(server.approve(offer.url)).query)["code"][0]
    left = {"state": asked(offer.url)["state"], "code": code, "at": 0.0, "tries": 0} | change
    left["at"] = time.time() - float(str(left["at"]))
    redeem._keep(tmp_path / "grants", one.id, msgspec.convert(left, redeem.Arrived))
    async with desk(tmp_path, server) as two:
        again = await two.offer()
        assert (again.grant is not None, len(server.token_requests)) == (usable, int(usable))
        assert (again.url == offer.url) is not usable
        assert two.opened == []


async def test_a_refresh_that_works_again_ends_the_login(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        await one.offer()
        registration = Registration(issuer=server.root, client_id="client-1", source="dynamic")
        grant = Grant(
            server_url=server.root, resource=f"{server.root}/mcp", issuer=server.root, registration=registration,
            access_token="fresh",
        )  # fmt: skip
        async with one.store.locked(one.id, 5) as held:
            held.write(grant)
        await until(lambda: not one.logins.open(), 5)
        assert read_note(one.root, one.id) is None
        assert "login-needless" in one.log()


async def test_a_refresh_does_not_end_a_login_for_more_scopes(tmp_path: Path, server: ScriptedServer) -> None:
    """Neither with its owner nor with an heir: the refreshed grant still lacks the scope."""
    async with AsyncExitStack() as stack:
        two = await stack.enter_async_context(desk(tmp_path, server))
        async with desk(tmp_path, server) as one:
            await click(server.approve((await one.offer(scope=("a",))).url))
            granted = one.grant()
            assert granted is not None
            first = await one.offer(scope=("a", "b"), seen=1)
            assert (await two.offer(scope=("a", "b"), seen=1)).url == first.url
            async with one.store.locked(one.id, 5) as held:
                held.write(msgspec.structs.replace(granted, access_token="renewed"))
            await asyncio.sleep(1.2)  # longer than the owner takes to look
            assert one.logins.open()
        await until(two.logins.open)
        assert "Signed in" in (await click(server.approve(first.url)))[1]
        grant = two.grant()
        assert grant is not None
        assert (grant.scope, grant.generation) == (("a", "b"), 3)


async def test_more_scopes_get_a_url_of_their_own(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        first = await one.offer(scope=("a",))
        assert (await one.offer(scope=("a",))).url == first.url
        second = await one.offer(scope=("a", "b"))
        assert asked(second.url)["scope"] == "a b"
        assert asked(second.url)["redirect_uri"] == asked(first.url)["redirect_uri"]
        assert (await one.offer(scope=("a",))).url == second.url
        assert one.opened == [first.url]  # one tab for a time; the other address is told
