"""Newline-delimited messages on standard input and output, with threads so that it works on every platform."""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator


class StdioPipe:
    """Lines in, lines out. Output is queued and never blocks the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._incoming: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._outgoing: queue.Queue[bytes | None] = queue.Queue()
        self._writer = threading.Thread(target=self._write_lines, daemon=True)
        threading.Thread(target=self._read_lines, daemon=True).start()
        self._writer.start()

    async def lines(self) -> AsyncIterator[bytes]:
        """Lines without their newline, until the client closes our input; blank ones are skipped."""
        while (line := await self._incoming.get()) is not None:
            if line.strip():
                yield line

    def write(self, line: bytes) -> None:
        """Queue one line."""
        self._outgoing.put(line + b"\n")

    def backlog(self) -> int:
        """Lines queued and not yet written."""
        return self._outgoing.qsize()

    def close(self) -> None:
        """Write what is queued, then stop."""
        self._outgoing.put(None)
        self._writer.join(timeout=5)

    def _read_lines(self) -> None:
        for line in iter(sys.stdin.buffer.readline, b""):
            self._loop.call_soon_threadsafe(self._incoming.put_nowait, line.rstrip(b"\r\n"))
        self._loop.call_soon_threadsafe(self._incoming.put_nowait, None)

    def _write_lines(self) -> None:
        while (data := self._outgoing.get()) is not None:
            try:
                while data:
                    data = data[os.write(1, data) :]
            except OSError:
                return
