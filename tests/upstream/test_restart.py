"""When a server that ended may be started again: the rules as a table, and what holds for every history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.restart import (
    RestartLimits,
    RestartPolicy,
    RestartState,
    after_exit,
    crash_looping,
    wait_seconds,
)

LIMITS = RestartLimits()
EXACT = RestartLimits(jitter=0.0)
HISTORIES = st.lists(st.tuples(st.floats(0, 400), st.floats(0, 120), st.floats(0, 1)), max_size=40)
"""Seconds of doing nothing, then the length of a run, then a random number."""


def exits(limits: RestartLimits, *times: float) -> list[RestartState]:
    """The states after short runs that ended at these times."""
    states: list[RestartState] = []
    state = RestartState()
    for now in times:
        state = after_exit(limits, state, now, 0.1, 0.5)
        states.append(state)
    return states


@pytest.mark.parametrize(
    ("times", "waits", "looping"),
    [
        ((0,), [0.25], [False]),
        ((0, 1, 2, 3), [0.25, 0.5, 1, 2], [False] * 4),
        ((0, 1, 2, 3, 4), [0.25, 0.5, 1, 2, 60], [False] * 4 + [True]),
        # Five exits, but never five within a minute: slower and slower, no crash loop.
        ((0, 20, 40, 60, 80, 100), [0.25, 0.5, 1, 2, 4, 8], [False] * 6),
        # Out of the crash loop one trial: it is short, so the next rest is twice as long, and at most 15 minutes.
        (
            (0, 1, 2, 3, 4, 70, 200, 500, 1000, 2000),
            [0.25, 0.5, 1, 2, 60, 120, 240, 480, 900, 900],
            [False] * 4 + [True] * 6,
        ),
    ],
)  # fmt: skip
def test_short_runs(times: tuple[float, ...], waits: list[float], looping: list[bool]) -> None:
    states = exits(EXACT, *times)
    assert [wait_seconds(state, now) for state, now in zip(states, times, strict=True)] == waits
    assert [crash_looping(state, now) for state, now in zip(states, times, strict=True)] == looping


def test_the_rest_of_a_crash_loop_ends() -> None:
    state = exits(EXACT, 0, 1, 2, 3, 4)[-1]
    assert state.not_before == 64
    assert wait_seconds(state, 34) == 30
    assert crash_looping(state, 63.9)
    assert not crash_looping(state, 64)
    assert wait_seconds(state, 64) == 0


def test_a_long_run_makes_all_good() -> None:
    state = exits(EXACT, 0, 1, 2, 3, 4)[-1]
    state = after_exit(EXACT, state, 200, EXACT.stable_after, 0.5)
    assert (state.failures, state.loops, state.exits) == (1, 0, (200,))
    assert wait_seconds(state, 200) == 0.25


def test_a_run_that_is_not_quite_long_enough_does_not() -> None:
    state = exits(EXACT, 0, 1)[-1]
    assert after_exit(EXACT, state, 40, EXACT.stable_after - 0.1, 0.5).failures == 3


@pytest.mark.parametrize(("chance", "wait"), [(0.0, 0.2), (0.5, 0.25), (1.0, 0.3)])
def test_jitter_goes_both_ways(chance: float, wait: float) -> None:
    assert wait_seconds(after_exit(LIMITS, RestartState(), 0, 0, chance), 0) == pytest.approx(wait)


@given(HISTORIES)
def test_what_holds_for_every_history(history: list[tuple[float, float, float]]) -> None:
    now, state = 0.0, RestartState()
    times: list[float] = []
    for idle, uptime, chance in history:
        now = max(now + idle, state.not_before) + uptime
        before = state
        state = after_exit(LIMITS, state, now, uptime, chance)
        times.append(now)
        wait = wait_seconds(state, now)
        assert 0 < wait <= max(LIMITS.longest_delay * (1 + LIMITS.jitter), LIMITS.longest_rest)
        assert len(state.exits) <= LIMITS.crash_exits
        recent = sum(1 for when in times if when > now - LIMITS.crash_window)
        if crash_looping(state, now):
            assert before.loops or recent >= LIMITS.crash_exits
            assert wait >= LIMITS.first_rest
        else:
            assert wait <= LIMITS.longest_delay * (1 + LIMITS.jitter)
        if uptime >= LIMITS.stable_after:
            assert state.failures == 1
            assert not crash_looping(state, now)


@given(st.integers(1, 2000))
def test_however_often_it_fails_the_numbers_stay_finite(times: int) -> None:
    state = RestartState()
    for number in range(times):
        state = after_exit(LIMITS, state, number * 1000.0, 0, 1.0)
    assert 0 < wait_seconds(state, (times - 1) * 1000.0) <= LIMITS.longest_delay * (1 + LIMITS.jitter)


def test_the_policy_holds_the_state() -> None:
    policy = RestartPolicy(EXACT, chance=lambda: 0.5)
    assert policy.wait_seconds(0) == 0
    assert not policy.crash_looping(0)
    policy.exited(10, 0.1)
    assert policy.wait_seconds(10) == 0.25
    policy.started(10.1)
    assert policy.wait_seconds(10.1) == 0
    for number in range(4):
        policy.exited(11.0 + number, 0.1)
    assert policy.crash_looping(14)
    assert policy.wait_seconds(14) == 60
    policy.reset()
    assert policy.wait_seconds(14) == 0
    assert not policy.crash_looping(14)
