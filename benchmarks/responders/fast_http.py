"""A Streamable HTTP echo server on a bare asyncio.Protocol: the HTTP upstream of every speed measurement.

Answers both eras: modern requests as they come, legacy `initialize` with a session id, notifications with 202 and
GET with 405 (no standing stream), which both eras allow. Requests need a Content-Length; that is what every client
measured here sends, and a chunked request is refused with 411.

    python benchmarks/responders/fast_http.py --port 9100
"""

from __future__ import annotations

import argparse
import asyncio
import secrets

import msgspec
import uvloop
from echo_answers import answer, decode

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
_ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
_NO_STREAM = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST, DELETE\r\nContent-Length: 0\r\n\r\n"
_ENDED = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_LENGTH_REQUIRED = b"HTTP/1.1 411 Length Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_LENGTH = b"content-length:"


class EchoProtocol(asyncio.Protocol):
    """One keep-alive connection; pipelined requests are answered in order."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._pending = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        transport = self._transport
        assert transport is not None
        pending = self._pending + data if self._pending else data
        while pending:
            head_end = pending.find(b"\r\n\r\n")
            if head_end < 0:
                break
            verb = pending[:4]
            if verb != b"POST":
                transport.write(_NO_STREAM if verb == b"GET " else _ENDED)
                pending = pending[head_end + 4 :]
                continue
            head = pending[:head_end].lower()
            at = head.find(_LENGTH)
            if at < 0:
                transport.write(_LENGTH_REQUIRED)
                transport.close()
                return
            line_end = head.find(b"\r\n", at)
            length = int(head[at + len(_LENGTH) : line_end if line_end > 0 else head_end])
            end = head_end + 4 + length
            if len(pending) < end:
                break
            body = pending[head_end + 4 : end]
            pending = pending[end:]
            try:
                request = decode(body)
            except msgspec.MsgspecError:
                transport.write(_BAD)
                transport.close()
                return
            if not bytes(request.id):
                transport.write(_ACCEPTED)
                continue
            reply = answer(request)
            session = b""
            if request.method == "initialize":
                session = b"\r\nMcp-Session-Id: " + secrets.token_hex(16).encode()
            transport.write(b"".join((_OK, b"%d" % len(reply), session, b"\r\n\r\n", reply)))
        self._pending = pending


async def serve(port: int) -> None:
    """Listens on 127.0.0.1 until cancelled; prints `ready` once the port is bound."""
    server = await asyncio.get_running_loop().create_server(EchoProtocol, "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
