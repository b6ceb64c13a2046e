"""The audit journal: takes each call's trace on the hot path for the price of an append, and writes them in batches.

One daemon thread writes. It wakes a fifth of a second after the first record and so on while records come, and not at
all while none do, apart from pruning once an hour. What it takes from the event loop's thread is Python's lock for a
fraction of a millisecond a batch; SQLite works outside it.

When the database cannot be written, calls go on being served: records wait in memory, the oldest are dropped beyond a
bound and counted, and the count is written as a gap once writing works again.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from interlock.journal.clean import TEXT_LIMIT, Cleaner
from interlock.journal.record import from_row, to_row
from interlock.model.trace import RouteTrace
from interlock.store.interface import CallRow, Gap, Store, StoreError
from interlock.store.report import Report, to_stderr

FLUSH_SECONDS = 0.2
"""After the first record of a batch. A record is to be in the database within 250 ms; the rest is for writing it."""
BACKLOG = 20_000
"""Records that wait at most. One takes about a kilobyte and a half."""
KEEP_DAYS = 90

_BATCH = 64
"""Records encoded at a time: what bounds how long the event loop's thread may wait for Python's lock."""
_LARGE_BATCH = 512
"""When many wait: a busy loop gives Python's lock up every 5 ms only, so that the writer must use each turn well."""
_RETRY_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Between attempts while the database cannot be written; the last one repeats."""
_FIRST_PRUNE_SECONDS = 5.0
"""After start, so that it does not compete with what a host waits for."""
_PRUNE_SECONDS = 3600.0
_PRUNE_BATCH = 500
_OWN_UP_SECONDS = 60.0
_FOREVER_DAYS = 100_000
_DAY_NS = 86_400 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class JournalStatus:
    """How the journal is doing, for health reports. Numbers are of this process since its start."""

    written: int
    waiting: int
    lost: int
    """Served, and neither written nor waiting."""
    failing: str | None
    """Why nothing can be written now, or None."""


class Journal:
    """`record` belongs to one thread, the event loop's; everything else may be called from any.

    Nothing is opened before the first record or question, and nothing raises because the database is at fault.
    """

    def __init__(
        self,
        store: Store,
        *,
        report: Report = to_stderr,
        keep_days: float = KEEP_DAYS,
        backlog: int = BACKLOG,
    ) -> None:
        self._store = store
        self._report = report
        self._keep_days = keep_days
        self._bound = backlog
        # What the hot path touches.
        self._buffer: deque[RouteTrace] = deque(maxlen=backlog)
        self._recorded = 0
        self._awake = False
        # What the writer touches, under `_writing`; `_moving` is held only while records change place.
        self._writing = threading.Lock()
        self._moving = threading.Lock()
        self._batch: list[RouteTrace] = []
        self._rows: list[CallRow] = []
        self._cleaner = Cleaner()
        self._taken = 0
        self._written = 0
        self._unstorable = 0
        self._owned_up = 0
        self._own_up_at = 0.0
        self._gap_from_ns = time.time_ns()
        self._trouble: str | None = None
        self._failing: str | None = None
        self._failures = 0
        self._prune_at = 0.0
        self._work = threading.Event()
        self._hurry = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def record(self, trace: RouteTrace) -> None:
        """Take a finished trace; it must not change any more. Never blocks, never raises, costs an append."""
        # The deque drops its oldest beyond its bound; counting afterwards is what makes `lost` never too high.
        self._buffer.append(trace)
        self._recorded += 1
        if not self._awake:
            self._awake = True
            self._work.set()

    def start(self) -> None:
        """Start the writer. Records taken before are kept. Has no effect when started already."""
        if self._thread is not None:
            return
        self._stopping = False
        self._hurry.clear()
        self._prune_at = time.monotonic() + _FIRST_PRUNE_SECONDS
        self._thread = threading.Thread(target=self._run, name="interlock-journal", daemon=True)
        self._thread.start()
        # A daemon thread ends with the interpreter; whoever forgets `close` loses nothing.
        atexit.register(self.close)

    def flush(self, timeout: float = 10.0) -> bool:
        """Write what was recorded so far, in the calling thread, waiting for the writer at most `timeout` seconds.

        False where that did not succeed; the records then wait on.
        """
        if not self._writing.acquire(timeout=timeout):
            return False
        try:
            return self._drain()
        finally:
            self._writing.release()

    def close(self, timeout: float = 5.0) -> None:
        """Flush, stop the writer, close the store; reports what could not be written within about `timeout` seconds."""
        atexit.unregister(self.close)
        deadline = time.monotonic() + timeout
        thread, self._thread = self._thread, None
        if thread is None:
            self.flush(timeout)
        else:
            self._stopping = True
            self._hurry.set()
            self._work.set()
            thread.join(timeout)
        if self._writing.acquire(timeout=max(0.0, deadline - time.monotonic())):
            try:
                if self._failing is None:
                    self._own_up(at_once=True)
                self._store.close()
            finally:
                self._writing.release()
        left = self.status().waiting
        if left:
            self._report(f"{left} calls of this run are missing in the audit records of {self._store.where}.")

    def recent(self, limit: int, server: str | None = None, status: str | None = None) -> list[RouteTrace]:
        """The latest calls, newest first, with those not yet written. Where the database fails: only the latter."""
        waiting = [
            trace
            for trace in self._waiting()
            if (server is None or trace.server == server) and (status is None or trace.status == status)
        ]
        return self._merged(waiting, lambda: self._store.recent_calls(limit, server, status))[: max(0, limit)]

    def matches(self, id_prefix: str, limit: int = 10) -> list[RouteTrace]:
        """Calls whose id starts with the prefix, newest first, with those not yet written."""
        waiting = [trace for trace in self._waiting() if trace.id.startswith(id_prefix)]
        return self._merged(waiting, lambda: self._store.find_calls(id_prefix, limit))[: max(0, limit)]

    def find(self, id_prefix: str) -> RouteTrace | None:
        """The only call whose id starts with the prefix. None where there is none or more than one (see `matches`)."""
        found = self.matches(id_prefix, 2)
        return found[0] if len(found) == 1 else None

    def status(self) -> JournalStatus:
        """Counts, and why writing fails where it does."""
        with self._moving:
            return JournalStatus(self._written, len(self._buffer) + len(self._batch), self._lost(), self._failing)

    # Reading

    def _waiting(self) -> list[RouteTrace]:
        # Taken before the database is asked: a record that moves meanwhile is seen twice, never not at all.
        with self._moving:
            waiting = [*self._batch, *self._buffer.copy()]
        clean = Cleaner().clean
        return [clean(trace) for trace in waiting]

    def _merged(self, waiting: list[RouteTrace], stored: Callable[[], list[CallRow]]) -> list[RouteTrace]:
        by_id = {trace.id: trace for trace in waiting}
        with contextlib.suppress(StoreError):
            for row in stored():
                if row.id not in by_id:
                    by_id[row.id] = from_row(row)
        return sorted(by_id.values(), key=lambda trace: (trace.at_ns, trace.id), reverse=True)

    # The writer

    def _run(self) -> None:
        while not self._stopping:
            try:
                # Idle: nothing wakes this thread but a record, `close`, and pruning once an hour.
                self._work.wait(max(0.0, self._prune_at - time.monotonic()))
                self._work.clear()
                if self._awake:
                    self._write_while_records_come()
                self._prune_when_due()
            except Exception as error:
                self._report(f"the audit journal met an error of its own and goes on: {error!r}")
                self._hurry.wait(_RETRY_SECONDS[0])
                # `record` wakes nobody whom it believes awake.
                self._work.set()
        # What came since the last batch; nothing more comes now.
        with self._writing:
            self._drain()

    def _write_while_records_come(self) -> None:
        while not self._stopping:
            if self._hurry.wait(self._pause()):
                return
            with self._writing:
                written = self._drain()
            self._prune_when_due()
            if written:
                # In this order: a record that comes in between either sees False and wakes us, or is seen here.
                self._awake = False
                if not self._buffer:
                    return
                self._awake = True

    def _pause(self) -> float:
        if not self._failures:
            return FLUSH_SECONDS
        return _RETRY_SECONDS[min(self._failures, len(_RETRY_SECONDS)) - 1]

    def _drain(self) -> bool:
        """Write what is there now; under `_writing`. False where the database did not take it."""
        # Bounded, so that `flush` ends although records go on coming.
        waiting = len(self._buffer)
        size = min(max(_BATCH, waiting // 16), _LARGE_BATCH)
        for _ in range(waiting // size + 2):
            if not self._rows and not self._take(size):
                break
            try:
                self._store.append_calls(self._rows)
            except StoreError as error:
                self._failed(error)
                return False
            except Exception as error:
                self._give_up_batch(error)
                continue
            with self._moving:
                self._written += len(self._rows)
                self._batch, self._rows = [], []
        self._succeeded()
        return True

    def _take(self, size: int) -> bool:
        """Move the next batch out of the buffer and encode it. False where there was none."""
        buffer, clean = self._buffer, self._cleaner.clean
        while not self._rows:
            with self._moving:
                self._batch = [buffer.popleft() for _ in range(min(size, len(buffer)))]
                self._taken += len(self._batch)
            if not self._batch:
                return False
            for trace in self._batch:
                try:
                    self._rows.append(to_row(clean(trace)))
                except Exception as error:
                    # A fault of the pipeline's; one bad trace must not hold up the others.
                    self._unstorable += 1
                    self._trouble = str(error)
        return True

    def _give_up_batch(self, error: Exception) -> None:
        # Not the database's doing, so trying again would fail again and hold up all that follow.
        with self._moving:
            self._unstorable += len(self._rows)
            self._batch, self._rows = [], []
        self._trouble = repr(error)

    def _failed(self, error: StoreError) -> None:
        self._failures += 1
        self._trouble = error.message
        if self._failing is None:
            self._report(
                f"audit records cannot be written: {error.message}. Calls are served as before; the last {self._bound} "
                "records wait in memory and are written once it works again. See docs/audit.md."
            )
        self._failing = error.message

    def _succeeded(self) -> None:
        recovered = self._failing is not None
        self._failures, self._failing = 0, None
        if recovered:
            self._report(f"audit records are written again to {self._store.where}.")
        self._own_up(at_once=recovered)

    # What was lost

    def _lost(self) -> int:
        """Dropped for want of room, or not storable; under `_moving`."""
        return max(0, self._recorded - self._taken - len(self._buffer)) + self._unstorable

    def _own_up(self, *, at_once: bool) -> None:
        """Record as a gap what was lost since the last one; one a minute, or at once; under `_writing`."""
        with self._moving:
            lost = self._lost() - self._owned_up
        now_ns, now = time.time_ns(), time.monotonic()
        if not lost:
            self._gap_from_ns = now_ns
            return
        if now < self._own_up_at and not at_once:
            return
        from interlock.journal.redact import redact

        reason = redact(self._trouble or "more calls came than could be written", TEXT_LIMIT)
        try:
            self._store.append_gap(Gap(self._gap_from_ns, now_ns, lost, reason))
        except Exception:
            # Owned up to with the next batch that can be written.
            return
        self._owned_up += lost
        self._gap_from_ns, self._own_up_at, self._trouble = now_ns, now + _OWN_UP_SECONDS, None
        self._report(f"{lost} calls are missing in the audit records of {self._store.where}: {reason}.")

    # Retention

    def _prune_when_due(self) -> None:
        if time.monotonic() < self._prune_at or self._stopping:
            return
        gone = 0
        before_ns = time.time_ns() - int(min(self._keep_days, _FOREVER_DAYS) * _DAY_NS)
        if before_ns > 0:
            # Old records that cannot be deleted do no harm, and the next record's write says what is wrong.
            with contextlib.suppress(StoreError), self._writing:
                gone = self._store.prune(before_ns, _PRUNE_BATCH)
        # One small batch at a time, so that records are never kept waiting.
        self._prune_at = time.monotonic() + (_PRUNE_SECONDS if gone < _PRUNE_BATCH else FLUSH_SECONDS)
