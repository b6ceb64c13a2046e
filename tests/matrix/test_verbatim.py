"""Rows of a gateway with a single server whose names pass as they are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from .cells import CELLS, Cell
from .world import Pair, World

pytestmark = pytest.mark.asyncio(loop_scope="session")

CELLS_HERE = [cell for cell in CELLS if cell.server.key in ("lstdio", "mhttp")]


def declaring(cell: Cell) -> Any:
    async def one_server(world: World) -> list[dict[str, Any]]:
        more = {"names": "verbatim", "capability": {"tools": {"deny": ["write"]}}}
        options = ("--ttl-ms", "7000", "--journal", str(world.journal("only")))
        return [await world.entry("only", cell.server.era, cell.server.transport, *options, **more)]

    return one_server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def worlds(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, World]]:
    found = {cell.server.key: World(tmp_path_factory.mktemp("verbatim"), declaring(cell)) for cell in CELLS_HERE[:2]}
    yield found
    for world in found.values():
        await world.close()


@pytest_asyncio.fixture(loop_scope="session", params=CELLS_HERE, ids=str)
async def single(request: pytest.FixtureRequest, worlds: dict[str, World]) -> Pair:
    cell: Cell = request.param
    world = worlds[cell.server.key]
    return Pair(cell, await world.client(cell.client, cell.down), world, "only")


@pytest.mark.row("single server: names, URIs, instructions, cache members and unknown methods pass")
async def test_a_single_server_shows_through(single: Pair) -> None:
    client = single.client
    listed = (await client.request("tools/list")).result
    assert listed["tools"][0]["name"] == "echo"
    assert listed["_meta"]["com.example/trace"] == "list"
    if client.era == "modern":
        modern = single.cell.server.era == "modern"
        assert (listed["ttlMs"], listed["cacheScope"]) == ((7000, "public") if modern else (0, "private"))
    resources = await client.list_all("resources/list")
    assert resources[0]["uri"] == "lab://text"
    read = (await client.request("resources/read", {"uri": "lab://text"})).result
    assert read["contents"][0] == {"uri": "lab://text", "mimeType": "text/plain", "text": "text"}
    question = (await client.ask("tools/call", {"name": "ask_elicit", "arguments": {"message": "m"}})).structured
    assert question["answer"]["content"] == {"colour": "m"}, "there is nobody that the server could pose as"
    vendor = (await client.request("vendor/echo", {"x": {"b": 1, "a": [1.0]}})).result
    assert vendor["vendorResult"] is True
    assert json.dumps(vendor["params"]["x"]) == '{"b": 1, "a": [1.0]}'
    unknown = await client.request("vendor/nothing", {})
    assert unknown.error["code"] == -32601


@pytest.mark.row("single server: denied and unknown tools have identical answers")
async def test_a_denied_tool_is_like_one_that_does_not_exist(single: Pair) -> None:
    async def called(name: str) -> str:
        answer = await single.client.request("tools/call", {"name": name, "arguments": {}})
        message = {key: value for key, value in answer.message.items() if key != "id"}
        return f"{answer.status} {json.dumps(message).replace(name, 'NAME')}"

    assert await called("write") == await called("wrote")
    assert "write" not in [tool["name"] for tool in await single.client.list_all("tools/list")]
    assert "write" not in [call["tool"] for call in single.world.arrived("only")]
