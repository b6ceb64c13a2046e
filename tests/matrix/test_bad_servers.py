"""Row: of several servers some are dead, some hang and some flood; nobody else pays for them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from .cells import CELLS, DOWNSTREAMS, Cell
from .client import Client, Era, Message
from .processes import fixture_command, stdio_entry, url_entry
from .world import Down, Pair, World

pytestmark = pytest.mark.asyncio(loop_scope="session")

GOOD = ("goodl", "goodm")
CELLS_HERE = [cell for cell in CELLS if cell.server.key in ("lstdio", "mhttp")]
COLD_WAIT = 5.0
"""How long the first list may wait for servers that nobody has heard of."""
QUICK = {"policy": {"startupTimeoutSeconds": 6}}
PATIENT = {"policy": {"startupTimeoutSeconds": 60}}
"""A list that waited for one of these would take that long."""


async def many_servers(world: World) -> list[dict[str, Any]]:
    """Two good ones; dead, hanging and flooding ones over stdio and over HTTP."""
    return [
        await world.entry("goodl", "legacy", "stdio", "--tools", "3"),
        await world.entry("goodm", "modern", "http", "--tools", "3"),
        stdio_entry("dead", fixture_command("legacy", "--stdio", "--die", "3"), **QUICK),
        url_entry("deaf", "http", world.port("deaf"), **QUICK),
        stdio_entry("hang", fixture_command("legacy", "--stdio", "--hang"), **PATIENT),
        await world.entry("hush", "modern", "http", "--hang", **PATIENT),
        stdio_entry("mute", fixture_command("legacy", "--stdio", "--hang"), **QUICK),
        await world.entry("numb", "modern", "http", "--hang", **QUICK),
        stdio_entry("flood", fixture_command("legacy", "--stdio", "--flood", "1000"), **QUICK),
        await world.entry("flush", "modern", "http", "--flood", "500", **QUICK),
        stdio_entry("exit", [sys.executable, "-c", "pass"], **QUICK),
    ]


@dataclass(slots=True)
class FirstList:
    """What became of a client's very first list, and of a call of each good server made meanwhile."""

    client: Client
    names: list[str]
    seconds: float
    order: list[str]


