"""What starting a child gives, the same on every platform: its pid, its three pipes, and its family."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class NoWatchdog(Exception):
    """The process that would end the children of a killed Interlock could not be started, so no child may be."""


class Family(Protocol):
    """A child and all that it started, as the operating system knows them."""

    def alive(self) -> bool:
        """Is anyone left?"""
        ...

    def terminate(self) -> None:
        """Ask everyone to end."""
        ...

    def kill(self) -> None:
        """End everyone."""
        ...

    def release(self) -> None:
        """Nobody is left: forget about them."""
        ...


class InputProtocol(asyncio.BaseProtocol):
    """Our end of a child's stdin."""

    def __init__(self, on_lost: Callable[[], None], on_full: Callable[[], None], on_room: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self.pause_writing = on_full  # type: ignore[method-assign]
        self.resume_writing = on_room  # type: ignore[method-assign]

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost()


class OutputProtocol(asyncio.BaseProtocol):
    """Our end of a child's stdout or stderr. Data goes straight to `data_received`, which is an attribute."""

    def __init__(self, take: Callable[[bytes], None], on_lost: Callable[[], None]) -> None:
        self.data_received = take
        self._on_lost = on_lost

    def eof_received(self) -> None:
        """The transport closes by itself."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost()


@dataclass(slots=True)
class Spawned:
    """A child that was just started."""

    pid: int
    returncode: Callable[[], int | None]
    """The exit status, negative for a signal; None while it runs."""
    stdin: asyncio.WriteTransport
    stdout: asyncio.ReadTransport
    stderr: asyncio.ReadTransport
    family: Family
