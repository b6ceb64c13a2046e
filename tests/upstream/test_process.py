"""Real children that misbehave, one way a test, on both event loops: each has a certain end, and says how it was."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from interlock.manifest.config import EnvValue, StdioTransport
from interlock.model.fault import Fault
from interlock.upstream.process import ChildGone, ChildProcess

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fixtures use POSIX signals")
FIXTURES = Path(__file__).with_name("fixtures")
Run = Callable[[Coroutine[object, object, object]], object]
Start = Callable[..., Awaitable[Any]]
Alive = Callable[[int], bool]


def test_bytes_go_both_ways_and_the_end_of_input_is_enough_to_end_it(run: Run, start: Start, alive: Alive) -> None:
    async def body() -> None:
        child = await start("echo")
        assert alive(child.process.pid)
        assert os.getsid(child.process.pid) == child.process.pid
        child.process.write(b'{"a":1}\n')
        child.process.write(b'{"b":2}\n')
        await child.until(lambda: child.received.count(b"\n") == 2)
        assert child.received == b'{"a":1}\n{"b":2}\n'
        exit = await child.process.stop(10)
        assert (exit.code, exit.signal, exit.cause, exit.forced) == (0, None, "requested", False)
        assert child.exits == [exit]
        assert child.process.exit == exit
        assert await child.process.stop(10) == exit
        with pytest.raises(ChildGone):
            child.process.write(b"x")
        with pytest.raises(ChildGone):
            await child.process.drain()

    run(body())


def test_death_at_once_is_reported_once_with_the_last_words(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("dies_at_once")
        assert child.exits == []
        await child.until(lambda: child.exits)
        exit = child.exits[0]
        assert (exit.code, exit.signal, exit.cause) == (3, None, "own")
        assert exit.stderr_tail == "I cannot go on"
        assert await child.process.stop(1) == exit
        assert child.exits == [exit]

    run(body())


def test_the_last_answer_arrives_before_the_exit(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("dies_later")
        child.process.write(b"go\n")
        await child.until(lambda: child.exits)
        assert child.received == b"last words\n"
        assert child.exits[0].code == 7
        assert child.exits[0].stderr_tail == "giving up"

    run(body())


def test_the_last_answer_arrives_also_where_reading_is_paused(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("dies_later")
        child.process.pause_reading()
        child.process.write(b"go\n")
        await child.until(lambda: child.exits)
        assert child.received == b"last words\n"

    run(body())


def test_the_exit_code_is_known_also_where_a_launcher_had_child_signals_ignored(run: Run, start: Start) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:

        async def body() -> None:
            child = await start("dies_at_once")
            await child.until(lambda: child.exits)
            assert child.exits[0].code == 3

        run(body())
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_signal_is_told_from_an_exit_code(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("killed")
        await child.until(lambda: child.exits)
        assert (child.exits[0].code, child.exits[0].signal) == (None, 9)

    run(body())


@pytest.mark.parametrize(
    ("behaviour", "signal_number", "forced"),
    [
        ("ignores_end_of_input", signal.SIGTERM, False),
        ("ignores_sigterm", signal.SIGKILL, True),
        ("stopped", signal.SIGTERM, False),
        ("floods_stdout", signal.SIGTERM, False),
    ],
)
def test_one_that_does_not_leave_is_made_to(
    run: Run, start: Start, behaviour: str, signal_number: int, forced: bool, alive: Alive
) -> None:
    async def body() -> None:
        child = await start(behaviour)
        await child.until(lambda: child.received)
        exit = await child.process.stop(0.2)
        assert (exit.code, exit.signal, exit.forced, exit.cause) == (None, signal_number, forced, "requested")
        assert not alive(child.process.pid)

    run(body())


def test_a_second_stop_with_less_grace_hastens_the_first(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("ignores_sigterm")
        await child.line()
        patient = asyncio.ensure_future(child.process.stop(1000))
        await asyncio.sleep(0)
        exit = await child.process.stop(0.05)
        assert exit.signal == signal.SIGKILL
        assert await patient == exit

    run(body())


def test_stop_goes_on_where_its_caller_is_cancelled(run: Run, start: Start, alive: Alive) -> None:
    async def body() -> None:
        child = await start("ignores_sigterm")
        await child.line()
        caller = asyncio.ensure_future(child.process.stop(0.1))
        await asyncio.sleep(0)
        caller.cancel()
        await child.until(lambda: child.exits)
        assert not alive(child.process.pid)

    run(body())


@pytest.mark.parametrize("turns", range(8))
def test_a_start_that_is_given_up_leaves_no_process(run: Run, tmp_path: Path, turns: int) -> None:
    """Cancelled after so many turns of the loop: before, while or after the process comes to be."""

    async def body() -> None:
        script = f"import time; time.sleep(600)  # {tmp_path}"
        called: list[object] = []
        starting = asyncio.ensure_future(
            ChildProcess.start(
                StdioTransport((sys.executable, "-c", script), tmp_path),
                environ=os.environ,
                on_data=called.append,
                on_exit=called.append,
            )
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        try:
            child = await starting
        except asyncio.CancelledError:
            # What was begun is finished and undone in the background, from the next turn of the loop on.
            await asyncio.sleep(0.01)
            while len(asyncio.all_tasks()) > 1 or _children_running(script):  # noqa: ASYNC110 - tasks of another
                await asyncio.sleep(0.01)
            assert called == []
        else:
            await child.stop(0)
        assert _children_running(script) == []

    run(body())


def test_the_end_of_the_loop_in_the_middle_of_an_end(run: Run, start: Start, wait_gone: Callable[..., None]) -> None:
    """The leader has gone and a grandchild that takes no SIGTERM has not, when everything is cancelled."""
    pids: list[int] = []

    async def body() -> None:
        child = await start("stubborn_grandchild")
        pids.extend((child.process.pid, int(await child.line())))
        child.process.write(b"leave\n")
        await child.until(lambda: child.exits)

    run(body())
    wait_gone(*pids)


def _children_running(script: str) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and script.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("behaviour", ["grandchild", "other_group"])
def test_grandchildren_end_with_the_child(run: Run, start: Start, behaviour: str, alive: Alive) -> None:
    async def body() -> None:
        child = await start(behaviour)
        other = int(await child.line())
        assert alive(other)
        began = time.monotonic()
        await child.process.stop(1)
        assert not alive(other)
        assert time.monotonic() - began < 10
        assert len(child.exits) == 1

    run(body())


def test_a_grandchild_that_holds_the_pipes_and_ignores_sigterm_does_not_delay_the_report(
    run: Run, start: Start, alive: Alive
) -> None:
    async def body() -> None:
        child = await start("stubborn_grandchild")
        other = int(await child.line())
        child.process.write(b"leave\n")
        await child.until(lambda: child.exits)
        assert (child.exits[0].code, child.exits[0].cause) == (0, "own")
        await child.process.stop(1)
        assert not alive(other)

    run(body())


def test_a_detached_grandchild_is_left_alone(run: Run, start: Start, reaper: list[int], alive: Alive) -> None:
    async def body() -> None:
        child = await start("detached")
        other = int(await child.line())
        reaper.append(other)
        exit = await child.process.stop(5)
        assert exit.code == 0
        assert alive(other)

    run(body())


def test_a_wrapper_script_leaves_nothing_behind(run: Run, start: Start, alive: Alive) -> None:
    async def body() -> None:
        child = await start(command=("sh", "-c", "sleep 600 & echo $!; exec cat"))
        sleeper = int(await child.line())
        child.process.write(b"hello\n")
        await child.until(lambda: b"hello\n" in child.received)
        exit = await child.process.stop(5)
        assert exit.code == 0
        assert not alive(sleeper)

    run(body())


def test_five_megabytes_arrive_whole(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("writes_5_mb")
        child.process.write(b"go\n")
        size = 5 * 1024 * 1024
        await child.until(lambda: len(child.received) >= size)
        assert child.received == bytes(range(256)) * (size // 256)
        assert (await child.process.stop(5)).code == 0

    run(body())


def test_paused_reading_holds_a_flood_back(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("floods_stdout")
        await child.until(lambda: len(child.received) > 1_000_000)
        child.process.pause_reading()
        child.process.pause_reading()
        await asyncio.sleep(0.05)
        held = len(child.received)
        await asyncio.sleep(0.2)
        assert len(child.received) == held
        child.process.resume_reading()
        child.process.resume_reading()
        await child.until(lambda: len(child.received) > held)
        child.process.pause_reading()
        await asyncio.sleep(0.05)
        held = len(child.received)
        await child.process.stop(0.1)
        assert len(child.received) == held

    run(body())


def test_a_flood_of_stdout_leaves_the_loop_free(run: Run, start: Start) -> None:
    async def body() -> None:
        received = 0

        def count(data: bytes) -> None:
            nonlocal received
            received += len(data)

        child = await ChildProcess.start(
            StdioTransport((sys.executable, str(FIXTURES / "child.py"), "floods_stdout"), Path.cwd()),
            environ=os.environ,
            on_data=count,
            on_exit=lambda exit: None,
        )
        while received < 50_000_000:  # noqa: ASYNC110 - a count has no event
            await asyncio.sleep(0.001)
        turns, before, began = 0, received, time.monotonic()
        while time.monotonic() < began + 0.5:
            turns += 1
            await asyncio.sleep(0)
        assert turns > 500
        # 256 MB a second at most, and what one burst may add.
        assert received - before < 256e6 * (time.monotonic() - began) + 2 * 8 * 1024 * 1024
        await child.stop(0.1)

    run(body())


def test_a_flood_of_stderr_is_bounded_and_leaves_the_loop_free(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("floods_stderr")
        while child.process.stderr.total < 8_000_000:  # noqa: ASYNC110 - the ring has no event of its own
            await asyncio.sleep(0.01)
        lines = child.process.stderr.lines()
        assert 60 <= len(lines) <= 64
        assert set(lines) == {"y" * 1023}
        turns = 0
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            turns += 1
            await asyncio.sleep(0)
        assert turns > 500
        await child.process.stop(0.1)

    run(body())


@pytest.mark.parametrize(("behaviour", "cause"), [("closes_stdout", "stdout-closed"), ("closes_stdin", "stdin-closed")])
def test_one_without_its_streams_is_of_no_use_and_ended(run: Run, start: Start, behaviour: str, cause: str) -> None:
    async def body() -> None:
        child = await start(behaviour)
        await child.until(lambda: child.exits)
        assert child.received == b"ready\n"
        assert child.exits[0].cause == cause
        assert child.exits[0].signal == signal.SIGTERM

    run(body())


def test_back_pressure(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("never_reads", high_water=10_000)
        await child.line()
        await child.process.drain()
        assert not child.process.congested
        child.process.write(b"z" * 1_000_000)
        assert child.process.congested
        assert child.process.unsent >= 900_000
        waiting = asyncio.ensure_future(child.process.drain())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        exit = await child.process.stop(0.1)
        assert exit.signal == signal.SIGTERM
        with pytest.raises(ChildGone):
            await waiting

    run(body())


def test_drain_returns_once_the_child_has_read(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("echo", high_water=10_000)
        child.process.write(b"z" * 1_000_000)
        await child.process.drain()
        assert child.process.unsent <= 10_000
        await child.until(lambda: len(child.received) == 1_000_000)
        await child.process.stop(5)

    run(body())


def test_what_was_written_before_the_stop_still_goes_out(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("echo")
        child.process.write(b"q" * 500_000)
        exit = await child.process.stop(10)
        assert exit.code == 0
        assert len(child.received) == 500_000

    run(body())


def test_the_child_sees_the_base_and_what_the_manifest_names_and_nothing_else(
    run: Run, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_ANOTHER", "hunter2")
    monkeypatch.setenv("MY_TOKEN", "for this one")

    async def body() -> None:
        child = await start(
            "environment", env=(EnvValue("TOKEN", source="MY_TOKEN"), EnvValue("MODE", literal="quiet"))
        )
        seen = dict(entry.split("=", 1) for entry in (await child.line()).split("\0"))
        assert seen["TOKEN"] == "for this one"
        assert seen["MODE"] == "quiet"
        assert seen["PATH"] == os.environ["PATH"]
        assert "SECRET_OF_ANOTHER" not in seen
        assert "MY_TOKEN" not in seen
        await child.process.stop(5)

    run(body())


def test_no_descriptor_is_passed_on(run: Run, start: Start) -> None:
    async def body() -> None:
        first = await start("echo")
        second = await start("descriptors")
        assert await second.line() == ""
        await first.process.stop(5)
        await second.process.stop(5)

    run(body())


def test_stderr_can_be_opened_by_its_name(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("reopens_stderr")
        await child.line()
        assert (await child.process.stop(5)).stderr_tail == "through the device"

    run(body())


def test_the_last_words_pass_the_redactor(run: Run, start: Start) -> None:
    async def body() -> None:
        child = await start("dies_at_once", redact=lambda text: text.replace("cannot", "[redacted]"))
        await child.until(lambda: child.exits)
        assert child.exits[0].stderr_tail == "I [redacted] go on"

    run(body())


def test_where_there_is_no_pidfd_a_thread_waits(run: Run, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS, and Linux before 5.3."""
    monkeypatch.delattr(os, "pidfd_open")

    async def body() -> None:
        child = await start("dies_later")
        child.process.write(b"go\n")
        await child.until(lambda: child.exits)
        assert child.exits[0].code == 7
        assert child.received == b"last words\n"
        other = await start("ignores_end_of_input")
        await other.line()
        assert (await other.process.stop(0.1)).signal == signal.SIGTERM

    run(body())


