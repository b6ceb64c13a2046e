"""When a login may be offered: one that was offered and not finished is not offered again by the next call.

Remembered on disk beside the grant, so that it holds for all processes of the machine, and over their lives.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interlock.upstream.oauth.flow_note import Snooze, read_snooze, remove_snooze, write_snooze
from interlock.upstream.oauth.timing import Timing

_CLOCK_SET_BACK = 5.0


@dataclass(frozen=True, slots=True)
class Standing:
    """`fresh`: a login may be offered. `running`: one was, until `until`. `snoozed`: none is, until `until`. Local clock."""

    state: Literal["fresh", "running", "snoozed"]
    until: float


def standing(root: Path, id: str, timing: Timing, now: float) -> Standing:
    """Where the last offer stands. Without one, or long after it, and when the clock was set back: fresh."""
    last = read_snooze(root, id)
    if last is None or last.offered_at > now + _CLOCK_SET_BACK or last.unfinished_until <= now:
        return Standing("fresh", now)
    asleep_from = last.unfinished_until - timing.snooze_seconds
    if now < asleep_from:
        return Standing("running", asleep_from)
    return Standing("snoozed", last.unfinished_until)


def offered(root: Path, id: str, timing: Timing, now: float) -> float:
    """Remember that a login is offered now, and give back until when it runs."""
    until = now + timing.login_seconds
    write_snooze(root, id, Snooze(offered_at=now, unfinished_until=until + timing.snooze_seconds))
    return until


def given_up(root: Path, id: str, timing: Timing, now: float) -> None:
    """The login ended without a grant before its time: the pause begins now."""
    last = read_snooze(root, id)
    begun = last.offered_at if last is not None else now
    write_snooze(root, id, Snooze(offered_at=min(begun, now), unfinished_until=now + timing.snooze_seconds))


def finished(root: Path, id: str) -> None:
    """A grant came of it: the next need may be offered a login at once."""
    remove_snooze(root, id)
