"""The loopback listener of a login: both address families, and the least HTTP/1.1 that a browser's redirect needs.

GET only, small heads, one answer a connection, a deadline on everything. What a request means is not judged here.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from interlock.upstream.oauth import pages

HEAD_SECONDS = 10.0
"""Time for a request to arrive. Browsers open connections ahead that never carry one."""
ANSWER_SECONDS = 60.0
"""Time to make an answer: redeeming a code takes a call to the token endpoint."""
MAX_HEAD = 64 * 1024
"""Bytes. Cookies do not tell ports apart (RFC 6265 section 8.5), so a browser sends those of all that runs on localhost."""
MAX_CONNECTIONS = 64
MAX_WATCHERS = 512
_TAKEN = frozenset({errno.EADDRINUSE, errno.EACCES, errno.EPERM, 10013, 10048})
"""10013 and 10048 are Windows' codes: a reserved range, and a port in use."""
_NO_FAMILY = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, 10047, 10049})
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 421: "Misdirected Request"}
_THEIR_FAULT = (OSError, asyncio.IncompleteReadError, ValueError)  # TimeoutError is an OSError
_log = logging.getLogger(__name__)


class PortBusy(Exception):
    """The port is held by somebody else, on one of the loopback families at least."""


@dataclass(frozen=True, slots=True)
class Request:
    """A GET with an acceptable Host. `query` keeps every value of a name: a repeated `state` has to be seen as such."""

    path: str
    query: Mapping[str, tuple[str, ...]]

    def one(self, name: str) -> str | None:
        """The value of a parameter that came exactly once; RFC 6749 section 3.1 forbids repeating one."""
        values = self.query.get(name, ())
        return values[0] if len(values) == 1 else None


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = pages.HEADERS
    held: bool = False
    """Send no end: the connection stays open until the listener closes or its process ends."""
    after: Callable[[], None] | None = field(default=None, compare=False)
    """Called once the answer has left, or could not."""


Answer = Callable[[Request], Awaitable[Reply]]


def split_query(text: str) -> dict[str, tuple[str, ...]]:
    """application/x-www-form-urlencoded, nothing normalised beyond its decoding (RFC 9207 section 2.4)."""
    found: dict[str, tuple[str, ...]] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=64):
        found[name] = (*found.get(name, ()), value)
    return found


def is_loopback_host(value: str) -> bool:
    """Whether a Host header names this machine. Anything else is a page that points its own name here (DNS rebinding)."""
    name = value.strip().lower()
    if name.startswith("["):
        name, bracket, port = name.partition("]")
        return bool(bracket) and name == "[::1" and (not port or (port[0] == ":" and port[1:].isdigit()))
    name, colon, port = name.partition(":")
    return name in ("localhost", "127.0.0.1") and (not colon or port.isdigit())


def parse_head(head: bytes) -> Request | int:
    """The request, or the status that refuses it."""
    lines = head.split(b"\r\n")
    words = lines[0].split(b" ")
    if len(words) != 3 or words[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        return 400
    if words[0] != b"GET":
        return 405
    hosts = [
        value.strip() for name, colon, value in (line.partition(b":") for line in lines[1:]) if name.lower() == b"host"
    ]
    if len(hosts) != 1:
        return 400
    try:
        host, target = hosts[0].decode("ascii"), words[1].decode("ascii")
        path, _, query = target.partition("#")[0].partition("?")
        if not path.startswith("/"):
            return 400
        fields = split_query(query)
    except ValueError:  # also what parse_qsl raises for too many fields
        return 400
    return Request(path, fields) if is_loopback_host(host) else 421


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket | None:
    """A listening socket; None where the machine has no such family. Raises PortBusy.

    It listens before it is returned: with SO_REUSEADDR two sockets may share an address until one of them does (Linux).
    """
    try:
        made = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        if sys.platform == "win32":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)  # else others may bind on top of us
        else:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of a killed owner linger
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address, port))
        made.listen(128)
        made.setblocking(False)
    except OSError as error:
        made.close()
        if error.errno in _NO_FAMILY:
            return None
        if error.errno in _TAKEN:
            raise PortBusy from None
        raise
    return made


