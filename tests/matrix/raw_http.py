"""One HTTP/1.1 exchange on a connection of its own, read as raw bytes: nothing between a test and what came."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

READ_LIMIT = 32 * 1024 * 1024
"""Bytes of one line; results of five megabytes arrive as one line of an event stream."""


class Broken(Exception):
    """The connection ended before the response did."""


@dataclass(slots=True)
class Reply:
    """A response whose body may still be coming. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises Broken where it ends too soon."""
        try:
            if "content-length" in self.headers:
                yield await self.reader.readexactly(int(self.headers["content-length"]))
                return
            while size := int(await self.reader.readline() or b"x", 16):
                yield (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()
        except (asyncio.IncompleteReadError, ValueError, ConnectionError) as error:
            raise Broken(str(error)) from None

    async def whole(self) -> bytes:
        return b"".join([piece async for piece in self.pieces()])

    async def events(self) -> AsyncIterator[bytes]:
        """The data of each event that has any."""
        buffer = b""
        async for piece in self.pieces():
            buffer += piece
            *events, buffer = buffer.split(b"\n\n")
            for event in events:
                data = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
                if any(data):
                    yield b"\n".join(data)

    def close(self) -> None:
        self.writer.close()


async def exchange(port: int, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Reply:
    """Send one request and read the head of its response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=READ_LIMIT)
    lines = [f"{method} {path} HTTP/1.1", f"host: 127.0.0.1:{port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        writer.close()
        raise Broken(str(error)) from None
    except asyncio.CancelledError:
        writer.close()
        raise
    first, *rest = head.decode("latin-1").split("\r\n")[:-2]
    found = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    return Reply(int(first.split(" ")[1]), found, reader, writer)
