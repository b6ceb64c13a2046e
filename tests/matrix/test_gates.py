"""Rows: what may not be called, and what a person is asked first."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from .cells import CELLS, Cell
from .client import PREFIX, Answer, Message, Refusal, decline
from .world import Pair, World

pytestmark = pytest.mark.asyncio(loop_scope="session")

DENY = {"tools": {"deny": ["write", "tool_0*"]}}
CELLS_HERE = [cell for cell in CELLS if cell.server.key in ("lstdio", "mhttp")]
"""The gates do not look at the transport: one server of each era."""


async def four_servers(world: World) -> list[dict[str, Any]]:
    """Two with denied tools, two whose tools ask."""
    entries = []
    for cell in CELLS_HERE[:2]:
        era, transport = cell.server.era, cell.server.transport
        for kind, more in (("deny", {"capability": DENY}), ("ask", {"policy": {"defaultApproval": None}})):
            key = f"{kind}{cell.server.key}"
            entries.append(
                await world.entry(key, era, transport, "--tools", "12", "--journal", str(world.journal(key)), **more)
            )
    return entries


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gated(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    found = World(tmp_path_factory.mktemp("gates"), four_servers)
    yield found
    await found.close()


@pytest_asyncio.fixture(loop_scope="session", params=CELLS_HERE, ids=str)
async def denying(request: pytest.FixtureRequest, gated: World) -> Pair:
    cell: Cell = request.param
    return Pair(cell, await gated.client(cell.client, cell.down), gated, f"deny{cell.server.key}")


@pytest_asyncio.fixture(loop_scope="session", params=CELLS_HERE, ids=str)
async def asking(request: pytest.FixtureRequest, gated: World) -> Pair:
    cell: Cell = request.param
    return Pair(cell, await gated.client(cell.client, cell.down), gated, f"ask{cell.server.key}")


def shape(answer: Answer, name: str) -> str:
    """Everything of an answer but the name that was asked for and the request's id."""
    message = {key: value for key, value in answer.message.items() if key != "id"}
    return f"{answer.status} {json.dumps(message).replace(name, 'NAME')}"


@pytest.mark.row("denied and unknown tools: not listed, not called, identical answers")
async def test_a_denied_tool_is_like_one_that_does_not_exist(denying: Pair) -> None:
    client, world = denying.client, denying.world

    async def called(tool: str) -> str:
        name = denying.name(tool)
        return shape(await client.request("tools/call", {"name": name, "arguments": {}}), name)

    # The first thing that this client says of tools, before its servers are known, and again afterwards.
    for _ in range(2):
        unknown = await called("wrote")
        assert json.loads(unknown.partition(" ")[2])["error"]["code"] == -32602
        assert await called("write") == unknown
        assert await called("tool_003") == unknown
        assert await called("tool_999") == unknown
        names = [tool["name"] for tool in await client.list_all("tools/list")]
        assert denying.name("echo") in names
        assert denying.name("tool_010") not in names
        assert denying.name("write") not in names
    assert (await denying.call("echo", {"value": "allowed"})).text == "allowed"
    assert {call["tool"] for call in world.arrived(denying.key)} == {"echo"}, "no denied call reached the server"
    missing = await client.request("prompts/get", {"name": denying.name("nothing")})
    assert missing.error["code"] == -32602


@pytest.mark.row("ask: a person says yes, through the client's elicitation")
async def test_an_approved_call_is_made(asking: Pair) -> None:
    client, mark = asking.client, len(asking.client.asked)
    before = len(asking.world.arrived(asking.key))
    assert (await asking.call("echo", {"value": "approved"})).text == "approved"
    [(method, params)] = client.asked[mark:]
    assert method == "elicitation/create"
    assert params["mode"] == "form"
    assert params["message"].startswith("Interlock asks: ")
    assert f"{asking.key}/echo" in params["message"]
    assert '"value": "approved"' in params["message"].replace('":"', '": "')
    assert [field["type"] for field in params["requestedSchema"]["properties"].values()] == ["boolean"]
    assert [call["tool"] for call in asking.world.arrived(asking.key)[before:]] == ["echo"]


@pytest.mark.row("ask, then the server's own questions of the same call")
async def test_an_approved_call_may_ask_for_itself(asking: Pair) -> None:
    mark = len(asking.client.asked)
    answer = await asking.call("ask_rounds", {"count": 2})
    assert answer.text == f"[{asking.key}] Round 0,[{asking.key}] Round 1"
    messages = [params["message"] for _, params in asking.client.asked[mark:]]
    assert messages[0].startswith("Interlock asks: ")
    assert messages[1:] == [f"[{asking.key}] Round 0", f"[{asking.key}] Round 1"], "a person is asked once a call"


@pytest.mark.parametrize(
    "answerer",
    [
        decline,
        lambda method, params: {"action": "cancel"},
        lambda method, params: {
            "action": "accept",
            "content": dict.fromkeys(params["requestedSchema"]["properties"], False),
        },
    ],
    ids=["decline", "cancel", "no"],
)
@pytest.mark.row("ask: a person says no, and the call is not made")
async def test_a_declined_call_is_not_made(asking: Pair, answerer: Any) -> None:
    before = len(asking.world.arrived(asking.key))
    asking.client.answerer = answerer
    result = (await asking.call("write", {})).result
    assert result["isError"] is True
    assert result["_meta"]["error"] == "declined"
    assert (result["_meta"]["verdict"], result["_meta"]["retry"]) == ("never_reached", "never")
    assert result["_meta"]["server"] == asking.key
    assert len(asking.world.arrived(asking.key)) == before


@pytest.mark.row("ask: nobody can be asked, so the call needs approval")
async def test_a_client_without_elicitation_gets_told_what_to_do(asking: Pair) -> None:
    before = len(asking.world.arrived(asking.key))
    client = asking.client
    meta: Message | None = None
    if client.era == "modern":
        meta = {f"{PREFIX}clientCapabilities": {"roots": {}}}
    elif asking.cell.down == "http":
        client = await asking.world.new_client("legacy", "http", capabilities={"roots": {}})
    else:
        client.answerer = lambda method, params: Refusal(-32601, "I cannot")
    result = (await client.request("tools/call", asking.params("write"), meta=meta)).result
    assert result["isError"] is True
    assert result["_meta"]["error"] == "needs-approval"
    assert (result["_meta"]["verdict"], result["_meta"]["stage"]) == ("wait", "authorize")
    assert f"interlock call {asking.key}/write" in result["content"][0]["text"]
    assert len(asking.world.arrived(asking.key)) == before