class Listener:
    """Bound on both loopback families, or on none. Serves from `serve` on; until then connections wait in the backlog."""

    def __init__(self, port: int, sockets: list[socket.socket]) -> None:
        self.port = port
        self._sockets = sockets
        self._servers: list[asyncio.Server] = []
        self._idle: dict[asyncio.Task[None], None] = {}
        """Connections without a complete request, oldest first: the ones to drop when there are too many."""
        self._busy: set[asyncio.Task[None]] = set()
        self._watchers: set[asyncio.StreamWriter] = set()
        self._closed = False

    @classmethod
    def bind(cls, port: int) -> Listener:
        """Take the port. Raises PortBusy where either family has it in use: a browser may try either for `localhost`."""
        sockets: list[socket.socket] = []
        try:
            for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                made = _bound(family, address, port)
                if made is not None:
                    sockets.append(made)
        except BaseException:
            for made in sockets:
                made.close()
            raise
        if not sockets:
            raise OSError(errno.EADDRNOTAVAIL, "this machine has no loopback interface")
        return cls(port, sockets)

    async def serve(self, answer: Answer) -> None:
        """Start to answer. `answer` may take up to a minute; it is cancelled then."""

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._closed:  # accepted before, and told only now
                writer.transport.abort()
                return
            task = asyncio.get_running_loop().create_task(self._one(reader, writer, answer))
            # Not in the task itself: one that is cancelled before its first step runs no `finally`.
            task.add_done_callback(lambda done: self._ended(done, writer))
            self._admit(task)

        for made in self._sockets:
            self._servers.append(await asyncio.start_server(connected, sock=made, limit=MAX_HEAD))
        self._sockets = []

    def _admit(self, task: asyncio.Task[None]) -> None:
        self._idle[task] = None
        while len(self._idle) + len(self._busy) > MAX_CONNECTIONS:
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            oldest.cancel()

    def _ended(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._idle.pop(task, None)
        self._busy.discard(task)
        writer.close()
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, _THEIR_FAULT):
            _log.error("a request to the login callback failed", exc_info=error)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
        task = asyncio.current_task()
        assert task is not None
        async with asyncio.timeout(HEAD_SECONDS):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError:
                await _send(writer, refusal(400))
                return
        self._idle.pop(task, None)
        self._busy.add(task)
        request = parse_head(head)
        reply = refusal(request) if isinstance(request, int) else await self._answered(answer, request)
        try:
            if reply.held and len(self._watchers) < MAX_WATCHERS:
                await self._hold(reader, writer, reply)
            else:
                await _send(writer, reply)
        finally:
            if reply.after is not None:
                reply.after()

    async def _answered(self, answer: Answer, request: Request) -> Reply:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await answer(request)

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, reply: Reply) -> None:
        """Keep the connection as a sign of life: the kernel ends it when this process dies, however it dies."""
        writer.write(_head(reply, length=None) + reply.body)
        await writer.drain()
        task = asyncio.current_task()
        assert task is not None
        self._busy.discard(task)  # watchers have a limit of their own
        self._watchers.add(writer)
        try:
            while await reader.read(1024):
                pass
        finally:
            self._watchers.discard(writer)

    @property
    def answering(self) -> bool:
        """An answer is being made or sent."""
        return bool(self._busy)

    def release(self) -> None:
        """Let the port go at once. Answers that are being made still reach the browser."""
        self._closed = True
        for made in self._sockets:
            made.close()
        self._sockets = []
        for server in self._servers:
            server.close()
        self._servers = []
        for task in self._idle:
            if task is not asyncio.current_task():
                task.cancel()
        for writer in tuple(self._watchers):
            with contextlib.suppress(OSError):
                writer.transport.abort()

    def close(self) -> None:
        """Let the port go at once, and drop the answers that are being made, but for one that calls this."""
        self.release()
        for task in self._busy:
            if task is not asyncio.current_task():
                task.cancel()


def refusal(status: int) -> Reply:
    """A page for a request that is none of ours. It changes nothing and tells nothing."""
    return Reply(
        status, pages.page("Nothing here", "This address only takes the end of a sign-in that Interlock started.")
    )


def _head(reply: Reply, length: int | None) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {_REASONS.get(reply.status, 'Error')}"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    if reply.status == 405:
        lines.append("Allow: GET")
    if length is not None:
        lines.append(f"Content-Length: {length}")
    lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


async def _send(writer: asyncio.StreamWriter, reply: Reply) -> None:
    writer.write(_head(reply, len(reply.body)) + reply.body)
    async with asyncio.timeout(HEAD_SECONDS):
        await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
