"""How a login ends: never offered twice running, trouble at the token endpoint, a pasted address, leaving."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.upstream.oauth.logins import asked, desk, port_in
from tests.upstream.oauth.scripted_as import ScriptedServer, click, scripted, until

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.upstream.oauth import identity, offers, ports, redeem
from interlock.upstream.oauth.flow import Timing
from interlock.upstream.oauth.flow_note import key_of, read_note, read_snooze

QUICK = Timing(login_seconds=0.3, snooze_seconds=0.6)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted() as made, asyncio.timeout(40):
        yield made


async def test_a_login_that_nobody_finished_is_not_offered_by_the_next_call(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with desk(tmp_path, server, timing=QUICK) as one, desk(tmp_path, server, timing=QUICK) as two:
        first = await one.offer()
        await until(lambda: offers.standing(one.root, one.id, QUICK, time.time()).state == "snoozed", 5)
        for each in (one, two):
            pause = await each.offer()
            assert pause.url == ""
            assert pause.snoozed_until is not None
            assert 0 < pause.snoozed_until - time.time() <= 0.6
        assert one.opened == [first.url]
        assert not one.logins.open()
        asked_for = await two.offer(by_hand=True)  # a person's own wish counts
        assert asked_for.url == first.url
        assert two.opened == [first.url]
        assert "Signed in" in (await click(server.approve(first.url)))[1]


async def test_after_the_pause_a_login_is_offered_again(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server, timing=QUICK) as one:
        first = await one.offer()
        await until(lambda: offers.standing(one.root, one.id, QUICK, time.time()).state == "fresh", 5)
        again = await one.offer()
        assert again.url == first.url
        assert one.opened == [first.url, first.url]


async def test_a_late_click_lands_during_the_pause(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server, timing=QUICK) as one:
        first = await one.offer()
        await until(lambda: offers.standing(one.root, one.id, QUICK, time.time()).state == "snoozed", 5)
        assert "Signed in" in (await click(server.approve(first.url)))[1]
        assert read_snooze(one.root, one.id) is None


async def test_a_persons_no_ends_the_login_and_begins_the_pause(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one, desk(tmp_path, server) as two:
        status, page = await click(server.deny((await one.offer()).url))
        assert status == 200
        assert "access_denied: the person said no" in page
        assert not one.logins.open()
        pause = await two.offer()
        assert pause.url == ""
        assert pause.snoozed_until is not None
        assert 590 < pause.snoozed_until - time.time() <= 600
        assert (await two.offer(by_hand=True)).url


async def test_an_answer_that_is_lost_is_said_and_a_new_url_is_published(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with desk(tmp_path, server) as one:
        first = await one.offer()
        server.cut_after_applying = 1
        landing = server.approve(first.url)
        status, page = await click(landing)
        assert status == 200
        assert "Not signed in yet" in page
        assert "Sign in again" in page
        second = await one.offer()
        assert second.url != first.url
        assert one.opened == [first.url]  # no tab is opened by itself
        assert len(server.token_requests) == 1  # what left is not sent again unasked
        assert "login-answer-lost" in one.log()
        assert "Signed in" in (await click(server.approve(second.url)))[1]


@pytest.mark.parametrize("answer", [(503, {"error": "temporarily_unavailable"}), (500, {}), (429, {}), None])
async def test_an_outage_keeps_the_code_and_a_reload_uses_it(
    tmp_path: Path, server: ScriptedServer, answer: tuple[int, dict[str, object]] | None
) -> None:
    async with desk(tmp_path, server) as one:
        landing = server.approve((await one.offer()).url)
        server.token_answers = [answer]
        assert "Reload this page" in (await click(landing))[1]
        assert "Signed in" in (await click(landing))[1]
        assert server.grants == 1


async def test_a_token_endpoint_that_is_down_is_tried_again_once(
    tmp_path: Path, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redeem, "_AGAIN_AFTER", 0.01)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = probe.getsockname()[1]
    async with desk(tmp_path, server) as one:
        found = server.found(token_endpoint=f"http://127.0.0.1:{closed}/token")
        offer = await one.logins.offer(one.id, found, OAuth(), {}, scope=(), seconds=20)
        landing = server.approve(offer.url)
        _, page = await click(landing)
        assert "nothing listens at 127.0.0.1" in page
        assert "login-unreachable" in one.log()

        async def back(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            body = b'{"access_token": "t-1", "token_type": "bearer"}'
            writer.write(b"HTTP/1.1 200 X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
            writer.close()

        restored = await asyncio.start_server(back, "127.0.0.1", closed)
        assert "Signed in" in (await click(landing))[1]
        restored.close()


async def test_a_refused_code_leads_to_a_new_url(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        first = await one.offer()
        server.token_answers = [(400, {"error": "invalid_grant", "error_description": "too late"})]
        landing = server.approve(first.url)
        _, page = await click(landing)
        assert "invalid_grant" in page
        assert "too late" in page
        assert (await click(landing))[0] == 400  # that state is used up
        second = await one.offer()
        assert second.url != first.url
        assert "Signed in" in (await click(server.approve(second.url)))[1]


async def test_a_forgotten_client_is_registered_again(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        first = await one.offer()
        server.forgotten.add("client-1")
        _, page = await click(server.approve(first.url))
        assert "registered again" in page
        second = await one.offer()
        assert asked(second.url)["client_id"] == "client-2"
        assert "Signed in" in (await click(server.approve(second.url)))[1]
        assert len(server.registrations) == 2


async def test_a_metadata_document_that_is_refused_falls_back_to_registration(
    tmp_path: Path, server: ScriptedServer
) -> None:
    """Report 34."""
    document = "https://127.0.0.1:1/client.json"
    settings = OAuth(client_metadata_url=document)
    async with desk(tmp_path, server, settings=settings) as one:
        found = server.found(client_id_metadata_document_supported=True)
        first = await one.logins.offer(one.id, found, settings, {}, scope=(), seconds=20)
        assert asked(first.url)["client_id"] == document
        server.forgotten.add(document)
        assert "registered again" in (await click(server.approve(first.url)))[1]
        second = await one.logins.offer(one.id, found, settings, {}, scope=(), seconds=20)
        assert asked(second.url)["client_id"] == "client-1"
        assert "Signed in" in (await click(server.approve(second.url)))[1]


async def test_a_preset_client_that_is_refused_ends_the_login(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server, settings=OAuth(client_id="mine")) as one:
        first = await one.offer()
        assert asked(first.url)["client_id"] == "mine"
        server.forgotten.add("mine")
        assert "does not accept this client" in (await click(server.approve(first.url)))[1]
        assert server.registrations == []
        assert (await one.offer()).snoozed_until is not None


async def test_a_configuration_fault_is_not_offered_in_a_loop(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        server.token_answers = [(400, {"error": "invalid_target", "error_description": "no such resource"})]
        _, page = await click(server.approve((await one.offer()).url))
        assert "no such resource" in page
        assert (await one.offer()).url == ""


async def test_a_pasted_address_is_redeemed_and_the_owner_lets_go(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as owner, desk(tmp_path, server) as other:
        offer = await owner.offer()
        grant = await other.logins.paste(other.id, server.approve(offer.url), 10)
        assert owner.grant() == grant
        assert other.granted == [(other.id, grant)]
        await until(lambda: not owner.logins.open(), 3)
        assert server.grants == 1


async def test_the_owner_itself_takes_a_pasted_address(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        landing = server.approve((await one.offer()).url)
        grant = await one.logins.paste(one.id, landing, 10)
        assert one.granted == [(one.id, grant)]
        assert not one.logins.open()
        with pytest.raises(Fault, match="no sign-in is open"):
            await one.logins.paste(one.id, landing, 10)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda url: url.replace("state=", "state=x"), "belongs to no sign-in"),
        (lambda url: url.partition("&iss=")[0], "no `iss`"),
        (lambda url: url.partition("?")[0], "no `state` in it"),
        (lambda url: "", "no `state` in it"),
    ],
)
async def test_a_bad_paste_changes_nothing(tmp_path: Path, server: ScriptedServer, change: object, words: str) -> None:
    assert callable(change)
    async with desk(tmp_path, server) as one:
        offer = await one.offer()
        with pytest.raises(Fault, match=words) as caught:
            await one.logins.paste(one.id, change(server.approve(offer.url)), 10)
        assert caught.value.verdict == "wait"
        assert server.token_requests == []
        assert (await one.offer()).url == offer.url


async def test_leaving_waits_for_the_click(tmp_path: Path, server: ScriptedServer) -> None:
    """V5: asked to leave with a login open, the listener stays until the click has landed."""
    async with desk(tmp_path, server) as one:
        offer = await one.offer()
        leaving = asyncio.ensure_future(one.logins.linger(30))
        await asyncio.sleep(0.3)
        assert not leaving.done()
        assert "Signed in" in (await click(server.approve(offer.url)))[1]
        await asyncio.wait_for(leaving, 5)
        assert one.grant() is not None


async def test_leaving_ends_by_its_time_and_others_go_on(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as two:
        async with desk(tmp_path, server) as one:
            first = await one.offer()
            await asyncio.wait_for(one.logins.linger(0.2), 5)
            assert one.logins.open()
        assert (await two.offer()).url == first.url


async def test_leaving_with_nothing_open_takes_no_time(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        await asyncio.wait_for(one.logins.linger(60), 0.5)
        port = port_in((await one.offer()).url)
        assert isinstance(await identity.ask(port, key_of(one.root)), identity.Identity)
    assert await identity.ask(port, key_of(one.root)) is None


async def test_an_unreachable_registration_leaves_no_trace(tmp_path: Path, server: ScriptedServer) -> None:
    from interlock.upstream.oauth.registration import RegistrationFailed

    async with desk(tmp_path, server) as one:
        found = server.found(registration_endpoint=None)
        with pytest.raises(RegistrationFailed):
            await one.logins.offer(one.id, found, OAuth(), {}, scope=(), seconds=5)
        assert not one.logins.open()
        assert read_note(one.root, one.id) is None
        for port in ports.candidates(one.id, OAuth()):
            assert not isinstance(await identity.ask(port, key_of(one.root)), identity.Identity)


async def test_no_authorization_endpoint_is_said(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        for endpoint in (None, "javascript:alert(1)", "http://as.test/authorize"):
            found = server.found(authorization_endpoint=endpoint)
            with pytest.raises(Fault) as caught:
                await one.logins.offer(one.id, found, OAuth(), {}, scope=(), seconds=5)
            assert (caught.value.slug, caught.value.verdict) == ("auth-misconfigured", "never_reached")
        assert one.opened == []
