"""The processes of this machine with their arguments, parents and TCP connections: from /proc on Linux, else from ps and lsof.

Looked at, never touched. Arguments may hold secrets: nothing here is shown as it is.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_SECONDS = 5.0
_ESTABLISHED = "01"
"""State in /proc/net/tcp (include/net/tcp_states.h)."""


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    words: tuple[str, ...]
    age: float | None = None
    """Seconds since it started; None where that does not show."""


def running() -> list[Process]:
    """All processes whose arguments may be read. Empty where there is no way to tell."""
    if sys.platform == "linux":
        return [process for entry in Path("/proc").iterdir() if (process := _of_proc(entry)) is not None]
    if sys.platform == "win32":
        return []
    return _of_ps()


def can_tell() -> bool:
    """Whether `running` and `established` work here."""
    return sys.platform == "linux" or (sys.platform != "win32" and bool(_program("ps")) and bool(_program("lsof")))


def established(pids: Iterable[int]) -> dict[int, int | None]:
    """Number of established TCP connections of each process; None where it may not be looked at."""
    wanted = list(pids)
    if sys.platform == "linux":
        live = _established_inodes()
        return {pid: _count(pid, live) for pid in wanted}
    return {pid: _asked_of_lsof(pid) for pid in wanted}


def _of_proc(entry: Path) -> Process | None:
    if not entry.name.isdigit():
        return None
    try:
        words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").rstrip("\0").split("\0")
        # proc_pid_stat(5): the name in parentheses may hold spaces; field 4 is the parent, 22 the start in clock ticks.
        columns = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        began = int(columns[19]) / os.sysconf("SC_CLK_TCK")
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - began
        return Process(int(entry.name), int(columns[1]), tuple(words), age)
    except (OSError, ValueError, IndexError):
        return None


def _established_inodes() -> frozenset[str]:
    found: set[str] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii", errors="replace").splitlines()[1:]
        except OSError:
            continue
        found |= {columns[9] for line in lines if len(columns := line.split()) > 9 and columns[3] == _ESTABLISHED}
    return frozenset(found)


def _count(pid: int, live: frozenset[str]) -> int | None:
    try:
        names = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
    except OSError:
        return None
    return sum(name.removeprefix("socket:[").removesuffix("]") in live for name in names if name.startswith("socket:["))


def _of_ps() -> list[Process]:
    found = []
    for line in _output(["ps", "-axo", "pid=,ppid=,command="]).splitlines():
        columns = line.split(None, 2)
        if len(columns) == 3 and columns[0].isdigit() and columns[1].isdigit():
            found.append(Process(int(columns[0]), int(columns[1]), tuple(_words(columns[2]))))
    return found


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _asked_of_lsof(pid: int) -> int | None:
    if not _program("lsof"):
        return None
    out = _output(["lsof", "-nP", "-a", "-p", str(pid), "-iTCP", "-sTCP:ESTABLISHED", "-Ff"])
    return sum(line.startswith("f") for line in out.splitlines())


def _program(name: str) -> str | None:
    return shutil.which(name) or next(
        (path for path in (f"/usr/sbin/{name}", f"/bin/{name}") if os.path.exists(path)), None
    )


def _output(command: list[str]) -> str:
    program = _program(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")
