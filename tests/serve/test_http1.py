"""The HTTP/1.1 server on its own: what it takes, what it refuses, and that no client can hold it up or fill it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from interlock.serve import http1
from interlock.serve.http1 import HttpServer, Request, Responder

from .wire import SECONDS, Wire, eventually, request, wire

MAX_BODY = 100_000


class Echo:
    """Answers by path: `/slow` when it is told to, `/stream` as events, `/boom` not at all; anything else by what it saw."""

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.open: list[Responder] = []
        self.gone = asyncio.Event()
        self.arrived = asyncio.Event()
        self.port = 0
        self.server: HttpServer

    def handle(self, got: Request, respond: Responder) -> None:
        self.seen.append(got)
        self.arrived.set()
        if got.path == "/boom":
            raise RuntimeError("a fault of ours")
        if got.path == "/big":
            respond.json(b'"' + b"x" * 1_000_000 + b'"')
        elif got.path in ("/slow", "/stream"):
            respond.on_gone = self.gone.set
            self.open.append(respond)
            if got.path == "/stream":
                respond.begin_stream(b"x-extra: yes\r\n")
                respond.write(b"one")
        else:
            respond.text(f"{got.method} {got.path} {got.query} {len(got.body)}", 200)


@pytest.fixture
async def echo() -> AsyncIterator[Echo]:
    made = Echo()
    made.server = HttpServer(made.handle, max_body=MAX_BODY)
    made.port = await made.server.start("127.0.0.1", 0)
    yield made
    await made.server.close(0)


@pytest.mark.parametrize(
    ("sent", "status", "body"),
    [
        (request("GET", "/a?b=c"), 200, b"GET /a b=c 0"),
        (request("POST", "/a", b"12345"), 200, b"POST /a  5"),
        (request("POST", "/a"), 200, b"POST /a  0"),
        (request("OPTIONS", "*"), 200, b"OPTIONS *  0"),
        (b"\r\n\r\n" + request("GET", "/after-empty-lines"), 200, b"GET /after-empty-lines  0"),
        (
            b"POST /c HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n",
            200,
            b"POST /c  5",
        ),
        # An absolute target, as a client of a proxy sends it.
        (b"GET http://other:80/p?q HTTP/1.1\r\nhost: x\r\n\r\n", 200, b"GET /p q 0"),
        (b"GET http://other HTTP/1.1\r\nhost: x\r\n\r\n", 200, b"GET /  0"),
        # Old, but HTTP: no Host is needed.
        (b"GET /old HTTP/1.0\r\n\r\n", 200, b"GET /old  0"),
        (request("DELETE", "/a"), 200, b"DELETE /a  0"),
    ],
)  # fmt: skip
async def test_takes(echo: Echo, sent: bytes, status: int, body: bytes) -> None:
    async with wire(echo.port) as client:
        client.send(sent)
        answer = await client.answer()
        assert (answer.status, answer.body) == (status, body)


@pytest.mark.parametrize("piece", [1, 7, 1000])
async def test_however_the_bytes_are_cut(echo: Echo, piece: int) -> None:
    sent = request("POST", "/a", b"x" * 50) + request("GET", "/b") + request("POST", "/c", b"y" * 9)
    async with wire(echo.port) as client:
        for start in range(0, len(sent), piece):
            client.send(sent[start : start + piece])
            await asyncio.sleep(0)
        bodies = [(await client.answer()).body for _ in range(3)]
    assert bodies == [b"POST /a  50", b"GET /b  0", b"POST /c  9"]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100, id="TLS"),
        pytest.param(b"GET /\r\n\r\n", id="HTTP/0.9"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2 preface"),
        pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', id="JSON lines"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="no Host"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n", id="two Hosts"),
        pytest.param(b"GET / HTTP/1.1\nhost: a\n\n", id="bare LF"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: a\r\n folded\r\n\r\n", id="folded header"),
        pytest.param(b"GET / HTTP/1.1\r\nhost : a\r\n\r\n", id="space before the colon"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: a\0b\r\n\r\n", id="NUL in a value"),
        pytest.param(b"GET / HTTP/1.1\r\nhost: a\r\nx\x01y: 1\r\n\r\n", id="control in a name"),
        pytest.param(b"CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n", id="CONNECT"),
        # What one server reads as one request and another as two (RFC 9112, 11.2).
        pytest.param(
            b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            id="both lengths",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n",
            id="both lengths, other order",
        ),
        pytest.param(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", id="two lengths"),
        pytest.param(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1, 1\r\n\r\na", id="a list of lengths"),
        pytest.param(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: +1\r\n\r\na", id="signed length"),
        pytest.param(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0x1\r\n\r\na", id="hexadecimal length"),
        pytest.param(
            b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999999\r\n\r\na", id="length overflow"
        ),
        pytest.param(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n", id="xchunked"),
        pytest.param(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n", id="chunked not last"),
        pytest.param(
            b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
            id="two codings",
        ),
        pytest.param(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", id="bad chunk size"),
        pytest.param(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n", id="negative chunk"),
        pytest.param(
            b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n", id="chunk overflow"
        ),
        pytest.param(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\na\n0\n\n", id="chunk with LF"),
        pytest.param(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\naXX\r\n", id="chunk too long"),
    ],
)  # fmt: skip
async def test_refuses_and_hangs_up(echo: Echo, sent: bytes) -> None:
    async with wire(echo.port) as client:
        client.send(sent + request("GET", "/smuggled"))
        data = await client.rest()
    assert data in (b"", b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    assert "/smuggled" not in [each.path for each in echo.seen]
    # The next client is served as ever.
    async with wire(echo.port) as client:
        client.send(request("GET", "/next"))
        assert (await client.answer()).status == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request("GET", "/" + "x" * 9000), 414),
        (request("GET", "/", x="y" * 70_000), 431),
        (request("GET", "/", headers={f"x{n}": "y" * 20 for n in range(4000)}), 431),
        (request("POST", "/", b"x" * (MAX_BODY + 1)), 413),
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\n\r\n", 413),  # told before it is sent
        (b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\nexpect: 100-continue\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" + b"4000\r\n%b\r\n" % (b"x" * 0x4000) * 10, 413),
    ],
)  # fmt: skip
async def test_refuses_what_is_too_large(echo: Echo, sent: bytes, status: int) -> None:
    async with wire(echo.port) as client:
        client.send(sent)
        answer = await client.answer()
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert await client.closed()
    assert echo.seen == []


@pytest.mark.parametrize(
    "begin",
    [
        b"GET / HTTP/1.1\r\nhost: a\r\nx: ",  # one header that never ends
        b"GET / HTTP/1.1\r\nhost: a\r\n",  # ever more headers, see below
        b"GET /",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1;",  # a chunk extension
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: ",  # a trailer
    ],
)
async def test_nothing_grows_without_end(echo: Echo, begin: bytes) -> None:
    """A client that keeps sending one endless part is cut off long before it has used much memory."""
    more = b"x: " + b"y" * 997 + b"\r\n" if begin.endswith(b"a\r\n") else b"y" * 1000
    async with wire(echo.port) as client:
        client.send(begin)
        sent = 0
        reading = asyncio.ensure_future(client.rest())
        with contextlib.suppress(ConnectionError):
            while not reading.done() and sent < 4_000_000:
                client.send(more)
                sent += len(more)
                await client.writer.drain()
                await asyncio.sleep(0)
        data = await reading
    assert sent < 4_000_000
    assert data[:12] in (b"", b"HTTP/1.1 431", b"HTTP/1.1 414", b"HTTP/1.1 413", b"HTTP/1.1 400")
    assert echo.seen == []


async def test_a_trailer_is_no_header(echo: Echo) -> None:
    async with wire(echo.port) as client:
        client.send(
            b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nhost: evil\r\nauthorization: b\r\n\r\n"
        )
        assert (await client.answer()).status == 200
    assert echo.seen[0].headers == {b"host": b"a", b"transfer-encoding": b"chunked"}


async def test_repeated_headers_are_joined(echo: Echo) -> None:
    async with wire(echo.port) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nx-a: 2\r\n\r\n")
        await client.answer()
    assert echo.seen[0].headers == {b"host": b"a", b"x-a": b"1, 2"}


async def test_expect_continue(echo: Echo) -> None:
    async with wire(echo.port) as client:
        client.send(request("POST", "/", b"", content_length="5", expect="100-continue"))
        assert (await client.head()).status == 100
        client.send(b"12345")
        assert (await client.answer()).body == b"POST /  5"


async def test_no_interim_answer_in_the_midst_of_another(echo: Echo) -> None:
    async with wire(echo.port) as client:
        client.send(request("GET", "/slow"))
        client.send(request("POST", "/", b"", content_length="5", expect="100-continue") + b"12345")
        await echo.arrived.wait()
        echo.open[0].text("done")
        first, second = await client.answer(), await client.answer()
        assert (first.body, first.early, second.body) == (b"done", [], b"POST /  5")


async def test_head_has_no_body(echo: Echo) -> None:
    async with wire(echo.port) as client:
        client.send(request("HEAD", "/a") + request("GET", "/b"))
        head = await client.answer(head_only=True)
        assert (head.status, head.headers["content-length"]) == (200, "10")
        assert (await client.answer()).body == b"GET /b  0"  # nothing of a body came between


@pytest.mark.parametrize("upgrade", ["h2c", "websocket", "TLS/1.3, h2c"])
@pytest.mark.parametrize("chunked", [False, True])
async def test_an_offered_upgrade_is_ignored(echo: Echo, upgrade: str, chunked: bool) -> None:
    """The HTTP client of Java offers h2c with its first POST, body included."""
    headers = {
        "connection": "Upgrade, HTTP2-Settings",
        "upgrade": upgrade,
        "http2-settings": "AAMAAABkAAQAoAAAAAIAAAAA",
    }
    if chunked:
        headers |= {"transfer-encoding": "chunked", "content-length": ""}
        sent = request("POST", "/a", b"", headers) + b"5\r\n12345\r\n0\r\n\r\n"
    else:
        sent = request("POST", "/a", b"12345", headers)
    async with wire(echo.port) as client:
        client.send(sent + request("GET", "/b"))
        assert (await client.answer()).body == b"POST /a  5"
        assert (await client.answer()).body == b"GET /b  0"
        client.send(request("POST", "/c", b"123", {"connection": "upgrade", "upgrade": upgrade}))
        assert (await client.answer()).body == b"POST /c  3"


async def test_pipelined_requests_are_answered_in_order(echo: Echo) -> None:
    async with wire(echo.port) as client:
        client.send(request("GET", "/slow"))
        client.send(b"".join(request("GET", f"/{n}") for n in range(500)))
        await echo.arrived.wait()
        assert [each.path for each in echo.seen] == ["/slow"]  # one at a time
        echo.open[0].text("slow")
        bodies = [(await client.answer()).body for _ in range(501)]
    assert bodies == [b"slow", *(b"GET /%d  0" % n for n in range(500))]


async def test_garbage_does_not_take_back_an_answer(echo: Echo) -> None:
    async with wire(echo.port) as client:
        client.send(request("GET", "/slow") + request("GET", "/b") + b"\0\0garbage")
        await echo.arrived.wait()
        assert not echo.gone.is_set()
        echo.open[0].text("done")
        assert [(await client.answer()).body for _ in range(2)] == [b"done", b"GET /b  0"]
        assert await client.closed()


@pytest.mark.parametrize(
    ("sent", "closes"),
    [
        (request("GET", "/a"), False),
        (request("GET", "/a", connection="close"), True),
        (request("GET", "/a", connection="keep-alive"), False),
        (b"GET /a HTTP/1.0\r\nhost: a\r\n\r\n", True),
        (b"GET /a HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n", True),
    ],
)
async def test_keep_alive(echo: Echo, sent: bytes, closes: bool) -> None:
    async with wire(echo.port) as client:
        client.send(sent)
        answer = await client.answer()
        assert (answer.headers.get("connection") == "close") is closes
        if closes:
            assert await client.closed()
        else:
            client.send(request("GET", "/b"))
            assert (await client.answer()).body == b"GET /b  0"


async def test_stream(echo: Echo) -> None:
    async with wire(echo.port) as client:
        client.send(request("GET", "/stream") + request("GET", "/b"))
        head = await client.head()
        assert head.headers == {
            "content-type": "text/event-stream",
            "cache-control": "no-cache, no-transform",
            "x-accel-buffering": "no",
            "transfer-encoding": "chunked",
            "x-extra": "yes",
        }
        assert await client.chunk() == b"one"
        stream = echo.open[0]
        stream.write(b"")  # an empty chunk would end the stream
        stream.write(b"two")
        stream.json(b"{}")  # too late for anything but the stream
        stream.end_stream()
        assert [await client.chunk(), await client.chunk()] == [b"two", b""]
        assert (await client.answer()).body == b"GET /b  0"


async def test_stream_to_an_old_client_ends_with_the_connection(echo: Echo) -> None:
    """Reverse proxies speak HTTP/1.0 to what is behind them unless they are told otherwise."""
    async with wire(echo.port) as client:
        client.send(b"GET /stream HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n")
        head = await client.head()
        assert "transfer-encoding" not in head.headers
        await echo.arrived.wait()
        echo.open[0].write(b"two")
        echo.open[0].end_stream()
        assert await client.rest() == b"onetwo"


@pytest.mark.parametrize("path", ["/slow", "/stream"])
@pytest.mark.parametrize("how", ["close", "reset", "half-close"])
async def test_the_handler_hears_when_the_client_goes(echo: Echo, path: str, how: str) -> None:
    async with wire(echo.port) as client:
        client.send(request("GET", path))
        await echo.arrived.wait()
        if how == "close":
            client.writer.close()
        elif how == "reset":
            client.writer.transport.abort()
        else:
            client.writer.write_eof()
        async with asyncio.timeout(SECONDS):
            await echo.gone.wait()
        respond = echo.open[0]
        assert respond.gone
        respond.write(b"x")
        respond.text("harmless")
        respond.end_stream()


async def test_a_fault_in_the_handler_is_answered(echo: Echo, capsys: pytest.CaptureFixture[str]) -> None:
    async with wire(echo.port) as client:
        client.send(request("GET", "/boom") + request("GET", "/b"))
        assert (await client.answer()).status == 500
        assert (await client.answer()).body == b"GET /b  0"
    assert "a fault of ours" in capsys.readouterr().err


async def test_a_client_that_does_not_read_is_not_read_from(echo: Echo) -> None:
    """Answers of a megabyte, two thousand asked for at once and none taken: only a few are made."""
    async with wire(echo.port) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send(b"".join(request("GET", "/big") for _ in range(2000)))
        made = -1
        while made != len(echo.seen):
            made = len(echo.seen)
            await asyncio.sleep(0.1)
        assert 1 <= made < 50
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(60):
            assert len((await client.answer()).body) == 1_000_002


async def test_slow_and_silent_clients_are_dropped(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "READ_SECONDS", 0.2)
    monkeypatch.setattr(http1, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(http1, "STALL_SECONDS", 0.2)
    monkeypatch.setattr(http1, "SWEEP_SECONDS", 0.05)
    echo.server._sweep()
    async with (
        wire(echo.port) as slow,
        wire(echo.port) as silent,
        wire(echo.port) as stalled,
        wire(echo.port) as open_call,
    ):
        open_call.send(request("GET", "/slow"))
        slow.send(b"GET / HTTP/1.1\r\nhost: a\r\nx: ")
        stalled.writer.transport.pause_reading()  # type: ignore[attr-defined]
        stalled.send(request("GET", "/big") * 30)
        for _ in range(8):
            if not slow.writer.is_closing():
                slow.send(b"y")  # a byte now and then does not help
            await asyncio.sleep(0.05)
        assert await slow.closed()
        assert await silent.closed()
        await eventually(lambda: len(echo.server._connections) == 1)
        # A call that takes long is no silence.
        assert not echo.gone.is_set()
        echo.open[0].text("at last")
        assert (await open_call.answer()).body == b"at last"


async def _asked(echo: Echo, stack: contextlib.AsyncExitStack) -> Wire:
    client = await stack.enter_async_context(wire(echo.port))
    client.send(request("GET", "/a"))
    assert (await client.answer()).status == 200
    await asyncio.sleep(0.01)  # the loop counts milliseconds, and the order matters
    return client


async def test_more_clients_than_there_is_room_for(echo: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "MAX_CONNECTIONS", 2)
    async with contextlib.AsyncExitStack() as stack:
        first, second, third = [await _asked(echo, stack) for _ in range(3)]
        assert await first.closed()  # the one that was idle for longest made room
        for each in (second, third):
            each.send(request("GET", "/slow"))
        await eventually(lambda: len(echo.open) == 2)
        async with wire(echo.port) as fourth:
            fourth.send(request("GET", "/a"))
            assert (await fourth.answer()).status == 503


async def test_closing_lets_answers_finish(echo: Echo) -> None:
    async with wire(echo.port) as client:
        client.send(request("GET", "/slow"))
        await echo.arrived.wait()
        closing = asyncio.ensure_future(echo.server.close(SECONDS))
        await asyncio.sleep(0.05)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", echo.port)
        echo.open[0].text("finished")
        assert (await client.answer()).body == b"finished"
        await closing
        assert await client.closed()


async def test_closing_does_not_wait_for_ever(echo: Echo) -> None:
    async with wire(echo.port) as client:
        client.send(request("GET", "/slow"))
        await echo.arrived.wait()
        await echo.server.close(0.1)
        assert await client.closed()
    assert echo.gone.is_set()
