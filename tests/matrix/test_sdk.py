"""A second opinion: the official Python SDK's client, in both of its modes, over HTTP and stdio."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client as SdkClient
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated, ToolsListChanged

from .cells import CELLS, Cell
from .client import SECONDS
from .processes import environment
from .world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")
CELLS_HERE = [cell for cell in CELLS if cell.server.transport != "sse"]


async def elicited(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    del context
    if isinstance(params, types.ElicitRequestURLParams):
        return types.ElicitResult(action="accept")
    return types.ElicitResult(
        action="accept", content=dict.fromkeys(params.requested_schema["properties"], params.message)
    )


async def sampled(context: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    del context
    asked = params.messages[0].content
    assert isinstance(asked, types.TextContent)
    return types.CreateMessageResult(
        role="assistant", content=types.TextContent(type="text", text=f"sampled: {asked.text}"), model="m"
    )


async def rooted(context: Any) -> types.ListRootsResult:
    del context
    return types.ListRootsResult(roots=[types.Root(uri="file:///project", name="project")])


@asynccontextmanager
async def sdk_client(cell: Cell, world: World, logs: list[Any]) -> AsyncIterator[SdkClient]:
    async def logged(params: types.LoggingMessageNotificationParams) -> None:
        logs.append((params.level, params.data))

    server: Any
    if cell.down == "http":
        server = f"http://127.0.0.1:{(await world.up()).port}/mcp"
    else:
        home = await world.home("up")
        await world.up()
        command = ["-m", "interlock", "connect", "--home", str(home)]
        server = StdioServerParameters(command=sys.executable, args=command, env=environment(home))
    async with asyncio.timeout(SECONDS):
        client = SdkClient(
            server,
            mode="legacy" if cell.client == "legacy" else "auto",
            elicitation_callback=elicited,
            sampling_callback=sampled,
            list_roots_callback=rooted,
            logging_callback=logged,
            log_level="info" if cell.client == "modern" else None,
        )
        async with client:
            yield client


@pytest.mark.parametrize("cell", CELLS_HERE, ids=str)
@pytest.mark.row("the SDK's client: lists, calls, questions, progress, logs, completion, reads")
async def test_the_sdk_client(cell: Cell, world: World) -> None:
    key, logs, steps = cell.server.key, [], []
    async with sdk_client(cell, world, logs) as client:
        assert client.protocol_version == ("2025-11-25" if cell.client == "legacy" else "2026-07-28")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert f"{key}__tool_004" in tools
        assert tools[f"{key}__tool_004"].output_schema is not None

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            steps.append((progress, total, message))

        echoed = await client.call_tool(f"{key}__echo", {"value": "x"})
        assert echoed.structured_content == {"value": "x"}
        slept = await client.call_tool(f"{key}__sleep", {"ms": 120, "label": "sdk"}, progress_callback=progressed)
        assert slept.content[0].text == "slept sdk"
        assert steps[:2] == [(0, None, "step 0"), (1, None, "step 1")]
        form = await client.call_tool(f"{key}__ask_elicit", {"message": "Which?"})
        assert form.structured_content == {"answer": {"action": "accept", "content": {"colour": f"[{key}] Which?"}}}
        url = await client.call_tool(f"{key}__ask_elicit", {"message": "Sign in", "mode": "url"})
        assert url.content[0].text == "accept"
        rounds = await client.call_tool(f"{key}__ask_rounds", {"count": 2})
        assert rounds.content[0].text == f"[{key}] Round 0,[{key}] Round 1"
        sample = await client.call_tool(f"{key}__ask_sampling", {"prompt": "Say hi"})
        assert sample.content[0].text == "sampled: Say hi"
        roots = await client.call_tool(f"{key}__ask_roots", {})
        assert roots.structured_content["answer"]["roots"][0]["uri"] == "file:///project"
        logs.clear()
        await client.call_tool(f"{key}__log", {"level": "warning", "data": "said"})
        assert ("warning", "said") in logs
        failed = await client.call_tool(f"{key}__fail", {"message": "no"})
        assert failed.is_error
        read = await client.read_resource(f"{key}+lab://blob")
        assert str(read.contents[0].uri) == f"{key}+lab://blob"
        prompt = await client.get_prompt(f"{key}__greet", {"name": "Ada"})
        assert prompt.messages[0].content.text == "Greet Ada"
        done = await client.complete(
            types.PromptReference(type="ref/prompt", name=f"{key}__greet"), {"name": "name", "value": "pa"}
        )
        assert done.completion.values == ["pa-alpha", "pa-beta"]


@pytest.mark.parametrize("cell", [cell for cell in CELLS_HERE if cell.client == "modern"], ids=str)
@pytest.mark.row("the SDK's client: subscriptions")
async def test_the_sdk_client_listens(cell: Cell, world: World) -> None:
    key = cell.server.key
    async with sdk_client(cell, world, []) as client:
        await client.list_tools()
        async with client.listen(tools_list_changed=True, resource_subscriptions=[f"{key}+lab://text"]) as subscription:
            await client.call_tool(f"{key}__touch", {"uri": "lab://text", "after_ms": 20})
            # Other clients of these servers change lists too; the update has to come all the same.
            event = await anext(each async for each in subscription if isinstance(each, ResourceUpdated))
            assert event.uri == f"{key}+lab://text"
            for _ in range(2):  # there, and back to what it was
                await client.call_tool(f"{key}__change_tools", {"after_ms": 20, "tool": "sdk_tool"})
                assert isinstance(await anext(aiter(subscription)), ToolsListChanged)
