"""Rows: every page of every list, definitions intact, instructions and capabilities."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlock.lab.matrix import MatrixOptions, matrix_content

from .cells import CELLS, UPSTREAMS, Cell
from .client import Message
from .world import Pair, World

pytestmark = pytest.mark.asyncio(loop_scope="session")

SIZE = ("--tools", "125", "--prompts", "60", "--resources", "60", "--page-size", "50")
DECLARED_READS = {"tool_002": {"read": True}}


async def five_large_servers(world: World) -> list[dict[str, Any]]:
    return [
        await world.entry(each.key, each.era, each.transport, *SIZE, tools=DECLARED_READS)
        for each in UPSTREAMS.values()
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def library(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    found = World(tmp_path_factory.mktemp("lists"), five_large_servers)
    yield found
    await found.close()


@pytest_asyncio.fixture(loop_scope="session", params=CELLS, ids=str)
async def pair(request: pytest.FixtureRequest, library: World) -> Pair:
    """Each of the twenty cells, with servers that have much to list."""
    cell: Cell = request.param
    client = await library.client(cell.client, cell.down)
    if not client.inbox[2:]:
        await client.list_all("tools/list")  # the first list starts the servers, and may come before the last of them
    return Pair(cell, client, library, cell.server.key)


def offered(key: str) -> dict[str, list[Message]]:
    """What the fixture server of this name says that it offers, as it says it."""
    content = matrix_content(MatrixOptions(name=key, tools=125, prompts=60, resources=60, page_size=50))
    return {
        "tools": [dict(tool.definition) for tool in content.tools.values()],
        "prompts": [dict(prompt.definition) for prompt in content.prompts.values()],
        "resources": [dict(resource.definition) for resource in content.resources.values()],
        "templates": [dict(template.definition) for template in content.templates],
    }


def spelled(entries: list[Message]) -> list[str]:
    """Entries as text: key order and the spelling of numbers count."""
    return [json.dumps(entry) for entry in entries]


@pytest.mark.row("all pages: 125 tools, 60 prompts, 60 resources, page size 50")
async def test_every_page_of_every_list(pair: Pair) -> None:
    tools = [tool["name"] for tool in await pair.client.list_all("tools/list")]
    assert len(tools) == len(set(tools))
    own = [name for name in tools if name.startswith(f"{pair.key}__")]
    assert own == [pair.name(str(tool["name"])) for tool in offered(pair.key)["tools"]]
    assert own[-125:] == [pair.name(f"tool_{number:03}") for number in range(125)]

    prompts = [prompt["name"] for prompt in await pair.client.list_all("prompts/list")]
    assert [name for name in prompts if name.startswith(f"{pair.key}__")] == [
        pair.name(name) for name in ("greet", "ask_prompt", *(f"prompt_{number:03}" for number in range(60)))
    ]

    resources = [resource["uri"] for resource in await pair.client.list_all("resources/list")]
    assert [uri for uri in resources if uri.startswith(f"{pair.key}+")] == [
        pair.uri(f"lab://{path}") for path in ("text", "blob", "asking", *(f"numbered/{n}" for n in range(60)))
    ]

    templates = [template["uriTemplate"] for template in await pair.client.list_all("resources/templates/list")]
    assert [uri for uri in templates if uri.startswith(f"{pair.key}+")] == [pair.uri("lab://item/{id}")]


@pytest.mark.row("definitions intact: annotations, output schemas, _meta, icons, unknown fields, key order")
async def test_definitions_arrive_as_they_were_sent(pair: Pair) -> None:
    expected = offered(pair.key)
    for tool in expected["tools"]:
        tool["name"] = pair.name(str(tool["name"]))
        annotations = tool.get("annotations")
        if (
            isinstance(annotations, dict)
            and annotations.get("readOnlyHint") is True
            and not tool["name"].endswith("002")
        ):
            # The hint alone makes some hosts run a tool: it passes only where the manifest declares a read.
            tool["annotations"] = {name: value for name, value in annotations.items() if name != "readOnlyHint"}
    tools = [tool for tool in await pair.client.list_all("tools/list") if tool["name"].startswith(f"{pair.key}__")]
    assert spelled(tools) == spelled(expected["tools"])
    fidelity = next(tool for tool in tools if tool["name"] == pair.name("fidelity"))
    assert fidelity["icons"][0]["xIcon"] == 1
    assert fidelity["annotations"] == {"title": "F", "xAnn": 1}
    assert fidelity["outputSchema"] == {"type": "object", "properties": {"big": {"type": "integer"}}}
    assert fidelity["_meta"] == {"com.example/tool": {"n": 1}}
    assert fidelity["xTool"] == [1, {"deep": 2.5}]
    assert fidelity["inputSchema"]["$defs"]["node"]["xDef"] == 1
    declared = next(tool for tool in tools if tool["name"] == pair.name("tool_002"))
    assert declared["annotations"] == {"readOnlyHint": True, "xRank": 2}

    for kind, member, exposed in (
        ("prompts", "name", pair.name),
        ("resources", "uri", pair.uri),
        ("templates", "uriTemplate", pair.uri),
    ):
        for entry in expected[kind]:
            entry[member] = exposed(str(entry[member]))
        method = "resources/templates/list" if kind == "templates" else f"{kind}/list"
        listed = [
            e for e in await pair.client.list_all(method) if e[member].startswith((f"{pair.key}__", f"{pair.key}+"))
        ]
        assert spelled(listed) == spelled(expected[kind])


@pytest.mark.row("instructions and unknown capabilities")
async def test_instructions_and_capabilities_of_a_server_reach_the_client(pair: Pair) -> None:
    client = pair.client
    again = await client.request(
        "server/discover" if client.era == "modern" else "initialize",
        None
        if client.era == "modern"
        else {
            "protocolVersion": client.version,
            "capabilities": client.capabilities,
            "clientInfo": {"name": "m", "version": "1"},
        },
    )
    assert f"# Server {pair.key}\nInstructions of {pair.key}: call `echo` first." in again.result["instructions"]
    capabilities = again.result["capabilities"]
    assert capabilities["experimental"] == {"com.example/lab": {"level": 2}}
    assert capabilities["xCap"] == {"z": 1}
    assert capabilities["resources"] == {"subscribe": True, "listChanged": True}


@pytest.mark.row("a list names no server: opaque cursors, cache members in the modern era only")
async def test_list_results_have_the_members_of_the_clients_era(pair: Pair) -> None:
    result = (await pair.client.request("tools/list")).result
    if pair.client.era == "legacy":
        assert not {"resultType", "ttlMs", "cacheScope"} & result.keys()
        assert "_meta" not in result
        return
    assert result["resultType"] == "complete"
    assert result["ttlMs"] == 0, "servers of the legacy era give no time to live, so the least is none"
    assert result["cacheScope"] == "private"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "interlock"
    wrong = await pair.client.request("tools/list", {"cursor": "bm90IG91cnM="})
    assert wrong.error["code"] == -32602
