"""Everything that a module of tests shares in one process: fixture servers, gateways and clients, started when first used."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .cells import Cell
from .client import Answer, Client, Era, HttpClient, Message, StdioClient, accept
from .processes import (
    Running,
    connect,
    credential,
    fixture_command,
    fixture_server,
    reserved_port,
    stdio_entry,
    up,
    url_entry,
    write_home,
)

Down = Literal["http", "stdio"]


@dataclass(slots=True)
class World:
    """`declare` starts what has to run and gives the manifest's documents."""

    folder: Path
    declare: Callable[[World], Awaitable[list[dict[str, Any]]]]
    options: Sequence[str] = ()
    """Further options of the gateways."""
    program: Sequence[str] = ("-m", "interlock")
    servers: dict[str, Running] = field(default_factory=dict)
    gateways: list[Running] = field(default_factory=list)
    clients: dict[tuple[str, str], Client] = field(default_factory=dict)
    loners: list[Client] = field(default_factory=list)
    held: dict[str, socket.socket] = field(default_factory=dict)
    """The ports that are kept for servers which start later."""
    http: Running | None = None
    _entries: list[dict[str, Any]] | None = None

    # -- servers -------------------------------------------------------------------------------------------------------

    async def serve(self, key: str, era: str, transport: str, *options: str, port: int = 0) -> Running:
        """Start a matrix server over HTTP or HTTP+SSE, or start it again on the port that it had."""
        old = self.servers.get(key)
        port = port or (old.port if old is not None else 0)
        self.servers[key] = await fixture_server(era, transport, "--name", key, *options, port=port)
        return self.servers[key]

    async def entry(
        self, key: str, era: str, transport: str, *options: str, port: int = 0, **more: Any
    ) -> dict[str, Any]:
        """The manifest's document of a matrix server. One over HTTP is started here, unless a `port` for later is given."""
        if transport == "stdio":
            return stdio_entry(key, fixture_command(era, "--stdio", "--name", key, *options), **more)
        if not port:
            port = (self.servers.get(key) or await self.serve(key, era, transport, *options)).port
        return url_entry(key, transport, port, **more)

    def port(self, key: str) -> int:
        """The port that is kept for a server of this key."""
        if key not in self.held:
            self.held[key] = reserved_port()
        return int(self.held[key].getsockname()[1])

    def journal(self, key: str) -> Path:
        """Where a server started with `--journal` writes down the calls that reach it."""
        return self.folder / f"{key}.journal"

    def arrived(self, key: str) -> list[Message]:
        """The tool calls that reached a server, in order, whichever of its processes they reached."""
        file = self.journal(key)
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []

    # -- gateways and clients ------------------------------------------------------------------------------------------

    async def home(self, name: str) -> Path:
        if self._entries is None:
            self._entries = await self.declare(self)
        return write_home(self.folder / name, self._entries)

    async def up(self) -> Running:
        """The one HTTP gateway, which clients of both eras use."""
        if self.http is None:
            self.http = await up(await self.home("up"), *self.options, program=self.program)
            self.gateways.append(self.http)
        return self.http

    async def client(self, era: Era, down: Down) -> Client:
        """The shared client of an era and transport, with nothing under way."""
        found = self.clients.get((era, down))
        if found is None:
            found = self.clients[era, down] = await self._new(era, down)
        found.answerer = accept
        return found

    async def new_client(self, era: Era, down: Down, **options: Any) -> Client:
        """A client of its own: another session, or another `connect` process."""
        client = await self._new(era, down, **options)
        self.loners.append(client)
        return client

    async def _new(self, era: Era, down: Down, **options: Any) -> Client:
        if down == "http":
            client: Client = HttpClient(era, port=(await self.up()).port, **options)
        else:
            home = await self.home(f"connect-{len(self.gateways)}")
            gateway = await connect(home, program=self.program)
            self.gateways.append(gateway)
            client = StdioClient(era, process=gateway.process, **options)
        await client.open()
        return client

    async def token(self, name: str) -> str:
        """The credential of a host at the HTTP gateway."""
        return await credential(await self.home("up"), name)

    async def close(self) -> None:
        for client in (*self.clients.values(), *self.loners):
            await client.close()
        await asyncio.gather(*(each.stop() for each in self.gateways))
        await asyncio.gather(*(each.stop() for each in self.servers.values()))
        for held in self.held.values():
            held.close()
        for gateway in self.gateways:
            assert gateway.process.returncode == 0, f"a gateway did not end in order:\n{''.join(gateway.said)}"
            assert "Traceback" not in "".join(gateway.said), "".join(gateway.said)


@dataclass(slots=True)
class Pair:
    """One cell at work: calls by the server's own names."""

    cell: Cell
    client: Client
    world: World
    key: str

    def name(self, item: str) -> str:
        return f"{self.key}__{item}"

    def uri(self, uri: str) -> str:
        return f"{self.key}+{uri}"

    def params(self, tool: str, arguments: Message | None = None) -> Message:
        return {"name": self.name(tool), "arguments": arguments or {}}

    async def call(self, tool: str, arguments: Message | None = None, **options: Any) -> Answer:
        """Call a tool and answer what its server asks."""
        return await self.client.ask("tools/call", self.params(tool, arguments), **options)
