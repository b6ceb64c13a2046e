"""A small keep-alive HTTP/1.1 client for MCP traffic: callbacks, no tasks on the way of a request.

Only what MCP needs: POST and GET with known headers, JSON and streamed answers, TLS. Redirects are not followed: a POST that
moves is a configuration fault that a person should see. Everything else (OAuth, discovery) belongs to a full HTTP library.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

import httptools

from interlock.wire import bounds

CONNECT_SECONDS = 10.0
IDLE_SECONDS = 4.0
"""Idle connections are dropped before usual servers close them (5 s), so that a request rarely meets a closing one."""
MAX_CONNECTIONS = 256
MAX_UNREAD = 4 * bounds.MAX_HEADER_BYTES
"""Bytes of one part of a response that has no end in sight."""
"""For requests. Streams that stay open for as long as their session does are not counted: they would leave none for calls."""
MAX_WAITING_ASIDE = 1024
"""Requests that may wait for a connection before messages that nobody waits for are dropped."""


class Handler(Protocol):
    """Gets one response. `on_lost` and `on_end` exclude each other; one of them always comes, and comes last."""

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None: ...
    def on_body(self, data: bytes) -> None: ...
    def on_end(self) -> None: ...
    def on_lost(self, error: BaseException | None, sent: bool) -> None:
        """The connection ended. `sent` is False where not one byte of the request left."""


@dataclass(frozen=True, slots=True)
class Origin:
    host: str
    port: int
    tls: bool

    @classmethod
    def of(cls, url: str) -> Origin:
        """Raises ValueError for anything but an http or https URL with a host."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
            if parts.scheme not in ("http", "https") or not host:
                raise ValueError
            host = host if host.isascii() else host.encode("idna").decode("ascii")
        except ValueError:
            raise ValueError("not an http or https URL") from None
        tls = parts.scheme == "https"
        return cls(host, port or (443 if tls else 80), tls)

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def where(self) -> str:
        return f"{self.host}:{self.port}"


def target_of(url: str) -> str:
    """The path and query of a URL as they go into a request line; what may not stand there is percent-encoded."""
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return quote(target, safe="/?%:@!$&'()*+,;=-._~[]")


