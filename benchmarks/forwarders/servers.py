"""Server stacks to choose from: each passes POST bodies through `forward` and answers with what it returns.

`serve_NAME(make_forward, port)` blocks until the process is ended. `make_forward` is called inside the running loop,
so that clients may open their connections there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httptools
import uvloop

Forward = Callable[[bytes], Awaitable[bytes]]
MakeForward = Callable[[], Forward]

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
_BROKEN = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"


class _Asgi:
    """The smallest ASGI application that forwards one body."""

    def __init__(self, make_forward: MakeForward) -> None:
        self._make_forward = make_forward
        self._forward: Forward | None = None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        event = await receive()
        body = event["body"]
        while event.get("more_body"):
            event = await receive()
            body += event["body"]
        if self._forward is None:
            self._forward = self._make_forward()
        answer = await self._forward(body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def serve_uvicorn(make_forward: MakeForward, port: int) -> None:
    """uvicorn, with uvloop and httptools, no access log."""
    import uvicorn

    uvicorn.run(
        _Asgi(make_forward),
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        ws="none",
        access_log=False,
        proxy_headers=False,
        log_level="warning",
        server_header=False,
        date_header=False,
    )


def serve_granian(make_forward: MakeForward, port: int) -> None:
    """granian's embedded server on this process, ASGI, one worker, uvloop."""
    from granian.constants import Interfaces
    from granian.server.embed import Server

    server = Server(_Asgi(make_forward), address="127.0.0.1", port=port, interface=Interfaces.ASGINL, log_access=False)
    uvloop.run(server.serve())


class _BareProtocol(asyncio.Protocol):
    """One connection on httptools; requests of a connection are answered one after the other, in order."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self._parser = httptools.HttpRequestParser(self)
        self._chunks: list[bytes] = []
        self._queue: list[bytes] = []
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Here so that the parser hands every header to Python, as a real front needs."""

    def on_body(self, chunk: bytes) -> None:
        self._chunks.append(chunk)

    def on_message_complete(self) -> None:
        body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        self._chunks = []
        if self._task is not None:
            self._queue.append(body)
        else:
            self._task = asyncio.get_running_loop().create_task(self._answer(body))

    async def _answer(self, body: bytes) -> None:
        while True:
            try:
                answer = await self._forward(body)
                reply = b"".join((_OK, b"%d\r\n\r\n" % len(answer), answer))
            except (OSError, ValueError):
                reply = _BROKEN
            if self._transport is None:
                return
            self._transport.write(reply)
            if not self._queue:
                self._task = None
                return
            body = self._queue.pop(0)


def serve_protocol(make_forward: MakeForward, port: int) -> None:
    """A bare asyncio.Protocol on httptools and uvloop."""

    async def run() -> None:
        forward = make_forward()
        server = await asyncio.get_running_loop().create_server(lambda: _BareProtocol(forward), "127.0.0.1", port)
        await server.serve_forever()

    uvloop.run(run())


SERVERS = {"uvicorn": serve_uvicorn, "granian": serve_granian, "protocol": serve_protocol}
