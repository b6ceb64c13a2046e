"""For tests with real children: both event loops, a child by its behaviour, and waiting for processes to be gone."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from interlock.manifest.config import EnvValue, StdioTransport
from interlock.upstream.exits import Exit
from interlock.upstream.process import ChildProcess

FIXTURES = Path(__file__).with_name("fixtures")
Result = TypeVar("Result")


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[object, object, Result]], Result]:
    """Runs a coroutine on one event loop after the other, with a deadline."""

    def runner(coroutine: Coroutine[object, object, Result]) -> Result:
        async def bounded() -> Result:
            async with asyncio.timeout(30):
                return await coroutine

        if request.param == "uvloop":
            import uvloop

            factory: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
        else:
            factory = None
        with asyncio.Runner(loop_factory=factory) as loop:
            return loop.run(bounded())

    return runner


class Child:
    """A started child and everything it said."""

    def __init__(self) -> None:
        self.process: ChildProcess
        self.received = bytearray()
        self.exits: list[Exit] = []
        self.changed = asyncio.Event()

    def on_data(self, data: bytes) -> None:
        assert not self.exits, "data after the exit"
        self.received += data
        self.changed.set()

    def on_exit(self, exit: Exit) -> None:
        self.exits.append(exit)
        self.changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for something that data or the exit makes true; the runner's deadline ends it otherwise."""
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    async def line(self) -> str:
        await self.until(lambda: b"\n" in self.received)
        return bytes(self.received).split(b"\n")[0].decode()


@pytest.fixture
def start() -> Callable[..., Awaitable[Child]]:
    """Starts `fixtures/child.py` with a behaviour, or another command."""

    async def starter(
        *behaviour: str, command: tuple[str, ...] | None = None, env: tuple[EnvValue, ...] = (), **options: object
    ) -> Child:
        child = Child()
        child.process = await ChildProcess.start(
            StdioTransport(command or (sys.executable, str(FIXTURES / "child.py"), *behaviour), Path.cwd(), env),
            environ=os.environ,
            on_data=child.on_data,
            on_exit=child.on_exit,
            **options,  # type: ignore[arg-type]
        )
        return child

    return starter


@pytest.fixture(name="alive")
def alive_fixture() -> Callable[[int], bool]:
    """`alive(pid)`."""
    return alive


@pytest.fixture(name="wait_gone")
def wait_gone_fixture() -> Callable[..., None]:
    """`wait_gone(*pids)`."""
    return wait_gone


def alive(pid: int) -> bool:
    """Is there such a process, and is it more than a zombie that nobody collected?"""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return not Path("/proc/self").exists()


def wait_gone(*pids: int, seconds: float = 10.0) -> None:
    """Wait until none of the processes is left."""
    deadline = time.monotonic() + seconds
    while left := [pid for pid in pids if alive(pid)]:
        assert time.monotonic() < deadline, f"still alive: {left}"
        time.sleep(0.01)


@pytest.fixture
def reaper() -> Iterator[list[int]]:
    """Pids that a test lets live on purpose: killed afterwards."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        if alive(pid):
            os.kill(pid, 9)
