"""What the demo runs around the gateway: `interlock` commands as processes, and a repository to look at."""

from __future__ import annotations

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MANIFEST = Path(__file__).with_name("interlock.yaml")
START_SECONDS = 30.0
_LISTENING = re.compile(r"listening on (http://\S+)")


class DemoError(Exception):
    """The demonstration cannot go on; the message says why."""


@dataclass(frozen=True, slots=True)
class Interlock:
    """The `interlock` command on the demo's manifest, with a state folder of its own."""

    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """`python` in the manifest is the Python that runs this, whether or not its environment is activated."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        return {**os.environ, "PATH": path}

    def command(self, name: str, *arguments: str) -> list[str]:
        given = ["--home", str(self.home), "--manifest", str(MANIFEST)]
        return [sys.executable, "-m", "interlock", name, *arguments, *given]

    def run(self, name: str, *arguments: str, with_errors: bool = False) -> str:
        """What one command prints, if asked on standard error too. Raises DemoError where it failed."""
        done = subprocess.run(
            self.command(name, *arguments), env=self.environment, capture_output=True, text=True, timeout=120
        )
        if done.returncode != 0:
            raise DemoError(f"`interlock {name}` ended with exit code {done.returncode}:\n{done.stderr.strip()}")
        return done.stdout + (f"\n{done.stderr}" if with_errors else "")

    def read(self, name: str, *arguments: str) -> list[dict[str, object]]:
        """What a command with `--json` lists."""
        listed: list[dict[str, object]] = json.loads(self.run(name, "--json", *arguments))
        return listed

    @contextmanager
    def serving(self, port: int) -> Iterator[tuple[str, subprocess.Popen[str]]]:
        """`interlock up` until the block ends: its URL and process. Raises DemoError where it does not start."""
        process = subprocess.Popen(
            self.command("up", "--port", str(port)), env=self.environment, stderr=subprocess.PIPE, text=True
        )
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        reader = threading.Thread(target=_read_lines, args=(process, lines), daemon=True)
        reader.start()
        try:
            yield _url(lines), process
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _read_lines(process: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Keeps reading to the end, so that `up` never waits for a reader."""
    assert process.stderr is not None
    for line in process.stderr:
        lines.put(line)
    lines.put(None)


def _url(lines: queue.SimpleQueue[str | None]) -> str:
    said: list[str] = []
    end = time.monotonic() + START_SECONDS
    while (left := end - time.monotonic()) > 0:
        try:
            line = lines.get(timeout=left)
        except queue.Empty:
            break
        if line is None:
            raise DemoError(f"`interlock up` ended at once:\n{''.join(said)}")
        said.append(line)
        found = _LISTENING.search(line)
        if found:
            return found[1]
    raise DemoError(f"`interlock up` did not listen within {START_SECONDS:.0f} s:\n{''.join(said)}")


def make_repository(folder: Path) -> Path | None:
    """A Git repository with one commit, or None where this machine has no Git."""
    if shutil.which("git") is None:
        return None
    folder.mkdir()
    (folder / "README").write_text("A repository made for the demonstration.\n")
    author = ["-c", "user.name=Interlock demo", "-c", "user.email=demo@example.com", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "README"], [*author, "commit", "--quiet", "-m", "Begin"]):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)
    return folder
