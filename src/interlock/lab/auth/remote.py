"""The lab as a process of its own, for tests and benchmarks that must not share an event loop with it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import urllib.request
from collections.abc import Sequence
from types import TracebackType
from typing import cast

from interlock.lab.jsonrpc import JsonObject

START_SECONDS = 30.0
STOP_SECONDS = 5.0


class RemoteLab:
    """`async with RemoteLab("--era", "legacy") as lab:` starts `python -m interlock.lab.auth` and ends it."""

    def __init__(self, *arguments: str) -> None:
        self._arguments: Sequence[str] = arguments
        self._process: asyncio.subprocess.Process | None = None
        self._described: dict[str, str] = {}

    async def __aenter__(self) -> RemoteLab:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "interlock.lab.auth",
            *self._arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), START_SECONDS)
        if not line:
            raise RuntimeError(f"the lab ended with {await self._process.wait()} before it was ready")
        self._described = cast("dict[str, str]", json.loads(line))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def __getitem__(self, name: str) -> str:
        """`url`, `issuer`, `control`, `personal_token`, `preset_client`, `machine_client` or `machine_secret`."""
        return self._described[name]

    @property
    def url(self) -> str:
        """Of the MCP endpoint."""
        return self._described["url"]

    async def report(self) -> JsonObject:
        """What happened so far (truth.py)."""
        return await asyncio.to_thread(_ask, self["control"], None)

    async def control(self, body: JsonObject) -> JsonObject:
        """POST to the control endpoint (control.py); what happened so far. Raises urllib.error.HTTPError for a bad body."""
        return await asyncio.to_thread(_ask, self["control"], body)


def _ask(url: str, body: JsonObject | None) -> JsonObject:
    data = None if body is None else json.dumps(body).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, data), timeout=START_SECONDS) as answer:
        return cast("JsonObject", json.load(answer))
