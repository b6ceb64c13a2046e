"""The fixture servers over HTTP: framing, sessions, resumed streams, and cancellation by closing."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from .raw_client import MODERN_META, Message, http, listening, post

INITIALIZE: Message = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
DONE = b"0\r\n\r\n"


def modern(method: str, **params: object) -> bytes:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": MODERN_META} | params}
    headers = ["MCP-Protocol-Version: 2026-07-28", f"Mcp-Method: {method}"]
    if "name" in params:
        headers.append(f"Mcp-Name: {params['name']}")
    return post(message, headers)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def events_of(answer: bytes) -> list[tuple[str, str]]:
    """Id and data of each event."""
    return [
        (found[1].decode(), found[2].decode())
        for found in re.finditer(rb"id: (\S+)\r?\n(?:[a-z]+: [^\n]*\n)*?data: ([^\n]*)\n", answer)
    ]


async def open_session(port: int) -> str:
    answer = await http(port, post(INITIALIZE), DONE)
    found = re.search(rb"mcp-session-id: (\S+)\r\n", answer)
    assert found is not None
    return found[1].decode()


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nBad Name : x\r\n\r\n", 400),
        (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n", 413),
        (b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 405),
        (b"GET /elsewhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
        (b"GET /mcp HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403),
        (b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n", 403),
    ],
)
async def test_http_is_checked(raw: bytes, status: int) -> None:
    async with listening("modern_server", "--http", "0") as port:
        assert status_of(await http(port, raw, b"\r\n\r\n")) == status


async def test_a_body_in_chunks_is_read_and_the_connection_is_kept() -> None:
    body = modern("tools/list").split(b"\r\n\r\n", 1)
    head = re.sub(rb"Content-Length: \d+", b"Transfer-Encoding: chunked", body[0])
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[1][:7], body[1][7:])) + DONE
    async with listening("modern_server", "--http", "0") as port:
        once = head + b"\r\n\r\n" + pieces
        answer = await http(port, once + once.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        assert answer.count(b"HTTP/1.1 200 OK") == 2


async def test_statuses_of_the_modern_era() -> None:
    async with listening("modern_server", "--http", "0") as port:
        unknown = await http(port, modern("made/up"), b"}}")
        assert status_of(unknown) == 404
        assert b'"code":-32601' in unknown
        old = await http(port, post(INITIALIZE), b"}}")
        assert status_of(old) == 400
        assert b'"code":-32022' in old
        assert b'"supported":["2026-07-28"]' in old


async def test_closing_the_stream_cancels_the_call() -> None:
    meta = {**MODERN_META, "progressToken": 1}
    async with listening("matrix_server", "--era", "modern", "--http", "0") as port:
        call = modern("tools/call", name="sleep", arguments={"ms": 30_000, "label": "closed"}, _meta=meta)
        # `http` closes the connection as soon as it has seen what it waits for.
        assert b"text/event-stream" in await http(port, call, b"notifications/progress")
        async with asyncio.timeout(10):
            while b'"cancelledLabels":["closed"]' not in await http(
                port, modern("tools/call", name="cancel_log"), b"stray"
            ):
                pass


async def test_a_dropped_stream_is_resumed_where_it_ended() -> None:
    async with listening("legacy_server", "--http", "0") as port:
        session = [f"Mcp-Session-Id: {await open_session(port)}"]
        call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "test_reconnection"}}
        first = events_of(await http(port, post(call, session), DONE))
        assert [json.loads(data)["method"] if data else "" for _, data in first] == ["", "notifications/message"]
        head = [
            "GET /mcp HTTP/1.1",
            "Host: localhost",
            "Accept: text/event-stream",
            *session,
            f"Last-Event-ID: {first[-1][0]}",
        ]
        rest = events_of(await http(port, "\r\n".join([*head, "", ""]).encode(), DONE))
        assert [json.loads(data).get("method") for _, data in rest] == ["notifications/message", None]
        assert json.loads(rest[-1][1])["id"] == 5
        ids = [event for event, _ in first + rest]
        assert len(set(ids)) == len(ids)


async def test_sessions_end() -> None:
    async with listening("legacy_server", "--http", "0") as port:
        session = [f"Mcp-Session-Id: {await open_session(port)}"]
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert status_of(await http(port, post(ping, session), DONE)) == 200
        delete = "\r\n".join(["DELETE /mcp HTTP/1.1", "Host: localhost", *session, "", ""]).encode()
        assert status_of(await http(port, delete, b"\r\n\r\n")) == 200
        assert status_of(await http(port, post(ping, session), b"}}")) == 404
        assert status_of(await http(port, post(ping), b"}}")) == 400


async def test_batches_exist_in_one_revision_only() -> None:
    batch = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2)]
    async with listening("legacy_server", "--http", "0") as port:
        session = [f"Mcp-Session-Id: {await open_session(port)}"]
        assert status_of(await http(port, post(batch, session), b"}}")) == 400
        params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        opened = await http(port, post({**INITIALIZE, "params": params}), DONE)
        found = re.search(rb"mcp-session-id: (\S+)\r\n", opened)
        assert found is not None
        answered = await http(port, post(batch, [f"Mcp-Session-Id: {found[1].decode()}"]), DONE)
        assert sorted(json.loads(data)["id"] for _, data in events_of(answered)) == [1, 2]


async def test_a_server_without_sessions_answers_in_json() -> None:
    async with listening("matrix_server", "--era", "legacy", "--http", "0", "--no-sessions", "--json-only") as port:
        opened = await http(port, post(INITIALIZE), b"}}")
        assert b"mcp-session-id" not in opened
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"value": "x"}},
        }
        answer = await http(port, post(call), b"}}")
        assert b"content-type: application/json" in answer
        assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["result"]["structuredContent"] == {"value": "x"}


async def test_a_hanging_server_takes_everything_and_says_nothing() -> None:
    async with listening("matrix_server", "--era", "modern", "--http", "0", "--hang") as port:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await http(port, modern("tools/list"), b"}}")
