"""Several real processes at one database: nothing lost, nothing broken, also when one is killed or the disk is full."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.store.interface import CallRow, StoreError
from interlock.store.sqlite import SqliteStore

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and limits are POSIX")
MakeRow = Callable[..., CallRow]
Start = Callable[..., "subprocess.Popen[str]"]

WRITER = """
import sys
from pathlib import Path
from interlock.store.interface import CallRow, StoreError
from interlock.store.sqlite import SqliteStore

home, name, batches, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = SqliteStore(home)
print("ready", flush=True)
sys.stdin.readline()
for batch in range(batches):
    record = b'{"x":"' + b"y" * 400 + b'"}'
    rows = [CallRow(f"{name}-{batch:05}-{n:03}", batch, name, "ok", record) for n in range(size)]
    while True:
        try:
            store.append_calls(rows)
            break
        except StoreError as error:
            print("failed", error.trouble, flush=True)
            sys.stdin.readline()
    print("wrote", batch, flush=True)
    if batch % 10 == 0:
        store.save_catalogue(name, "d", b"%d" % batch)
store.close()
print("done", flush=True)
"""


@pytest.fixture
def start(home: Path, child_environ: dict[str, str]) -> Iterator[Start]:
    children: list[subprocess.Popen[str]] = []

    def start_one(
        name: str, batches: int, size: int, before: Callable[[], None] | None = None
    ) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(home), name, str(batches), str(size)],
            env=child_environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,
        )
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    yield start_one
    for child in children:
        child.kill()
        child.communicate()


def go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def line_of(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def check_integrity(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_processes_that_write_at_once_lose_nothing(home: Path, start: Start) -> None:
    """Also the first opening of a home that does not exist is raced for."""
    children = {f"p{n}": start(f"p{n}", 40, 50) for n in range(5)}
    for child in children.values():
        go(child)
    for child in children.values():
        out, err = child.communicate(timeout=50)
        assert (child.returncode, err) == (0, "")
        assert out.splitlines()[-1] == "done"
        assert "failed" not in out
    store = SqliteStore.for_reading(home)
    for name in children:
        found = store.find_calls(f"{name}-", 10_000)
        assert [row.id for row in found] == [f"{name}-{batch:05}-{n:03}" for batch in range(40) for n in range(50)]
        assert store.load_catalogue(name, "d") == b"30"
    store.close()
    check_integrity(home / "interlock.db")


@pytest.mark.parametrize("after", [1, 7, 23])
def test_a_process_killed_while_it_writes_loses_no_finished_batch_and_breaks_nothing(
    home: Path, start: Start, after: int
) -> None:
    child = start("k", 100_000, 100)
    go(child)
    while line_of(child) != f"wrote {after}":
        pass
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate(timeout=20)
    written = [int(line.split()[1]) for line in rest.splitlines() if line.startswith("wrote ") and line.split()[1:]]
    last = max([after, *written])
    store = SqliteStore(home)
    ids = {row.id for row in store.find_calls("k-", 10_000_000)}
    assert {f"k-{batch:05}-{n:03}" for batch in range(last + 1) for n in range(100)} <= ids
    assert len(ids) % 100 == 0, "a batch is written whole or not at all"
    store.append_calls([CallRow("after", 1, None, "ok", b"{}")])
    store.close()
    check_integrity(home / "interlock.db")


def test_processes_that_meet_a_damaged_file_at_once_set_it_aside_once(home: Path, start: Start) -> None:
    home.mkdir()
    (home / "interlock.db").write_bytes(b"junk" * 5000)
    children = [start(f"p{n}", 20, 20) for n in range(4)]
    for child in children:
        go(child)
    complaints = ""
    for child in children:
        out, err = child.communicate(timeout=50)
        assert child.returncode == 0
        assert "failed" not in out
        complaints += err
    aside = [path for path in home.iterdir() if ".corrupt-" in path.name]
    assert [path.read_bytes() for path in aside] == [b"junk" * 5000]
    assert complaints.count("was set aside as") == 1
    store = SqliteStore.for_reading(home)
    assert len(store.recent_calls(10_000)) == 4 * 20 * 20
    store.close()
    check_integrity(home / "interlock.db")


def test_a_full_disk_fails_a_batch_whole_and_it_can_be_written_later(home: Path, start: Start) -> None:
    """A limit on file size stands in for the disk's: SQLite meets a write that fails half way all the same."""
    import resource

    def small_files() -> None:
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))

    child = start("f", 30, 100, before=small_files)
    go(child)
    while (line := line_of(child)).startswith("wrote"):
        pass
    assert line.startswith("failed ")
    finished = SqliteStore.for_reading(home)
    before = finished.find_calls("f-", 10_000)
    finished.close()
    assert before
    assert len(before) % 100 == 0
    resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    go(child)
    out, err = child.communicate(timeout=50)
    assert (child.returncode, err) == (0, "")
    assert "failed" not in out
    store = SqliteStore.for_reading(home)
    assert len(store.find_calls("f-", 10_000)) == 30 * 100
    store.close()
    check_integrity(home / "interlock.db")


def test_a_real_full_file_system(tmp_path: Path, row: MakeRow) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a file system needs root; the test before this one needs nothing")
    store = SqliteStore(place)
    try:
        store.append_calls([row("first")])
        fill = place / "fill"
        with fill.open("wb", buffering=0) as filling, contextlib.suppress(OSError):
            while filling.write(b"x" * 4096):
                pass
        rows = [row(f"{n:03}", record=b'{"x":"' + b"y" * 4000 + b'"}') for n in range(100)]
        with pytest.raises(StoreError, match="the disk is full") as refused:
            store.append_calls(rows)
        assert refused.value.trouble == "full"
        fill.unlink()
        store.append_calls([row("last")])
        assert [each.id for each in store.find_calls("", 999)] == ["first", "last"]
    finally:
        store.close()
        subprocess.run(["umount", str(place)], check=True)
