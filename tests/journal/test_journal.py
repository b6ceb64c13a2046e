"""The audit journal on a real database: everything recorded is written, or owned up to."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from interlock.journal import audit
from interlock.journal.audit import Journal
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace
from interlock.store.sqlite import SqliteStore

MakeTrace = Callable[..., RouteTrace]
MakeJournal = Callable[..., Journal]
DEADLINE = 20.0
DAY_NS = 86_400 * 10**9


@pytest.fixture
def said() -> list[str]:
    """What the journal and its store told people."""
    return []


@pytest.fixture
def make_journal(home: Path, said: list[str]) -> Iterator[MakeJournal]:
    made: list[Journal] = []

    def make(**options: float) -> Journal:
        made.append(Journal(SqliteStore(home, report=said.append), report=said.append, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for journal in made:
        journal.close()


def stored(home: Path) -> list[str]:
    """Ids in the database, as another process sees them."""
    store = SqliteStore.for_reading(home)
    try:
        return [row.id for row in store.find_calls("", 1_000_000)]
    finally:
        store.close()


def wait_until(true: Callable[[], bool]) -> None:
    """Looks again and again until it is so; fails at a deadline that only a hang reaches."""
    give_up = time.monotonic() + DEADLINE
    pause = threading.Event()
    while not true():
        assert time.monotonic() < give_up, "it never came to be"
        pause.wait(0.005)


def test_the_writer_writes_what_is_recorded(make_journal: MakeJournal, make_trace: MakeTrace, home: Path) -> None:
    journal = make_journal()
    journal.start()
    journal.start()
    traces = [make_trace(at_ns=n) for n in range(1000)]
    for trace in traces:
        journal.record(trace)
    wait_until(lambda: len(stored(home)) == 1000)
    late = make_trace()
    journal.record(late)
    wait_until(lambda: late.id in stored(home))
    assert journal.status() == audit.JournalStatus(written=1001, waiting=0, lost=0, failing=None)


def test_closing_writes_everything(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path, said: list[str]
) -> None:
    journal = make_journal()
    early = make_trace()
    journal.record(early)
    journal.start()
    traces = [early, *(make_trace() for _ in range(5000))]
    for trace in traces[1:]:
        journal.record(trace)
    journal.close()
    journal.close()
    assert sorted(stored(home)) == sorted(trace.id for trace in traces)
    assert said == []


def test_a_journal_that_was_never_started_writes_when_it_is_told_to(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path
) -> None:
    journal = make_journal()
    first, second = make_trace(), make_trace()
    journal.record(first)
    assert not home.exists()
    assert journal.flush() is True
    assert stored(home) == [first.id]
    journal.record(second)
    journal.close()
    assert stored(home) == [first.id, second.id]


def test_a_journal_may_be_started_again_after_it_was_closed(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path
) -> None:
    journal = make_journal()
    for count in (1, 2):
        journal.start()
        journal.record(make_trace())
        wait_until(lambda count=count: len(stored(home)) == count)  # type: ignore[misc]
        journal.close()


def test_questions_see_what_is_written_and_what_is_not(make_journal: MakeJournal, make_trace: MakeTrace) -> None:
    journal = make_journal()
    written = [make_trace(id="aa1", at_ns=10), make_trace(id="aa3", at_ns=30, server="time", status="denied")]
    waiting = [make_trace(id="aa2", at_ns=20, status="denied"), make_trace(id="bb4", at_ns=40)]
    for trace in written:
        journal.record(trace)
    journal.flush()
    for trace in waiting:
        journal.record(trace)
    for _ in range(2):
        assert [trace.id for trace in journal.recent(9)] == ["bb4", "aa3", "aa2", "aa1"]
        assert [trace.id for trace in journal.recent(2)] == ["bb4", "aa3"]
        assert [trace.id for trace in journal.recent(9, server="git")] == ["bb4", "aa2", "aa1"]
        assert [trace.id for trace in journal.recent(9, status="denied")] == ["aa3", "aa2"]
        assert [trace.id for trace in journal.recent(9, "git", "denied")] == ["aa2"]
        assert journal.recent(0) == []
        assert [trace.id for trace in journal.matches("aa")] == ["aa3", "aa2", "aa1"]
        assert journal.find("aa2") == waiting[0]
        assert journal.find("aa1") == written[0]
        assert journal.find("bb") == waiting[1]
        assert journal.find("aa") is None, "more than one"
        assert journal.find("cc") is None
        # The second time round all of it is in the database.
        journal.flush()


def test_no_question_misses_a_record_that_is_on_its_way(make_journal: MakeJournal, make_trace: MakeTrace) -> None:
    journal = make_journal()
    journal.start()
    for _ in range(3000):
        trace = make_trace()
        journal.record(trace)
        if journal.find(trace.id) is None:
            pytest.fail("recorded and not found")


def test_what_is_stored_is_redacted(make_journal: MakeJournal, make_trace: MakeTrace, home: Path) -> None:
    journal = make_journal()
    mark = Mark(Stage.EXECUTE, "error", "server said: password=hunter2", None, 1)
    trace = make_trace(marks=[mark], client="c token=hunter2")
    journal.record(trace)
    clean = replace(
        trace, client="c token=[redacted]", marks=[replace(mark, reason="server said: password=[redacted]")]
    )
    assert journal.recent(1) == [clean], "also before it is written"
    journal.close()
    assert journal.recent(1) == [clean]
    for path in home.iterdir():
        assert b"hunter2" not in path.read_bytes()


def test_beyond_its_bound_the_oldest_are_dropped_counted_and_owned_up_to(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path, said: list[str]
) -> None:
    journal = make_journal(backlog=100)
    traces = [make_trace() for _ in range(137)]
    before_ns = time.time_ns()
    for trace in traces:
        journal.record(trace)
    assert journal.status() == audit.JournalStatus(written=0, waiting=100, lost=37, failing=None)
    assert journal.flush()
    assert stored(home) == [trace.id for trace in traces[37:]]
    store = SqliteStore.for_reading(home)
    (gap,) = store.recent_gaps(0, 9)
    store.close()
    assert (gap.lost, gap.reason) == (37, "more calls came than could be written")
    assert gap.from_ns <= before_ns <= gap.to_ns
    assert said == [f"37 calls are missing in the audit records of {home / 'interlock.db'}: {gap.reason}."]
    # More of it within the minute waits, and is not forgotten at the end.
    for trace in (make_trace() for _ in range(102)):
        journal.record(trace)
    assert journal.flush()
    assert len(said) == 1
    journal.close()
    assert said[1].startswith("2 calls are missing")
    assert journal.status().lost == 39


def test_a_trace_that_no_row_can_hold_is_counted_and_holds_up_no_other(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path, said: list[str]
) -> None:
    journal = make_journal()
    good = [make_trace() for _ in range(200)]
    for number, trace in enumerate(good):
        journal.record(trace)
        if number % 50 == 0:
            journal.record(make_trace(at_ns=2**70))
    for _ in range(100):
        journal.record(make_trace(marks=None))
    assert journal.flush()
    assert stored(home) == [trace.id for trace in good]
    assert journal.status() == audit.JournalStatus(written=200, waiting=0, lost=104, failing=None)
    assert len(said) == 1
    assert said[0].startswith("104 calls are missing")


def test_a_home_that_cannot_be_written(
    make_journal: MakeJournal,
    make_trace: MakeTrace,
    home: Path,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Calls are served, people are told once, records wait, and nothing is lost when it works again."""
    monkeypatch.setattr(audit, "FLUSH_SECONDS", 0.001)
    monkeypatch.setattr(audit, "_RETRY_SECONDS", (0.001,))
    home.write_text("a file where the folder should be")
    journal = make_journal(backlog=50)
    journal.start()
    first = [make_trace() for _ in range(10)]
    for trace in first:
        journal.record(trace)
    wait_until(lambda: journal._failures > 5)
    assert len(said) == 1
    assert said[0].startswith(
        f"audit records cannot be written: {home / 'interlock.db'}: it cannot be opened or written"
    )
    assert "Calls are served as before" in said[0]
    status = journal.status()
    assert (status.written, status.waiting, status.lost) == (0, 10, 0)
    assert status.failing is not None
    assert [trace.id for trace in journal.recent(3)] == [trace.id for trace in reversed(first[-3:])]
    assert journal.find(first[0].id) == first[0]
    assert journal.flush() is False

    home.unlink()
    wait_until(lambda: journal.status().waiting == 0)
    assert stored(home) == [trace.id for trace in first]
    wait_until(lambda: journal.status().failing is None)
    assert said[1:] == [f"audit records are written again to {home / 'interlock.db'}."]
    assert journal.status().lost == 0


