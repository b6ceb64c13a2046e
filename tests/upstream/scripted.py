"""An HTTP server that does exactly what a test tells it, and counts what reached it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SECONDS = 10.0
MODERN, LEGACY = "2026-07-28", "2025-11-25"


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, object]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    @property
    def rpc(self) -> str:
        """The JSON-RPC method; empty for an answer, and for what is no POST."""
        return str(self.message.get("method", "")) if self.body else ""


class Out:
    """The way back."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    def raw(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None, kind: str = "") -> None:
        fields = {"content-length": str(len(body)), **({"content-type": kind} if kind else {}), **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.raw(f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n".encode() + body)

    def json(self, message: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.send(status, json.dumps(message).encode(), headers, "application/json")

    def result(self, seen: Seen, result: object, headers: Mapping[str, str] | None = None) -> None:
        self.json({"jsonrpc": "2.0", "id": seen.message["id"], "result": result}, 200, headers)

    def error(self, seen: Seen, code: int, status: int = 200, message: str = "no", id: object = "same") -> None:
        given = seen.message["id"] if id == "same" else id
        self.json({"jsonrpc": "2.0", "id": given, "error": {"code": code, "message": message}}, status)

    def begin_events(self, headers: Mapping[str, str] | None = None) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        self.raw(
            f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n{lines}\r\n".encode()
        )

    def event(self, message: object = None, id: str = "", retry: int | None = None) -> None:
        parts = [f"id: {id}\n"] if id else []
        parts += [f"retry: {retry}\n"] if retry is not None else []
        parts.append(f"data: {json.dumps(message) if message is not None else ''}\n\n")
        data = "".join(parts).encode()
        self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    def end_events(self) -> None:
        self.raw(b"0\r\n\r\n")

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """End the connection with RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Script = Callable[[Seen, Out], Awaitable[None]]


@dataclass
class Scripted:
    """`script` is asked for each request; the test may change it as it goes."""

    script: Script
    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def of(self, rpc: str) -> list[Seen]:
        return [each for each in self.seen if each.rpc == rpc]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open.add(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                    first, *lines = head[:-4].split("\r\n")
                    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                    body = await reader.readexactly(int(headers.get("content-length", "0")))
                    method, path, _ = first.split(" ")
                    got = Seen(method, path, headers, body)
                    self.seen.append(got)
                    self.changed.set()
                    await self.script(got, Out(writer))
        finally:
            self.open.discard(writer)
            writer.close()


@asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[Scripted]:
    made = Scripted(script)
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(made.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=64 * 1024 * 1024)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for writer in list(made.open):
            writer.transport.abort()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def free_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


# -- well-behaved parts, to build scripts from ---------------------------------------------------------------------------

DISCOVERED = {
    "supportedVersions": [MODERN],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}
INITIALIZED = {
    "protocolVersion": LEGACY,
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "scripted", "version": "1"},
}
TEXT = {"content": [{"type": "text", "text": "done"}]}


def modern(call: Script) -> Script:
    """A modern server whose `tools/call` is the test's."""

    async def script(seen: Seen, out: Out) -> None:
        if seen.method != "POST":
            out.send(405)
        elif seen.rpc == "server/discover":
            out.result(seen, DISCOVERED)
        elif seen.rpc == "tools/call":
            await call(seen, out)
        elif "id" in seen.message:
            out.error(seen, -32601, 404)
        else:
            out.send(202)

    return script


def legacy(call: Script, *, session: str | None = "session-1", stream: Script | None = None) -> Script:
    """A legacy server whose `tools/call` is the test's, and whose GET stream is `stream` or none."""

    async def script(seen: Seen, out: Out) -> None:
        if seen.method == "GET":
            if stream is not None:
                await stream(seen, out)
            else:
                out.send(405)
        elif seen.method == "DELETE":
            out.send(200)
        elif seen.rpc == "initialize":
            out.result(seen, INITIALIZED, {"mcp-session-id": session} if session else None)
        elif seen.rpc == "server/discover":
            out.error(seen, -32600, 400, "Bad Request: no session")
        elif seen.rpc == "tools/call":
            await call(seen, out)
        elif seen.rpc and "id" in seen.message:
            out.error(seen, -32601)
        else:
            out.send(202)

    return script


async def eventually(condition: Callable[[], object]) -> None:
    """Wait until something is so that nobody reports. Raises TimeoutError where it does not come."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
