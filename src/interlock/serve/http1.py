"""The HTTP/1.1 server that hosts reach: a bare protocol on httptools, because the usual stacks cost more than all gates.

docs/speed.md has the comparison. One request at a time on a connection; pipelined ones wait their turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import httptools

from interlock.wire import bounds

READ_SECONDS: Final = 30.0
"""How long a client may take to send one request once it has begun."""
IDLE_SECONDS: Final = 120.0
MAX_WRITE_BUFFER: Final = 16 * 1024 * 1024
"""A client that reads this much too slowly loses notifications, never answers."""

_STATUS: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_JSON_OK: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "


class Request:
    """One whole request. `headers` has lower-case names; repeated ones are joined by a comma."""

    __slots__ = ("body", "headers", "method", "path", "query")

    def __init__(self, method: str, target: bytes, headers: dict[bytes, bytes], body: bytes) -> None:
        path, _, query = target.partition(b"?")
        self.method = method
        self.path = path.decode("latin-1")
        self.query = query.decode("latin-1")
        self.headers = headers
        self.body = body


Handler = Callable[[Request, "Responder"], None]


class Responder:
    """The response to one request. Every method is harmless after the client has gone; `on_gone` tells when it does."""

    __slots__ = ("_connection", "_keep_alive", "done", "on_gone", "started", "streaming")

    def __init__(self, connection: Connection, keep_alive: bool) -> None:
        self._connection: Connection | None = connection
        self._keep_alive = keep_alive
        self.on_gone: Callable[[], None] | None = None
        self.started = False
        self.streaming = False
        self.done = False

    @property
    def gone(self) -> bool:
        return self._connection is None

    def json(self, body: bytes, status: int = 200, extra: bytes = b"") -> None:
        if status == 200:
            head = _JSON_OK + b"%d\r\n" % len(body)
        else:
            head = _STATUS[status] + b"content-type: application/json\r\ncontent-length: %d\r\n" % len(body)
        self._whole(head + extra, body)

    def text(self, body: str, status: int = 200, extra: bytes = b"") -> None:
        data = body.encode()
        head = _STATUS[status] + b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n" % len(data)
        self._whole(head + extra, data)

    def empty(self, status: int, extra: bytes = b"") -> None:
        self._whole(_STATUS[status] + b"content-length: 0\r\n" + extra, b"")

    def _whole(self, head: bytes, body: bytes) -> None:
        connection = self._connection
        if connection is None or self.started:
            return
        self.started = True
        connection.write(head + (b"\r\n" if self._keep_alive else b"connection: close\r\n\r\n") + body)
        self._finish()

    def begin_stream(self, extra: bytes = b"") -> None:
        """Start an event stream. Proxies are told not to hold it back."""
        connection = self._connection
        if connection is None or self.started:
            return
        self.started = self.streaming = True
        connection.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\n"
            b"x-accel-buffering: no\r\ntransfer-encoding: chunked\r\n"
            + extra
            + (b"\r\n" if self._keep_alive else b"connection: close\r\n\r\n")
        )

    def write(self, data: bytes) -> None:
        if self._connection is not None and self.streaming:
            self._connection.write(b"%x\r\n" % len(data) + data + b"\r\n")

    @property
    def backlog(self) -> int:
        """Bytes that the client has not taken yet."""
        return self._connection.backlog if self._connection is not None else 0

    def end_stream(self) -> None:
        if self._connection is not None and self.streaming:
            self._connection.write(b"0\r\n\r\n")
            self.streaming = False
            self._finish()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _finish(self) -> None:
        self.done = True
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.responded(self, self._keep_alive)

    def lost(self) -> None:
        self._connection = None
        if not self.done and self.on_gone is not None:
            self.on_gone()


class Connection(asyncio.Protocol):
    """One client connection."""

    def __init__(self, handler: Handler, connections: set[Connection], max_body: int) -> None:
        self._handler = handler
        self._connections = connections
        self._max_body = max_body
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: dict[bytes, bytes] = {}
        self._header_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._refused = 0
        self._responder: Responder | None = None
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._closing = False
        self.peer = ""
        self.began: float | None = None
        """When the request that is being read began, on the loop's clock."""
        self.touched = 0.0
        self._loop = asyncio.get_running_loop()

    # -- asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._connections.add(self)
        self.touched = self._loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        responder, self._responder = self._responder, None
        self._waiting.clear()
        if responder is not None:
            responder.lost()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        if self.began is None:
            self.began = self._loop.time()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400)
        except httptools.HttpParserError:
            self._refuse(self._refused or 400)

    # -- httptools callbacks
    def on_url(self, url: bytes) -> None:
        self._target += url
        if len(self._target) > 8192:
            self._refused = 414
            raise ValueError("the target is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > bounds.MAX_HEADER_BYTES:
            self._refused = 431
            raise ValueError("the headers are too large")
        name = name.lower()
        headers = self._headers
        headers[name] = headers[name] + b", " + value if name in headers else value

    def on_headers_complete(self) -> None:
        if self._headers.get(b"expect", b"").lower() == b"100-continue" and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self._max_body:
            self._refused = 413
            raise ValueError("the body is too large")
        self._body.append(body)

    def on_message_complete(self) -> None:
        parser = self._parser
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        request = Request(parser.get_method().decode("latin-1"), self._target, self._headers, body)
        keep_alive = parser.should_keep_alive()
        self._target = b""
        self._headers = {}
        self._header_bytes = 0
        self._body = []
        self._body_bytes = 0
        self.began = None
        if self._responder is None:
            self._dispatch(request, keep_alive)
        else:
            self._waiting.append((request, keep_alive))
            if len(self._waiting) > 16 and self._transport is not None:
                self._transport.pause_reading()

    # -- ours
    def _dispatch(self, request: Request, keep_alive: bool) -> None:
        responder = self._responder = Responder(self, keep_alive)
        self._handler(request, responder)

    def responded(self, responder: Responder, keep_alive: bool) -> None:
        if responder is not self._responder:
            return
        self._responder = None
        self.touched = self._loop.time()
        if not keep_alive:
            self.finish()
        elif self._waiting:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        if self._responder is None and self._waiting and not self._closing:
            request, keep_alive = self._waiting.popleft()
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()
            self._dispatch(request, keep_alive)

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    @property
    def backlog(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def _refuse(self, status: int) -> None:
        """The bytes are no HTTP request that we take: say so and hang up. An answer under way is not disturbed."""
        if self._responder is None:
            self.write(_STATUS[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.finish()

    def finish(self) -> None:
        """Close once what was written has left."""
        self._closing = True
        if self._transport is not None:
            self._transport.close()

    def close(self) -> None:
        self._closing = True
        if self._transport is not None:
            self._transport.abort()

    def idle(self) -> bool:
        return self._responder is None and not self._waiting


class HttpServer:
    """Listens on one address. `start` returns the port."""

    def __init__(self, handler: Handler, *, max_body: int = bounds.MAX_REQUEST_BYTES) -> None:
        self._handler = handler
        self._max_body = max_body
        self._connections: set[Connection] = set()
        self._servers: list[asyncio.Server] = []
        self._sweeper: asyncio.TimerHandle | None = None

    async def start(self, host: str, port: int) -> int:
        """Raises OSError where the address is taken or not ours."""
        loop = asyncio.get_running_loop()

        def connection() -> Connection:
            return Connection(self._handler, self._connections, self._max_body)

        server = await loop.create_server(connection, host, port, backlog=1024)
        self._servers.append(server)
        self._sweeper = loop.call_later(5.0, self._sweep)
        return int(server.sockets[0].getsockname()[1])

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._connections):
            slow = connection.began is not None and now - connection.began > READ_SECONDS
            unused = connection.idle() and connection.began is None and now - connection.touched > IDLE_SECONDS
            if slow or unused:
                connection.close()
        self._sweeper = loop.call_later(5.0, self._sweep)

    def stop_listening(self) -> None:
        for server in self._servers:
            server.close()

    async def close(self, grace: float) -> None:
        """Let open answers finish for `grace` seconds, then hang up."""
        self.stop_listening()
        if self._sweeper is not None:
            self._sweeper.cancel()
        until = asyncio.get_running_loop().time() + grace
        while any(not each.idle() for each in self._connections) and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.02)
        for connection in list(self._connections):
            connection.close()