def test_two_hundred_starts_and_stops_leak_nothing(run: Run, start: Start) -> None:
    async def body() -> None:
        async def cycle() -> None:
            child = await start(command=("cat",))
            child.process.write(b"x\n")
            await child.line()
            await child.process.stop(5)

        await cycle()
        gc.collect()  # what earlier tests of this process left is theirs, and must not be closed while we count
        before = _descriptors()
        for _ in range(20):
            await asyncio.gather(*(cycle() for _ in range(10)))
        with pytest.raises(Fault):
            await start(command=("no-such-command",))
        assert _descriptors() == before

    run(body())


def _descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_a_fault_in_on_data_is_reported_and_the_next_data_still_comes(run: Run) -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        reports: list[dict[str, object]] = []
        loop.set_exception_handler(lambda loop, context: reports.append(context))
        received: asyncio.Queue[bytes] = asyncio.Queue()

        def failing(data: bytes) -> None:
            received.put_nowait(data)
            raise RuntimeError("a fault of ours")

        child = await ChildProcess.start(
            StdioTransport(("cat",), Path.cwd()), environ=os.environ, on_data=failing, on_exit=lambda exit: None
        )
        child.write(b"one\n")
        assert await received.get() == b"one\n"
        child.write(b"two\n")
        assert await received.get() == b"two\n"
        assert [str(report["exception"]) for report in reports] == ["a fault of ours"] * 2
        assert (await child.stop(5)).code == 0

    run(body())


def test_a_fault_in_on_exit_is_reported_and_the_end_is_complete(run: Run) -> None:
    async def body() -> None:
        loop = asyncio.get_running_loop()
        reports: list[dict[str, object]] = []
        loop.set_exception_handler(lambda loop, context: reports.append(context))
        ended = loop.create_future()

        def failing(exit: object) -> None:
            ended.set_result(exit)
            raise RuntimeError("a fault of ours")

        child = await ChildProcess.start(
            StdioTransport(("cat",), Path.cwd()), environ=os.environ, on_data=lambda data: None, on_exit=failing
        )
        os.kill(child.pid, signal.SIGKILL)
        await ended
        assert (await child.stop(1)).signal == 9
        assert str(reports[0]["exception"]) == "a fault of ours"

    run(body())


def test_children_do_not_survive_the_end_of_the_event_loop(
    run: Run, start: Start, wait_gone: Callable[..., None]
) -> None:
    children: list[Any] = []

    async def body() -> None:
        children.append(await start("ignores_sigterm"))
        await children[0].line()
        stopping = asyncio.ensure_future(children[0].process.stop(100))
        await asyncio.sleep(0)
        stopping.cancel()

    run(body())
    wait_gone(children[0].process.pid)
