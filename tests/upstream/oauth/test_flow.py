"""One login: what is published, and what a click or a forgery does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.upstream.oauth.logins import asked, desk, port_in
from tests.upstream.oauth.scripted_as import ScriptedServer, click, scripted, until

from interlock.manifest.config import OAuth
from interlock.upstream.oauth import ports
from interlock.upstream.oauth.flow_note import read_note, read_snooze


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted() as made, asyncio.timeout(40):
        yield made


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
        assert sorted(told) == ["build", "flow", "grant", "open", "pid", "proof"]
        assert told["proof"] == ""  # no question, no proof
        assert note.key
        assert note.key not in body
        assert asked(offer.url)["state"] not in body
        assert note.pending[0].verifier not in body
