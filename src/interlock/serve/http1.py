"""The HTTP/1.1 server that hosts reach: a bare protocol on httptools, because the usual stacks cost more than all gates.

docs/speed.md has the comparison. One request at a time on a connection; pipelined ones wait their turn, and a client
that does not read its answers is not read from. One that closes its sending side counts as gone: it looks the same.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
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
STALL_SECONDS: Final = 120.0
"""How long a client may take nothing of what was written for it."""
MAX_CONNECTIONS: Final = 1024
SWEEP_SECONDS: Final = 5.0
LINGER_SECONDS: Final = 1.0
"""How long a client that was refused may still send before the connection is cut (RFC 9112, 9.6)."""
MAX_HEAD_BYTES: Final = bounds.MAX_HEADER_BYTES + 8192 + 256
"""Request line and headers together."""

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

    __slots__ = ("_connection", "_keep_alive", "bodiless", "chunked", "done", "on_gone", "started", "streaming")

    def __init__(self, connection: Connection, keep_alive: bool) -> None:
        self._connection: Connection | None = connection
        self._keep_alive = keep_alive
        self.bodiless = False
        """True for HEAD: the headers are those of the whole answer."""
        self.chunked = True
        """False for HTTP/1.0, where the end of the connection ends a stream."""
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
        if self.bodiless:
            body = b""
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
            b"x-accel-buffering: no\r\n"
            + (b"transfer-encoding: chunked\r\n" if self.chunked else b"")
            + extra
            + (b"\r\n" if self._keep_alive else b"connection: close\r\n\r\n")
        )

    def write(self, data: bytes) -> None:
        if self._connection is not None and self.streaming and data:
            self._connection.write(b"%x\r\n" % len(data) + data + b"\r\n" if self.chunked else data)

    @property
    def backlog(self) -> int:
        """Bytes that the client has not taken yet."""
        return self._connection.backlog if self._connection is not None else 0

    def end_stream(self) -> None:
        if self._connection is not None and self.streaming:
            if self.chunked:
                self._connection.write(b"0\r\n\r\n")
            self.streaming = False
            self._finish()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _finish(self) -> None:
        self.done = True
        self.on_gone = None  # it points back at us, and nothing but the garbage collector would free the two
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.responded(self, self._keep_alive)

    def lost(self) -> None:
        self._connection = None
        gone, self.on_gone = self.on_gone, None
        if not self.done and gone is not None:
            gone()


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
        self._in_head = True
        self._completed = False
        """True where a request ended in the bytes that are being read."""
        self._fed = 0
        """Bytes of the request that is being read; not those that came together with the end of the one before."""
        self._size = 0
        """Bytes that are being read now."""
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._refused = 0
        self._responder: Responder | None = None
        self._waiting: deque[tuple[Request, bool, bool]] = deque()
        self._blocked = False
        """True while the client does not take what was written."""
        self._deaf = False
        """True where nothing more is read: what the client sends now is no HTTP, or of no interest."""
        self._closing = False
        self._written = 0
        self._taken = 0
        self.peer = ""
        self.began: float | None = None
        """When the request that is being read began, on the loop's clock."""
        self.touched = 0.0
        self.progress = 0.0
        """When the client last took something of what was written."""
        self._loop = asyncio.get_running_loop()

    # -- asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        if len(self._connections) >= MAX_CONNECTIONS and not self._make_room():
            self._refuse(503)
            return
        self._connections.add(self)
        self.touched = self.progress = self._loop.time()

    def _make_room(self) -> bool:
        """Hang up on the client that has been silent for longest, where there is one."""
        idle = [each for each in self._connections if each.idle() and each.began is None]
        if not idle:
            return False
        longest = min(idle, key=lambda each: each.touched)
        self._connections.discard(longest)
        longest.close()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._closing = self._deaf = True
        responder, self._responder = self._responder, None
        self._waiting.clear()
        if responder is not None:
            responder.lost()

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        if self._waiting:
            self._loop.call_soon(self._next)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        if self.began is None:
            self.began = self._loop.time()
        self._size = size = len(data)
        while data:
            try:
                self._parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:
                data = self._without_upgrade(data[upgrade.args[0] :])
            except httptools.HttpParserError:
                self._refuse(self._refused or 400)
                return
        if self._completed:
            self._completed = False
        else:
            self._fed += size
            if self._fed > (MAX_HEAD_BYTES if self._in_head else 2 * self._max_body + MAX_HEAD_BYTES):
                # Headers that never end, chunk extensions, trailers: nothing of them reaches `on_header` or `on_body`.
                self._refuse(431 if self._in_head else 413)

    # -- httptools callbacks
    def on_url(self, url: bytes) -> None:
        self._target += url
        if len(self._target) > 8192:
            self._refused = 414
            raise ValueError("the target is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer: what comes after the body changes nothing of the head (RFC 9110, 6.5.1)
        name = name.lower()
        value = value.strip(b" \t")  # the parser leaves what follows a value (RFC 9110, 5.5: no part of it)
        headers = self._headers
        if name in headers:
            if name == b"host":
                raise ValueError("more than one Host (RFC 9112, 3.2)")
            value = headers[name] + b", " + value
        headers[name] = value

    def on_headers_complete(self) -> None:
        self._in_head = False
        headers = self._headers
        limit = bounds.MAX_HEADER_BYTES
        if self._fed + self._size > limit and sum(map(len, [*headers, *headers.values()])) > limit:
            self._refused = 431
            raise ValueError("the headers are too large")
        length = headers.get(b"content-length")
        if length is not None and len(length) > 7 and int(length) > self._max_body:
            self._refused = 413
            raise ValueError("the body is too large")
        if b"expect" in headers and headers[b"expect"].lower() == b"100-continue" and self._responder is None:
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self._max_body:
            self._refused = 413
            raise ValueError("the body is too large")
        self._body.append(body)

    def on_message_complete(self) -> None:
        parser = self._parser
        headers = self._headers
        if b"upgrade" in headers and parser.should_upgrade():
            return  # the body has not been read yet: see `_without_upgrade`
        keep_alive = parser.should_keep_alive()
        # Only what may be older than HTTP/1.1 is asked for its version.
        old = not keep_alive or b"connection" in headers or b"host" not in headers
        old = old and parser.get_http_version() == "1.0"
        if b"host" not in headers and not old:
            raise ValueError("no Host (RFC 9112, 3.2)")
        target = self._target
        if not target.startswith(b"/"):
            target = self._origin_form(target)
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        request = Request(parser.get_method().decode("latin-1"), target, headers, body)
        self._reset()
        if self._responder is None and not self._blocked:
            self._dispatch(request, keep_alive, old)
        else:
            self._waiting.append((request, keep_alive, old))
            if self._transport is not None:
                self._transport.pause_reading()

    # -- ours
    def _reset(self) -> None:
        """Ready for the next request."""
        self._target = b""
        self._headers = {}
        self._in_head = self._completed = True
        self._fed = 0
        self._body = []
        self._body_bytes = 0
        self.began = None

    def _origin_form(self, target: bytes) -> bytes:
        """The path of an absolute target, whose authority replaces Host (RFC 9112, 3.2.2)."""
        if self._parser.get_method() == b"CONNECT":
            raise ValueError("this is no proxy")
        scheme, separator, rest = target.partition(b"://")
        if not separator or scheme.lower() not in (b"http", b"https"):
            return target
        authority, slash, path = rest.partition(b"/")
        self._headers[b"host"] = authority
        return slash + path if slash else b"/"

    def _without_upgrade(self, rest: bytes) -> bytes:
        """Go on as if no upgrade had been offered, as a server may (RFC 9110, 7.8): some clients offer h2c each time.

        The parser takes what follows for another protocol, so a fresh one gets the head again without the offer.
        """
        method = self._parser.get_method()
        headers = self._headers
        offer = (b"upgrade", b"http2-settings")
        tokens = [token.strip() for token in headers.pop(b"connection", b"").split(b",")]
        kept = b", ".join(token for token in tokens if token.lower() not in offer)
        headers = {name: value for name, value in headers.items() if name not in offer}
        if kept:
            headers[b"connection"] = kept
        head = b"%s %s HTTP/1.1\r\n" % (method, self._target)
        head += b"".join(b"%s: %s\r\n" % pair for pair in headers.items())
        self._reset()
        self._completed = False
        self.began = self._loop.time()
        self._parser = httptools.HttpRequestParser(self)
        return head + b"\r\n" + rest

    def _dispatch(self, request: Request, keep_alive: bool, old: bool) -> None:
        responder = self._responder = Responder(self, keep_alive and not old)
        responder.chunked = not old
        if request.method == "HEAD":
            responder.bodiless = True
        try:
            self._handler(request, responder)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            if responder.started:
                self.close()
            else:
                responder.text("A fault in Interlock itself; please report it.\n", 500)

    def responded(self, responder: Responder, keep_alive: bool) -> None:
        if responder is not self._responder:
            return
        self._responder = None
        self.touched = self._loop.time()
        if not keep_alive or (self._deaf and not self._waiting):
            self.finish()
        elif self._waiting and not self._blocked:
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        if self._responder is None and self._waiting and not self._closing and not self._blocked:
            request, keep_alive, old = self._waiting.popleft()
            if not self._waiting and self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()
            self._dispatch(request, keep_alive, old)

    def write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._written += len(data)
            self._transport.write(data)

    @property
    def backlog(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def stalled(self, now: float) -> bool:
        """True where the client has taken nothing for too long, although something was there for it."""
        backlog = self.backlog
        taken = self._written - backlog
        if not backlog or taken != self._taken:
            self._taken = taken
            self.progress = now
        return now - self.progress > STALL_SECONDS

    def _refuse(self, status: int) -> None:
        """The bytes are no HTTP request that we take: say so and hang up. Answers that are due are given first."""
        self._deaf = True
        if self._responder is None and not self._waiting:
            self.write(_STATUS[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
            if self._transport is not None and not self._transport.is_closing():
                # A client that is still sending would lose the answer to a reset: take the rest for a moment.
                self._transport.write_eof()
                self._loop.call_later(LINGER_SECONDS, self.close)

    def finish(self) -> None:
        """Close once what was written has left."""
        self._closing = self._deaf = True
        if self._transport is not None:
            self._transport.close()

    def close(self) -> None:
        self._closing = self._deaf = True
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
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep)
        return int(server.sockets[0].getsockname()[1])

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._connections):
            slow = connection.began is not None and now - connection.began > READ_SECONDS
            unused = connection.idle() and connection.began is None and now - connection.touched > IDLE_SECONDS
            if slow or unused or connection.stalled(now):
                connection.close()
        self._sweeper = loop.call_later(SWEEP_SECONDS, self._sweep)

    def stop_listening(self) -> None:
        for server in self._servers:
            server.close()

    async def close(self, grace: float) -> None:
        """Let open answers finish for `grace` seconds, then hang up."""
        self.stop_listening()
        if self._sweeper is not None:
            self._sweeper.cancel()
        until = asyncio.get_running_loop().time() + grace
        # Connections end in several ways; at shutdown a short poll will do.
        while (  # noqa: ASYNC110
            any(not each.idle() for each in self._connections) and asyncio.get_running_loop().time() < until
        ):
            await asyncio.sleep(0.02)
        for connection in list(self._connections):
            connection.close()
