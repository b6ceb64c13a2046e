"""Our side of the watchdog: one small process that ends the children if Interlock is killed and cannot do so itself.

It is started with the first child and not before. POSIX only; on Windows a job object does the same (windows.py).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

_PROGRAM = Path(__file__).with_name("groups.py")
_LOADER_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""A Python with a shared library of its own may not start without these."""


class _Process(subprocess.Popen[bytes]):
    def __del__(self) -> None:
        """Without the warning that it still runs: to outlive Interlock is what it is for."""


class Watchdog:
    """Keeps the list of running children in the watchdog process, and that process alive. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leaders: set[int] = set()
        self._starting: set[int] = set()
        self._process: _Process | None = None
        self._pipe = -1

    @property
    def pid(self) -> int | None:
        """The watchdog's process id, or None where none runs."""
        return self._process.pid if self._process is not None else None

    def expect(self, inode: int) -> None:
        """A child is about to be started whose standard input is this pipe. Raises OSError where no watchdog can run.

        Interlock may be killed before it has read the child's pid; by this the watchdog finds it all the same.
        """
        with self._lock:
            self._starting.add(inode)
            try:
                self._tell(b"?%d\n" % inode)
            except OSError:
                self._starting.discard(inode)
                raise

    def started(self, inode: int, leader: int | None) -> None:
        """The child expected for `inode` runs and leads the session `leader`; None where it could not be started."""
        with self._lock:
            self._starting.discard(inode)
            line = b""
            if leader is not None:
                self._leaders.add(leader)
                line = b"+%d\n" % leader
            # Where no watchdog can run at this moment, the next child that is to be started finds out.
            with suppress(OSError):
                self._tell(line + b"!%d\n" % inode)

    def gone(self, leader: int) -> None:
        """Nothing of this child is left. Called at once, because its number may soon be another process's."""
        with self._lock:
            if leader in self._leaders:
                self._leaders.discard(leader)
                with suppress(OSError):
                    self._tell(b"-%d\n" % leader)

    def _tell(self, lines: bytes) -> None:
        """Pass on a change that the lists already have. A watchdog that is gone or stuck is replaced by a new one."""
        if self._process is not None and self._process.poll() is None:
            try:
                os.write(self._pipe, lines)
                return
            except OSError:
                pass
        self._drop()
        if self._leaders or self._starting:
            self._start()

    def _start(self) -> None:
        theirs, ours = os.pipe()
        # It ends with Interlock and not before: a signal sent to all of Interlock's processes must not disarm it.
        # A blocked signal stays blocked in a new process from its first moment on.
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._process = _Process(
                # Isolated and without site: nothing from the environment or the installation runs in it.
                [sys.executable, "-I", "-S", "-B", str(_PROGRAM)],
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in _LOADER_PATHS if name in os.environ},
                start_new_session=True,
            )
            # Never wait for it: a full pipe means that it is stuck.
            os.set_blocking(ours, False)
            lists = ((b"+%d\n", self._leaders), (b"?%d\n", self._starting))
            os.write(ours, b"".join(form % number for form, numbers in lists for number in numbers))
        except BaseException:
            os.close(ours)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
            os.close(theirs)
        self._pipe = ours

    def forget(self) -> None:
        """In a fork of Interlock: neither the children nor the watchdog are its own."""
        self._lock = threading.Lock()
        self._leaders.clear()
        self._starting.clear()
        self._process = None
        self._drop()

    def _drop(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            self._process = None


_WATCHDOG: Watchdog | None = None


def watchdog() -> Watchdog:
    """The one of this process."""
    global _WATCHDOG
    if _WATCHDOG is None:
        _WATCHDOG = Watchdog()
        os.register_at_fork(after_in_child=_WATCHDOG.forget)
    return _WATCHDOG
