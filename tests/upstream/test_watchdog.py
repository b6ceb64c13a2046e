"""Interlock is killed and cannot clean up: nothing that it started may outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.upstream import groups
from interlock.upstream.watchdog import Watchdog

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")
FIXTURES = Path(__file__).with_name("fixtures")
CHILD = (sys.executable, str(FIXTURES / "child.py"))
Alive = Callable[[int], bool]
Gone = Callable[..., None]


@pytest.fixture
def sleepers() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that do nothing for ten minutes; ends them after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str = "", **options: object) -> subprocess.Popen[bytes]:
        program = f"{code}\nprint(flush=True)\nimport time\ntime.sleep(600)"
        arguments = [sys.executable, "-S", "-c", program]
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, **options)  # type: ignore[call-overload]
        started.append(process)
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


class Parent:
    """A process of its own that uses ChildProcess, as Interlock does."""

    def __init__(self, loop: str, command: tuple[str, ...], lines: int) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self.process = subprocess.Popen(
            [sys.executable, str(FIXTURES / "parent.py"), loop, *command], stdout=subprocess.PIPE, env=environment
        )
        self.said = [self.process.stdout.readline().decode().strip() for _ in range(lines)]
        words = next(line for line in self.said if line.startswith("child ")).split()
        self.child, self.watchdog = int(words[1]), int(words[3])

    def other(self) -> int:
        """The pid that the child said."""
        return int(next(line for line in self.said if not line.startswith("child ")))

    def end(self, number: int) -> None:
        self.process.send_signal(number)
        self.process.communicate()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize(
    ("command", "has_grandchild"),
    [
        pytest.param((*CHILD, "grandchild"), True, id="grandchild-that-holds-the-pipes"),
        pytest.param((*CHILD, "other_group"), True, id="grandchild-in-another-group"),
        pytest.param((*CHILD, "ignores_sigterm"), False, id="deaf-to-everything"),
        pytest.param((*CHILD, "stopped"), False, id="stopped"),
        pytest.param(("sh", "-c", "sleep 600 & echo $!; exec cat"), True, id="wrapper-script"),
        pytest.param(("sh", "-c", "sleep 600 & echo $!; sleep 600"), True, id="shell-that-waits"),
    ],
)
def test_nothing_outlives_a_sigkill(loop: str, command: tuple[str, ...], has_grandchild: bool, wait_gone: Gone) -> None:
    parent = Parent(loop, command, 2)
    pids = [parent.child, parent.watchdog] + ([parent.other()] if has_grandchild else [])
    parent.end(signal.SIGKILL)
    wait_gone(*pids, seconds=6)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGABRT])
def test_nothing_outlives_another_death(number: int, wait_gone: Gone) -> None:
    parent = Parent("asyncio", (*CHILD, "ignores_sigterm"), 2)
    parent.end(number)
    wait_gone(parent.child, parent.watchdog, seconds=6)


def test_the_watchdog_is_not_disarmed_by_signals_to_all_of_interlock(wait_gone: Gone) -> None:
    parent = Parent("asyncio", (*CHILD, "ignores_sigterm"), 2)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
        os.kill(parent.watchdog, number)
    parent.end(signal.SIGKILL)
    wait_gone(parent.child, parent.watchdog, seconds=6)


def test_it_is_small() -> None:
    parent = Parent("asyncio", ("cat",), 1)
    try:
        status = Path(f"/proc/{parent.watchdog}/status").read_text()
        private = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))
        assert private < 8 * 1024, "KiB that it does not share with any other Python"
    finally:
        parent.end(signal.SIGKILL)


def test_a_child_that_was_being_started_is_found_by_its_pipe(
    sleepers: Callable[..., subprocess.Popen[bytes]], alive: Alive, wait_gone: Gone
) -> None:
    """Interlock was killed after the fork and before it knew the pid."""
    dog = Watchdog()
    read_end, write_end = os.pipe()
    inode = os.fstat(read_end).st_ino
    bystander = sleepers(stdin=read_end)  # reads from it, but leads no session: not a child of ours
    dog.expect(inode)
    born = sleepers(stdin=read_end, start_new_session=True)
    pid = dog.pid
    os.close(dog._pipe)
    born.wait(6)
    wait_gone(pid, seconds=6)
    assert alive(bystander.pid)
    os.close(read_end)
    os.close(write_end)
    dog._pipe = -1


def test_one_that_has_ended_in_order_is_no_longer_on_the_list(
    sleepers: Callable[..., subprocess.Popen[bytes]], alive: Alive, wait_gone: Gone
) -> None:
    """Its number may be another process's by now."""
    dog = Watchdog()
    process = sleepers(start_new_session=True)
    dog.expect(1)
    dog.started(1, process.pid)
    dog.gone(process.pid)
    dog.expect(2)
    dog.started(2, None)
    pid = dog.pid
    os.close(dog._pipe)
    wait_gone(pid, seconds=6)
    assert alive(process.pid)
    dog._pipe = -1


