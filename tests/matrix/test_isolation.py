"""Rows: nothing of one client reaches another, and what is a client's own ends with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from .cells import CELLS, Cell
from .client import PREFIX, Client, Era, HttpClient, StdioClient
from .processes import connect, gone
from .world import Down, Pair, World

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def servers(world: World) -> list[dict[str, Any]]:
    """Legacy servers that log from `warning` unless told otherwise, and a modern one."""
    return [
        await world.entry("lstdio", "legacy", "stdio", "--log-level", "warning"),
        await world.entry("lhttp", "legacy", "http", "--log-level", "warning"),
        await world.entry("lsse", "legacy", "sse", "--log-level", "warning"),
        await world.entry("mstdio", "modern", "stdio"),
        await world.entry("shared", "legacy", "stdio", processes="shared"),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def apart(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A gateway over HTTP with credentials, which `connect` processes may join."""
    found = World(tmp_path_factory.mktemp("isolation"), servers, options=("--with-credential",))
    yield found
    await found.close()


async def joined(world: World, era: Era, host: str) -> Client:
    """The client of a `connect` process that has joined the running gateway."""
    await world.up()
    gateway = await connect(await world.home("up"), "--host", host, alone=False)
    world.gateways.append(gateway)
    client = StdioClient(era, process=gateway.process)
    world.loners.append(client)
    await client.open()
    return client


async def credited(world: World, era: Era, host: str) -> Client:
    client = HttpClient(era, port=(await world.up()).port, token=await world.token(host))
    world.loners.append(client)
    await client.open()
    return client


MAKERS = {"http": credited, "stdio": joined}


async def two(world: World, row: str, era: Era, down: Down) -> list[Client]:
    """The two clients of a row, whatever servers it goes through."""
    for host in ("one", "two"):
        if (row, f"{era} {down} {host}") not in world.clients:
            world.clients[row, f"{era} {down} {host}"] = await MAKERS[down](world, era, host)
    return [world.clients[row, f"{era} {down} {host}"] for host in ("one", "two")]


KINDS: list[tuple[Era, Down]] = [("legacy", "http"), ("legacy", "stdio"), ("modern", "http"), ("modern", "stdio")]
KIND_IDS = [f"{era}-{down}" for era, down in KINDS]


async def pid_of(client: Client, key: str) -> int:
    seen = (await client.request("tools/call", {"name": f"{key}__whoami", "arguments": {}})).structured
    return int(seen["pid"])


@pytest.mark.parametrize(("era", "down"), KINDS, ids=KIND_IDS)
@pytest.mark.row("two clients of a legacy stdio server: separate processes, which end with their clients")
async def test_two_clients_have_separate_processes(apart: World, era: Era, down: Down) -> None:
    first, second = [await MAKERS[down](apart, era, host) for host in ("one", "two")]
    pids = [await pid_of(client, "lstdio") for client in (first, second)]
    assert pids[0] != pids[1]
    assert [await pid_of(client, "lstdio") for client in (first, second)] == pids, "each keeps its own"
    # A modern server keeps nothing between requests: one process serves everybody.
    assert await pid_of(first, "mstdio") == await pid_of(second, "mstdio")
    if era == "legacy" or down == "stdio":
        await end(apart, second)
        await gone(pids[1])
        assert await pid_of(first, "lstdio") == pids[0]


async def end(world: World, client: Client) -> None:
    """A host that leaves: it deletes its session, or ends its `connect` process."""
    if isinstance(client, StdioClient):
        running = next(each for each in world.gateways if each.process is client.process)
        await running.stop()
    await client.close()


@pytest.mark.parametrize("key", ["lstdio", "lhttp", "lsse"])
@pytest.mark.parametrize(("era", "down"), KINDS, ids=KIND_IDS)
@pytest.mark.row(
    "two clients of a legacy server: no list change, update, log message or question of one reaches the other"
)
async def test_nothing_of_one_client_reaches_another(apart: World, era: Era, down: Down, key: str) -> None:
    first, second = await two(apart, "nothing", era, down)
    meta = {f"{PREFIX}logLevel": "debug"} if era == "modern" else {}
    for client in (first, second):
        await client.list_all("tools/list")
        if era == "legacy":
            await client.request("logging/setLevel", {"level": "debug"})
    kinds = ["tools"] if key == "lstdio" else []  # one process serves both over HTTP, and its list is one
    text, blob = f"{key}+lab://text", f"{key}+lab://blob"
    async with first.watch(kinds, [text]), second.watch(kinds, [blob]):
        marks = [client.mark() for client in (first, second)]
        asked = len(second.asked)
        await call(first, key, "log", {"data": "private"}, meta)
        await call(first, key, "sleep", {"ms": 60}, {"progressToken": "p", **meta})
        await call(first, key, "ask_elicit", {"message": "private"}, meta)
        await call(first, key, "touch", {"uri": "lab://text", "after_ms": 0}, meta)
        await first.until("notifications/resources/updated", since=marks[0])
        if kinds:
            await call(first, key, "change_tools", {"after_ms": 0}, meta)
            await first.until("notifications/tools/list_changed", since=marks[0])
        # What the second hears after all this is only its own.
        await call(second, key, "touch", {"uri": "lab://blob", "after_ms": 0}, meta)
        await second.until("notifications/resources/updated", lambda params: params["uri"] == blob, since=marks[1])
        heard = [m for m in second.inbox[marks[1] :] if "method" in m and "acknowledged" not in m["method"]]
        assert [message["method"] for message in heard] == ["notifications/resources/updated"]
        assert len(second.asked) == asked
        own = [m["method"] for m in first.inbox[marks[0] :] if m.get("method") == "notifications/message"]
        assert own == ["notifications/message"]


