"""Upstream HTTP clients to choose from: each posts one JSON body to the MCP endpoint and returns the answer's body.

The two raw ones hold a free list of keep-alive connections; a connection that the server closed is replaced. They read
only answers with a Content-Length, which is all that the responder sends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import httptools

MODERN = "2026-07-28"


class UpstreamClient(Protocol):
    """Posts to one URL, http://127.0.0.1:PORT/mcp."""

    async def post(self, body: bytes, tool: str) -> bytes:
        """The body of the answer; raises ConnectionError when the connection breaks."""
        ...


class _HandParsed(asyncio.Protocol):
    """One connection whose answers are cut out with bytes.find."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.waiting: asyncio.Future[bytes] | None = None
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        pending = self._pending + data if self._pending else data
        head_end = pending.find(b"\r\n\r\n")
        if head_end >= 0:
            head = pending[:head_end].lower()
            at = head.find(b"content-length:") + 15
            line_end = head.find(b"\r\n", at)
            end = head_end + 4 + int(head[at : line_end if line_end > 0 else head_end])
            if len(pending) >= end:
                body = pending[head_end + 4 : end]
                pending = pending[end:]
                waiting, self.waiting = self.waiting, None
                if waiting is not None and not waiting.done():
                    waiting.set_result(body)
        self._pending = pending

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_exception(ConnectionError("the upstream closed the connection"))


class _ToolsParsed(asyncio.Protocol):
    """One connection whose answers are parsed by httptools."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.waiting: asyncio.Future[bytes] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, chunk: bytes) -> None:
        self._chunks.append(chunk)

    def on_message_complete(self) -> None:
        body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        waiting, self.waiting = self.waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(body)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_exception(ConnectionError("the upstream closed the connection"))


class RawClient:
    """The raw keep-alive client, with one of the two answer parsers."""

    def __init__(self, port: int, connection: type[_HandParsed] | type[_ToolsParsed] = _HandParsed) -> None:
        self._port = port
        self._connection = connection
        self._free: list[_HandParsed | _ToolsParsed] = []
        self._head_start = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\n"
            "Mcp-Method: tools/call\r\nMcp-Name: "
        ).encode()

    async def post(self, body: bytes, tool: str) -> bytes:
        free = self._free
        connection = free.pop() if free else await self._connect()
        while connection.transport is None:
            connection = free.pop() if free else await self._connect()
        connection.waiting = waiting = asyncio.get_running_loop().create_future()
        head = b"".join((self._head_start, tool.encode(), b"\r\nContent-Length: %d\r\n\r\n" % len(body), body))
        connection.transport.write(head)
        answer: bytes = await waiting
        free.append(connection)
        return answer

    async def _connect(self) -> _HandParsed | _ToolsParsed:
        loop = asyncio.get_running_loop()
        connection = self._connection()
        await loop.create_connection(lambda: connection, "127.0.0.1", self._port)
        return connection


def raw_httptools(port: int) -> RawClient:
    """The raw client with httptools as the answer parser."""
    return RawClient(port, _ToolsParsed)


class AiohttpClient:
    """aiohttp with one session."""

    def __init__(self, port: int) -> None:
        import aiohttp

        self._url = f"http://127.0.0.1:{port}/mcp"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        )

    async def post(self, body: bytes, tool: str) -> bytes:
        async with self._session.post(self._url, data=body, headers=_headers(tool)) as answer:
            return await answer.read()


class Httpx2Client:
    """httpx2 with one client."""

    def __init__(self, port: int) -> None:
        import httpx2

        self._url = f"http://127.0.0.1:{port}/mcp"
        self._client = httpx2.AsyncClient(
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None), timeout=30, trust_env=False
        )

    async def post(self, body: bytes, tool: str) -> bytes:
        answer = await self._client.post(self._url, content=body, headers=_headers(tool))
        return answer.content


def _headers(tool: str) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }


CLIENTS: dict[str, Callable[[int], UpstreamClient]] = {
    "raw": RawClient,
    "raw-httptools": raw_httptools,
    "aiohttp": AiohttpClient,
    "httpx2": Httpx2Client,
}
