"""An MCP server that says exactly the bytes a test gives it, over HTTP and stdio, and keeps every byte that it was sent.

The stdio form is a child that only pumps its standard streams to this process (pump.py), so both forms share one script.
Written on sockets and threads: nothing between the test and the wire.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Era = Literal["modern", "legacy"]
SECONDS = 20.0
_ID = re.compile(rb'"id":("(?:[^"\\]|\\.)*"|-?\d+)')


@dataclass(frozen=True, slots=True)
class Asked:
    """One message from the gateway, as it came."""

    raw: bytes
    headers: dict[str, str]

    @property
    def message(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.raw)
        return found

    @property
    def method(self) -> str:
        return str(self.message.get("method", ""))

    @property
    def id(self) -> bytes:
        """The id as it is spelled. The gateway writes it right after the version."""
        found = _ID.search(self.raw)
        return found[1] if found is not None else b"null"

    def member(self, *path: str) -> bytes:
        """The bytes of a member somewhere inside, spelling and all."""
        return member(self.raw, *path)


def member(text: bytes, *path: str) -> bytes:
    """The bytes of one member of an object, found with the standard library's scanner."""
    for name in path:
        text = dict(members(text))[name]
    return text


def members(text: bytes) -> list[tuple[str, bytes]]:
    """All members of an object in order, values as spelled."""
    plain = text.decode()
    decoder = json.JSONDecoder()
    found = []
    at = _space(plain, plain.index("{") + 1)
    while plain[at] != "}":
        name, at = decoder.raw_decode(plain, at)
        at = _space(plain, _space(plain, at) + 1)
        _, end = decoder.raw_decode(plain, at)
        found.append((name, plain[at:end].encode()))
        at = _space(plain, end)
        if plain[at] == ",":
            at = _space(plain, at + 1)
    return found