def test_a_watchdog_that_was_killed_is_replaced_and_knows_all(
    sleepers: Callable[..., subprocess.Popen[bytes]], wait_gone: Gone
) -> None:
    dog = Watchdog()
    first, second = sleepers(start_new_session=True), sleepers(start_new_session=True)
    dog.expect(1)
    dog.started(1, first.pid)
    before = dog.pid
    os.kill(before, signal.SIGKILL)
    wait_gone(before)
    dog.expect(2)
    assert dog.pid not in (None, before)
    dog.started(2, second.pid)
    os.close(dog._pipe)
    first.wait(6)
    second.wait(6)
    dog._pipe = -1


def test_a_watchdog_that_is_stuck_is_replaced(wait_gone: Gone) -> None:
    dog = Watchdog()
    dog.expect(1)
    stuck = dog.pid
    os.kill(stuck, signal.SIGSTOP)
    deadline = time.monotonic() + 20
    while dog.pid == stuck:
        assert time.monotonic() < deadline
        dog.expect(2)
    wait_gone(stuck)
    last = dog.pid
    os.close(dog._pipe)
    wait_gone(last)
    dog._pipe = -1


def test_what_is_already_running_is_no_fault_where_none_can_be_started(
    sleepers: Callable[..., subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch, wait_gone: Gone
) -> None:
    dog = Watchdog()
    process = sleepers(start_new_session=True)
    dog.expect(1)
    killed = dog.pid
    os.kill(killed, signal.SIGKILL)
    wait_gone(killed)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/no/such/python")
        dog.started(1, process.pid)
        assert dog.pid is None
        with pytest.raises(OSError, match="No such file"):
            dog.expect(2)
    dog.expect(3)
    os.close(dog._pipe)
    process.wait(6)  # the new one knows the child that was started meanwhile
    dog._pipe = -1


def test_none_runs_where_there_is_nothing_to_watch() -> None:
    dog = Watchdog()
    assert dog.pid is None
    dog.gone(4711)
    assert dog.pid is None


def test_a_fork_does_not_keep_the_list_of_its_parent(sleepers: Callable[..., subprocess.Popen[bytes]]) -> None:
    """`forget` runs in the child after a fork: the watchdog must notice the end of the parent all the same."""
    dog = Watchdog()
    process = sleepers(start_new_session=True)
    dog.expect(1)
    dog.started(1, process.pid)
    forked = os.fork()
    if forked == 0:
        dog.forget()
        time.sleep(20)
        os._exit(0)
    try:
        os.close(dog._pipe)
        process.wait(6)
    finally:
        os.kill(forked, signal.SIGKILL)
        os.waitpid(forked, 0)
        dog._pipe = -1


def test_signals_never_go_to_our_own_group_or_to_everyone(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: sent.append((group, number)))
    groups.send([-1, 0, 1, 2, 777], signal.SIGTERM)
    assert sent == [(2, signal.SIGTERM), (777, signal.SIGTERM)]


def test_without_proc_the_group_is_asked(
    sleepers: Callable[..., subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS has no /proc: there the leader's process group is all that is known."""
    monkeypatch.setattr(groups, "_HAS_PROC", False)
    process = sleepers(start_new_session=True)
    assert groups.living(process.pid) == {process.pid}
    assert groups.starting({1}) == set()
    process.kill()
    process.wait()
    assert groups.living(process.pid) == set()


def test_end_is_polite_first(sleepers: Callable[..., subprocess.Popen[bytes]]) -> None:
    polite = sleepers("import signal, sys; signal.signal(15, lambda *_: sys.exit(5))", start_new_session=True)
    rude = sleepers("import signal; signal.signal(15, signal.SIG_IGN)", start_new_session=True)
    groups.end({polite.pid, rude.pid})
    assert polite.wait(5) == 5
    assert rude.wait(5) == -signal.SIGKILL


def test_the_living_are_told_from_zombies(sleepers: Callable[..., subprocess.Popen[bytes]]) -> None:
    process = sleepers(start_new_session=True)
    assert groups.living(process.pid) == {process.pid}
    process.kill()
    deadline = time.monotonic() + 5
    while groups.living(process.pid):  # dead, and nobody has waited for it
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert process.returncode is None
    assert groups.living(999_999_999) == set()
