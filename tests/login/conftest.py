"""Runs commands as a person does, against scripted servers, and clicks the address that they print."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from interlock.lab.auth import AuthLab

SECONDS = 30.0


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> object:
        return json.loads(self.out)

    @property
    def all(self) -> str:
        return self.out + self.err


@dataclass
class Shell:
    """`cwd` and `environ` may be changed between commands."""

    cwd: Path
    home: Path
    environ: dict[str, str]
    address: str = ""
    """The last authorize URL that a command has printed."""
    clicked: list[int] = field(default_factory=list)
    """What the callback answered to each click."""

    async def run(
        self, *args: str, click: Callable[[str], Awaitable[object]] | None = None, stdin: str | None = None
    ) -> Done:
        """One command to its end. `click` gets the address as soon as one is printed."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "interlock", *args,
            cwd=self.cwd, env=self.environ,
            stdin=asyncio.subprocess.PIPE if stdin is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(SECONDS):
                if stdin is not None and process.stdin is not None:
                    process.stdin.write(stdin.encode())
                    process.stdin.close()
                out, err = await asyncio.gather(process.stdout.read(), self._listen(process.stderr, click))
                return Done(await process.wait(), out.decode(), err)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def _listen(self, stream: asyncio.StreamReader, click: Callable[[str], Awaitable[object]] | None) -> str:
        said = ""
        async for raw in stream:
            line = raw.decode()
            said += line
            if (found := re.search(r"sign in at (\S+)", line)) is not None:
                self.address = found[1]
                if click is not None:
                    await click(found[1])
        return said

    async def click(self, url: str) -> None:
        """The whole way of a person at a browser on this machine."""
        redirect = await self.authorize(url)
        async with httpx2.AsyncClient(trust_env=False) as browser:
            self.clicked.append((await browser.get(redirect)).status_code)

    async def authorize(self, url: str) -> str:
        """Sign in elsewhere: where the authorization server sends the browser."""
        async with httpx2.AsyncClient(trust_env=False, follow_redirects=False) as browser:
            answer = await browser.get(url)
        assert answer.status_code == 302, answer.text
        location: str = answer.headers["location"]
        assert urlsplit(location).hostname == "localhost"
        return location

    def manifest(self, text: str) -> Path:
        path = self.home / "interlock.yaml"
        path.write_text(text, encoding="utf-8")
        return path


@pytest.fixture
def shell(interlock_home: Path, child_environment: Mapping[str, str], tmp_path: Path) -> Shell:
    folder = tmp_path / "work"
    folder.mkdir()
    return Shell(folder, interlock_home, {**child_environment, "INTERLOCK_NO_BROWSER": "1"})


@pytest.fixture
async def lab() -> AsyncIterator[AuthLab]:
    async with AuthLab(era="modern") as made:
        yield made


def entry(key: str, url: str, more: str = "    auth: oauth\n") -> str:
    """One document of a manifest."""
    return f"schemaVersion: agent-routing/v1\nintegrationId: a.{key}\ntransports:\n  http:\n    endpoint: {url}\n{more}---\n"


@pytest.fixture(name="entry")
def _entry() -> Callable[..., str]:
    return entry