class Connection(asyncio.Protocol):
    """One TCP connection, one response at a time."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.handler: Handler | None = None
        self.transport: asyncio.Transport | None = None
        self.idle_since = 0.0
        self.lasting = False
        """True while it serves a stream that stays open."""
        self._headers: dict[bytes, bytes] = {}
        self._header_bytes = 0
        self._head_done = False
        self._unread = 0
        """Bytes that came since anything of a response was complete: they pile up in the parser."""
        self._new_parser()

    def _new_parser(self) -> None:
        self._parser = httptools.HttpResponseParser(self)

    # -- asyncio.Protocol
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.pool.open.add(self)

    def data_received(self, data: bytes) -> None:
        if self.handler is None:
            self.close()  # bytes that answer nothing
            return
        self._unread += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._drop(error)
        except httptools.HttpParserUpgrade:
            self._drop(None)
        else:
            if self._unread > MAX_UNREAD:
                self._drop(None)  # a header, trailer or chunk extension that never ends

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.pool.forget(self)
        handler, self.handler = self.handler, None
        if handler is None:
            return
        ended_body = self._head_done and not exc and self._until_close()
        if ended_body:
            handler.on_end()
        else:
            handler.on_lost(exc, True)

    def _until_close(self) -> bool:
        headers = self._headers
        return b"content-length" not in headers and b"chunked" not in headers.get(b"transfer-encoding", b"").lower()

    # -- httptools callbacks
    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > bounds.MAX_HEADER_BYTES:
            raise ValueError("the response's headers are too large")
        name = name.lower()
        if name == b"www-authenticate" and name in self._headers:
            value = self._headers[name] + b", " + value  # a list, in one header or several (RFC 9110, 5.3 and 11.6.1)
        self._headers[name] = value

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            self._unread = 0
            self._head_done = True
            if self.handler is not None:
                self.handler.on_head(status, self._headers)

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        if self.handler is not None:
            self.handler.on_body(body)

    def on_message_complete(self) -> None:
        if not self._head_done:  # 1xx: the real response follows
            self._headers = {}
            return
        handler, self.handler = self.handler, None
        keep = self._parser.should_keep_alive()
        self._headers = {}
        self._header_bytes = self._unread = 0
        self._head_done = False
        if keep and self.transport is not None and not self.transport.is_closing():
            self.pool.release(self)
        else:
            self.close()
        if handler is not None:
            handler.on_end()

    # -- ours
    def send(self, handler: Handler, data: bytes) -> None:
        assert self.transport is not None
        self.handler = handler
        self.transport.write(data)

    def abandon(self) -> None:
        """Close without a word to the handler: the request is cancelled."""
        self.handler = None
        self.close()

    def close(self) -> None:
        self.pool.forget(self)
        if self.transport is not None:
            self.transport.abort()

    def pause(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def _drop(self, error: BaseException | None) -> None:
        handler, self.handler = self.handler, None
        self.close()
        if handler is not None:
            handler.on_lost(error, True)


class Ticket:
    """One request on its way; `abandon` works whether it waits for a connection or already has one."""

    __slots__ = ("abandoned", "connection", "data", "handler", "lasting")

    def __init__(self, handler: Handler, data: bytes, lasting: bool = False) -> None:
        self.handler = handler
        self.data = data
        self.lasting = lasting
        self.connection: Connection | None = None
        self.abandoned = False

    def abandon(self) -> None:
        self.abandoned = True
        # The connection may serve another request by now; only ours may be cut.
        if self.connection is not None and self.connection.handler is self.handler:
            self.connection.abandon()


class Pool:
    """The connections to one origin."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._waiting: deque[Ticket] = deque()
        self._connecting = 0
        self._lasting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def crowded(self) -> bool:
        """True where so much waits already that what nobody waits for had better not be added."""
        return len(self._waiting) > MAX_WAITING_ASIDE

    def send(self, handler: Handler, data: bytes, lasting: bool = False) -> Ticket:
        """Send now where a connection is idle, else as soon as one is there. `lasting`: the answer is a stream that stays open."""
        ticket = Ticket(handler, data, lasting)
        now = self._loop.time()
        while self._idle:
            connection = self._idle.pop()
            transport = connection.transport
            if transport is None or transport.is_closing() or now - connection.idle_since > IDLE_SECONDS:
                connection.close()
                continue
            self._give(connection, ticket)
            return ticket
        self._waiting.append(ticket)
        self._connect_more()
        return ticket

    def _connect_more(self) -> None:
        # No more attempts than there are requests waiting: connections that come free serve them as well.
        room = len(self.open) - self._lasting + self._connecting < MAX_CONNECTIONS
        if self._connecting < len(self._waiting) and room and not self._closed:
            self._connecting += 1
            task = self._loop.create_task(self._connect())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self) -> None:
        origin = self.origin
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                context: Any = _tls_context() if origin.tls else None
                _, connection = await self._loop.create_connection(
                    lambda: Connection(self), origin.host, origin.port, ssl=context
                )
        except (OSError, TimeoutError, ssl.CertificateError, UnicodeError) as error:
            self._connecting -= 1
            # Fail one waiting request for one failed attempt, so that no request is left without an answer.
            while self._waiting:
                ticket = self._waiting.popleft()
                if not ticket.abandoned:
                    ticket.handler.on_lost(error, False)
                    break
            self._connect_more()
            return
        self._connecting -= 1
        if self._closed:
            connection.close()
        else:
            self.release(connection)

    def release(self, connection: Connection) -> None:
        """The connection is free: give it the next waiting request, or keep it."""
        self._no_stream(connection)
        while self._waiting:
            ticket = self._waiting.popleft()
            if ticket.abandoned:
                continue
            self._give(connection, ticket)
            return
        if self._closed:
            connection.close()
            return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = self._loop.call_later(IDLE_SECONDS, self._sweep)

    def _give(self, connection: Connection, ticket: Ticket) -> None:
        ticket.connection = connection
        if ticket.lasting:
            connection.lasting = True
            self._lasting += 1
        connection.send(ticket.handler, ticket.data)
        if ticket.lasting and self._waiting:
            self._connect_more()

    def _no_stream(self, connection: Connection) -> None:
        if connection.lasting:
            connection.lasting = False
            self._lasting -= 1

    def _sweep(self) -> None:
        self._sweeper = None
        limit = self._loop.time() - IDLE_SECONDS
        for connection in [each for each in self._idle if each.idle_since <= limit]:
            connection.close()
        if self._idle:
            self._sweeper = self._loop.call_later(IDLE_SECONDS, self._sweep)

    def forget(self, connection: Connection) -> None:
        self.open.discard(connection)
        self._no_stream(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if self._waiting:
            self._connect_more()

    def close(self) -> None:
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for task in list(self._tasks):
            task.cancel()
        while self._waiting:
            ticket = self._waiting.popleft()
            if not ticket.abandoned:
                ticket.handler.on_lost(None, False)
        for connection in list(self.open):
            connection._drop(None)


_context: ssl.SSLContext | None = None


def _tls_context() -> ssl.SSLContext:
    """Made once: building one reads every CA certificate and takes tens of milliseconds."""
    global _context
    if _context is None:
        _context = ssl.create_default_context()
    return _context
