"""One program of a host, run with a deadline and no input; what it prints is bounded, and secrets in it are blacked out.

The host gets its own environment, so that it finds what it always finds, and a few variables that keep it from updating
itself and from reporting home.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from interlock.hosts.machine import Machine
from interlock.hosts.masking import MASK, masked
from interlock.hosts.reading import Reading
from interlock.manifest import secrets
from interlock.upstream import groups, strays

MOST_BYTES = 1024 * 1024
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Za-z0-9])")
_NONE = re.compile(r"\bno\b.{0,40}\bservers?\b", re.IGNORECASE)
"""How hosts say that they have none."""
_MOST_SHOWN = 4000
_MOST_LINE = 4000
QUIET = {
    "NO_COLOR": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "COPILOT_AUTO_UPDATE": "false",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
}


@dataclass(frozen=True, slots=True)
class Output:
    code: int | None
    """None: it did not end in time. Negative: a signal ended it."""
    out: str
    err: str

    @property
    def refused(self) -> bool:
        """It ended by itself, with an error: so does a host that does not take its files."""
        return self.code is not None and self.code > 0

    @property
    def both(self) -> str:
        return f"{self.out}\n{self.err}"


class CannotRun(Exception):
    """The text says why, for people."""


class NotInstalled(CannotRun):
    """The host has files here, and its program is not to be found."""


def program(machine: Machine, *names: str) -> str:
    """Where the first of these is. Raises CannotRun."""
    if machine.root is not None or machine.surrounding in ("windows-of-wsl", "wsl-of-windows"):
        raise CannotRun("the host is on another machine than this process")
    for name in names:
        found = shutil.which(name, path=machine.environ.get("PATH", os.defpath))
        if found:
            return found
    raise NotInstalled(f"`{names[0]}` is not on the PATH")


def environment(machine: Machine, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    home = {"USERPROFILE": machine.home} if machine.platform == "windows" else {"HOME": machine.home}
    return {**machine.environ, **home, **QUIET, **(extra or {})}


def start(
    words: Sequence[str], machine: Machine, *, stdin: int, extra: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """In a group of its own, so that `end` reaches the servers that it starts. Raises CannotRun."""
    mark = strays.new_mark()
    try:
        process = subprocess.Popen(
            list(words),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=machine.folder,
            env={**environment(machine, extra), strays.NAME: mark},
            start_new_session=sys.platform != "win32",
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise CannotRun(f"it does not start: {reason or type(error).__name__}") from None
    _MARKS[process.pid] = mark
    return process


_MARKS: dict[int, str] = {}
"""Of each program that runs: what all that it starts carries too, in whatever session it is."""


def end(process: subprocess.Popen[bytes]) -> None:
    """It and what it started."""
    if sys.platform == "win32":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
    else:
        # Servers often have a process group of their own, in the same session.
        for number in (signal.SIGTERM, signal.SIGKILL):
            groups.send(groups.living(process.pid), number)
            try:
                process.wait(2)
            except subprocess.TimeoutExpired:
                continue
        until = time.monotonic() + 2
        while groups.living(process.pid) and time.monotonic() < until:
            time.sleep(0.02)
    process.wait()
    strays.end(_MARKS.pop(process.pid, ""))


class _Drain(threading.Thread):
    """Reads a pipe to its end and keeps the beginning."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.pipe = pipe
        self.kept = bytearray()
        self.start()

    def run(self) -> None:
        while chunk := self.pipe.read1(65536) if hasattr(self.pipe, "read1") else self.pipe.read(65536):
            if len(self.kept) < MOST_BYTES:
                self.kept += chunk[: MOST_BYTES - len(self.kept)]

    def text(self) -> str:
        self.join(5)
        return plain(bytes(self.kept).decode("utf-8", "replace"))


def run(words: Sequence[str], machine: Machine, seconds: float, extra: Mapping[str, str] | None = None) -> Output:
    """Raises CannotRun."""
    process = start(words, machine, stdin=subprocess.DEVNULL, extra=extra)
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Drain(process.stdout), _Drain(process.stderr)
    try:
        code: int | None = process.wait(seconds)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        end(process)
    return Output(code, out.text(), err.text())


def lines(text: str) -> list[str]:
    """Of a list for people. No line of one is this long, and patterns take too long for what is."""
    return [line[:_MOST_LINE] for line in text.splitlines()]


def plain(text: str) -> str:
    """Without colours and cursor movements."""
    return _ESCAPE.sub("", text).replace("\r\n", "\n")


def without_list(output: Output, known: Iterable[str]) -> str | None:
    """Why a program that has ended named no server; None where it ended well and said that there is none."""
    if output.code is None:
        return "it did not answer in time"
    if output.code < 0:
        return f"it was ended by signal {-output.code}"
    if output.code:
        return shown(output.both, known) or f"it ended with exit code {output.code}"
    if not output.both.strip():
        return "it printed nothing"
    return None if _NONE.search(output.both) else "its answer was not understood"


def known_secrets(reading: Reading) -> list[str]:
    """Values in this host's entries that may be secrets, to be blacked out wherever the host repeats them."""
    found: set[str] = set()
    for declaration in reading.declarations:
        entry = declaration.entry
        if entry is None:
            continue
        for name, value in (*entry.env.items(), *entry.headers.items()):
            filled = reading.machine.environ.get(value.strip("${}"), "") if "$" in value else value
            for each in (value, filled):
                if len(each) >= 4 and "$" not in each and secrets.named_literal(name, each):
                    found.add(each)
    for name, value in reading.machine.environ.items():
        if len(value) >= 8 and secrets.named_literal(name, value):
            found.add(value)
    return sorted(found, key=len, reverse=True)


def shown(text: str, known: Iterable[str]) -> str:
    """One line for people, without secrets."""
    line = " ".join(text.split())
    if len(line) > _MOST_SHOWN:
        # Masking takes long for long texts. What the cut goes through might be a secret that nobody then recognises.
        whole, _, _ = line[:_MOST_SHOWN].rpartition(" ")
        line = whole or line[:_MOST_SHOWN]
    line = masked(line, known)
    words = line.split(" ")
    for index, word in enumerate(words):
        bare = word.strip("\"'")
        if MASK not in word and bare and secrets.argument(words[index - 1] if index else None, bare):
            name, equals, _ = bare.partition("=")
            words[index] = f"{name}={MASK}" if equals else MASK
    line = " ".join(words)
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= 400 else line[:397] + "..."
