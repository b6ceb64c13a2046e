"""Rows: a call that stays open at a legacy server while a modern client answers, and the seal on what the client holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from .cells import CELLS, Cell
from .client import SECONDS, Client, Message
from .world import Pair, World

pytestmark = pytest.mark.asyncio(loop_scope="session")

MODERN_CELLS = [cell for cell in CELLS if cell.client == "modern"]
PARKING_CELLS = [cell for cell in MODERN_CELLS if cell.server.era == "legacy"]
IMPATIENT = (str(Path(__file__).with_name("impatient.py")),)


async def servers(world: World) -> list[dict[str, Any]]:
    entries = [
        await world.entry(cell.server.key, cell.server.era, cell.server.transport)
        for cell in MODERN_CELLS
        if cell.down == "http"
    ]
    return [*entries, await world.entry("asks", "legacy", "stdio", policy={"defaultApproval": None})]


async def making(tmp_path_factory: pytest.TempPathFactory, **options: Any) -> AsyncIterator[World]:
    found = World(tmp_path_factory.mktemp("parking"), servers, **options)
    yield found
    await found.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A gateway over HTTP where each host has a credential."""
    async for found in making(tmp_path_factory, options=("--with-credential",)):
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def impatient(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Gateways that keep a parked call for half a second only."""
    async for found in making(tmp_path_factory, program=IMPATIENT):
        yield found


async def principal(world: World, name: str) -> Client:
    """The client of one credential."""
    found = world.clients.get(("modern", name))
    if found is None:
        found = world.clients["modern", name] = await world.new_client("modern", "http", token=await world.token(name))
    return found


async def required(pair: Pair, tool: str, arguments: Message | None = None, client: Client | None = None) -> Message:
    """The `input_required` result that a first call ends in."""
    result = (await (client or pair.client).request("tools/call", pair.params(tool, arguments))).result
    assert result["resultType"] == "input_required"
    return result


@pytest_asyncio.fixture(loop_scope="session", params=PARKING_CELLS, ids=str)
async def parked(request: pytest.FixtureRequest, world: World) -> Pair:
    cell: Cell = request.param
    return Pair(cell, await world.client(cell.client, cell.down), world, cell.server.key)


@pytest.mark.row("a parked call: resumes, also in parts, and only once")
async def test_a_parked_call_resumes(parked: Pair) -> None:
    client, params = parked.client, parked.params("ask_many", {"count": 3})
    first = await required(parked, "ask_many", {"count": 3})
    assert len(first["inputRequests"]) == 3
    given = client.answered(params, first)
    key, answer = next(iter(given["inputResponses"].items()))
    # One answer now, one that nobody asked for, and the rest in another round.
    partly = {**given, "inputResponses": {key: answer, "not_asked": {"action": "accept"}}}
    second = (await client.request("tools/call", partly)).result
    assert second["resultType"] == "input_required"
    assert set(second["inputRequests"]) == set(first["inputRequests"]) - {key}
    assert second["requestState"] != first["requestState"]
    done = await client.request("tools/call", client.answered(params, second))
    assert [item["text"] for item in done.result["content"]] == [f"[{parked.key}] Question {n}" for n in range(3)]
    for spent in (partly, client.answered(params, second)):
        again = (await client.request("tools/call", spent)).result
        assert again["isError"] is True
        assert again["_meta"]["error"] == "park-expired"
        assert (again["_meta"]["verdict"], again["_meta"]["retry"]) == ("outcome_unknown", "check-first")


@pytest.mark.row("a parked call: progress and log messages of the round that attends to it")
async def test_a_resumed_call_reports_to_its_last_round(parked: Pair) -> None:
    client, params = parked.client, parked.params("ask_rounds", {"count": 2})
    result = (await client.request("tools/call", params, meta={"progressToken": "round-1"})).result
    mark = client.mark()
    answer = await client.request("tools/call", client.answered(params, result), meta={"progressToken": "round-2"})
    assert answer.result["resultType"] == "input_required"
    assert [p["progressToken"] for p in client.since(mark, "notifications/progress")] == ["round-2"]
    last = await client.request("tools/call", client.answered(params, answer.result))
    assert last.text == f"[{parked.key}] Round 0,[{parked.key}] Round 1"


@pytest.mark.parametrize("cell", PARKING_CELLS, ids=str)
@pytest.mark.row("a parked call: expires, and its server is told")
async def test_a_parked_call_expires(cell: Cell, impatient: World) -> None:
    pair = Pair(cell, await impatient.client(cell.client, cell.down), impatient, cell.server.key)
    before = (await pair.call("cancel_log")).structured["cancelledIds"]
    result = await required(pair, "ask_elicit", {"message": "m"})
    async with asyncio.timeout(SECONDS):
        while (await pair.call("cancel_log")).structured["cancelledIds"] == before:  # noqa: ASYNC110 (another process)
            await asyncio.sleep(0.05)
    params = pair.client.answered(pair.params("ask_elicit", {"message": "m"}), result)
    late = (await pair.client.request("tools/call", params)).result
    assert late["isError"] is True
    assert (late["_meta"]["error"], late["_meta"]["verdict"]) == ("park-expired", "outcome_unknown")
    assert late["_meta"]["server"] == pair.key
    assert (await pair.call("echo", {"value": "goes on"})).text == "goes on"


@pytest.mark.row("a parked call: 16 for each caller")
async def test_too_many_parked_calls(impatient: World) -> None:
    cell = next(each for each in PARKING_CELLS if each.down == "http" and each.server.transport == "http")
    pair = Pair(cell, await impatient.client("modern", "http"), impatient, cell.server.key)
    calls = [pair.client.start("tools/call", pair.params("ask_elicit", {"message": f"m{n}"})) for n in range(20)]
    results = [(await call.answer()).result for call in calls]
    refused = [result for result in results if result["resultType"] == "complete"]
    # Those that were parked first may have expired before the last came, so at least the limit fits.
    assert len(results) - len(refused) >= 16
    assert all(result["_meta"]["error"] == "too-many-parked" for result in refused)


@pytest.mark.parametrize("cell", [cell for cell in MODERN_CELLS if cell.down == "http"], ids=str)
@pytest.mark.row("`requestState` of another principal is refused")
async def test_another_principal_cannot_answer(cell: Cell, guarded: World) -> None:
    mine, other = await principal(guarded, "one"), await principal(guarded, "two")
    pair = Pair(cell, mine, guarded, cell.server.key)
    result = await required(pair, "ask_rounds", {"count": 1})
    params = mine.answered(pair.params("ask_rounds", {"count": 1}), result)
    assert (await other.request("tools/call", params)).error["code"] == -32602
    assert (await mine.request("tools/call", params)).text == f"[{pair.key}] Round 0"


@pytest.mark.parametrize("cell", MODERN_CELLS, ids=str)
@pytest.mark.row("`requestState` that was changed or moved to another request is refused")
async def test_a_tampered_state_is_refused(cell: Cell, world: World) -> None:
    pair = Pair(cell, await world.client(cell.client, cell.down), world, cell.server.key)
    client = pair.client
    arguments = {"count": 1, "z": 1.5}
    result = await required(pair, "ask_rounds", arguments)
    params = client.answered(pair.params("ask_rounds", arguments), result)
    state = params["requestState"]
    middle = len(state) // 2
    changed = [
        "", "x", state[:-1], state[1:], state + "A", state.partition(".")[0],
        state[:middle] + ("A" if state[middle] != "A" else "B") + state[middle + 1 :],
        state.replace(".", ".."), f"{state}.{state}",
    ]  # fmt: skip
    wrong: list[Message] = [{**params, "requestState": each} for each in changed]
    wrong += [{**params, "requestState": each} for each in (7, None, {}, [state])]
    wrong += [
        {**params, "arguments": {"count": 2, "z": 1.5}},
        {**params, "arguments": {}},
        {**params, "name": pair.name("ask_elicit")},
        {**params, "inputResponses": []},
        {**params, "inputResponses": {"round0": "accept"}},
    ]
    for each in wrong:
        answer = await client.request("tools/call", each)
        assert answer.error["code"] == -32602, each
    # None of this hurt the call, and the same arguments in another order are the same request.
    done = await client.request("tools/call", {**params, "arguments": {"z": 1.5, "count": 1}})
    assert done.text == f"[{pair.key}] Round 0"


@pytest.mark.parametrize("down", ["http", "stdio"])
@pytest.mark.row("an approval is good for the call that was shown, and for no other")
async def test_an_approval_cannot_be_moved(down: Any, impatient: World) -> None:
    client = await impatient.client("modern", down)
    params = {"name": "asks__echo", "arguments": {"value": "harmless"}}
    result = (await client.request("tools/call", params)).result
    assert result["resultType"] == "input_required"
    given = client.answered(params, result)
    for moved in (
        {**given, "arguments": {"value": "harmful"}},
        {**given, "name": "asks__write"},
        {**given, "name": "lstdio__echo"},
    ):
        assert (await client.request("tools/call", moved)).error["code"] == -32602
    forged = {**params, "inputResponses": given["inputResponses"]}
    assert (await client.request("tools/call", forged)).result["resultType"] == "input_required"
    assert (await client.request("tools/call", given)).text == "harmless"
