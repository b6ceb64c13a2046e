"""POSIX process groups: who is in one, how to end it, and the watchdog that does so when Interlock is gone.

Run as a program (`python -I -S groups.py`) this file is the watchdog. It follows a list of children on its standard
input, a pipe of which Interlock holds the other end. When the kernel closes that pipe, however Interlock ended, the
watchdog ends the process groups that are still on the list, and then itself. So this file imports the standard library
only, and little of it.

Lines: `+PID`, a child runs; `-PID`, nothing is left of it; `?INODE`, a child is about to be started with the pipe of
that number as its standard input; `!INODE`, that is over, its `+` line has been written if there is a child.

A child of ours leads a session and a process group of its own, so its pid names both. Processes that moved to another
group of the same session (job control, `timeout`) are found through /proc, where there is one. A process that made
itself a session of its own asked to outlive the server (a browser that it opened for a login, say) and is left alone.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable

END_OF_INPUT_SECONDS = 0.4
"""How long children may take to end by themselves: their input ended with Interlock."""
TERM_SECONDS = 1.0
"""How long they may take after SIGTERM."""
_POLL_SECONDS = 0.02
_HAS_PROC = os.path.exists("/proc/self/stat")


def living(leader: int) -> set[int]:
    """The process groups of this leader's session that have a living member. Zombies do not count where /proc tells.

    The groups' numbers stay taken as long as they have members, so they cannot name anyone else's.
    """
    found: set[int] = set()
    if _HAS_PROC:
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                state, group, session = _stat(entry)
                if (group == leader or session == leader) and state not in "ZX":
                    found.add(group)
    elif _exists(leader):
        found.add(leader)
    return found


def _stat(pid: str) -> tuple[str, int, int]:
    """State, process group and session of a process (proc_pid_stat(5)); zeros where it has just gone."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return "X", 0, 0
    try:
        # The name in parentheses may hold anything, also parentheses: the fields start after the last one.
        fields = os.read(fd, 1024).rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[2]), int(fields[3])
    except (OSError, IndexError, ValueError):
        return "X", 0, 0
    finally:
        os.close(fd)


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Someone is there whom we may not signal (a setuid program); macOS also says so of zombies.
        return sys.platform != "darwin"
    return True


def send(groups: Iterable[int], number: int) -> None:
    """Send a signal to every member of the groups. Groups that are gone are skipped."""
    for group in groups:
        # 0 and 1 would mean our own group and everyone.
        if group > 1:
            try:
                os.killpg(group, number)
            except (ProcessLookupError, PermissionError):
                continue


def end(leaders: set[int]) -> None:
    """End the sessions of `leaders`: wait for them to end by themselves, then SIGTERM, then SIGKILL. Blocks."""
    left = _wait(leaders, END_OF_INPUT_SECONDS)
    for leader in left:
        groups = living(leader)
        send(groups, signal.SIGTERM)
        # A stopped process acts on SIGTERM only once it runs again.
        send(groups, signal.SIGCONT)
    for leader in _wait(left, TERM_SECONDS):
        send(living(leader), signal.SIGKILL)


def _wait(leaders: set[int], seconds: float) -> set[int]:
    """Those of `leaders` whose sessions still live after at most `seconds`."""
    deadline = time.monotonic() + seconds
    left = {leader for leader in leaders if living(leader)}
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        left = {leader for leader in left if living(leader)}
    return left


def starting(inodes: set[int]) -> set[int]:
    """Children that were being started: session leaders that read from one of these pipes. Without /proc, none."""
    links = {f"pipe:[{inode}]" for inode in inodes}
    found: set[int] = set()
    if links and _HAS_PROC:
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    ours = os.readlink(f"/proc/{entry}/fd/0") in links
                except OSError:
                    continue
                if ours and _stat(entry)[2] == int(entry):
                    found.add(int(entry))
    return found


def watch(fd: int) -> None:
    """The watchdog: follow the list on `fd` until it ends, then end what is on it."""
    leaders: set[int] = set()
    inodes: set[int] = set()
    rest = b""
    while chunk := os.read(fd, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            number = int(line[1:])
            match line[:1]:
                case b"+":
                    leaders.add(number)
                case b"-":
                    leaders.discard(number)
                case b"?":
                    inodes.add(number)
                case b"!":
                    inodes.discard(number)
    if inodes:
        # A child between fork and exec does not have its standard input yet.
        time.sleep(END_OF_INPUT_SECONDS / 2)
        leaders |= starting(inodes)
    end(leaders)


if __name__ == "__main__":
    watch(0)