async def first_list(world: World, era: Era, down: Down) -> FirstList:
    client = await world.client(era, down)
    order: list[str] = []

    async def call(key: str) -> None:
        params: Message = {"name": f"{key}__echo", "arguments": {"value": key}}
        assert (await client.request("tools/call", params)).text == key
        order.append(key)

    async def names() -> list[str]:
        found = [tool["name"] for tool in await client.list_all("tools/list")]
        order.append("list")
        return found

    begun = asyncio.get_running_loop().time()
    listing = asyncio.ensure_future(names())
    await asyncio.gather(*(call(key) for key in GOOD))
    found = await listing
    return FirstList(client, found, asyncio.get_running_loop().time() - begun, order)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowd(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    found = World(tmp_path_factory.mktemp("bad"), many_servers)
    yield found
    await found.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def firsts(crowd: World) -> dict[tuple[Era, Down], FirstList]:
    """All four clients come at once, so that the wait is paid once."""
    await crowd.up()
    found = await asyncio.gather(*(first_list(crowd, era, down) for era, down in DOWNSTREAMS))
    return dict(zip(DOWNSTREAMS, found, strict=True))


@pytest_asyncio.fixture(loop_scope="session", params=CELLS_HERE, ids=str)
async def good(
    request: pytest.FixtureRequest, crowd: World, firsts: dict[tuple[Era, Down], FirstList]
) -> tuple[Pair, FirstList]:
    cell: Cell = request.param
    first = firsts[cell.client, cell.down]
    return Pair(cell, first.client, crowd, "goodl" if cell.server.era == "legacy" else "goodm"), first


@pytest.mark.row("bad neighbours: the first list waits a little and has all that is there; calls do not wait")
async def test_the_first_list(good: tuple[Pair, FirstList]) -> None:
    pair, first = good
    assert {pair.name(f"tool_{number:03}") for number in range(3)} <= set(first.names)
    assert {"flood__echo", "flush__echo"} <= set(first.names), "a flood does not hide what is in it"
    assert not [
        name for name in first.names if name.startswith(("dead_", "deaf_", "hang_", "hush_", "mute_", "numb_", "exit_"))
    ]
    assert first.order[-1] == "list", "calls of good servers were answered while the list was still waiting"
    assert first.seconds < 4 * COLD_WAIT, "the list waited a little, and not for as long as a start may take"


@pytest.mark.row("bad neighbours: later lists, also of new clients, and calls are not held up")
async def test_later_lists_and_calls(good: tuple[Pair, FirstList]) -> None:
    pair, _ = good
    client = pair.client
    async with asyncio.timeout(COLD_WAIT - 1):
        assert pair.name("tool_001") in [tool["name"] for tool in await client.list_all("tools/list")]
        calls = [client.start("tools/call", pair.params("echo", {"value": f"v{n}"})) for n in range(32)]
        assert [(await call.answer()).text for call in calls] == [f"v{n}" for n in range(32)]
        answer = await pair.call("ask_rounds", {"count": 2})
        assert answer.text == f"[{pair.key}] Round 0,[{pair.key}] Round 1"
    if pair.cell.down == "http":
        async with asyncio.timeout(COLD_WAIT - 1):
            other = await pair.world.new_client(pair.cell.client, "http")
            assert pair.name("tool_001") in [tool["name"] for tool in await other.list_all("tools/list")]


@pytest.mark.row("bad neighbours: a call of a flooding server works")
async def test_a_call_of_a_flooding_server(good: tuple[Pair, FirstList]) -> None:
    pair, _ = good
    for key in ("flood", "flush"):
        flooded = Pair(pair.cell, pair.client, pair.world, key)
        assert (await flooded.call("echo", {"value": "through"})).text == "through"
        assert (await flooded.call("ask_elicit", {"message": "m"})).structured["answer"]["action"] == "accept"


SLUGS = {
    "dead": ("server-exited", "crash-loop"),
    "exit": ("server-exited", "crash-loop"),
    "deaf": ("unreachable",),
    "mute": ("startup-timeout",),
    "numb": ("startup-timeout",),
}


async def bad_calls(client: Client) -> dict[str, Message]:
    """The errors of calls of all bad servers, made at once; calls of good ones meanwhile do not wait for them."""
    calls = {key: client.start("tools/call", {"name": f"{key}__echo", "arguments": {}}) for key in SLUGS}
    async with asyncio.timeout(COLD_WAIT - 1):
        for key in GOOD:
            good = await client.request("tools/call", {"name": f"{key}__echo", "arguments": {"value": key}})
            assert good.text == key
    return {key: (await call.answer()).error for key, call in calls.items()}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def errors(firsts: dict[tuple[Era, Down], FirstList]) -> dict[tuple[Era, Down], dict[str, Message]]:
    """All four clients again at once."""
    found = await asyncio.gather(*(bad_calls(first.client) for first in firsts.values()))
    return dict(zip(firsts, found, strict=True))


@pytest.mark.parametrize(("era", "down"), DOWNSTREAMS, ids=[f"{era}-{down}" for era, down in DOWNSTREAMS])
@pytest.mark.row("bad neighbours: a call of a bad server gets an error that says it was never reached")
async def test_calls_of_bad_servers(errors: dict[tuple[Era, Down], dict[str, Message]], era: Era, down: Down) -> None:
    for key, slugs in SLUGS.items():
        error = errors[era, down][key]
        assert error["data"]["error"] in slugs, error
        assert error["data"]["verdict"] in ("never_reached", "wait")
        assert error["data"]["server"] == key
        assert error["data"]["stage"] == "discover"
        assert "may have taken effect" not in error["message"]
