"""When a server that ended may be started again: soon at first, then more slowly, and after a crash loop much later.

The rules are pure functions over a state and a clock that the caller reads; `RestartPolicy` only holds the state.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class RestartLimits:
    """Seconds, except where the name says otherwise."""

    first_delay: float = 0.25
    factor: float = 2.0
    """How much longer each delay is than the one before."""
    longest_delay: float = 30.0
    jitter: float = 0.2
    """Each delay is changed by up to this share of itself, so that servers that fell together do not rise together."""
    crash_exits: int = 5
    """That many exits within `crash_window` are a crash loop."""
    crash_window: float = 60.0
    first_rest: float = 60.0
    """How long a server in a crash loop is left alone; doubles each time it goes straight back into one."""
    longest_rest: float = 900.0
    stable_after: float = 30.0
    """A run of at least this length was a success: what was before it no longer counts."""


@dataclass(frozen=True, slots=True)
class RestartState:
    """What is remembered of one server."""

    exits: tuple[float, ...] = ()
    """When it ended, lately; at most `crash_exits` of them."""
    failures: int = 0
    """Short runs since the last success."""
    loops: int = 0
    """Crash loops since the last success."""
    not_before: float = float("-inf")
    """The time from which it may be started again."""


def after_exit(limits: RestartLimits, state: RestartState, now: float, uptime: float, chance: float) -> RestartState:
    """The state after a server ended at `now`, having run for `uptime`. `chance` is a random number from 0 to 1.

    A server that comes out of a crash loop gets one trial: if that is short too, the next rest begins at once.
    """
    if uptime >= limits.stable_after:
        state = RestartState()
    recent = tuple(when for when in state.exits if when > now - limits.crash_window)
    exits = (*recent, now)[-limits.crash_exits :]
    failures = state.failures + 1
    if len(exits) >= limits.crash_exits or state.loops:
        loops = state.loops + 1
        rest = _grown(limits.first_rest, limits.factor, loops, limits.longest_rest)
        return RestartState(exits, failures, loops, now + rest)
    delay = _grown(limits.first_delay, limits.factor, failures, limits.longest_delay)
    delay *= 1 + limits.jitter * (2 * chance - 1)
    return RestartState(exits, failures, 0, now + delay)


def _grown(first: float, factor: float, times: int, longest: float) -> float:
    # The exponent is bounded because a float overflows; no sensible limit is reached later than that.
    return min(first * factor ** min(times - 1, 64), longest)


def wait_seconds(state: RestartState, now: float) -> float:
    """How long until the server may be started; 0 where it may be now."""
    return max(0.0, state.not_before - now)


def crash_looping(state: RestartState, now: float) -> bool:
    """True while the server is left alone because of a crash loop."""
    return state.loops > 0 and now < state.not_before


@dataclass(slots=True)
class RestartPolicy:
    """One server's restarts. Times are seconds of one monotonic clock, which the caller reads."""

    limits: RestartLimits = field(default_factory=RestartLimits)
    chance: Callable[[], float] = random.random
    state: RestartState = field(default_factory=RestartState)

    def exited(self, now: float, uptime: float) -> None:
        """It ended, and not because it was told to. A start that failed counts as a run of no length."""
        self.state = after_exit(self.limits, self.state, now, uptime, self.chance())

    def wait_seconds(self, now: float) -> float:
        """How long until it may be started; 0 where it may be now."""
        return wait_seconds(self.state, now)

    def crash_looping(self, now: float) -> bool:
        """True while it is left alone because of a crash loop."""
        return crash_looping(self.state, now)

    def started(self, now: float) -> None:
        """It is being started; its delay is over, whatever it was."""
        self.state = replace(self.state, not_before=min(self.state.not_before, now))

    def reset(self) -> None:
        """Something changed (its configuration, a person's wish): it starts with a clean slate."""
        self.state = RestartState()
