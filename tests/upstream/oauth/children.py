"""Starts and orders about the processes of flow_child.py."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from tests.upstream.oauth.scripted_as import ScriptedServer

SCRIPT = Path(__file__).with_name("flow_child.py")


class Died(Exception):
    """The process ended instead of answering."""


@dataclass
class Child:
    process: asyncio.subprocess.Process
    told: list[dict[str, object]] = field(default_factory=list)
    """What it said of itself: browsers opened, grants stored."""

    async def answer(self) -> dict[str, object]:
        assert self.process.stdout is not None
        while line := await asyncio.wait_for(self.process.stdout.readline(), 30):
            value: dict[str, object] = json.loads(line)
            if "opened" not in value and "on_grant" not in value:
                return value
            self.told.append(value)
        raise Died(await self.process.wait())

    async def offer(self, **order: object) -> dict[str, object]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        return await self.answer()

    async def url(self, **order: object) -> str:
        url = (await self.offer(**order))["url"]
        assert isinstance(url, str)
        return url

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def child(
    home: Path, server: ScriptedServer, *, die_at: str = "", flow: str = "browser", **timing: float
) -> AsyncIterator[Child]:
    source = Path(sys.modules["interlock"].__path__[0]).parent
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        str(home),
        msgspec.json.encode(server.found()).decode(),
        flow,
        json.dumps(timing),
        die_at,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    made = Child(process)
    try:
        assert (await made.answer())["pid"] == process.pid
        yield made
    finally:
        await made.kill()
