"""The limit on how fast a child may talk: nothing below it is touched, and nothing above it passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.pace import Pace


@pytest.mark.parametrize(
    ("arrivals", "rests"),
    [
        # (when, how much), with bursts of 100 bytes at 1000 a second: a burst may come every 0.1 s.
        ([(0, 99)], []),
        ([(0, 100)], [0]),
        ([(0, 50), (0, 50)], [0]),
        ([(0, 100), (0, 100)], [0, 0.1]),
        ([(0, 100), (0.06, 100)], [0, 0.04]),
        ([(0, 100), (0.1, 100), (0.2, 100)], [0, 0, 0]),
        ([(0, 100), (5, 100), (5, 300)], [0, 0, 0.3]),
    ],
)
def test_rests(arrivals: list[tuple[float, int]], rests: list[float]) -> None:
    pace = Pace(100, 1000)
    found = [pace.rest(now) for now, size in arrivals if pace.full(size)]
    assert found == pytest.approx(rests)


@given(st.lists(st.tuples(st.floats(0, 0.2), st.integers(1, 400)), max_size=50))
def test_no_history_is_faster_than_the_rate(arrivals: list[tuple[float, int]]) -> None:
    pace = Pace(100, 1000)
    now, total = 0.0, 0
    for idle, size in arrivals:
        now += idle
        total += size
        if pace.full(size):
            now += pace.rest(now)
    # The first burst passes at once, with the piece that completes it; one that is not complete is not counted yet.
    assert total <= 1000 * now + (99 + 400) + 99 + 1e-6
