"""The servers behind the gateway: a good one that is called all the while, and bad ones that answer calls with a case's bytes.

All run in the test's own event loop. The stdio ones are children that pump their streams here (tests/fidelity/pump.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from .cases import Case, Side, case
from .oracle import answers
from .server_cases import OVERSIZED, good_answer, mutated_answer

Message = dict[str, Any]
TOOLS = [{"name": "echo", "inputSchema": {"type": "object"}}]
PROMPTS = [{"name": "ask", "arguments": [{"name": "a"}]}]
HINTS = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"}


def hello(method: str, name: str, everything: bool) -> Message | None:
    capabilities: Message = {"tools": {}}
    if everything:
        capabilities |= {"prompts": {}, "resources": {"subscribe": True}, "completions": {}, "logging": {}}
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "serverInfo": {"name": name, "version": "1"},
        }
    if method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, **HINTS}
    return None


def plain(message: Message, name: str, modern: bool, everything: bool) -> Message | None:
    """The answer of a server in order, but for tool calls; None where it has no such method."""
    method = message["method"]
    extra = HINTS if modern else {}
    if method == ("server/discover" if modern else "initialize"):
        return hello(method, name, everything)
    if method == "tools/list":
        return {"tools": TOOLS, **extra}
    if method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
        return {}
    if not everything:
        return None
    if method == "prompts/list":
        return {"prompts": PROMPTS, **extra}
    if method == "resources/list":
        return {"resources": [{"uri": "file:///x", "name": "x"}], **extra}
    if method == "resources/templates/list":
        return {"resourceTemplates": [], **extra}
    if method == "prompts/get":
        return {"messages": [], **({"resultType": "complete"} if modern else {})}
    if method == "resources/read":
        return {"contents": [{"uri": "file:///x", "text": "x"}], **extra}
    if method == "completion/complete":
        return {"completion": {"values": []}, **({"resultType": "complete"} if modern else {})}
    return None


def dumps(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def answered(message: Message, body: Message | None) -> bytes:
    if body is None:
        return dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
    return dumps({"jsonrpc": "2.0", "id": message["id"], "result": body})


Reply = Callable[[Message, asyncio.StreamWriter], Awaitable[None]]
"""Answers a tool call, on the connection that it came on."""


async def serve_http(name: str, modern: bool, everything: bool, call: Reply) -> asyncio.Server:
    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                lower = head.lower()
                length = int(lower.partition(b"content-length:")[2].partition(b"\r\n")[0] or b"0")
                body = await reader.readexactly(length)
                if not head.startswith(b"POST"):
                    writer.write(b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n")
                    continue
                message = json.loads(body)
                if message.get("method") == "tools/call":
                    await call(message, writer)
                elif "id" in message and "method" in message:
                    text = answered(message, plain(message, name, modern, everything))
                    extra = b"mcp-session-id: s-1\r\n" if message["method"] == "initialize" else b""
                    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + extra)
                    writer.write(b"content-length: %d\r\n\r\n" % len(text) + text)
                else:
                    writer.write(b"HTTP/1.1 202 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    return await asyncio.start_server(connection, "127.0.0.1", 0, backlog=512)


async def serve_pump(name: str, modern: bool, call: Reply) -> asyncio.Server:
    """The other end of stdio children."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                message = json.loads(line)
                if message.get("method") == "tools/call":
                    await call(message, writer)
                elif "id" in message and "method" in message:
                    writer.write(answered(message, plain(message, name, modern, False)) + b"\n")
                await writer.drain()
        writer.close()

    return await asyncio.start_server(connection, "127.0.0.1", 0, limit=1 << 24)


async def echo(message: Message, writer: asyncio.StreamWriter) -> None:
    """The good server's tool: the arguments come back."""
    body = {"content": [{"type": "text", "text": "ok"}], "structuredContent": message["params"].get("arguments")}
    text = answered(message, body)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(text) + text)


class Bad:
    """Answers each call with the bytes of the case that its arguments name."""

    def __init__(self, seed: int, side: Side, modern: bool) -> None:
        self._seed = seed
        self._side: Side = side
        self._modern = modern
        self.sound: dict[int, bool | None] = {}
        """For mutated answers: whether what was sent is an answer, as the oracle sees it."""

    async def __call__(self, message: Message, writer: asyncio.StreamWriter) -> None:
        number = message["params"]["arguments"]["case"]
        found = case(self._seed, number, self._side)
        if b"$HUGE" in found.data:
            await self._huge(found, message["id"], writer)
            return
        data = self._filled(found, message["id"])
        if data == b"$SILENCE":
            return  # the connection stays open, and nothing is said
        if len(found.parts) > 1:
            # Where the case was cut matters to the reader, not where in the filled text exactly.
            at = len(data) * len(found.parts[0]) // max(len(found.data), 1)
            writer.write(data[:at])
            await writer.drain()
            await asyncio.sleep(0)
            data = data[at:]
        writer.write(data)
        if self._side == "server-http":
            with contextlib.suppress(OSError):
                await writer.drain()
            writer.close()

    def _filled(self, found: Case, id: int) -> bytes:
        data = found.data
        if b"$MUTATED" in data:
            text = mutated_answer(self._seed, found.number, id, self._modern)
            if self._side == "server-stdio" or b"event-stream" in data:
                # One line is one message; the first that counts decides.
                text = text.replace(b"\n", b" ").replace(b"\r", b" ")
            self.sound[found.number] = answers(text, id)
            data = data.replace(b"$MUTATED", text)
            answer = text
        else:
            answer = good_answer(found.number, id, self._modern)
        data = data.replace(b"$ANSWER", answer).replace(b"$ID", b"%d" % id)
        return data.replace(
            b"$LENGTH", b"%d" % len(data.partition(b"$LENGTH\r\n\r\n")[2] or data.rpartition(b"\r\n\r\n")[2])
        )

    async def _huge(self, found: Case, id: int, writer: asyncio.StreamWriter) -> None:
        before, _, after = found.data.replace(b"$ID", b"%d" % id).partition(b"$HUGE")
        length = len(before.rpartition(b"\r\n\r\n")[2]) + OVERSIZED + len(after)
        writer.write(before.replace(b"$LENGTH", b"%d" % length))
        piece = b"x" * 1_000_000
        with contextlib.suppress(OSError):
            for _ in range(OVERSIZED // len(piece) + 1):
                writer.write(piece)
                await writer.drain()
            writer.write(after)
            await writer.drain()
        if self._side == "server-http":
            writer.close()
