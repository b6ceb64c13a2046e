"""Starts the programs that a benchmark measures, waits until they answer, and ends exactly those again."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

BENCHMARKS = Path(__file__).resolve().parent.parent
REPOSITORY = BENCHMARKS.parent
PYTHON = sys.executable
_TICKS = os.sysconf("SC_CLK_TCK")


class StartError(RuntimeError):
    """A program did not come up; the message ends with what it printed last."""


def free_port() -> int:
    """A loopback TCP port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and all its descendants have used so far."""

    cpu_seconds: float
    pss_kib: int
    descriptors: int
    processes: int


class Program:
    """A child in its own process group; use as a context manager, which ends the whole group."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
    ) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        self.command = list(command)
        with log.open("wb") as sink:
            self.process = subprocess.Popen(
                self.command,
                stdin=stdin,
                stdout=sink if stdout is None else stdout,
                stderr=sink,
                cwd=directory,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        self.pid = self.process.pid

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait_for_port(self, port: int, seconds: float = 60.0) -> None:
        """Returns once the port accepts a connection; raises StartError when the child ends or time runs out."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise StartError(f"{self.command[:4]} ended with {self.process.returncode}:\n{self.tail()}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return
            time.sleep(0.05)
        raise StartError(f"{self.command[:4]} did not listen on {port} within {seconds:.0f} s:\n{self.tail()}")

    def tail(self, length: int = 2000) -> str:
        """The end of what the program printed."""
        return self._log.read_bytes()[-length:].decode(errors="replace")

    def usage(self, without: str = "") -> Usage:
        """CPU time, proportional memory, descriptors and count of the process and its living descendants.

        `without`: leave out processes whose command line holds this text.
        """
        pids = [pid for pid in descendants(self.pid) if pid == self.pid or not without or without not in arguments(pid)]
        return Usage(
            cpu_seconds=sum(cpu_seconds(pid) for pid in pids),
            pss_kib=sum(pss_kib(pid) for pid in pids),
            descriptors=sum(descriptors(pid) for pid in pids),
            processes=len(pids),
        )

    def stop(self, seconds: float = 5.0) -> None:
        """Asks the group to end, and makes it after `seconds`."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()


def descendants(root: int) -> list[int]:
    """`root` and every living process below it, from /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            stat = (entry / "stat").read_text()
            fields = stat[stat.rindex(")") + 2 :].split()
            if fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue.extend(children.get(pid, ()))
    return found


def arguments(pid: int) -> str:
    """The command line of a process, its words joined by spaces; empty when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def cpu_seconds(pid: int) -> float:
    """User and system time of one process, 0.0 when it is gone."""
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        fields = stat[stat.rindex(")") + 2 :].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    return 0.0


def precise_cpu_seconds(pid: int) -> float:
    """CPU time of all threads that a process has now, to the nanosecond; 0.0 when it is gone."""
    with contextlib.suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    return 0.0


def pss_kib(pid: int) -> int:
    """Proportional set size in KiB: shared pages are divided among those who map them."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def anonymous_kib(pid: int) -> int:
    """Resident memory that no file stands behind, in KiB: the heap, mostly."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    return 0


def rss_kib(pid: int) -> int:
    """Resident set size in KiB."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0


def descriptors(pid: int) -> int:
    """How many descriptors the process has open."""
    with contextlib.suppress(OSError):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0
