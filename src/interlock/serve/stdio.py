"""The process's own standard input and output as byte streams, whatever they are: pipes, files or a terminal."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import threading
from collections.abc import Callable

_CHUNK = 256 * 1024


def pollable(descriptor: int) -> bool:
    """True for pipes, sockets and terminals. libuv aborts the process where it is given anything else to wait on."""
    if sys.platform == "win32":
        return False
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (stat.S_ISCHR(mode) and os.isatty(descriptor))


async def read_stdin(feed: Callable[[bytes], None]) -> None:
    """Hand all input to `feed` as it comes; returns at its end."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    class Reader(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            feed(data)

        def connection_lost(self, exc: Exception | None) -> None:
            if not ended.done():
                ended.set_result(None)

        def eof_received(self) -> bool:
            return False

    transport: asyncio.BaseTransport | None = None
    if pollable(0):
        try:
            transport, _ = await loop.connect_read_pipe(Reader, open(0, "rb", buffering=0, closefd=False))  # noqa: SIM115, ASYNC230
        except (ValueError, OSError, PermissionError):
            transport = None  # a regular file, or a descriptor that cannot be polled
    if transport is None:
        threading.Thread(target=_pump, args=(loop, feed, ended), daemon=True).start()
    try:
        await ended
    finally:
        if transport is not None:
            transport.close()


def _pump(loop: asyncio.AbstractEventLoop, feed: Callable[[bytes], None], ended: asyncio.Future[None]) -> None:
    def finish() -> None:
        if not ended.done():
            ended.set_result(None)

    try:
        while data := os.read(0, _CHUNK):
            loop.call_soon_threadsafe(feed, data)
    except OSError:
        pass
    finally:
        loop.call_soon_threadsafe(finish)


class StdoutWriter:
    """Writes whole lines in order. A pipe never blocks the loop; what cannot be polled is written directly."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self.broken = asyncio.Event()

    async def open(self) -> None:
        if not pollable(1):
            return
        loop = asyncio.get_running_loop()
        broken, writable = self.broken, self._writable

        class Writer(asyncio.BaseProtocol):
            def pause_writing(self) -> None:
                writable.clear()

            def resume_writing(self) -> None:
                writable.set()

            def connection_lost(self, exc: Exception | None) -> None:
                broken.set()
                writable.set()

        try:
            transport, _ = await loop.connect_write_pipe(Writer, open(1, "wb", buffering=0, closefd=False))  # noqa: SIM115, ASYNC230
            self._transport = transport
        except (ValueError, OSError, PermissionError):
            self._transport = None

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            if not self._transport.is_closing():
                self._transport.write(data)
            return
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]
        except OSError:
            self.broken.set()

    def backlog(self) -> int:
        """Bytes that the host has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    async def drain(self) -> None:
        """Wait while the host takes less than it is given."""
        await self._writable.wait()

    async def close(self) -> None:
        """Let what was written leave, but not for ever."""
        if self._transport is not None:
            for _ in range(200):
                if self._transport.get_write_buffer_size() == 0 or self.broken.is_set():
                    break
                await asyncio.sleep(0.01)
            self._transport.close()
