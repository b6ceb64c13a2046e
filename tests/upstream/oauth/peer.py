"""A scripted HTTP server on loopback for the tests of what talks to authorization servers. It keeps every request it got."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def form(self) -> dict[str, list[str]]:
        return parse_qs(self.body.decode(), strict_parsing=True, keep_blank_values=True)

    def json(self) -> dict[str, object]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value


@dataclass(frozen=True)
class Say:
    """One answer. `raw` replaces everything, byte for byte; `hang` sends nothing at all and keeps the connection."""

    status: int = 200
    body: object = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    hang: bool = False

    def bytes(self) -> bytes:
        if self.raw is not None:
            return self.raw
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        head = {"content-type": "application/json", "content-length": str(len(body)), **self.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        return f"HTTP/1.1 {self.status} X\r\n{lines}\r\n".encode() + body


Script = Say | Callable[[Seen], Say]


class Peer:
    """`routes`: what to answer at which path; everything else is a 404."""

    def __init__(self) -> None:
        self.routes: dict[str, Script] = {}
        self.seen: list[Seen] = []
        self.arrived = asyncio.Event()
        """Set from the first request on."""
        self.connections = 0
        self.root = ""

    def paths(self) -> list[str]:
        return [each.path for each in self.seen]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                first, *lines = head.split("\r\n")
                headers = {
                    name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, target, _version = first.split(" ")
                request = Seen(method, target, headers, body)
                self.seen.append(request)
                self.arrived.set()
                script = self.routes.get(target.partition("?")[0], Say(404))
                say = script(request) if callable(script) else script
                if say.hang:
                    await reader.read()  # until the client gives up
                    return
                writer.write(say.bytes())
                await writer.drain()
                if say.raw is not None:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def peer(tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    """Runs one while the block lasts, at 127.0.0.1, with `tls` by https."""
    running = Peer()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(running._serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=4 * 1024 * 1024, ssl=tls)
    scheme = "http" if tls is None else "https"
    running.root = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield running
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
