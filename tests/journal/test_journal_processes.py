"""Real processes with a journal: killed, never closed, several at once, on a full disk, in a home not theirs."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from interlock.store.sqlite import SqliteStore

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, limits and users are POSIX")

PRELUDE = """
import sys, time
from pathlib import Path
from interlock.journal.audit import Journal
from interlock.journal.trace_id import new_trace_id
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace
from interlock.store.sqlite import SqliteStore

journal = Journal(SqliteStore(Path(sys.argv[1])))

def trace():
    marks = [Mark(stage, "ok", "as it should be", None, 1) for stage in Stage]
    id, at_ns = new_trace_id(), time.time_ns()
    return RouteTrace(id, at_ns, "tools/call", "p", "c", None, server="s", status="ok", marks=marks)
"""

# Says for each record when it was taken, on the clock that all processes share, and how late this process itself ran.
RECORD_AT_A_STEADY_PACE = (
    PRELUDE
    + """
journal.start()
last = time.monotonic()
late = 0.0
while True:
    time.sleep(0.001)
    now = time.monotonic()
    late, last = max(late, now - last), now
    each = trace()
    journal.record(each)
    sys.stdout.write(f"{each.id} {time.monotonic():.6f} {late:.6f}\\n")
    sys.stdout.flush()
"""
)


def stored(home: Path) -> list[str]:
    store = SqliteStore.for_reading(home)
    try:
        return [row.id for row in store.find_calls("", 1_000_000)]
    finally:
        store.close()


def run(code: str, home: Path, environ: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PRELUDE + code, str(home), *args]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=50, check=False)


def killed_while_recording(
    home: Path, environ: dict[str, str], records: int
) -> tuple[list[tuple[str, float]], float, float]:
    """What the child said it recorded and when, when it was killed, and how late it ran at worst."""
    child = subprocess.Popen(
        [sys.executable, "-c", RECORD_AT_A_STEADY_PACE, str(home)], env=environ, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(records)]
    at = time.monotonic()
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate(timeout=20)
    lines += [line for line in rest.splitlines() if line.count(" ") == 2]
    words = [line.split() for line in lines]
    return [(id, float(when)) for id, when, _ in words], at, max(float(late) for *_, late in words)


@pytest.mark.parametrize("records", [400, 701, 1003])
def test_a_killed_process_loses_at_most_the_last_quarter_of_a_second(
    tmp_path: Path, child_environ: dict[str, str], records: int
) -> None:
    for attempt in range(8):
        home = tmp_path / str(attempt)
        recorded, at, late = killed_while_recording(home, child_environ, records)
        found = set(stored(home))
        connection = sqlite3.connect(home / "interlock.db")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
        assert len(found) > 0
        # No half batch before a whole one: what is there is the beginning of what was recorded.
        assert [id for id, _ in recorded if id in found] == [id for id, _ in recorded][: len(found)]
        if late < 0.03:
            missing = [id for id, when in recorded if when < at - 0.25 and id not in found]
            assert missing == []
            return
        # The machine gave the child no time for that long: says nothing about the journal, so again.
    pytest.skip("this machine is too busy for a process to run on time")


def test_a_process_that_ends_without_closing_loses_nothing(tmp_path: Path, child_environ: dict[str, str]) -> None:
    home = tmp_path / "home"
    done = run("journal.start()\nfor _ in range(3000): journal.record(trace())", home, child_environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(stored(home)) == 3000


def test_processes_that_record_at_once_lose_nothing(tmp_path: Path, child_environ: dict[str, str]) -> None:
    home = tmp_path / "home"
    code = PRELUDE + (
        "journal.start()\nfor _ in range(40):\n    for _ in range(50): journal.record(trace())\n    time.sleep(0.005)\n"
        "journal.close()\ns = journal.status(); print(s.written, s.waiting, s.lost)"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(home)],
            env=child_environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(5)
    ]
    for child in children:
        assert child.communicate(timeout=50) == ("2000 0 0\n", "")
    assert len(stored(home)) == 10_000


def test_a_full_disk_is_told_once_and_made_good_when_there_is_room(
    tmp_path: Path, child_environ: dict[str, str]
) -> None:
    home = tmp_path / "home"
    code = """
import resource
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
served = 0
while journal.status().failing is None:
    for _ in range(100):
        journal.record(trace())
        served += 1
    journal.flush()
for _ in range(500):
    journal.record(trace())
    served += 1
assert not journal.flush() and not journal.flush()
status = journal.status()
assert (status.written + status.waiting, status.lost) == (served, 0), status
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert journal.flush()
journal.close()
print(served)
"""
    done = run(code, home, child_environ)
    assert done.returncode == 0, done.stderr
    assert len(stored(home)) == int(done.stdout)
    told, again = done.stderr.splitlines()
    assert told.startswith("interlock: audit records cannot be written: ")
    assert again == f"interlock: audit records are written again to {home / 'interlock.db'}."


def test_a_home_that_may_not_be_written(child_environ: dict[str, str]) -> None:
    code = """
import fcntl, os, sqlite3
import interlock.journal.redact, interlock.store.sqlite_open
if os.geteuid() == 0:
    # No file mode stops root, so as somebody else from here on.
    os.setgid(65534)
    os.setuid(65534)
home = Path(sys.argv[1])
home.mkdir()
home.chmod(0o500)
journal.start()
journal.record(trace())
assert not journal.flush()
assert journal.status().waiting == 1
home.chmod(0o700)
assert journal.flush()
assert journal.status().written == 1
assert (home / "interlock.db").stat().st_mode & 0o777 == 0o600
journal.close()
"""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o777)
        done = run(code, place / "home", child_environ)
    assert done.returncode == 0, done.stderr
    assert "interlock.db: it cannot be opened or written (Permission denied). Calls are served as before" in done.stderr
