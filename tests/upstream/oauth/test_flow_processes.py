"""Logins of real processes: kill -9 at each point of the flow, SIGTERM in the middle of it, and many processes at once."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
from tests.upstream.oauth.children import Died, child
from tests.upstream.oauth.scripted_as import ScriptedServer, click, scripted, until

from interlock.upstream.oauth.flow_note import read_note, read_snooze
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_store import GrantStore, grant_id

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

OPENING = ("bound", "registered", "noted", "offered")
BEFORE_THE_ANSWER = ("callback", "code-kept", "presenting")
AFTER_THE_ANSWER = ("stored", "note-removed", "finished")


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted() as made, asyncio.timeout(55):
        yield made


def id_of(server: ScriptedServer) -> str:
    return grant_id(f"{server.root}/mcp", server.root, None)


def stored(home: Path, server: ScriptedServer) -> Grant | None:
    return GrantStore(home).read(id_of(server))


def tidy(home: Path, server: ScriptedServer) -> bool:
    """Nothing of a login is left behind: no note, no code, no pause."""
    root, id = home / "grants", id_of(server)
    return read_note(root, id) is None and read_snooze(root, id) is None and not (root / f"{id}.code.json").exists()


async def dies(landing: str) -> None:
    """A click whose listener is killed while it answers."""
    with pytest.raises(OSError, match=r"."):
        await click(landing)


@pytest.mark.parametrize("step", OPENING)
async def test_killed_while_opening(tmp_path: Path, server: ScriptedServer, step: str) -> None:
    async with child(tmp_path, server) as two:
        async with child(tmp_path, server, die_at=step) as one:
            with pytest.raises(Died):
                await one.offer()
        note = read_note(tmp_path / "grants", id_of(server))
        offer = await two.offer()
        assert offer["mine"] is True
        if note is not None:
            assert offer["url"] == note.url  # the machine has said it once, and goes on saying it
        assert (await click(server.approve(str(offer["url"]))))[0] == 200
        assert stored(tmp_path, server) is not None
        assert (server.grants, server.code_replays) == (1, 0)
        assert len(server.registrations) <= 2
        assert tidy(tmp_path, server)


@pytest.mark.parametrize("follower", [True, False])
@pytest.mark.parametrize("step", BEFORE_THE_ANSWER)
async def test_killed_with_a_code_in_hand(tmp_path: Path, server: ScriptedServer, step: str, follower: bool) -> None:
    async with child(tmp_path, server, die_at=step) as one, child(tmp_path, server) as two:
        url = await one.url()
        landing = server.approve(url)
        if follower:
            assert await two.url() == url
        await dies(landing)
        if step == "callback":
            # It died before it could keep the code. The person reloads the page.
            if not follower:
                assert await two.url() == url
            assert await reloaded(landing) == 200
        elif follower:
            await until(lambda: stored(tmp_path, server))  # nobody calls, nobody clicks
        else:
            assert await two.offer() == {"url": "", "mine": False, "granted": True, "user_code": None}
        assert stored(tmp_path, server) is not None
        assert (server.grants, server.code_replays) == (1, 0)
        await until(lambda: tidy(tmp_path, server))


async def reloaded(landing: str) -> int:
    """What the page says once somebody listens again."""
    async with asyncio.timeout(10):
        while True:
            with suppress(OSError):
                return (await click(landing))[0]
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("follower", [True, False])
async def test_killed_after_the_server_had_given_the_grant(
    tmp_path: Path, server: ScriptedServer, follower: bool
) -> None:
    """The one point where a second login cannot be helped: the tokens died with the process. It is offered at once."""
    async with child(tmp_path, server, die_at="answered") as one, child(tmp_path, server) as two:
        url = await one.url()
        if follower:
            await two.url()
        await dies(server.approve(url))
        if follower:
            await until(lambda: len(server.token_requests) == 2)
        again = await two.url()
        assert again
        assert again != url
        assert (await click(server.approve(again)))[0] == 200
        assert stored(tmp_path, server) is not None
        assert server.code_replays == 1  # presented once more, as the lost answer could have been a lost request
        assert tidy(tmp_path, server)


@pytest.mark.parametrize("follower", [True, False])
@pytest.mark.parametrize("step", AFTER_THE_ANSWER)
async def test_killed_with_the_grant_stored(tmp_path: Path, server: ScriptedServer, step: str, follower: bool) -> None:
    async with child(tmp_path, server, die_at=step) as one, child(tmp_path, server) as two:
        url = await one.url()
        if follower:
            await two.url()
        await dies(server.approve(url))
        grant = stored(tmp_path, server)
        assert grant is not None
        if follower:
            await until(lambda: tidy(tmp_path, server) or step != "stored")
        late = await two.offer(seen=0)
        assert (late["url"], late["granted"]) == ("", True)
        assert stored(tmp_path, server) == grant
        assert (server.grants, server.code_replays, len(server.token_requests)) == (1, 0, 1)


@pytest.mark.parametrize("step", ["bound", "noted", "presenting", "stored"])
async def test_killed_while_taking_over(tmp_path: Path, server: ScriptedServer, step: str) -> None:
    """The heir dies as well: the next one goes on."""
    async with child(tmp_path, server) as three:
        async with child(tmp_path, server) as one, child(tmp_path, server, die_at=step) as two:
            url = await one.url()
            assert await two.url() == url
            assert await three.url() == url
            await one.kill()
            landing = server.approve(url)
            async with asyncio.timeout(20):
                while stored(tmp_path, server) is None:
                    with suppress(OSError):
                        await click(landing)
                    await asyncio.sleep(0.01)
        assert stored(tmp_path, server) is not None
        assert (server.grants, server.code_replays) == (1, 0)
        await until(lambda: tidy(tmp_path, server))


async def test_killed_while_it_waits_and_an_old_click_lands(tmp_path: Path, server: ScriptedServer) -> None:
    """V11, without a single call after the kill."""
    async with child(tmp_path, server) as one, child(tmp_path, server) as two:
        url = await one.url()
        assert await two.url() == url
        await one.kill()
        landing = server.approve(url)
        assert await reloaded(landing) == 200
        assert stored(tmp_path, server) is not None
        assert (one.told, two.told) == ([{"opened": url}], [])  # one tab, and nobody opened another


async def test_asked_to_leave_it_stays_until_the_click_lands(tmp_path: Path, server: ScriptedServer) -> None:
    """V5: SIGTERM does not take the listener away."""
    async with child(tmp_path, server) as one:
        url = await one.url()
        one.process.send_signal(signal.SIGTERM)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(one.process.wait(), 0.5)
        status, page = await click(server.approve(url))
        assert (status, "Signed in" in page) == (200, True)
        assert await asyncio.wait_for(one.process.wait(), 10) == 0
        assert stored(tmp_path, server) is not None


async def test_the_end_of_its_input_does_not_take_the_listener_away(tmp_path: Path, server: ScriptedServer) -> None:
    async with child(tmp_path, server, linger_seconds=1.0) as one:
        url = await one.url()
        assert one.process.stdin is not None
        one.process.stdin.close()
        await asyncio.sleep(0.3)
        assert one.process.returncode is None
        assert await asyncio.wait_for(one.process.wait(), 10) == 0  # and it stays no longer than it may
        async with child(tmp_path, server) as two:
            assert await two.url() == url


async def test_a_stopped_owner_is_followed_all_the_same(tmp_path: Path, server: ScriptedServer) -> None:
    """It still has the port: nobody publishes another URL beside it."""
    if sys.platform != "linux":
        pytest.skip("who owns a port is read from /proc")
    async with child(tmp_path, server) as one, child(tmp_path, server) as two:
        url = await one.url()
        one.process.send_signal(signal.SIGSTOP)
        try:
            assert await two.offer() == {"url": url, "mine": False, "granted": False, "user_code": None}
        finally:
            one.process.send_signal(signal.SIGCONT)
        assert (await click(server.approve(url)))[0] == 200


async def many(home: Path, server: ScriptedServer, count: int, kills: int, seed: int) -> None:
    """`count` processes offer at once; owners are killed `kills` times; then one person clicks once."""
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        children = [await stack.enter_async_context(child(home, server)) for _ in range(count)]
        offered = await asyncio.gather(*(each.offer() for each in children))
        urls = {str(offer["url"]) for offer in offered}
        assert len(urls) == 1
        assert sum(bool(offer["mine"]) for offer in offered) == 1
        root, id = home / "grants", id_of(server)
        alive = list(children)
        for _ in range(kills):
            note = read_note(root, id)
            assert note is not None
            owner = next(each for each in alive if each.process.pid == note.pid)
            alive.remove(owner)
            await owner.kill()
            dead = note.pid
            if chance.random() < 0.5:  # else nobody calls
                urls |= {str(offer["url"]) for offer in await asyncio.gather(*(each.offer() for each in alive[:3]))}
            await until(lambda dead=dead: (now := read_note(root, id)) is not None and now.pid != dead)
        assert len(urls) == 1
        landing = server.approve(urls.pop())
        status, page = await click(landing)
        assert (status, "Signed in" in page) == (200, True)
        late = await asyncio.gather(*(each.offer(seen=0) for each in alive))
        assert all(offer["granted"] for offer in late)
        assert (server.grants, server.code_replays, len(server.registrations)) == (1, 0, 1)
        assert sum(len([told for told in each.told if "opened" in told]) for each in children) == 1
        assert tidy(home, server)


async def test_five_processes_one_url_one_click(tmp_path: Path, server: ScriptedServer) -> None:
    await many(tmp_path, server, 5, 2, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("step", [*OPENING, *BEFORE_THE_ANSWER, "answered", *AFTER_THE_ANSWER])
async def test_killed_many_times_at_each_point(tmp_path: Path, step: str) -> None:
    for number in range(10):
        home = tmp_path / str(number)
        async with scripted() as server:
            if step in OPENING:
                await test_killed_while_opening(home, server, step)
            elif step in BEFORE_THE_ANSWER:
                await test_killed_with_a_code_in_hand(home, server, step, number % 2 == 0)
            elif step in AFTER_THE_ANSWER:
                await test_killed_with_the_grant_stored(home, server, step, number % 2 == 0)
            else:
                await test_killed_after_the_server_had_given_the_grant(home, server, number % 2 == 0)


@pytest.mark.soak
@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", range(3))
async def test_thirty_processes_one_url_one_click(tmp_path: Path, seed: int) -> None:
    async with scripted() as server:
        await many(tmp_path, server, 30, 10, seed)
