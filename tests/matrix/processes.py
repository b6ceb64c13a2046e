"""The real processes of the matrix: fixture servers and gateways, started on loopback and ended one by one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .raw_http import READ_LIMIT

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30.0
STOP_SECONDS = 10.0
_LISTENING = re.compile(r"listening on http://[^:/ ]+:(\d+)/", re.IGNORECASE)


@dataclass(slots=True)
class Running:
    """A process, the port that it listens on (0 on stdio), and what it wrote to standard error."""

    process: asyncio.subprocess.Process
    port: int = 0
    said: list[str] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """End it in order: close its input and ask it to go."""
        if self.process.returncode is None:
            if self.process.stdin is not None:
                self.process.stdin.close()
            else:
                self.process.terminate()
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await self.process.wait()
            except TimeoutError:
                await self.kill()
        await self._quiet()

    async def kill(self) -> None:
        """SIGKILL: what a crash looks like from outside."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await self._quiet()

    async def _quiet(self) -> None:
        if self._task is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._task, STOP_SECONDS)


def environment(home: Path | None = None) -> dict[str, str]:
    """What a child gets: nothing of the real user's Interlock, and this checkout."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR", "COVERAGE_PROCESS_START")
        if name in os.environ
    }
    own = {"HOME": str(home), "INTERLOCK_HOME": str(home)} if home is not None else {}
    return {**kept, **own, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"}


def fixture_command(era: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "interlock.lab.matrix_server", "--era", era, *options]


async def start(command: Sequence[str], *, home: Path | None = None, stdio: bool = False) -> Running:
    """Start a process. Without `stdio` it has to say that it listens; raises RuntimeError with its words where it does not."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE if stdio else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE if stdio else asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=environment(home),
        cwd=str(home or ROOT),
        limit=READ_LIMIT,
    )
    running = Running(process)
    listening = asyncio.Event()

    async def hear() -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            running.said.append(line.decode(errors="replace"))
            if not running.port and (found := _LISTENING.search(running.said[-1])):
                running.port = int(found[1])
                listening.set()
        listening.set()

    running._task = asyncio.get_running_loop().create_task(hear())
    if not stdio:
        try:
            async with asyncio.timeout(START_SECONDS):
                await listening.wait()
        except TimeoutError:
            await running.kill()
        if not running.port:
            raise RuntimeError(f"{' '.join(command)} does not listen:\n{''.join(running.said)}")
    return running


def reserved_port() -> socket.socket:
    """A port for a server that starts later, or not at all: while the socket is held, nobody is given it by chance.

    It refuses connections, since it does not listen, and a server may bind to it all the same (both set SO_REUSEADDR).
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


async def fixture_server(era: str, transport: str, *options: str, port: int = 0) -> Running:
    """A matrix server over `http` or `sse`."""
    return await start(fixture_command(era, f"--{transport}", str(port), *options))


def stdio_entry(key: str, command: Sequence[str], **more: Any) -> dict[str, Any]:
    """A manifest document of a child process."""
    transport = {"stdio": {"command": list(command), "env": {"PYTHONPATH": str(ROOT / "src")}}}
    return _entry(key, transport, more)


def url_entry(key: str, kind: str, port: int, **more: Any) -> dict[str, Any]:
    """A manifest document of a server at `http` or `sse`."""
    path = "sse" if kind == "sse" else "mcp"
    return _entry(key, {kind: {"endpoint": f"http://127.0.0.1:{port}/{path}"}}, more)


def _entry(key: str, transports: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Calls run unasked unless `policy` says otherwise; a `defaultApproval` of None leaves it unsaid."""
    policy = {"defaultApproval": "auto", **more.get("policy", {})}
    entry: dict[str, Any] = {"schemaVersion": "agent-routing/v1", "integrationId": f"test.{key}", "key": key}
    entry |= {"transports": dict(transports), **more, "policy": {k: v for k, v in policy.items() if v is not None}}
    return {name: value for name, value in entry.items() if value != {}}


def write_home(folder: Path, entries: Iterable[Mapping[str, Any]]) -> Path:
    """An Interlock home whose own manifest, trusted as the user's, declares `entries`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # JSON is YAML: one document a line.
    (folder / "interlock.yaml").write_text("\n---\n".join(json.dumps(entry) for entry in entries) + "\n", "utf-8")
    return folder


async def up(home: Path, *options: str, program: Sequence[str] = ("-m", "interlock")) -> Running:
    """`interlock up` on a free port, serving anybody unless `--with-credential` is among the options."""
    credential = () if "--with-credential" in options else ("--no-credential",)
    given = [each for each in options if each != "--with-credential"]
    command = [sys.executable, *program, "up", "--home", str(home), "--port", "0", *credential, *given]
    return await start(command, home=home)


async def connect(
    home: Path, *options: str, alone: bool = True, program: Sequence[str] = ("-m", "interlock")
) -> Running:
    """`interlock connect`, its standard input and output free for a client. Serves by itself unless told otherwise."""
    single = ("--alone",) if alone else ()
    return await start(
        [sys.executable, *program, "connect", *single, "--home", str(home), *options], home=home, stdio=True
    )


async def credential(home: Path, name: str) -> str:
    """What `interlock credential NAME` prints."""
    running = await start(
        [sys.executable, "-m", "interlock", "credential", name, "--home", str(home)], home=home, stdio=True
    )
    assert running.process.stdout is not None
    out = await running.process.stdout.read()
    await running.stop()
    return out.decode().strip()


async def gone(pid: int) -> None:
    """Wait until a process has ended. Raises TimeoutError."""
    async with asyncio.timeout(STOP_SECONDS):
        while True:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            await asyncio.sleep(0.02)
