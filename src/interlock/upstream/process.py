"""A running stdio server: its process, the bytes each way, and a certain end for it and everything it started."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping

from interlock.manifest.config import StdioTransport
from interlock.upstream.command import check_directory, never_started, spawn_fault, who
from interlock.upstream.environment import child_environment
from interlock.upstream.exits import Cause, Exit
from interlock.upstream.pace import Pace
from interlock.upstream.spawned import InputProtocol, NoWatchdog, OutputProtocol
from interlock.upstream.stderr import Redactor, StderrRing, unchanged

if sys.platform == "win32":
    from interlock.upstream.windows import resolve, spawn
else:
    from interlock.upstream.command import resolve
    from interlock.upstream.posix import spawn

HIGH_WATER = 256 * 1024
"""Bytes waiting for the child's stdin above which `drain` waits."""
DRAIN_SECONDS = 0.25
"""How long what a dead child wrote last may take to arrive. Only a grandchild that holds the pipes makes it last."""
LEFTOVER_SECONDS = 1.0
"""How long what a dead child leaves behind may take to end after SIGTERM."""
UNKILLABLE_SECONDS = 5.0
"""How long to wait after SIGKILL. Only a process stuck in the kernel (a dead network disk) needs it."""
USELESS_SECONDS = 1.0
"""How long a child that closed its stdin or stdout may take to exit by itself."""
_POLL_SECONDS = 0.02
_STDOUT_BURST, _STDOUT_RATE = 8 * 1024 * 1024, 256e6
_STDERR_BURST, _STDERR_RATE = 1024 * 1024, 20e6


class ChildGone(ConnectionError):
    """The child's stdin is closed: what was to be written never reached it."""


