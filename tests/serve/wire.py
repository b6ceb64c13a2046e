"""A client that writes exactly the bytes it is told to, and reads HTTP answers one by one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

SECONDS = 10.0


@dataclass
class Answer:
    """One response. `body` is joined where it was chunked; `early` are the interim answers before it."""

    status: int
    headers: dict[str, str]
    body: bytes
    early: list[int] = field(default_factory=list)

    @property
    def json(self) -> dict[str, object]:
        value = json.loads(self.body)
        assert isinstance(value, dict)
        return value

    @property
    def events(self) -> list[dict[str, object]]:
        """The JSON messages of an event stream that has ended."""
        return [json.loads(line[6:]) for line in self.body.split(b"\n") if line.startswith(b"data: {")]


class Wire:
    """One TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def head(self) -> Answer:
        """Status and headers, the body left unread."""
        async with asyncio.timeout(SECONDS):
            line, *lines = (await self.reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        version, status, _ = line.split(b" ", 2)
        assert version == b"HTTP/1.1"
        headers = {}
        for each in lines:
            name, _, value = each.decode("latin-1").partition(": ")
            assert name not in headers, f"{name} twice"
            headers[name] = value
        return Answer(int(status), headers, b"")

    async def chunk(self) -> bytes:
        """One chunk of a chunked body; empty at its end."""
        async with asyncio.timeout(SECONDS):
            size = int((await self.reader.readuntil(b"\r\n"))[:-2], 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def event(self) -> dict[str, object]:
        """The next JSON message of an event stream; comments and priming events are skipped."""
        while chunk := await self.chunk():
            for line in chunk.split(b"\n"):
                if line.startswith(b"data: {"):
                    message = json.loads(line[6:])
                    assert isinstance(message, dict)
                    return message
        raise EOFError("the stream ended")

    async def answer(self, *, head_only: bool = False) -> Answer:
        """One whole answer."""
        early = []
        answer = await self.head()
        while answer.status < 200:
            early.append(answer.status)
            answer = await self.head()
        answer.early = early
        if head_only or answer.status in (204, 304):
            return answer
        if answer.headers.get("transfer-encoding") == "chunked":
            while chunk := await self.chunk():
                answer.body += chunk
        elif "content-length" in answer.headers:
            async with asyncio.timeout(SECONDS):
                answer.body = await self.reader.readexactly(int(answer.headers["content-length"]))
        else:
            answer.body = await self.rest()
        return answer

    async def rest(self) -> bytes:
        """Everything until the server hangs up. Raises TimeoutError where it does not."""
        async with asyncio.timeout(SECONDS):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def closed(self) -> bool:
        """True once the server has hung up with nothing more to say."""
        return await self.rest() == b""


@asynccontextmanager
async def wire(port: int, host: str = "127.0.0.1") -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection(host, port, limit=64 * 1024 * 1024)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


def request(
    method: str = "POST", target: str = "/mcp", body: bytes = b"", headers: dict[str, str] | None = None, **more: str
) -> bytes:
    """One HTTP/1.1 request. `more` are headers with underscores for dashes; an empty value leaves one out."""
    all_headers = {"host": "localhost", **({"content-length": str(len(body))} if body or method == "POST" else {})}
    all_headers |= headers or {}
    all_headers |= {name.replace("_", "-"): value for name, value in more.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in all_headers.items() if value)
    return f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + body


async def eventually(condition: Callable[[], object]) -> None:
    """Wait until something is so that nobody reports. Raises TimeoutError where it does not come."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
