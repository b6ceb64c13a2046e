"""A small HTTP/1.1 server for the fixtures: keep-alive, chunked streams, and notice of a client that goes away.

It exists because a fixture must be able to do what frameworks prevent: hang, drop a stream in the middle, answer with
the wrong header, and know at once that the client closed its side.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import parse_qs, urlsplit

from interlock.lab.jsonrpc import encode

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
LOOPBACK = {"127.0.0.1", "localhost", "[::1]", "::1"}
REASONS = {
    200: "OK",
    202: "Accepted",
    204: "No Content",
    302: "Found",
    303: "See Other",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    425: "Too Early",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names in lower case, values trimmed (RFC 9110, section 5.5)."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes


class BadHttp(Exception):
    """The bytes are no HTTP request that we serve; `status` is the answer, after which the connection closes."""

    def __init__(self, status: int) -> None:
        super().__init__(REASONS[status])
        self.status = status


class Connection(asyncio.Protocol):
    """One client connection: buffered input, awaitable output, and `closed` set when the peer goes away."""

    def __init__(self, serve: Callable[[Connection], Awaitable[None]]) -> None:
        self._serve = serve
        self._buffer = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._task = asyncio.ensure_future(self._run())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._arrived.set()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()
        self._arrived.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def _run(self) -> None:
        try:
            await self._serve(self)
        except BadHttp as error:
            await self.write(head(error.status, {"content-length": "0", "connection": "close"}))
        except Exception as error:  # a fixture must not die of one bad handler
            print(f"http: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Drop the connection at once, without flushing."""
        if self._transport is not None:
            self._transport.abort()

    def reset(self) -> None:
        """Drop the connection at once with a TCP reset, as a crashed peer's kernel does."""
        if self._transport is None:
            return
        # Through a second descriptor, because not every event loop lets options of its own socket be set.
        with socket.socket(fileno=os.dup(self._transport.get_extra_info("socket").fileno())) as twin:
            twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    async def write(self, data: bytes) -> None:
        """Send, waiting while the client reads slowly; does nothing once the client is gone."""
        if self.closed.is_set() or self._transport is None:
            return
        self._transport.write(data)
        await self._writable.wait()

    async def read_until(self, mark: bytes, limit: int) -> bytes | None:
        """Bytes up to and including `mark`; None if the client left before sending any."""
        searched = 0
        while True:
            found = self._buffer.find(mark, searched)
            if found >= 0:
                return self._take(found + len(mark))
            searched = max(0, len(self._buffer) - len(mark))
            if len(self._buffer) > limit:
                raise BadHttp(431)
            if not await self._more():
                return None

    async def read_exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not await self._more():
                raise ConnectionResetError("client left in the middle of a body")
        return self._take(size)

    async def _more(self) -> bool:
        if self.closed.is_set():
            return False
        self._arrived.clear()
        await self._arrived.wait()
        return not self.closed.is_set() or bool(self._buffer)

    def _take(self, size: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """A response head."""
    lines = [
        f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Reply:
    """The answer to one request: a whole body, or a stream of server-sent events."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.started = False
        self.status: int | None = None
        """What was answered; None so far."""
        self.on_status: Callable[[int], None] | None = None
        """Told the status before the client can see it."""
        self.fields: dict[str, str] = {}
        """Headers that go on the answer whatever it is."""
        self._streaming = False
        self.closed = connection.closed

    async def send(
        self, status: int, body: bytes = b"", content_type: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """A whole response."""
        self.started = True
        self._answering(status)
        fields = {**self.fields, **(headers or {}), "content-length": str(len(body))}
        if content_type is not None:
            fields["content-type"] = content_type
        await self.connection.write(head(status, fields) + body)

    async def send_json(self, status: int, message: object, headers: Mapping[str, str] | None = None) -> None:
        await self.send(status, encode(message), "application/json", headers)

    async def start_events(self, headers: Mapping[str, str] | None = None) -> None:
        """Begin a `text/event-stream` response."""
        self.started = self._streaming = True
        self._answering(200)
        fields = {
            **self.fields,
            **(headers or {}),
            "content-type": "text/event-stream",
            "cache-control": "no-cache",
            "x-accel-buffering": "no",
            "transfer-encoding": "chunked",
        }
        await self.connection.write(head(200, fields))

    def _answering(self, status: int) -> None:
        self.status = status
        if self.on_status is not None:
            self.on_status(status)

    async def write(self, data: bytes) -> None:
        """One chunk of the stream."""
        if data:
            await self.connection.write(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        """End the stream in an orderly way; the connection stays usable."""
        if self._streaming:
            self._streaming = False
            await self.connection.write(b"0\r\n\r\n")

    def abort(self) -> None:
        """Drop the connection in the middle of the answer."""
        self.started = True
        self.connection.abort()

    def reset(self) -> None:
        """Drop the connection with a TCP reset."""
        self.started = True
        self.connection.reset()


HttpHandler = Callable[[Request, Reply], Awaitable[None]]


async def listen(
    handler: HttpHandler, port: int, path: str, *, check_origin: bool = True, announce: bool = True
) -> asyncio.Server:
    """Serve on 127.0.0.1 (port 0: any free one) and, with `announce`, say so on standard error."""

    async def serve(connection: Connection) -> None:
        while True:
            request = await _read_request(connection)
            if request is None:
                return
            reply = Reply(connection)
            if check_origin and not _is_local(request.headers):
                await reply.send(403)
                continue
            await handler(request, reply)
            if not reply.started:
                await reply.send(500)
            if request.headers.get("connection", "").lower() == "close":
                return

    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(serve), "127.0.0.1", port)
    actual = server.sockets[0].getsockname()[1]
    if announce:
        print(f"listening on http://127.0.0.1:{actual}{path}", file=sys.stderr, flush=True)
    return server


async def run_until_closed(work: asyncio.Task[None], reply: Reply) -> bool:
    """Wait for `work` or for the client to leave; True if the work ended first. The work is not cancelled here."""
    gone = asyncio.ensure_future(reply.closed.wait())
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        return work.done()
    finally:
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await gone


async def _read_request(connection: Connection) -> Request | None:
    raw = await connection.read_until(b"\r\n\r\n", MAX_HEAD)
    if raw is None:
        return None
    lines = raw[:-4].decode("latin-1").split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3:
        raise BadHttp(400)
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip():
            raise BadHttp(400)
        headers[name.lower()] = value.strip(" \t")
    if "100-continue" in headers.get("expect", ""):
        await connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    target = urlsplit(parts[1])
    return Request(parts[0], target.path, parse_qs(target.query), headers, await _read_body(connection, headers))


async def _read_body(connection: Connection, headers: Mapping[str, str]) -> bytes:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = bytearray()
        while True:
            line = await connection.read_until(b"\r\n", 1024)
            if line is None:
                raise ConnectionResetError("client left in the middle of a body")
            try:
                size = int(line.split(b";")[0], 16)
            except ValueError as error:
                raise BadHttp(400) from error
            if size == 0:
                break
            if len(body) + size > MAX_BODY:
                raise BadHttp(413)
            body += await connection.read_exactly(size)
            await connection.read_exactly(2)
        while await connection.read_until(b"\r\n", MAX_HEAD) not in (b"\r\n", None):
            pass
        return bytes(body)
    length = headers.get("content-length", "0")
    if not length.isdigit():
        raise BadHttp(400)
    if int(length) > MAX_BODY:
        raise BadHttp(413)
    return await connection.read_exactly(int(length))


def _is_local(headers: Mapping[str, str]) -> bool:
    """Whether `Host`, and `Origin` where present, name the loopback: protection against DNS rebinding."""
    host = headers.get("host", "")
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if name not in LOOPBACK:
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).hostname in {entry.strip("[]") for entry in LOOPBACK}
