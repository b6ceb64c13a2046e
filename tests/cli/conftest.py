"""An Interlock home with a manifest of the test's, and commands run in it as a person or a script runs them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

TINY = Path(__file__).with_name("fixtures") / "tiny.py"
SECONDS = 30.0
Entry = dict[str, object]


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> object:
        return json.loads(self.out)


class Background:
    """A process that stays: its standard error is read as it comes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.err = ""
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in iter(self.process.stderr.readline, b""):
            with self._changed:
                self.err += line.decode(errors="replace")
                self._changed.notify_all()

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until standard error has said this."""
        end = time.monotonic() + SECONDS
        with self._changed:
            while (found := re.search(pattern, self.err)) is None:
                if not self._changed.wait(end - time.monotonic()):
                    raise AssertionError(f"{pattern!r} was not said:\n{self.err}")
        return found

    @property
    def port(self) -> int:
        return int(self.until(r"listening on http://[^ ]*:(\d+)/mcp")[1])

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(SECONDS)


@dataclass
class Shell:
    """`home` is Interlock's; `folder` is where commands run."""

    home: Path
    folder: Path
    environment: dict[str, str]
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def calls(self) -> list[object]:
        """The arguments of each call that reached the tool `echo`."""
        file = Path(self.environment["CALLS"])
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def declare(self, *entries: Entry, file: Path | None = None) -> Path:
        """Write a manifest: the user's own, which needs no trust, unless another file is named."""
        file = file or self.home / "interlock.yaml"
        file.write_text("\n---\n".join(json.dumps(entry) for entry in entries) + "\n", "utf-8")
        return file

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "interlock", *arguments]

    def run(self, *arguments: str, stdin: str | bytes = "", **more: str) -> Done:
        """Run to the end, with no terminal."""
        done = subprocess.run(
            self.command(*arguments),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            timeout=SECONDS,
            env={**self.environment, **more},
            cwd=self.folder,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def start(self, *arguments: str) -> Background:
        process = subprocess.Popen(
            self.command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            cwd=self.folder,
        )
        self._running.append(process)
        return Background(process)

    def close(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
            process.wait(SECONDS)
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


def tiny(key: str = "tiny", **more: object) -> Entry:
    """A server whose tools may be called, unless `more` says otherwise."""
    return {
        "schemaVersion": "agent-routing/v1",
        "integrationId": f"test.{key}",
        "key": key,
        "transports": {"stdio": {"command": [sys.executable, "-S", str(TINY)], "envNames": ["CALLS"]}},
        "policy": {"defaultApproval": "auto"},
        **more,
    }


@pytest.fixture
def shell(interlock_home: Path, child_environment: dict[str, str], tmp_path: Path) -> Iterator[Shell]:
    folder = tmp_path / "project"
    folder.mkdir()
    environment = {**child_environment, "CALLS": str(tmp_path / "calls"), "NO_COLOR": "1"}
    if "COVERAGE_PROCESS_START" in os.environ:
        environment["COVERAGE_PROCESS_START"] = os.environ["COVERAGE_PROCESS_START"]
    made = Shell(interlock_home, folder, environment)
    yield made
    made.close()