def test_what_an_outage_cost_is_recorded_when_it_is_over(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path, said: list[str]
) -> None:
    home.write_text("a file where the folder should be")
    journal = make_journal(backlog=50)
    traces = [make_trace() for _ in range(60)]
    for trace in traces:
        journal.record(trace)
    assert journal.flush() is False
    home.unlink()
    assert journal.flush() is True
    assert stored(home) == [trace.id for trace in traces[10:]]
    store = SqliteStore.for_reading(home)
    (gap,) = store.recent_gaps(0, 9)
    store.close()
    assert gap.lost == 10
    assert "it cannot be opened or written" in gap.reason
    assert [message.split(":")[0] for message in said] == [
        "audit records cannot be written",
        f"audit records are written again to {home / 'interlock.db'}.",
        f"10 calls are missing in the audit records of {home / 'interlock.db'}",
    ]


def test_closing_while_nothing_can_be_written_says_what_is_missing(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path, said: list[str]
) -> None:
    home.write_text("a file where the folder should be")
    journal = make_journal()
    journal.start()
    for _ in range(7):
        journal.record(make_trace())
    journal.close()
    assert said[-1] == f"7 calls of this run are missing in the audit records of {home / 'interlock.db'}."
    home.unlink()


def test_a_file_that_is_damaged_while_calls_come(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path, said: list[str]
) -> None:
    first = make_journal()
    for number in range(500):
        first.record(make_trace(at_ns=number))
    first.close()
    path = home / "interlock.db"
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)

    journal = make_journal()
    journal.start()
    traces = [make_trace() for _ in range(100)]
    for trace in traces:
        journal.record(trace)
    assert journal.flush()
    assert stored(home) == [trace.id for trace in traces]
    assert len(said) == 1
    assert "was set aside as" in said[0]