def _space(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


Answer = Callable[[Asked], "list[bytes] | None"]
"""The whole messages to send back, with `$ID` for the request's id and `$TOKEN` for its progress token; None: the default.

WAIT among them holds back the rest until the client has answered a question.
"""
WAIT = b"$WAIT"


def filled(template: bytes, asked: Asked) -> bytes:
    if b"$TOKEN" in template:
        template = template.replace(b"$TOKEN", asked.member("params", "_meta", "progressToken"))
    return template.replace(b"$ID", asked.id)


@dataclass(slots=True)
class Script:
    """What the server says. `lists` are whole results by method, one for each page; `hello` is the handshake's result."""

    era: Era
    hello: bytes
    lists: dict[str, list[bytes]] = field(default_factory=dict)
    answer: Answer | None = None
    asked: list[Asked] = field(default_factory=list)
    answers: queue.Queue[Asked] = field(default_factory=queue.Queue)
    """What the client answered to questions, in order."""
    news: threading.Condition = field(default_factory=threading.Condition)

    def reply(self, asked: Asked) -> list[bytes]:
        """The messages that answer one message, in order."""
        with self.news:
            self.asked.append(asked)
            self.news.notify_all()
        method = asked.method
        if method == "":
            self.answers.put(asked)
            return []
        if "id" not in asked.message:
            return []
        if self.answer is not None:
            given = self.answer(asked)
            if given is not None:
                return [filled(each, asked) for each in given]
        if method in ("initialize", "server/discover"):
            own = "initialize" if self.era == "legacy" else "server/discover"
            if method == own:
                return [result(asked.id, self.hello)]
        elif method in self.lists:
            pages = self.lists[method]
            cursor = json.loads(asked.raw).get("params", {}).get("cursor", "page-0")
            return [result(asked.id, pages[int(cursor.rpartition("-")[2])])]
        elif method in ("logging/setLevel", "resources/subscribe", "resources/unsubscribe", "ping"):
            return [result(asked.id, b"{}")]
        return [b'{"jsonrpc":"2.0","id":' + asked.id + b',"error":{"code":-32601,"message":"Method not found"}}']

    def taken(self, method: str) -> list[Asked]:
        """All messages with this method so far."""
        with self.news:
            return [each for each in self.asked if each.method == method]

    def wait(self, wanted: Callable[[Asked], bool], start: int = 0) -> Asked:
        """The first message from number `start` on that is wanted, now or as soon as it comes. Raises TimeoutError."""

        def found() -> Asked | None:
            return next((each for each in self.asked[start:] if wanted(each)), None)

        with self.news:
            first = self.news.wait_for(found, SECONDS)
        if first is None:
            raise TimeoutError("the message did not come")
        return first


def result(id: bytes, body: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + id + b',"result":' + body + b"}"


class Listener:
    """Accepts connections on loopback; each is served by `serve` on a thread of its own."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open.add(connection)
            threading.Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection: socket.socket) -> None:
        try:
            self.serve(connection)
        except OSError:
            pass
        finally:
            self._open.discard(connection)
            connection.close()

    def serve(self, connection: socket.socket) -> None:
        raise NotImplementedError

    def close(self) -> None:
        # shutdown wakes the thread that accepts; close alone would leave it blocked.
        for each in (self._socket, *self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class HttpPeer(Listener):
    """Streamable HTTP: one message as plain JSON, several as an event stream. GET streams carry what `push` is given."""

    session = "fidelity-session"

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self._streams: list[queue.Queue[bytes]] = []

    def push(self, message: bytes) -> None:
        """Say something outside any request: on all legacy GET streams, or all open modern listens."""
        for each in list(self._streams):
            each.put(message)

    def serve(self, connection: socket.socket) -> None:
        reader = connection.makefile("rb")
        while line := reader.readline():
            method = line.split()[0].decode()
            headers: dict[str, str] = {}
            while (line := reader.readline()).strip():
                name, _, value = line.partition(b":")
                # Only what RFC 9112 strips: whether values were trimmed must stay visible.
                headers[name.decode().lower()] = value.rstrip(b"\r\n").decode("latin-1")
            headers = {name: value[1:] if value[:1] == " " else value for name, value in headers.items()}
            body = reader.read(int(headers.get("content-length", "0")))
            if method == "GET":
                self._stream(connection, Asked(b'{"method":"GET"}', headers))
            elif method == "DELETE":
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            else:
                self._post(connection, Asked(body, headers))

    def _post(self, connection: socket.socket, asked: Asked) -> None:
        if asked.method == "subscriptions/listen" and self.script.era == "modern":
            self._stream(connection, asked)
            return
        replies = self.script.reply(asked)
        extra = b""
        if asked.method == "initialize":
            extra = b"mcp-session-id: " + self.session.encode() + b"\r\n"
        if not replies:
            connection.sendall(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        elif len(replies) == 1:
            connection.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + extra
                + b"content-length: %d\r\n\r\n" % len(replies[0]) + replies[0]
            )  # fmt: skip
        else:
            connection.sendall(STREAM)
            for each in replies:
                if each == WAIT:
                    self.script.answers.get(timeout=SECONDS)
                else:
                    _chunk(connection, each)
            connection.sendall(b"0\r\n\r\n")

    def _stream(self, connection: socket.socket, asked: Asked) -> None:
        connection.sendall(STREAM)
        if asked.method != "GET":
            _chunk(connection, ACKNOWLEDGED.replace(b"$ID", asked.id))
        mine: queue.Queue[bytes] = queue.Queue()
        self._streams.append(mine)
        self.script.reply(asked)
        while True:
            _chunk(connection, mine.get())


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
ACKNOWLEDGED = (
    b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":'
    b'{"io.modelcontextprotocol/subscriptionId":$ID},"notifications":{}}}'
)


def _chunk(connection: socket.socket, message: bytes) -> None:
    event = b"event: message\ndata: " + message + b"\n\n"
    connection.sendall(b"%x\r\n" % len(event) + event + b"\r\n")


class StdioPeer(Listener):
    """The other end of the pump: lines in, lines out."""

    def __init__(self, script: Script) -> None:
        super().__init__(script)
        self._writers: list[socket.socket] = []

    def push(self, message: bytes) -> None:
        for each in self._writers:
            each.sendall(message + b"\n")

    def serve(self, connection: socket.socket) -> None:
        self._writers.append(connection)
        held: list[bytes] = []
        try:
            for line in connection.makefile("rb"):
                asked = Asked(line.rstrip(b"\r\n"), {})
                if asked.method == "subscriptions/listen" and self.script.era == "modern":
                    self.script.reply(asked)
                    connection.sendall(ACKNOWLEDGED.replace(b"$ID", asked.id) + b"\n")
                    continue
                replies = self.script.reply(asked)
                if asked.method == "" and held:
                    self.script.answers.get_nowait()
                    replies, held = held, []
                if WAIT in replies:
                    at = replies.index(WAIT)
                    replies, held = replies[:at], replies[at + 1 :]
                for each in replies:
                    connection.sendall(each + b"\n")
        finally:
            self._writers.remove(connection)
