"""What the matrix shares: in each test process the fixture servers, three gateways and four clients, started when first used."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio

from .cells import CELLS, UPSTREAMS, Cell
from .client import Answer, Client, Era, HttpClient, Message, StdioClient, accept
from .processes import Running, connect, fixture_command, fixture_server, stdio_entry, up, url_entry, write_home

DECLARED_READS = {"tool_002": {"read": True}}
SIZE = ("--tools", "125", "--prompts", "60", "--resources", "60", "--page-size", "50")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "row(text): the row of the behaviour matrix that a test fills")


@dataclass(slots=True)
class World:
    """Everything that runs in this test process."""

    folder: Path
    servers: dict[str, Running] = field(default_factory=dict)
    gateways: list[Running] = field(default_factory=list)
    clients: dict[tuple[str, str], Client] = field(default_factory=dict)
    http: Running | None = None

    async def entries(self) -> list[dict[str, Any]]:
        entries = []
        for upstream in UPSTREAMS.values():
            options = ("--name", upstream.key, *SIZE)
            if upstream.transport == "stdio":
                entries.append(stdio_entry(upstream.key, fixture_command(upstream.era, "--stdio", *options), tools=DECLARED_READS))
                continue
            if upstream.key not in self.servers:
                self.servers[upstream.key] = await fixture_server(upstream.era, upstream.transport, *options)
            entries.append(url_entry(upstream.key, upstream.transport, self.servers[upstream.key].port, tools=DECLARED_READS))
        return entries

    async def up(self) -> Running:
        """The one HTTP gateway, which clients of both eras use."""
        if self.http is None:
            self.http = await up(write_home(self.folder / "up", await self.entries()))
            self.gateways.append(self.http)
        return self.http

    async def client(self, era: Era, down: Literal["http", "stdio"]) -> Client:
        """The shared client of an era and transport. Its catalogue is there, and nothing is under way."""
        found = self.clients.get((era, down))
        if found is None:
            found = self.clients[era, down] = await self.new_client(era, down)
            await found.list_all("tools/list")
        found.answerer = accept
        return found

    async def new_client(self, era: Era, down: Literal["http", "stdio"], **options: Any) -> Client:
        """A client of its own: another session, or another `connect` process."""
        if down == "http":
            client: Client = HttpClient(era, port=(await self.up()).port, **options)
        else:
            home = write_home(self.folder / f"connect-{len(self.gateways)}", await self.entries())
            gateway = await connect(home)
            self.gateways.append(gateway)
            client = StdioClient(era, process=gateway.process, **options)
        await client.open()
        return client

    async def close(self) -> None:
        for client in self.clients.values():
            await client.close()
        await asyncio.gather(*(each.stop() for each in self.gateways))
        await asyncio.gather(*(each.stop() for each in self.servers.values()))


@dataclass(slots=True)
class Pair:
    """One cell at work: calls by the server's own names."""

    cell: Cell
    client: Client
    world: World

    @property
    def key(self) -> str:
        return self.cell.server.key

    def name(self, item: str) -> str:
        return f"{self.key}__{item}"

    def uri(self, uri: str) -> str:
        return f"{self.key}+{uri}"

    def params(self, tool: str, arguments: Message | None = None) -> Message:
        return {"name": self.name(tool), "arguments": arguments or {}}

    async def call(self, tool: str, arguments: Message | None = None, **options: Any) -> Answer:
        """Call a tool and answer what its server asks."""
        return await self.client.ask("tools/call", self.params(tool, arguments), **options)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    found = World(tmp_path_factory.mktemp("matrix"))
    yield found
    await found.close()


@pytest_asyncio.fixture(loop_scope="session", params=CELLS, ids=str)
async def pair(request: pytest.FixtureRequest, world: World) -> Pair:
    """Each of the twenty cells."""
    cell: Cell = request.param
    return Pair(cell, await world.client(cell.client, cell.down), world)


@pytest.fixture(autouse=True)
def cell_in_report(request: pytest.FixtureRequest, record_property: Any) -> None:
    """Name the row and the cell in the JUnit report, from which docs/matrix.md is made."""
    row = request.node.get_closest_marker("row")
    if row is not None:
        record_property("row", row.args[0])
    cell = getattr(request.node, "callspec", None)
    found = [each for each in (cell.params.values() if cell else ()) if isinstance(each, Cell)]
    if found:
        record_property("cell", json.dumps([found[0].client, found[0].down, found[0].server.era, found[0].server.transport]))
