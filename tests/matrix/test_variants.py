"""Rows: servers and clients that are right in a way of their own: no session ids, JSON only, always a stream, old revisions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from .cells import DOWNSTREAMS
from .client import PREFIX, Client, Era
from .processes import fixture_command, stdio_entry
from .world import Down, World

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEYS = ("sessionless", "jsononly", "streaming", "silent", "banner")
KIND_IDS = [f"{era}-{down}" for era, down in DOWNSTREAMS]


async def variants(world: World) -> list[dict[str, Any]]:
    return [
        await world.entry("sessionless", "legacy", "http", "--no-sessions"),
        await world.entry("jsononly", "legacy", "http", "--json-only"),
        await world.entry("streaming", "modern", "http", "--always-stream"),
        # Says nothing to what comes before `initialize`, so that its era is found by waiting.
        await world.entry("silent", "legacy", "stdio", "--before-initialize", "silent"),
        stdio_entry("banner", fixture_command("modern", "--stdio", "--banner", "Welcome! {not json")),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def odd(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    found = World(tmp_path_factory.mktemp("variants"), variants)
    yield found
    await found.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clients(odd: World) -> dict[tuple[Era, Down], Client]:
    """All four, each having called the silent server at the same time, so that its silence is waited for once."""
    await odd.up()
    found = await asyncio.gather(*(odd.client(era, down) for era, down in DOWNSTREAMS))
    first = {"name": "silent__echo", "arguments": {"value": "there"}}
    answers = await asyncio.gather(*(client.request("tools/call", first) for client in found))
    assert [answer.text for answer in answers] == ["there"] * 4
    return dict(zip(DOWNSTREAMS, found, strict=True))


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(("era", "down"), DOWNSTREAMS, ids=KIND_IDS)
@pytest.mark.row(
    "servers without session ids, with JSON answers only, always streaming, silent at first, with a banner"
)
async def test_a_server_with_a_way_of_its_own(
    clients: dict[tuple[Era, Down], Client], era: Era, down: Down, key: str
) -> None:
    client = clients[era, down]

    async def call(tool: str, meta: Any = None, /, **arguments: Any) -> str:
        return (await client.ask("tools/call", {"name": f"{key}__{tool}", "arguments": arguments}, meta=meta)).text

    assert f"{key}__echo" in [tool["name"] for tool in await client.list_all("tools/list")]
    assert await call("echo", value="x") == "x"
    assert await call("ask_rounds", count=2) == f"[{key}] Round 0,[{key}] Round 1"
    assert await call("ask_sampling", prompt="Say hi") == "sampled: Say hi"
    mark = client.mark()
    assert await call("sleep", {"progressToken": f"p-{key}"}, ms=120, label="x") == "slept x"
    await client.until("notifications/progress", lambda params: params["progressToken"] == f"p-{key}", since=mark)
    if era == "legacy":
        await client.request("logging/setLevel", {"level": "info"})
    mark = client.mark()
    assert await call("log", {f"{PREFIX}logLevel": "info"} if era == "modern" else None, data=key) == "logged"
    if era == "legacy" or key != "jsononly":
        # With JSON answers a log message comes on another stream, perhaps after the answer: then the modern era has no
        # request left that it could belong to (docs/eras.md).
        await client.until("notifications/message", lambda params: params["data"] == key, since=mark)
    text = f"{key}+lab://text"
    async with client.watch(["tools"], [text]):
        mark = client.mark()
        await call("touch", uri="lab://text", after_ms=10)
        await client.until("notifications/resources/updated", lambda params: params["uri"] == text, since=mark)
        for _ in range(2):  # there, and back to what it was
            mark = client.mark()
            await call("change_tools", after_ms=10, tool="varied")
            await client.until("notifications/tools/list_changed", since=mark)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26"])
@pytest.mark.parametrize("key", ["lstdio", "lhttp", "lsse", "mstdio", "mhttp"])
@pytest.mark.parametrize("down", ["http", "stdio"])
@pytest.mark.row("clients of older revisions")
async def test_a_client_of_an_older_revision(world: World, down: Down, key: str, version: str) -> None:
    client = world.clients.get((version, down))
    if client is None:
        client = world.clients[version, down] = await world.new_client("legacy", down, version=version)
    assert client.hello["protocolVersion"] == version
    assert f"{key}__tool_004" in [tool["name"] for tool in await client.list_all("tools/list")]
    assert (await client.request("tools/call", {"name": f"{key}__echo", "arguments": {"value": "old"}})).text == "old"
    asked = await client.ask("tools/call", {"name": f"{key}__ask_sampling", "arguments": {"prompt": "hi"}})
    assert asked.text == "sampled: hi"
    assert (await client.request("ping")).result == {}