class ChildProcess:
    """One running stdio server: a process group of its own, bounded stderr, and a byte stream each way.

    All methods belong to the event loop that started it.
    """

    pid: int
    stderr: StderrRing
    exit: Exit | None
    """How it ended, or None while it runs."""

    def __init__(self, on_data: Callable[[bytes], None], on_exit: Callable[[Exit], None], stderr: StderrRing) -> None:
        """Not for callers: use `start`."""
        self._loop = asyncio.get_running_loop()
        self.pid = 0
        self.stderr = stderr
        self.exit = None
        self._on_data = on_data
        self._on_exit = on_exit
        self._early: list[bytes] = []
        self._output = OutputProtocol(self._early.append, lambda: self._output_lost(1))
        self._input_open = True
        self._deaf = False
        self._paused = False
        self._cause: Cause = "own"
        self._grace = 0.0
        self._hastened: asyncio.Future[None] = self._loop.create_future()
        self._forced = False
        self._armed = False
        self._torn_down = False
        self._started_at = self._loop.time()
        self._drained: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._quiet: asyncio.Future[None] = self._loop.create_future()
        self._open_outputs = {1, 2}
        self._stopping: asyncio.Task[None] | None = None
        self._finishing: asyncio.Task[None] | None = None
        self._output_pace = Pace(_STDOUT_BURST, _STDOUT_RATE)
        self._error_pace = Pace(_STDERR_BURST, _STDERR_RATE)
        self._output_rests = False

    @classmethod
    async def start(
        cls,
        transport: StdioTransport,
        *,
        environ: Mapping[str, str],
        on_data: Callable[[bytes], None],
        on_exit: Callable[[Exit], None],
        redact: Redactor = unchanged,
        server: str | None = None,
        high_water: int = HIGH_WATER,
    ) -> ChildProcess:
        """Start the server. `environ` is Interlock's own environment, of which the child gets only its part.

        `on_data` gets stdout as it comes, in pieces of any size. `on_exit` is called exactly once, after the last
        `on_data`, however the child ends. Neither is called before this returns (unless it runs in a task of its own).
        Raises Fault (`env-missing`, `command-not-found`, `cwd-missing`, `spawn-failed`); then nothing was started.
        """
        environment = child_environment(transport.env, environ, server=server)
        check_directory(transport.cwd, server)
        child = cls(on_data, on_exit, StderrRing(redact))
        spawning = asyncio.ensure_future(child._spawn(transport, environment, server, high_water))
        try:
            await asyncio.shield(spawning)
        except asyncio.CancelledError:
            # The caller has gone, and the process may be half started: it must not stay.
            spawning.add_done_callback(child._discard)
            raise
        child._arm()
        return child

    async def _spawn(
        self, transport: StdioTransport, environment: dict[str, str], server: str | None, high_water: int
    ) -> None:
        command = resolve(transport, environment, server)
        stdin = InputProtocol(self._input_lost, self._input_full, self._wake_drain)
        stderr = OutputProtocol(self._take_stderr, lambda: self._output_lost(2))
        try:
            spawned = await spawn(
                command, transport.cwd, environment, stdin, self._output, stderr, self._process_exited
            )
        except NoWatchdog as error:
            raise never_started(
                "spawn-failed",
                f"{who(server)} was not started: Interlock could not start the small process that would end the server "
                f"if Interlock were killed ({error}).",
                server,
            ) from error
        except (OSError, ValueError) as error:
            raise spawn_fault(error, command, transport.cwd, server) from error
        self.pid = spawned.pid
        self._returncode = spawned.returncode
        self._stdin = spawned.stdin
        self._stdout = spawned.stdout
        self._stderr = spawned.stderr
        self._family = spawned.family
        self._stdin.set_write_buffer_limits(high=high_water)

    def _discard(self, spawning: asyncio.Future[None]) -> None:
        if not spawning.cancelled() and spawning.exception() is None:
            self._on_data = self._on_exit = _nothing
            self._arm()
            self._request_stop("requested", 0.0)

    def _arm(self) -> None:
        """From here on events go to the caller; what came before is delivered first, in order."""
        self._armed = True
        self._loop.call_soon(self._deliver_early)
        if self._ended.done():
            self._begin_finish()

    def _deliver_early(self) -> None:
        for data in self._early:
            self._take_output(data)
        self._early.clear()
        if not self._stdout.is_closing():
            self._output.data_received = self._take_output
            # Event loops remember the method that they found at first.
            self._stdout.set_protocol(self._output)

    # What the caller does

    def write(self, data: bytes) -> None:
        """Send bytes to the child's stdin. Never blocks. Raises ChildGone where it is closed."""
        if self._deaf or self._stdin.is_closing():
            raise ChildGone("the server's process no longer takes input")
        self._stdin.write(data)

    @property
    def congested(self) -> bool:
        """True while more bytes wait than the high-water mark allows: time to `drain`."""
        return self._drained is not None

    @property
    def unsent(self) -> int:
        """Bytes that were written and have not left Interlock."""
        return 0 if self._stdin.is_closing() else self._stdin.get_write_buffer_size()

    async def drain(self) -> None:
        """Wait while the child does not take its input. Raises ChildGone where it ends meanwhile."""
        if self._drained is not None:
            await asyncio.shield(self._drained)
        if self._deaf:
            raise ChildGone("the server's process no longer takes input")

    def pause_reading(self) -> None:
        """Leave the child's output in its pipe. At most one more piece of data may come."""
        if not self._paused and not self._ended.done() and not self._stdout.is_closing():
            self._paused = True
            if not self._output_rests:
                self._stdout.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if self._paused:
            self._paused = False
            if not self._output_rests and not self._stdout.is_closing():
                self._stdout.resume_reading()

    async def stop(self, grace: float) -> Exit:
        """End the child and everything it started, and say how it ended. May be called at any time, and repeatedly.

        Its stdin is closed; after `grace` seconds its process group gets SIGTERM; after `grace` more, SIGKILL. With a
        grace of 0 it is killed at once; a second call with less grace than the first hastens it. Goes on in the
        background where the caller is cancelled.
        """
        self._request_stop("requested", grace)
        assert self._stopping is not None
        await asyncio.shield(self._stopping)
        assert self.exit is not None
        return self.exit

    # What the event loop tells

    def _take_output(self, data: bytes) -> None:
        try:
            self._on_data(data)
        except Exception as error:
            # A fault of ours. One event loop would go on after it, another one close the pipe.
            self._loop.call_exception_handler({"message": "on_data of a child process failed", "exception": error})
        if self._output_pace.full(len(data)):
            rest = self._output_pace.rest(self._loop.time())
            if rest and not self._paused and not self._stdout.is_closing():
                self._output_rests = True
                self._stdout.pause_reading()
                self._loop.call_later(rest, self._output_rested)

    def _output_rested(self) -> None:
        self._output_rests = False
        if not self._paused and not self._stdout.is_closing():
            self._stdout.resume_reading()

    def _take_stderr(self, data: bytes) -> None:
        self.stderr.feed(data)
        if self._error_pace.full(len(data)):
            rest = self._error_pace.rest(self._loop.time())
            if rest and not self._stderr.is_closing():
                self._stderr.pause_reading()
                self._loop.call_later(rest, self._stderr_rested)

    def _stderr_rested(self) -> None:
        if not self._stderr.is_closing():
            self._stderr.resume_reading()

    def _input_full(self) -> None:
        if self._drained is None:
            self._drained = self._loop.create_future()

    def _input_lost(self) -> None:
        self._input_open = False
        self._deaf = True
        self._wake_drain()
        self._of_no_more_use("stdin-closed")

    def _output_lost(self, fd: int) -> None:
        self._open_outputs.discard(fd)
        if not self._open_outputs and not self._quiet.done():
            self._quiet.set_result(None)
        if fd == 1:
            self._of_no_more_use("stdout-closed")

    def _of_no_more_use(self, cause: Cause) -> None:
        if not self._ended.done() and self._stopping is None:
            self._loop.call_later(USELESS_SECONDS, self._give_up, cause)

    def _give_up(self, cause: Cause) -> None:
        if not self._ended.done():
            self._request_stop(cause, USELESS_SECONDS)

    def _process_exited(self) -> None:
        if self._ended.done():
            return
        self._ended.set_result(None)
        self._deaf = True
        self._wake_drain()
        if self._torn_down:
            self._family.kill()
            self._family.release()
        elif self._armed:
            self._begin_finish()

    def _wake_drain(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    # The end

    def _request_stop(self, cause: Cause, grace: float) -> None:
        if self._stopping is None:
            if not self._ended.done():
                self._cause = cause
            self._grace = grace
            self._stopping = self._loop.create_task(self._stop())
        elif grace < self._grace:
            self._grace = grace
            if not self._hastened.done():
                self._hastened.set_result(None)

    async def _stop(self) -> None:
        self._deaf = True
        self._wake_drain()
        try:
            if not self._stdin.is_closing():
                self._stdin.close()
            self._discard_output()
            if not await self._ends_in_grace():
                self._abandon_input()
                self._family.terminate()
                if not await self._ends_in_grace():
                    self._forced = True
                    self._family.kill()
                    await asyncio.wait((self._ended,), timeout=UNKILLABLE_SECONDS)
            await self._begin_finish()
        except asyncio.CancelledError:
            # The event loop is being taken down: no time is left for manners.
            self._torn_down = True
            self._family.kill()
            self._close_pipes()
            raise

    async def _ends_in_grace(self) -> bool:
        """Wait for the end for `_grace` seconds, also where that becomes less meanwhile."""
        since = self._loop.time()
        while not self._ended.done() and (left := since + self._grace - self._loop.time()) > 0:
            await asyncio.wait((self._ended, self._hastened), timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if self._hastened.done():
                self._hastened = self._loop.create_future()
        return self._ended.done()

    def _abandon_input(self) -> None:
        """What the child has not taken by now keeps its stdin open, and it never will."""
        if self._input_open and self._stdin.get_write_buffer_size():
            self._stdin.abort()

    def _discard_output(self) -> None:
        """A child that hangs in a write cannot see that its input has ended: output nobody wants is thrown away."""
        if self._paused:
            self._on_data = _nothing
            self.resume_reading()

    def _begin_finish(self) -> asyncio.Task[None]:
        if self._finishing is None:
            self._finishing = self._loop.create_task(self._finish())
        return self._finishing

    async def _finish(self) -> None:
        """The leader has ended: take in its last words, tell the caller, and end whoever is left of its family."""
        try:
            left = self._family.alive()
            if left:
                self._family.terminate()
            self.resume_reading()
            await asyncio.wait((self._quiet,), timeout=DRAIN_SECONDS)
            self._report()
            if left:
                await self._end_family()
        except asyncio.CancelledError:
            self._family.kill()
            self._close_pipes()
            raise
        finally:
            self._family.release()

    def _close_pipes(self) -> None:
        self._abandon_input()
        for pipe in (self._stdin, self._stdout, self._stderr):
            if not pipe.is_closing():
                pipe.close()

    def _report(self) -> None:
        self._close_pipes()
        returned = self._returncode()
        # None: killed, and still stuck in the kernel.
        signal = -returned if returned is not None and returned < 0 else 9 if returned is None else None
        self.exit = Exit(
            code=returned if signal is None else None,
            signal=signal,
            stderr_tail=self.stderr.tail(),
            cause=self._cause,
            uptime=self._loop.time() - self._started_at,
            forced=self._forced,
        )
        try:
            self._on_exit(self.exit)
        except Exception as error:
            self._loop.call_exception_handler({"message": "on_exit of a child process failed", "exception": error})

    async def _end_family(self) -> None:
        if not await self._family_ends_within(LEFTOVER_SECONDS):
            self._family.kill()
            await self._family_ends_within(UNKILLABLE_SECONDS)

    async def _family_ends_within(self, seconds: float) -> bool:
        deadline = self._loop.time() + seconds
        while self._family.alive():
            if self._loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True


def _nothing(_: object) -> None:
    return None