def test_old_records_are_pruned(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_FIRST_PRUNE_SECONDS", 0.0)
    monkeypatch.setattr(audit, "_PRUNE_BATCH", 50)
    monkeypatch.setattr(audit, "FLUSH_SECONDS", 0.001)
    now_ns = time.time_ns()
    filler = make_journal()
    old = [make_trace(at_ns=now_ns - 91 * DAY_NS + number) for number in range(120)]
    kept = [make_trace(at_ns=now_ns - 89 * DAY_NS), make_trace(at_ns=now_ns)]
    for trace in [*old, *kept]:
        filler.record(trace)
    filler.close()
    assert len(stored(home)) == 122
    journal = make_journal()
    journal.start()
    wait_until(lambda: stored(home) == [trace.id for trace in kept])


@pytest.mark.parametrize(("keep_days", "left"), [(float("inf"), 2), (10**6, 2), (30, 1), (0.5, 0)])
def test_how_long_records_are_kept(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path, keep_days: float, left: int
) -> None:
    journal = make_journal(keep_days=keep_days)
    now_ns = time.time_ns()
    for days in (1, 60):
        journal.record(make_trace(at_ns=now_ns - days * DAY_NS))
    journal.flush()
    journal._prune_when_due()
    assert len(stored(home)) == left


def test_pruning_alone_makes_no_database(
    make_journal: MakeJournal, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_FIRST_PRUNE_SECONDS", 0.0)
    journal = make_journal()
    journal.start()
    wait_until(lambda: journal._prune_at > time.monotonic() + 3000)
    journal.close()
    assert not home.exists()


class WatchedEvent(threading.Event):
    """Notes for how long the writer meant to sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        return super().wait(timeout)


def test_an_idle_writer_sleeps_until_a_record_or_the_hourly_pruning(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_FIRST_PRUNE_SECONDS", 0.0)
    journal = make_journal()
    journal._work = work = WatchedEvent()
    journal._hurry = hurry = WatchedEvent()
    journal.start()
    wait_until(lambda: len(work.waits) == 2)
    for count in range(3):
        for _ in range(10):
            journal.record(make_trace())
        wait_until(lambda count=count: len(work.waits) >= 3 + count and not journal._awake)  # type: ignore[misc]
    assert all(timeout is not None and timeout > 3500 for timeout in work.waits[1:])
    # Ten records at a time cost one short sleep, not ten.
    assert 3 <= len(hurry.waits) <= 6
    assert set(hurry.waits) == {audit.FLUSH_SECONDS}
    assert len(stored(home)) == 30


def test_recording_does_not_wait_for_a_database_that_hangs(
    make_journal: MakeJournal, make_trace: MakeTrace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "FLUSH_SECONDS", 0.001)
    journal = make_journal()
    journal.record(make_trace())
    journal.flush()
    other = sqlite3.connect(home / "interlock.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    journal.start()
    journal.record(make_trace())
    # The writer is now within its wait for the lock, which lasts for seconds.
    wait_until(lambda: journal._writing.locked())
    for _ in range(1000):
        journal.record(make_trace())
    assert journal._writing.locked(), "all were taken while the writer still waited"
    assert len(journal.recent(5000)) == 1002
    assert journal.flush(timeout=0.0) is False
    other.execute("ROLLBACK")
    other.close()
    wait_until(lambda: len(stored(home)) == 1002)


def test_an_error_of_the_journals_own_stops_nothing(
    make_journal: MakeJournal,
    make_trace: MakeTrace,
    home: Path,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit, "_RETRY_SECONDS", (0.001,))
    journal = make_journal()
    drain = journal._drain
    failures = iter([RuntimeError("a bug")])

    def drain_badly_once() -> bool:
        for error in failures:
            raise error
        return drain()

    monkeypatch.setattr(journal, "_drain", drain_badly_once)
    journal.start()
    trace = make_trace()
    journal.record(trace)
    wait_until(lambda: bool(said))
    journal.record(make_trace())
    wait_until(lambda: len(stored(home)) == 2)
    assert said == ["the audit journal met an error of its own and goes on: RuntimeError('a bug')"]
