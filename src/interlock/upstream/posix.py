"""How a child is started on POSIX, and how everything that it starts can be found and ended."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from interlock.upstream import groups
from interlock.upstream.command import Command
from interlock.upstream.spawned import InputProtocol, NoWatchdog, OutputProtocol, Spawned
from interlock.upstream.watchdog import Watchdog, watchdog


class Session:
    """All processes of the session led by a child. Its pid names the session as long as anyone is in it."""

    def __init__(self, leader: int, watchdog: Watchdog) -> None:
        self._leader = leader
        self._watchdog = watchdog

    def alive(self) -> bool:
        return bool(groups.living(self._leader))

    def terminate(self) -> None:
        found = groups.living(self._leader)
        groups.send(found, signal.SIGTERM)
        # A stopped process acts on SIGTERM only once it runs again.
        groups.send(found, signal.SIGCONT)

    def kill(self) -> None:
        groups.send(groups.living(self._leader), signal.SIGKILL)

    def release(self) -> None:
        self._watchdog.gone(self._leader)


class _End:
    """One end of a pipe, as the event loops want it: something with `fileno` and `close`."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        fd = self.detach()
        if fd >= 0:
            os.close(fd)

    def detach(self) -> int:
        fd, self._fd = self._fd, -1
        return fd

    def __del__(self) -> None:
        self.close()


async def spawn(
    command: Command,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: InputProtocol,
    stdout: OutputProtocol,
    stderr: OutputProtocol,
    on_exit: Callable[[], None],
) -> Spawned:
    """Start a child in a session of its own. Raises OSError or ValueError where it cannot be; then nothing is left.

    Pipes and process are made here and not by the event loop. The loops call a subprocess protocol a turn later for
    each piece of data; uvloop makes sockets instead of pipes (which a child cannot open as `/dev/stderr`) and leaves
    second copies of them open in the child, so that nobody sees when it closes one; and the watchdog has to know the
    child's stdin before there is a child.
    """
    loop = asyncio.get_running_loop()
    with ExitStack() as theirs, ExitStack() as undo:
        child_in, our_in = _pipe(theirs, undo)
        child_out, our_out = reversed(_pipe(undo, theirs))
        child_err, our_err = reversed(_pipe(undo, theirs))
        into, _ = await loop.connect_write_pipe(lambda: stdin, our_in)
        undo.callback(into.abort)
        _taken(loop, our_in)
        out, _ = await loop.connect_read_pipe(lambda: stdout, our_out)
        undo.callback(out.close)
        _taken(loop, our_out)
        err, _ = await loop.connect_read_pipe(lambda: stderr, our_err)
        undo.callback(err.close)
        _taken(loop, our_err)
        process = _start(command.argv, cwd, environment, child_in, child_out, child_err)
        undo.pop_all()
    _watch(loop, process, on_exit)
    return Spawned(process.pid, lambda: process.returncode, into, out, err, Session(process.pid, watchdog()))


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[_End, _End]:
    read_end, write_end = (_End(fd) for fd in os.pipe())
    reading.callback(read_end.close)
    writing.callback(write_end.close)
    return read_end, write_end


def _taken(loop: asyncio.AbstractEventLoop, end: _End) -> None:
    """The transport owns the descriptor now.

    asyncio's transports close it through the object that they were given. uvloop's close it themselves, and the object
    after that: by then another thread may have been given the same number for a file of its own.
    """
    if not isinstance(loop, asyncio.BaseEventLoop):
        end.detach()


def _start(
    argv: list[str], cwd: Path, environment: Mapping[str, str], stdin: _End, stdout: _End, stderr: _End
) -> subprocess.Popen[bytes]:
    """From the fork to the watchdog's knowledge of the pid, without a turn of the event loop in between."""
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        # Some launchers pass this on. The kernel would then throw away how children ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    dog = watchdog()
    inode = os.fstat(stdin.fileno()).st_ino
    try:
        dog.expect(inode)
    except OSError as error:
        raise NoWatchdog(str(error)) from error
    pid: int | None = None
    try:
        process = subprocess.Popen(
            argv,
            stdin=stdin.fileno(),
            stdout=stdout.fileno(),
            stderr=stderr.fileno(),
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
        pid = process.pid
    finally:
        dog.started(inode, pid)
    return process


def _watch(loop: asyncio.AbstractEventLoop, process: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> None:
    """Have `on_exit` called, in the loop, once the process has ended and its return code is there."""
    try:
        handle = _End(os.pidfd_open(process.pid))
    except (AttributeError, OSError):
        # macOS, and Linux before 5.3: a thread that waits, as asyncio has it.
        threading.Thread(target=_wait, args=(loop, process, on_exit), daemon=True, name=f"wait-{process.pid}").start()
        return

    def ended() -> None:
        loop.remove_reader(handle.fileno())
        handle.close()
        process.wait()
        on_exit()

    loop.add_reader(handle.fileno(), ended)


def _wait(loop: asyncio.AbstractEventLoop, process: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> None:
    process.wait()
    # The loop may be closed by now.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(on_exit)
