"""One login for a machine: who owns it, what every process answers with, and what a click, a forgery or an outage does."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from tests.upstream.oauth.logins import desk
from tests.upstream.oauth.scripted_as import ScriptedServer, click, scripted, until

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.upstream.oauth import file_lock, flow, identity, offers, ports, private_files, redeem
from interlock.upstream.oauth.callback import Listener, PortBusy
from interlock.upstream.oauth.flow import PortTaken, Timing
from interlock.upstream.oauth.flow_note import read_note, read_snooze, write_note
from interlock.upstream.oauth.grant import Grant, Registration

QUICK = Timing(login_seconds=0.3, snooze_seconds=0.6)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted() as made, asyncio.timeout(40):
        yield made


def port_in(url: str) -> int:
    """Where a published URL sends the browser back to. Any other program may have the stable port just now."""
    port = urlsplit(asked(url)["redirect_uri"]).port
    assert port is not None
    return port


def asked(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query, strict_parsing=True).items()}


# -- publishing


async def test_the_url_asks_for_all_that_the_specification_wants(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        offer = await one.offer(scope=("files:read", "files:write"))
        fields = asked(offer.url)
        port = port_in(offer.url)
        assert port in ports.candidates(one.id, OAuth())
        assert offer.url.startswith(f"{server.root}/authorize?")
        assert fields.pop("state")
        assert len(fields.pop("code_challenge")) == 43
        assert fields == {
            "response_type": "code",
            "client_id": "client-1",
            "redirect_uri": f"http://localhost:{port}/callback",
            "code_challenge_method": "S256",
            "resource": f"{server.root}/mcp",
            "scope": "files:read files:write",
        }
        assert (offer.mine, offer.user_code, offer.snoozed_until, offer.grant) == (True, None, None, None)
        assert 590 < offer.expires_at - time.time() <= 600
        assert one.opened == [offer.url]
        assert one.logins.open()


async def test_no_scope_is_sent_where_none_is_wanted_and_consent_with_offline_access(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with desk(tmp_path / "a", server) as one:
        assert "scope" not in asked((await one.offer()).url)
    async with desk(tmp_path / "b", server) as two:
        assert asked((await two.offer(scope=("a", "offline_access"))).url)["prompt"] == "consent"


async def test_the_listener_answers_before_the_url_is_shown(tmp_path: Path, server: ScriptedServer) -> None:
    """An authorization server that knows the person redirects at once (V9)."""
    async with desk(tmp_path, server) as one:
        loop, pages = asyncio.get_running_loop(), []

        def show(url: str) -> bool:
            pages.append(asyncio.run_coroutine_threadsafe(click(server.approve(url)), loop))
            return True

        one.logins._show = show
        assert (await one.offer()).url
        _, page = await asyncio.wrap_future(pages[0])
        assert "Signed in" in page
        assert (one.grant() is not None, server.grants) == (True, 1)


async def test_both_families_take_the_click(tmp_path: Path, server: ScriptedServer) -> None:
    for number, family in enumerate(("127.0.0.1", "::1")):
        async with desk(tmp_path / str(number), server) as one:
            status, page = await click(server.approve((await one.offer()).url), family=family)
            assert (status, "Signed in" in page) == (200, True)


async def test_one_click_makes_the_grant_and_cleans_up(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        offer = await one.offer(scope=("a",))
        before = time.time()
        status, page = await click(server.approve(offer.url))
        assert status == 200
        assert "Signed in" in page
        grant = one.grant()
        assert grant is not None
        assert (grant.state, grant.generation, grant.scope, grant.issuer) == ("live", 1, ("a",), server.root)
        assert grant.resource == f"{server.root}/mcp"
        assert grant.expires_at is not None
        assert 3590 < grant.expires_at - before < 3610
        assert one.granted == [(one.id, grant)]
        assert not one.logins.open()
        assert read_note(one.root, one.id) is None
        assert read_snooze(one.root, one.id) is None
        assert not (one.root / f"{one.id}.code.json").exists()
        request = server.token_requests[0]
        assert request["resource"] == f"{server.root}/mcp"
        assert request["redirect_uri"] == asked(offer.url)["redirect_uri"]
        assert request["client_id"] == "client-1"
        for secret in (grant.access_token, grant.refresh_token, request["code"], request["code_verifier"]):
            assert secret
            assert secret not in one.log()
        assert "login-done" in one.log()


def test_a_whole_login_on_either_event_loop(
    tmp_path: Path, run: Callable[[Coroutine[object, object, None]], None]
) -> None:
    async def life() -> None:
        async with scripted() as server, desk(tmp_path, server) as two:
            async with desk(tmp_path, server) as one:
                offer = await one.offer()
                assert (await two.offer()).url == offer.url
            await until(two.logins.open)  # it saw the owner go, and went on
            assert "Signed in" in (await click(server.approve(offer.url)))[1]
            assert two.grant() is not None

    run(life())


async def test_a_repeated_click_gets_a_page_that_says_so(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        landing = server.approve((await one.offer()).url)
        await click(landing)
        status, page = await click(landing)
        assert (status, "Already signed in" in page) == (200, True)
        assert (len(server.token_requests), server.grants) == (1, 1)


async def test_two_clicks_at_once_present_the_code_once(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        landing = server.approve((await one.offer()).url)
        answers = await asyncio.gather(*(click(landing) for _ in range(5)))
        assert {status for status, _ in answers} == {200}
        assert (len(server.token_requests), server.code_replays) == (1, 0)


@pytest.mark.parametrize(
    "query",
    [
        "error=access_denied",
        "error=access_denied&state=forged",
        "code=stolen&state=forged",
        "code=stolen",
        "state={state}",
        "code=stolen&state={state}&iss=https%3A%2F%2Fevil.test",
        "error=access_denied&state={state}&iss=https%3A%2F%2Fevil.test",
        "error=access_denied&state={state}",
        "code=stolen&state={state}",
        "code=stolen&state={state}&state={state}&iss={iss}",
    ],
)
async def test_a_forged_callback_changes_nothing(tmp_path: Path, server: ScriptedServer, query: str) -> None:
    async with desk(tmp_path, server) as one:
        offer = await one.offer()
        port, state = port_in(offer.url), asked(offer.url)["state"]
        before = sorted((path.name, path.read_bytes()) for path in one.root.iterdir())
        path = query.format(state=state, iss=server.root)
        status, page = await click(f"http://localhost:{port}/callback?{path}")
        assert status == 400
        assert "access_denied" not in page
        assert sorted(
            (path.name, path.read_bytes()) for path in one.root.iterdir() if not path.name.endswith("login.lock")
        ) == [each for each in before if not each[0].endswith("login.lock")]
        assert server.token_requests == []
        assert one.logins.open()
        assert (await one.offer()).url == offer.url
        assert (await click(server.approve(offer.url)))[0] == 200
        assert server.grants == 1


async def test_only_the_callback_is_there(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        offer = await one.offer()
        landing, port = server.approve(offer.url), port_in(offer.url)
        for path in ("/", "/favicon.ico", "/callback/", "/Callback", "/oauth/callback"):
            assert (await click(f"http://localhost:{port}{path}?{urlsplit(landing).query}"))[0] == 404
        assert (await click(landing, host="evil.test"))[0] == 421
        assert server.token_requests == []


async def test_the_identity_tells_no_secret(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        offer = await one.offer()
        note = read_note(one.root, one.id)
        assert note is not None
        _, body = await click(f"http://localhost:{note.port}/interlock")
        told = json.loads(body)
        assert told["flow"] == note.flow_id
        assert told["grant"] == one.id
        assert sorted(told) == ["build", "flow", "grant", "open", "pid"]
        assert asked(offer.url)["state"] not in body
        assert note.pending[0].verifier not in body


# -- several processes


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
        assert one.opened == [first.url, second.url]


# -- never twice running


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


# -- trouble at the token endpoint


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
        assert "no connection to 127.0.0.1" in page
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


# -- pasting


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
        (lambda url: url.replace("state=", "state=x"), "belongs to no login"),
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


# -- leaving


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
        assert isinstance(await identity.ask(port), identity.Identity)
    assert await identity.ask(port) is None


async def test_an_unreachable_registration_leaves_no_trace(tmp_path: Path, server: ScriptedServer) -> None:
    from interlock.upstream.oauth.registration import RegistrationFailed

    async with desk(tmp_path, server) as one:
        found = server.found(registration_endpoint=None)
        with pytest.raises(RegistrationFailed):
            await one.logins.offer(one.id, found, OAuth(), {}, scope=(), seconds=5)
        assert not one.logins.open()
        assert read_note(one.root, one.id) is None
        for port in ports.candidates(one.id, OAuth()):
            assert not isinstance(await identity.ask(port), identity.Identity)


async def test_no_authorization_endpoint_is_said(tmp_path: Path, server: ScriptedServer) -> None:
    async with desk(tmp_path, server) as one:
        for endpoint in (None, "javascript:alert(1)", "http://as.test/authorize"):
            found = server.found(authorization_endpoint=endpoint)
            with pytest.raises(Fault) as caught:
                await one.logins.offer(one.id, found, OAuth(), {}, scope=(), seconds=5)
            assert (caught.value.slug, caught.value.verdict) == ("auth-misconfigured", "never_reached")
        assert one.opened == []
