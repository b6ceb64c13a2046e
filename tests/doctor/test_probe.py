"""What a server's first answers mean: scripted answers over a real socket, odd ones among them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from interlock.doctor.probe import Prober, Unreached

Answer = tuple[int, dict[str, str], bytes]
Script = Callable[[str, dict[str, object]], Answer]
JSON = {"content-type": "application/json"}
STREAM = {"content-type": "text/event-stream"}


@asynccontextmanager
async def served(script: Script, seen: list[tuple[str, dict[str, str]]]) -> AsyncIterator[str]:
    """`script` gets the HTTP method and the message. A stream is left open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                seen.append((first.split(" ")[0], headers))
                status, extra, content = script(first.split(" ")[0], json.loads(body) if body else {})
                open_end = extra == STREAM
                length = "" if open_end else f"content-length: {len(content)}\r\n"
                more = "".join(f"{name}: {value}\r\n" for name, value in extra.items())
                writer.write(f"HTTP/1.1 {status} X\r\n{more}{length}\r\n".encode() + content)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


def result(value: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "doctor-1", "result": value}).encode()


def error(code: int, data: object = None) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": "doctor-1", "error": {"code": code, "message": "x", "data": data}}
    ).encode()


WELCOME = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}
MODERN = {"supportedVersions": ["2026-07-28"], "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new"}}}


def by_method(discover: Answer, initialize: Answer = (400, {}, b"")) -> Script:
    def script(method: str, message: dict[str, object]) -> Answer:
        if method != "POST":
            return (204, {}, b"")
        return discover if message["method"] == "server/discover" else initialize

    return script


LEGACY: Answer = (200, JSON, result(WELCOME))
CASES: dict[str, tuple[Script, tuple[str, str | None, str]]] = {
    "modern": (by_method((200, JSON, result(MODERN))), ("modern", "2026-07-28", "new")),
    "modern in a stream": (
        by_method((200, STREAM, b": hi\n\ndata: " + result(MODERN) + b"\n\n")),
        ("modern", "2026-07-28", "new"),
    ),
    "a modern error": (by_method((400, JSON, error(-32020))), ("modern", None, "")),
    "not found": (by_method((404, {}, b"no"), LEGACY), ("legacy", "2025-06-18", "old 1")),
    "method not found": (by_method((200, JSON, error(-32601)), LEGACY), ("legacy", "2025-06-18", "old 1")),
    "an empty answer": (by_method((200, {}, b""), LEGACY), ("legacy", "2025-06-18", "old 1")),
    "a page": (by_method((200, {"content-type": "text/html"}, b"<html>"), LEGACY), ("legacy", "2025-06-18", "old 1")),
    "no session": (by_method((400, JSON, error(-32000)), LEGACY), ("legacy", "2025-06-18", "old 1")),
    "only an old revision": (
        by_method((400, JSON, error(-32022, {"supported": ["2025-06-18"]})), LEGACY),
        ("legacy", "2025-06-18", "old 1"),
    ),
    "only a later revision": (
        by_method((400, JSON, error(-32022, {"supported": ["2031-01-01"]}))),
        ("unsettled", None, ""),
    ),
    "welcomed in a stream": (
        by_method((404, {}, b""), (200, STREAM, b"event: message\ndata: " + result(WELCOME) + b"\n\n")),
        ("legacy", "2025-06-18", "old 1"),
    ),
    "neither": (by_method((404, {}, b""), (404, {}, b"")), ("unsettled", None, "")),
    "a list": (by_method((200, JSON, b"[1]"), (200, JSON, b"3")), ("unsettled", None, "")),
    "not JSON": (by_method((200, JSON, b"{"), (200, JSON, b"\xff")), ("unsettled", None, "")),
    "unauthorized": (by_method((401, {}, b"")), ("unsettled", None, "")),
    "out of order": (by_method((503, {}, b"")), ("unsettled", None, "")),
}


@pytest.mark.parametrize(("script", "wanted"), CASES.values(), ids=CASES)
async def test_eras(script: Script, wanted: tuple[str, str | None, str]) -> None:
    async with served(script, []) as url:
        spoken = await Prober(url, {}, "http", 5).speak()
    assert (spoken.era, spoken.version, spoken.server) == wanted


@pytest.mark.parametrize(("status", "kept"), [(200, False), (204, False), (405, True), (404, True)])
async def test_a_session_that_was_opened_is_ended(status: int, kept: bool) -> None:
    seen: list[tuple[str, dict[str, str]]] = []

    def script(method: str, message: dict[str, object]) -> Answer:
        if method == "DELETE":
            return (status, {}, b"")
        if message["method"] == "server/discover":
            return (404, {}, b"")
        return (200, {**JSON, "mcp-session-id": "abc"}, result(WELCOME))

    async with served(script, seen) as url:
        spoken = await Prober(url, {"x-team": "a"}, "http", 5).speak("Bearer t")
    assert (spoken.era, spoken.kept_session) == ("legacy", kept)
    method, headers = seen[-1]
    assert (method, headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("DELETE", "abc", "2025-06-18")
    assert all((each["x-team"], each["authorization"]) == ("a", "Bearer t") for _, each in seen)


@pytest.mark.parametrize(
    ("answer", "era"), [((200, STREAM, b"event: endpoint\ndata: /m\n\n"), "legacy"), ((404, {}, b""), "unsettled")]
)
async def test_the_transport_of_2024(answer: Answer, era: str) -> None:
    seen: list[tuple[str, dict[str, str]]] = []
    async with served(lambda method, message: answer, seen) as url:
        spoken = await Prober(url, {}, "sse", 5).speak()
    assert (spoken.era, [method for method, _ in seen]) == (era, ["GET"])


async def test_silence_ends_in_time() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(Unreached, match=r"no answer within 0\.2 s"):
            await Prober(url, {"authorization": "Bearer secret"}, "http", 0.2).speak()


async def test_a_redirect_is_not_followed() -> None:
    seen: list[tuple[str, dict[str, str]]] = []
    async with served(lambda method, message: (307, {"location": "/elsewhere"}, b""), seen) as url:
        assert (await Prober(url, {}, "http", 5).first()).status == 307
    assert len(seen) == 1
