"""The loopback listener: both families, strict requests, limits and deadlines."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.upstream.oauth.scripted_as import click

from interlock.upstream.oauth import callback, pages
from interlock.upstream.oauth.callback import Listener, PortBusy, Reply, Request, is_loopback_host, parse_head

Within = Callable[[float], asyncio.Timeout]


def free_port() -> int:
    """A port that was free on both families a moment ago."""
    for _ in range(50):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        with suppress(PortBusy):
            Listener.bind(port).close()
            return port
    raise AssertionError("no free port")


@asynccontextmanager
async def listening(seen: list[Request] | None = None, **options: bool) -> AsyncIterator[Listener]:
    async def answer(request: Request) -> Reply:
        if seen is not None:
            seen.append(request)
        return Reply(200, pages.page("Here", request.path), **options)

    listener = Listener.bind(free_port())
    await listener.serve(answer)
    try:
        yield listener
    finally:
        listener.close()


async def exchange(port: int, content: bytes, *, family: str = "127.0.0.1") -> bytes:
    reader, writer = await asyncio.open_connection(family, port)
    try:
        writer.write(content)
        return await reader.read()
    finally:
        writer.close()


async def test_both_families_answer_on_one_port(within: Within) -> None:
    async with within(10), listening() as listener:
        for family in ("127.0.0.1", "::1"):
            status, body = await click(f"http://localhost:{listener.port}/callback", family=family)
            assert status == 200
            assert "<p>/callback</p>" in body


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
async def test_a_port_that_is_taken_on_either_family_is_not_ours(family: socket.AddressFamily, address: str) -> None:
    with socket.socket(family) as foreign:
        foreign.bind((address, 0))
        foreign.listen()
        port = foreign.getsockname()[1]
        with pytest.raises(PortBusy):
            Listener.bind(port)
    Listener.bind(port).close()  # and the other family was let go


def test_the_listener_works_on_either_event_loop(run: Callable[[Coroutine[object, object, None]], None]) -> None:
    async def life() -> None:
        seen: list[Request] = []
        async with listening(seen) as listener:
            for family in ("127.0.0.1", "::1"):
                url = f"http://localhost:{listener.port}/callback?state=s&code=c"
                assert (await click(url, family=family))[0] == 200
            assert await exchange(listener.port, b"\0\r\n\r\n") != b""
            with pytest.raises(PortBusy):
                Listener.bind(listener.port)
        assert [request.one("code") for request in seen] == ["c", "c"]
        Listener.bind(listener.port).close()

    run(life())


async def test_a_second_listener_of_our_own_is_refused_too() -> None:
    first = Listener.bind(free_port())
    with pytest.raises(PortBusy):
        Listener.bind(first.port)
    first.close()
    Listener.bind(first.port).close()


async def test_a_port_can_be_taken_again_right_after_its_connections(within: Within) -> None:
    async with within(10), listening() as listener:
        await click(f"http://localhost:{listener.port}/x")
        listener.close()
        Listener.bind(listener.port).close()


async def test_a_machine_without_ipv6_listens_on_ipv4_alone(monkeypatch: pytest.MonkeyPatch, within: Within) -> None:
    real = socket.socket

    def no_ipv6(family: int = -1, *rest: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(97, "Address family not supported by protocol")
        return real(family, *rest)

    port = free_port()
    monkeypatch.setattr(callback.socket, "socket", no_ipv6)
    listener = Listener.bind(port)
    monkeypatch.undo()
    async with within(10):

        async def answer(request: Request) -> Reply:
            return Reply(200, b"yes")

        await listener.serve(answer)
        assert (await click(f"http://127.0.0.1:{port}/callback"))[0] == 200
    listener.close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /callback HTTP/1.1\r\nHost: localhost:1\r\n", 200),
        (b"GET /callback HTTP/1.0\r\nHost: 127.0.0.1\r\n", 200),
        (b"GET /callback HTTP/1.1\r\nhOsT:   [::1]:7\r\n", 200),
        (b"POST /callback HTTP/1.1\r\nHost: localhost\r\n", 405),
        (b"HEAD /callback HTTP/1.1\r\nHost: localhost\r\n", 405),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n", 405),
        (b"GET /callback HTTP/1.1\r\n", 400),
        (b"GET /callback HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", 400),
        (b"GET /callback HTTP/1.1\r\nHost: evil.test\r\n", 421),
        (b"GET /callback HTTP/1.1\r\nHost: localhost.evil.test\r\n", 421),
        (b"GET /callback HTTP/1.1\r\nHost: 127.0.0.1.evil.test\r\n", 421),
        (b"GET http://localhost/callback HTTP/1.1\r\nHost: localhost\r\n", 400),
        (b"GET /callback HTTP/2.0\r\nHost: localhost\r\n", 400),
        (b"GET  /callback HTTP/1.1\r\nHost: localhost\r\n", 400),
        (b"GET /c\xc3\xa4 HTTP/1.1\r\nHost: localhost\r\n", 400),
        (b"GET /callback?" + b"a=1&" * 70 + b" HTTP/1.1\r\nHost: localhost\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n", 400),
    ],
)
async def test_only_plain_gets_for_this_machine_are_passed_on(head: bytes, status: int, within: Within) -> None:
    seen: list[Request] = []
    async with within(10), listening(seen) as listener:
        answer = await exchange(listener.port, head + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert bool(seen) == (status == 200)
        assert (b"\r\nAllow: GET\r\n" in answer) == (status == 405)


async def test_pages_forbid_scripts_caches_frames_and_referrers(within: Within) -> None:
    async with within(10), listening() as listener:
        answer = await exchange(listener.port, b"GET /<script> HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"Referrer-Policy: no-referrer" in head
        assert b"Cache-Control: no-store" in head
        assert b"default-src 'none'" in head
        assert b"frame-ancestors 'none'" in head
        assert b"<script" not in body
        assert b"&lt;script&gt;" in body
        assert b"Content-Length: %d" % len(body) in head


async def test_a_head_that_never_ends_is_cut(within: Within) -> None:
    async with within(10), listening() as listener:
        filler = b"GET /callback HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (callback.MAX_HEAD + 1000)
        with suppress(ConnectionResetError):
            assert (await exchange(listener.port, filler)).startswith(b"HTTP/1.1 400 ")
        assert (await click(f"http://localhost:{listener.port}/callback"))[0] == 200


async def test_a_silent_connection_is_dropped_after_its_time(monkeypatch: pytest.MonkeyPatch, within: Within) -> None:
    monkeypatch.setattr(callback, "HEAD_SECONDS", 0.1)
    async with within(10), listening() as listener:
        assert await exchange(listener.port, b"GET /callback HTT") == b""


async def test_idle_connections_make_room_for_one_that_asks(within: Within) -> None:
    async with within(20), listening() as listener:
        idle = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(callback.MAX_CONNECTIONS + 8)]
        status, _ = await click(f"http://localhost:{listener.port}/callback")
        assert status == 200
        for _, writer in idle:
            writer.close()


async def test_a_held_connection_ends_when_the_listener_does(within: Within) -> None:
    async with within(10), listening(held=True) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"GET /interlock/watch HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"</html>\n")
        waiting = asyncio.ensure_future(reader.read())
        await asyncio.sleep(0)
        assert not waiting.done()
        listener.close()
        with suppress(ConnectionResetError):
            assert await waiting == b""
        writer.close()


async def test_a_handler_that_fails_hurts_no_other_request(within: Within, caplog: pytest.LogCaptureFixture) -> None:
    async def answer(request: Request) -> Reply:
        if request.path == "/bad":
            raise RuntimeError("broken")
        return Reply(200, b"good")

    listener = Listener.bind(free_port())
    await listener.serve(answer)
    async with within(10):
        assert await exchange(listener.port, b"GET /bad HTTP/1.1\r\nHost: localhost\r\n\r\n") == b""
        assert (await click(f"http://localhost:{listener.port}/good")) == (200, "good")
    listener.close()
    assert "a request to the login callback failed" in caplog.text


@pytest.mark.parametrize(
    ("value", "ours"),
    [
        ("localhost", True),
        ("LOCALHOST:33418", True),
        ("127.0.0.1:1", True),
        ("[::1]", True),
        ("[::1]:33418", True),
        ("[::1]x", False),
        ("[::1]:x", False),
        ("[::1", False),
        ("::1", False),
        ("localhost:", False),
        ("localhost:1:2", False),
        ("localhost.", False),
        ("127.0.0.2", False),
        ("", False),
        ("interlock.test", False),
    ],
)
def test_host_headers(value: str, ours: bool) -> None:
    assert is_loopback_host(value) is ours


@given(st.binary(max_size=400))
def test_no_bytes_break_the_parser(head: bytes) -> None:
    result = parse_head(head)
    assert isinstance(result, Request) or result in (400, 405, 421)


@given(st.lists(st.tuples(st.sampled_from(["state", "code", "iss", "x"]), st.text(max_size=20)), max_size=12))
def test_parameters_come_out_as_they_went_in(pairs: list[tuple[str, str]]) -> None:
    from urllib.parse import urlencode

    head = f"GET /callback?{urlencode(pairs)} HTTP/1.1\r\nHost: localhost\r\n".encode()
    request = parse_head(head)
    assert isinstance(request, Request)
    for name in {name for name, _ in pairs}:
        values = tuple(value for each, value in pairs if each == name)
        assert request.query[name] == values
        assert request.one(name) == (values[0] if len(values) == 1 else None)


@pytest.mark.parametrize("way", ["release", "close"])
async def test_an_answer_that_is_being_made_when_the_port_is_let_go(way: str, within: Within) -> None:
    """After `release` it still reaches the browser: the page that says that the login is done must not be lost."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def answer(request: Request) -> Reply:
        begun.set()
        await go_on.wait()
        return Reply(200, pages.page("Signed in", "done"))

    async with within(10):
        listener = Listener.bind(free_port())
        await listener.serve(answer)
        asked = asyncio.create_task(exchange(listener.port, b"GET /callback HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        await begun.wait()
        getattr(listener, way)()
        Listener.bind(listener.port).close()  # the port is free already
        go_on.set()
        content = await asked
        assert (b"Signed in" in content) == (way == "release")
