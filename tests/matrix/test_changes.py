"""Rows: what a server says outside any call: its lists changed, a resource was updated."""

from __future__ import annotations

import pytest

from .world import Pair

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    ("kind", "tool", "method", "member", "added"),
    [
        ("tools", "change_tools", "tools/list", "name", "__added_later"),
        ("prompts", "change_prompts", "prompts/list", "name", "__added_later"),
        ("resources", "change_resources", "resources/list", "uri", "+lab://added-later"),
    ],
    ids=["tools", "prompts", "resources"],
)
@pytest.mark.row("list changed outside a call: tools, prompts, resources")
async def test_a_changed_list_is_told_and_is_new(
    pair: Pair, kind: str, tool: str, method: str, member: str, added: str
) -> None:
    client = pair.client

    async def listed() -> bool:
        return f"{pair.key}{added}" in [entry[member] for entry in await client.list_all(method)]

    there = await listed()
    async with client.watch(kinds=[kind]) as watch:
        for expected in (not there, there):  # the tool adds what is not there and takes away what is
            mark = client.mark()
            await pair.call(tool, {"after_ms": 20})
            told = await client.until(f"notifications/{kind}/list_changed", since=mark)
            if watch.listen is not None:
                assert told["_meta"]["io.modelcontextprotocol/subscriptionId"] == watch.listen.id
            assert await listed() is expected
            if expected and kind == "tools":
                assert (await pair.call("added_later")).text == "added_later"


@pytest.mark.row("resource subscribe, updated, unsubscribe")
async def test_a_subscribed_resource(pair: Pair) -> None:
    client = pair.client
    text, blob = pair.uri("lab://text"), pair.uri("lab://blob")

    async def touch(uri: str) -> None:
        await pair.call("touch", {"uri": uri, "after_ms": 10})

    async with client.watch(uris=[text]) as watch:
        mark = client.mark()
        await touch("lab://blob")  # nobody asked for it
        await touch("lab://text")
        told = await client.until("notifications/resources/updated", since=mark)
        assert told["uri"] == text
        if watch.listen is not None:
            assert told["_meta"]["io.modelcontextprotocol/subscriptionId"] == watch.listen.id
    async with client.watch(uris=[blob]):
        mark = client.mark()
        await touch("lab://text")  # no longer
        await touch("lab://blob")
        await client.until("notifications/resources/updated", lambda params: params["uri"] == blob, since=mark)
        assert {params["uri"] for params in client.since(mark, "notifications/resources/updated")} == {blob}
