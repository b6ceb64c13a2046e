"""The HTTP/1.1 client under the upstream side: connections kept, dropped and never mixed up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from interlock.upstream import http1
from interlock.upstream.http1 import Origin, Pool, Ticket, target_of

from .scripted import SECONDS, Out, Scripted, Seen, eventually, scripted


@dataclass
class Response:
    """Everything that came for one request."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""
    ends: list[str] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        assert not self.status, "two heads"
        self.status, self.headers = status, headers

    def on_body(self, data: bytes) -> None:
        assert not self.ends
        self.body += data

    def on_end(self) -> None:
        self.ends.append("end")
        self.over.set()

    def on_lost(self, error: BaseException | None, sent: bool) -> None:
        self.ends.append("lost" if sent else "not sent")
        self.over.set()

    async def wait(self) -> Response:
        async with asyncio.timeout(SECONDS):
            await self.over.wait()
        assert len(self.ends) == 1
        return self


REQUEST = b"POST /mcp HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


@asynccontextmanager
async def pooled(there: Scripted) -> AsyncIterator[Pool]:
    pool = Pool(Origin("127.0.0.1", there.port, False))
    try:
        yield pool
    finally:
        pool.close()


async def ask(pool: Pool) -> Response:
    response = Response()
    pool.send(response, REQUEST)
    return await response.wait()


def raw(data: bytes, close: bool = False) -> object:
    async def script(seen: Seen, out: Out) -> None:
        out.raw(data)
        if close:
            out.close()

    return script


@pytest.mark.parametrize(
    ("data", "close", "status", "body", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", False, 200, b"abc", True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", False, 200, b"abc", True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-trailer: y\r\n\r\n", False, 200, b"a", True),
        (b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", False, 202, b"", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", False, 204, b"", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na", False, 200, b"a", True),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na", False, 200, b"a", True),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na", True, 200, b"a", False),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", True, 200, b"until the end", False),  # no length: the end is the end
        (b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", True, 200, b"a", False),
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\noops", False, 500, b"oops", True),
    ],
)  # fmt: skip
async def test_responses(data: bytes, close: bool, status: int, body: bytes, kept: bool) -> None:
    async with scripted(raw(data, close)) as there, pooled(there) as pool:  # type: ignore[arg-type]
        for _ in range(3):
            response = await ask(pool)
            assert (response.status, response.body, response.ends) == (status, body, ["end"])
        assert there.connections == (1 if kept else 3)


@pytest.mark.parametrize(
    ("data", "close"),
    [
        (b"", True),
        (b"HTTP/1.1 2", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", False),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", False),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000 + b"\r\ncontent-length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nx\0y: z\r\n\r\n", False),
        (b"HTTP/9.9 200 OK\r\n\r\n", False),
        (b"\x15\x03\x01\x00\x02\x02\x16", False),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", False),
    ],
)
async def test_what_is_no_response_is_lost(data: bytes, close: bool) -> None:
    async with scripted(raw(data, close)) as there, pooled(there) as pool:  # type: ignore[arg-type]
        response = await ask(pool)
        assert response.ends == ["lost"]
        assert len(there.seen) == 1
        await eventually(lambda: not pool.open)  # such a connection is not used again


async def test_an_endless_header_is_cut_off() -> None:
    """It never becomes a header, so it must be counted as it comes."""
    sent = 0

    async def script(seen: Seen, out: Out) -> None:
        nonlocal sent
        out.raw(b"HTTP/1.1 200 OK\r\nx: ")
        for _ in range(2000):
            out.raw(b"y" * 10_000)
            sent += 10_000
            await out.writer.drain()

    async with scripted(script) as there, pooled(there) as pool:
        assert (await ask(pool)).ends == ["lost"]
        assert sent < 10_000_000


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    """As servers do with idle connections: the next request takes another, and nobody notices."""

    async def script(seen: Seen, out: Out) -> None:
        out.send(200, b"a")
        await out.writer.drain()
        out.writer.write_eof()

    async with scripted(script) as there, pooled(there) as pool:
        for number in range(3):
            assert (await ask(pool)).body == b"a"
            await eventually(lambda: not pool.open)
            assert there.connections == number + 1


