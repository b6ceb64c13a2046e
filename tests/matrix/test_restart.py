"""Rows: servers that end between two calls, in the middle of one, or that take too long."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from .cells import CELLS, DOWNSTREAMS, UPSTREAMS, Cell
from .client import SECONDS, Message
from .processes import gone
from .world import Pair, World

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROWS = "rkctp"
"""The first letter of a server's key: each row kills servers of its own, so that none counts as crashing all the time."""


def key_of(row: str, cell: Cell) -> str:
    return f"{row}{'ab'[cell.client == 'modern']}{cell.server.key}"


async def servers(world: World) -> list[dict[str, Any]]:
    """One of each kind for each row and each era of client. Those over HTTP are started when a test needs them."""
    entries = []
    for key, each in (
        (f"{row}{letter}{each.key}", each) for row in ROWS for letter in "ab" for each in UPSTREAMS.values()
    ):
        journal = ("--journal", str(world.journal(key)))
        more = {"tools": {"sleep": {"timeoutSeconds": 0.4}}} if key.startswith("t") else {}
        port = 0 if each.transport == "stdio" else world.port(key)
        entries.append(await world.entry(key, each.era, each.transport, *journal, port=port, **more))
    return entries


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def frail(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    found = World(tmp_path_factory.mktemp("restart"), servers)
    yield found
    await found.close()


async def pair_for(row: str, cell: Cell, frail: World) -> Pair:
    pair = Pair(cell, await frail.client(cell.client, cell.down), frail, key_of(row, cell))
    if pair.key not in frail.servers:
        await again(pair)
    return pair


async def killed(pair: Pair, pid: int) -> None:
    """End the server's process as a crash does, and wait until the gateway knows."""
    if pair.cell.server.transport == "stdio":
        os.kill(pid, signal.SIGKILL)
        await gone(pid)
    else:
        await pair.world.servers[pair.key].kill()
    # One round trip, in which the gateway sees what has happened.
    await pair.client.request("ping" if pair.client.era == "legacy" else "server/discover")


async def again(pair: Pair) -> None:
    """Start a server over HTTP again, where it was; a stdio one is the gateway's business."""
    if pair.cell.server.transport != "stdio":
        upstream = pair.cell.server
        journal = ("--journal", str(pair.world.journal(pair.key)))
        await pair.world.serve(pair.key, upstream.era, upstream.transport, *journal, port=pair.world.port(pair.key))


@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.row("upstream restart between two calls: the next one works, subscriptions too")
async def test_a_restart_between_two_calls(cell: Cell, frail: World) -> None:
    pair = await pair_for("r", cell, frail)
    client, text = pair.client, pair.uri("lab://text")
    pid = int((await pair.call("whoami")).structured["pid"])
    async with client.watch(uris=[text]):
        await killed(pair, pid)
        if cell.server.transport != "stdio":
            down = (await pair.call("echo", {"value": "x"})).result
            assert down["isError"] is True
            assert (down["_meta"]["verdict"], down["_meta"]["retry"]) == ("never_reached", "safe")
            assert down["_meta"]["error"] in ("unreachable", "connection-lost")
        await again(pair)
        assert (await pair.call("echo", {"value": "back"})).text == "back"
        assert int((await pair.call("whoami")).structured["pid"]) != pid
        mark = client.mark()
        async with asyncio.timeout(SECONDS):
            while not client.since(mark, "notifications/resources/updated"):
                await pair.call("touch", {"uri": "lab://text", "after_ms": 0})
                await asyncio.sleep(0.1)  # the subscription comes back after the session does
        assert client.since(mark, "notifications/resources/updated")[0]["uri"] == text


@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.row("upstream killed during a call: outcome_unknown, never sent again")
async def test_a_server_that_is_killed_during_a_call(cell: Cell, frail: World) -> None:
    pair = await pair_for("k", cell, frail)
    client = pair.client
    pid = int((await pair.call("whoami")).structured["pid"])
    before = len(frail.arrived(pair.key))
    mark, token = client.mark(), f"{cell}"
    call = client.start(
        "tools/call", pair.params("sleep", {"ms": 60_000, "label": token}), meta={"progressToken": token}
    )
    await client.until("notifications/progress", lambda params: params["progressToken"] == token, since=mark)
    await killed(pair, pid)
    await again(pair)
    unknown(pair, (await call.answer()).result)
    assert (await pair.call("echo", {"value": "next"})).text == "next"
    arrived = [call["tool"] for call in frail.arrived(pair.key)[before:]]
    assert arrived == ["sleep", "echo"], "the call that was lost was not made again"


@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.row("upstream that crashes of a call: outcome_unknown, never sent again")
async def test_a_server_that_crashes_of_a_call(cell: Cell, frail: World) -> None:
    pair = await pair_for("c", cell, frail)
    await pair.call("whoami")
    before = len(frail.arrived(pair.key))
    unknown(pair, (await pair.call("crash", {"code": 7})).result)
    await again(pair)
    assert (await pair.call("echo", {"value": "next"})).text == "next"
    assert [call["tool"] for call in frail.arrived(pair.key)[before:]] == ["crash", "echo"]


def unknown(pair: Pair, result: Message) -> None:
    """The result of an admitted call whose outcome nobody knows."""
    assert result["isError"] is True
    assert result["_meta"]["error"] == "connection-lost"
    assert (result["_meta"]["verdict"], result["_meta"]["retry"]) == ("outcome_unknown", "check-first")
    assert result["_meta"]["server"] == pair.key
    assert "outcome_unknown" in result["content"][0]["text"]


@pytest.mark.parametrize("cell", [each for each in CELLS if each.pairing == ("modern", "legacy")], ids=str)
@pytest.mark.row("a parked call whose server ends: outcome_unknown, whenever its client comes back")
async def test_a_server_that_ends_while_its_call_is_parked(cell: Cell, frail: World) -> None:
    pair = await pair_for("p", cell, frail)
    pid = int((await pair.call("whoami")).structured["pid"])
    params = pair.params("ask_elicit", {"message": "m"})
    required = (await pair.client.request("tools/call", params)).result
    assert required["resultType"] == "input_required"
    await killed(pair, pid)
    await again(pair)
    unknown(pair, (await pair.client.request("tools/call", pair.client.answered(params, required))).result)
    assert (await pair.call("ask_elicit", {"message": "n"})).structured["answer"]["action"] == "accept"


@pytest.mark.parametrize("cell", CELLS, ids=str)
@pytest.mark.row("a call that takes too long: outcome_unknown, and its server is told")
async def test_a_call_that_takes_too_long(cell: Cell, frail: World) -> None:
    pair = await pair_for("t", cell, frail)
    label = str(cell)
    result = (await pair.call("sleep", {"ms": 60_000, "label": label})).result
    assert result["isError"] is True
    assert (result["_meta"]["error"], result["_meta"]["verdict"]) == ("timeout", "outcome_unknown")
    async with asyncio.timeout(SECONDS):
        while label not in (await pair.call("cancel_log")).structured["cancelledLabels"]:  # noqa: ASYNC110 (another process)
            await asyncio.sleep(0.02)
    assert [call["tool"] for call in frail.arrived(pair.key) if call["arguments"].get("label") == label] == ["sleep"]


@pytest.mark.parametrize(("era", "down"), DOWNSTREAMS, ids=[f"{era}-{down}" for era, down in DOWNSTREAMS])
@pytest.mark.row("a server that keeps crashing is left alone, and the answer says until when")
async def test_a_server_that_keeps_crashing(era: Any, down: Any, frail: World) -> None:
    cell = next(each for each in CELLS if (each.client, each.down) == (era, down) and each.server.key == "lstdio")
    # Only the client over HTTP shares its gateway, and there this row has the servers of the two eras for itself.
    pair = await pair_for("c", cell, frail)
    other = None
    if era == "legacy" and down == "http":
        # Another client, whose own process of the server goes on.
        other = await frail.new_client(era, down)
        assert (await other.request("prompts/get", {"name": pair.name("greet")})).result["description"] == "A greeting."
    async with asyncio.timeout(SECONDS):
        while True:
            result = (await pair.call("crash", {"code": 7})).result
            assert result["isError"] is True
            if result["_meta"]["verdict"] == "wait":
                break
            unknown(pair, result)
    assert result["_meta"]["error"] in ("crash-loop", "server-exited")
    assert 0 < result["_meta"]["wait_seconds"] <= 900
    assert str(pair.key) in result["content"][0]["text"]
    if other is not None:
        assert (await other.request("prompts/get", {"name": pair.name("greet")})).result["description"] == "A greeting."
        assert (await other.request("tools/call", pair.params("echo", {"value": "well"}))).text == "well"
