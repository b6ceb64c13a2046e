"""A client that sends exactly what it is told, over stdio or HTTP, for tests of what a server does with it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 10.0
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}},
}
Message = dict[str, object]


class Stdio:
    """One child process; messages that nobody waits for are kept in `seen`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.seen: list[Message] = []

    def send(self, message: object) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    async def until(self, **members: object) -> Message:
        """The next message that has all these members; what comes before goes to `seen`."""
        assert self.process.stdout is not None
        async with asyncio.timeout(SECONDS):
            while line := await self.process.stdout.readline():
                message: Message = json.loads(line)
                if all(message.get(name) == value for name, value in members.items()):
                    return message
                self.seen.append(message)
        raise EOFError("the server closed its output")

    async def ask(self, request_id: object, method: str, params: Message | None = None) -> Message:
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}})
        return await self.until(id=request_id)

    async def modern(self, request_id: object, method: str, **params: object) -> Message:
        return await self.ask(request_id, method, {"_meta": MODERN_META, **params})


@asynccontextmanager
async def started(*arguments: str) -> AsyncIterator[Stdio]:
    """Run `python -m interlock.lab.ARGUMENTS` until the block ends, then close its input and wait for it."""
    module, *rest = arguments
    process = await asyncio.create_subprocess_exec(
        *_command(module, rest),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(),
        limit=16 * 1024 * 1024,
    )
    try:
        yield Stdio(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            raise


@asynccontextmanager
async def listening(*arguments: str) -> AsyncIterator[int]:
    """Run a fixture on a free port and give the port."""
    module, *rest = arguments
    process = await asyncio.create_subprocess_exec(
        *_command(module, rest), stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=_environment()
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(SECONDS):
            line = (await process.stderr.readline()).decode()
        yield int(line.rsplit(":", 1)[1].split("/")[0])
    finally:
        process.terminate()
        await process.wait()


async def http(port: int, raw: bytes, until: bytes | None = None) -> bytes:
    """Send bytes and read until `until` was seen, or the server closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(raw)
    received = b""
    try:
        async with asyncio.timeout(SECONDS):
            while until is None or until not in received:
                piece = await reader.read(65536)
                if not piece:
                    break
                received += piece
    finally:
        writer.close()
    return received


def post(message: object, headers: Sequence[str] = (), host: str = "localhost") -> bytes:
    """The bytes of one POST to /mcp."""
    body = json.dumps(message).encode()
    head = [
        "POST /mcp HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def _command(module: str, arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", f"interlock.lab.{module}", *arguments]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}