async def test_idle_connections_are_closed_before_servers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "IDLE_SECONDS", 0.1)
    async with scripted(raw(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")) as there, pooled(there) as pool:  # type: ignore[arg-type]
        await ask(pool)
        await eventually(lambda: not pool.open)


async def test_bytes_that_answer_nothing_end_the_connection() -> None:
    """They could be taken for the answer to the next request."""

    async def script(seen: Seen, out: Out) -> None:
        out.send(200, b"a")
        await out.writer.drain()
        await asyncio.sleep(0.05)
        out.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nb")

    async with scripted(script) as there, pooled(there) as pool:
        assert (await ask(pool)).body == b"a"
        await eventually(lambda: not pool.open)
        assert (await ask(pool)).body == b"a"


async def test_a_second_answer_in_the_same_bytes_is_not_the_next_ones() -> None:
    two = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na" + b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nb"
    async with scripted(raw(two)) as there, pooled(there) as pool:  # type: ignore[arg-type]
        bodies = [(await ask(pool)).body for _ in range(3)]
        assert bodies == [b"a", b"a", b"a"]


async def test_requests_wait_for_a_connection_when_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "MAX_CONNECTIONS", 3)
    go_on = asyncio.Event()

    async def script(seen: Seen, out: Out) -> None:
        await go_on.wait()
        out.send(200, b"a")

    async with scripted(script) as there, pooled(there) as pool:
        responses = [Response() for _ in range(12)]
        for response in responses:
            pool.send(response, REQUEST)
        await there.until(lambda: len(there.seen) == 3)
        go_on.set()
        for response in responses:
            assert (await response.wait()).ends == ["end"]
        assert there.connections == 3


@pytest.mark.parametrize("when", ["waiting", "sent", "answered"])
async def test_a_request_that_is_given_up_says_nothing_more(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "MAX_CONNECTIONS", 1)

    async def script(seen: Seen, out: Out) -> None:
        if when == "answered" or len(there.seen) > 1:
            out.send(200, b"a")

    async with scripted(script) as there, pooled(there) as pool:
        given_up, other = Response(), Response()
        ticket: Ticket
        if when == "waiting":
            pool.send(other, REQUEST)
            await there.until(lambda: there.seen)
            ticket = pool.send(given_up, REQUEST)
            ticket.abandon()
            assert len(there.seen) == 1
        else:
            ticket = pool.send(given_up, REQUEST)
            await there.until(lambda: there.seen)
            if when == "answered":
                await given_up.wait()
            ticket.abandon()
            pool.send(other, REQUEST)
            assert (await other.wait()).body == b"a"
            assert given_up.ends == (["end"] if when == "answered" else [])
            # One that has had its answer must not cut off whoever has the connection now.
            assert there.connections == (1 if when == "answered" else 2)


async def test_closing_tells_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "MAX_CONNECTIONS", 1)

    async def script(seen: Seen, out: Out) -> None:
        return

    async with scripted(script) as there, pooled(there) as pool:
        sent, waiting = Response(), Response()
        pool.send(sent, REQUEST)
        await there.until(lambda: there.seen)
        pool.send(waiting, REQUEST)
        pool.close()
        assert (await sent.wait()).ends == ["lost"]
        assert (await waiting.wait()).ends == ["not sent"]


@pytest.mark.parametrize(
    ("url", "host", "port", "tls", "authority"),
    [
        ("http://x/", "x", 80, False, "x"),
        ("https://x/", "x", 443, True, "x"),
        ("http://x:8080/a", "x", 8080, False, "x:8080"),
        ("http://x:80", "x", 80, False, "x"),
        ("https://x:80", "x", 80, True, "x:80"),
        ("http://[::1]:9/", "::1", 9, False, "[::1]:9"),
        ("http://USER:pass@Host/", "host", 80, False, "host"),
        ("http://b\u00fccher.example/", "xn--bcher-kva.example", 80, False, "xn--bcher-kva.example"),
    ],
)
def test_origins(url: str, host: str, port: int, tls: bool, authority: str) -> None:
    origin = Origin.of(url)
    assert (origin.host, origin.port, origin.tls, origin.authority) == (host, port, tls, authority)


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "ftp://x/", "http://", "http:///x", "http://x:port/", "http://x:70000/", "http://[::1/", "//x/"),
        "http://" + "\u00fc" * 80 + "/",
    ],
)
def test_what_is_no_origin(url: str) -> None:
    with pytest.raises(ValueError, match="not an http or https URL"):
        Origin.of(url)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://x", "/"),
        ("http://x?a=b", "/?a=b"),
        ("http://x/a/b;c?d=e&f=%20#g", "/a/b;c?d=e&f=%20"),
        ("http://x/a b\u00e4", "/a%20b%C3%A4"),
        ('http://x/"<>\\^`{|}', "/%22%3C%3E%5C%5E%60%7B%7C%7D"),
    ],
)
def test_targets(url: str, target: str) -> None:
    assert target_of(url) == target
