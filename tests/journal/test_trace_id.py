"""Ids are short, different everywhere, and sort by time."""

from __future__ import annotations

import multiprocessing
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from interlock.journal import trace_id
from interlock.journal.trace_id import new_trace_id


def test_form() -> None:
    assert re.fullmatch(r"[0-9a-hjkmnp-tv-z]{15}", new_trace_id())


def test_ids_of_one_process_differ_and_sort_in_order() -> None:
    ids = [new_trace_id() for _ in range(50_000)]
    assert ids == sorted(set(ids))


def test_ids_made_in_several_threads_differ() -> None:
    start = threading.Barrier(4)

    def many(_: int) -> list[str]:
        start.wait()
        return [new_trace_id() for _ in range(5000)]

    with ThreadPoolExecutor(4) as pool:
        ids = [id for some in pool.map(many, range(4)) for id in some]
    assert len(set(ids)) == 20_000


def test_ids_of_other_processes_end_differently(child_environ: dict[str, str]) -> None:
    code = "from interlock.journal.trace_id import new_trace_id; print(new_trace_id())"
    ends = {
        subprocess.run(
            [sys.executable, "-c", code], env=child_environ, capture_output=True, text=True, check=True
        ).stdout.strip()[-5:]
        for _ in range(3)
    }
    assert len(ends) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork is POSIX")
def test_a_forked_process_has_ids_of_its_own() -> None:
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        theirs = pool.apply(new_trace_id)
    assert theirs[-5:] != new_trace_id()[-5:]


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        # Milliseconds since 2025, and the beginnings of the ids made then.
        ([0, 0, 1], ["0000000000", "0000000001", "0000000100"]),
        ([31, 32, 33 * 32**3], ["0000000z00", "0000001000", "0001100000"]),
        ([5, 3, 6], ["0000000500", "0000000501", "0000000600"]),
    ],
)
def test_the_beginning_is_the_time(monkeypatch: pytest.MonkeyPatch, clock: list[int], expected: list[str]) -> None:
    monkeypatch.setattr(trace_id, "_mint", trace_id._Mint())
    times = iter(clock)
    monkeypatch.setattr(trace_id.time, "time_ns", lambda: 1_735_689_600_000_000_000 + next(times) * 1_000_000)
    assert [new_trace_id()[:10] for _ in clock] == expected


def test_more_than_fit_in_a_millisecond_borrow_from_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_id, "_mint", trace_id._Mint())
    monkeypatch.setattr(trace_id.time, "time_ns", lambda: 1_735_689_600_000_000_000)
    ids = [new_trace_id() for _ in range(3000)]
    assert ids == sorted(set(ids))
    assert ids[-1][:8] == "00000002"