async def call(client: Client, key: str, tool: str, arguments: Any, meta: Any) -> None:
    answer = await client.ask("tools/call", {"name": f"{key}__{tool}", "arguments": arguments}, meta=meta)
    assert answer.result.get("isError") is not True, answer.message


@pytest.mark.parametrize("key", ["lstdio", "lhttp", "lsse"])
@pytest.mark.parametrize(("era", "down"), KINDS, ids=KIND_IDS)
@pytest.mark.row("a log level holds for sessions that are younger than it, and for each client alone")
async def test_a_log_level_reaches_sessions_that_start_later(apart: World, era: Era, down: Down, key: str) -> None:
    talkative, quiet = await two(apart, "level", era, down)
    levels = {id(talkative): "debug", id(quiet): "error"}
    if era == "legacy":
        # Before anything has started the servers for these clients; the servers themselves log from `warning`.
        for client in (talkative, quiet):
            await client.request("logging/setLevel", {"level": levels[id(client)]})
    marks = {id(client): client.mark() for client in (talkative, quiet)}
    for client in (talkative, quiet):
        meta = {f"{PREFIX}logLevel": levels[id(client)]} if era == "modern" else {}
        for level in ("info", "critical"):
            await call(client, key, "log", {"level": level}, meta)
        await client.until("notifications/message", lambda p: p["level"] == "critical", since=marks[id(client)])
    heard = [
        [params["level"] for params in client.since(marks[id(client)], "notifications/message")]
        for client in (talkative, quiet)
    ]
    assert heard == [["info", "critical"], ["critical"]]


@pytest.mark.parametrize(("era", "down"), KINDS, ids=KIND_IDS)
@pytest.mark.row("a shared legacy process: one for all, and nothing that may be another's goes to anybody")
async def test_a_shared_process(apart: World, era: Era, down: Down) -> None:
    first, second = [await MAKERS[down](apart, era, host) for host in ("one", "two")]
    assert await pid_of(first, "shared") == await pid_of(second, "shared")
    alone = await first.ask("tools/call", {"name": "shared__ask_elicit", "arguments": {"message": "m"}})
    assert alone.structured["answer"]["content"] == {"colour": "[shared] m"}
    marks = [client.mark() for client in (first, second)]
    asked = [len(client.asked) for client in (first, second)]
    meta = {f"{PREFIX}logLevel": "debug"} if era == "modern" else {}
    sleeping = second.start(
        "tools/call",
        {"name": "shared__sleep", "arguments": {"ms": 60_000, "label": "two"}},
        meta={"progressToken": "two", **meta},
    )
    await second.until("notifications/progress", lambda params: params["progressToken"] == "two", since=marks[1])
    # Two callers are under way: a question and a log message name no call, so they could be either's.
    refused = await first.ask("tools/call", {"name": "shared__ask_elicit", "arguments": {"message": "m"}}, meta=meta)
    assert refused.result["isError"] is True
    await call(first, "shared", "log", {"level": "critical", "data": "private"}, meta)
    await call(first, "shared", "sleep", {"ms": 60, "label": "one"}, {"progressToken": "one", **meta})
    assert [len(client.asked) for client in (first, second)] == asked
    for client, mark, own in ((first, marks[0], "one"), (second, marks[1], "two")):
        assert client.since(mark, "notifications/message") == []
        assert {params["progressToken"] for params in client.since(mark, "notifications/progress")} == {own}
    await sleeping.cancel()


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.server.key in ("lstdio", "mstdio")], ids=str)
@pytest.mark.row("ids of two clients that use the same ones do not meet")
async def test_the_same_id_of_two_clients(cell: Cell, world: World) -> None:
    pairs = [Pair(cell, await world.new_client(cell.client, cell.down), world, cell.server.key) for _ in range(2)]
    calls = [
        pair.client.start("tools/call", pair.params("echo", {"value": str(n), "delay_ms": 100 - 100 * n}), id=4711)
        for n, pair in enumerate(pairs)
    ]
    assert [(await each.answer()).text for each in calls] == ["0", "1"]
