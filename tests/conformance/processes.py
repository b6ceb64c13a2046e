"""Starts servers and gateways on loopback, waits until they say that they listen, and ends exactly those."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .programs import ROOT

_LISTENING = re.compile(r"listening on (http://\S+)", re.IGNORECASE)
START_SECONDS = 20.0
STOP_SECONDS = 5.0


class StartFailed(Exception):
    """A server or gateway did not come up; the message holds what it printed."""


@dataclass(slots=True)
class Running:
    """A started process and the end of what it printed."""

    process: subprocess.Popen[bytes]
    url: str = ""
    output: list[str] = field(default_factory=list)

    def tail(self) -> str:
        return "".join(self.output[-40:])


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, with this checkout importable."""
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", **(extra or {})}


def free_port() -> int:
    """A port that was free a moment ago, for servers that cannot choose one themselves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(command: Sequence[str], *, cwd: Path = ROOT, port: int | None = None) -> Iterator[Running]:
    """Run `command` until the block ends. It is up when it prints `listening on URL`, or accepts on `port`."""
    process = subprocess.Popen(
        command, cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    running = Running(process)
    announced = threading.Event()
    reader = threading.Thread(target=_read, args=(running, announced), daemon=True)
    reader.start()
    try:
        _await_start(running, announced, port)
        yield running
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(STOP_SECONDS)


@contextmanager
def gateway(manifest: str) -> Iterator[Running]:
    """`interlock up` on a free port, with `manifest` in user scope of an empty home."""
    with tempfile.TemporaryDirectory(prefix="interlock-conformance-") as folder:
        home = write_home(Path(folder), manifest)
        up = [sys.executable, "-m", "interlock", "up", "--home", str(home), "--port", "0", "--no-credential"]
        with serving(up, cwd=home) as running:
            yield running


def write_home(folder: Path, manifest: str) -> Path:
    """An Interlock home below `folder` whose own manifest, which is trusted as the user's, is `manifest`."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    (home / "interlock.yaml").write_text(manifest, encoding="utf-8")
    return home


def _read(running: Running, announced: threading.Event) -> None:
    assert running.process.stdout is not None
    for raw in running.process.stdout:
        line = raw.decode(errors="replace")
        running.output.append(line)
        del running.output[:-400]
        found = _LISTENING.search(line)
        if found and not announced.is_set():
            running.url = found[1]
            announced.set()


def _await_start(running: Running, announced: threading.Event, port: int | None) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and running.process.poll() is None:
        if port is None:
            if announced.wait(0.02):
                return
        else:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
            except OSError:
                time.sleep(0.02)
            else:
                running.url = f"http://127.0.0.1:{port}/mcp"
                return
    code = running.process.poll()
    how = f"ended with code {code}" if code is not None else f"was not up after {START_SECONDS:.0f} s"
    raise StartFailed(f"{' '.join(map(str, running.process.args))} {how}\n{running.tail()}")  # type: ignore[arg-type]
