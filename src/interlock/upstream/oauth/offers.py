"""When a login may be offered: one that was offered and not finished is not offered again by the next call.

Remembered on disk beside the grant, so that it holds for all processes of the machine, and over their lives.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interlock.upstream.oauth import file_lock, private_files
from interlock.upstream.oauth.file_lock import Busy
from interlock.upstream.oauth.flow_note import (
    Snooze,
    Steps,
    read_snooze,
    read_steps,
    remove_snooze,
    write_snooze,
    write_steps,
)
from interlock.upstream.oauth.grant_ids import checked, digest
from interlock.upstream.oauth.timing import Timing

_CLOCK_SET_BACK = 5.0
LOCK_SECONDS = 2.0


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


async def step_up(root: Path, id: str, timing: Timing, now: float, scope: tuple[str, ...]) -> float:
    """The server wants these scopes: 0 where a person (or a token endpoint) may be asked for them, else for how many seconds not.

    A server that wants others with each call would open a tab with each call. What is asked again is not counted again. Raises
    StoreTrouble.
    """
    asked = digest("scope", *sorted(scope))
    private_files.make(root)
    with contextlib.suppress(Busy):
        async with file_lock.locked(root / f"{checked(id)}.steps.lock", LOCK_SECONDS):
            known = {
                each: at
                for each, at in read_steps(root, id).asked.items()
                if at <= now + _CLOCK_SET_BACK and now - at < timing.step_up_seconds
            }
            if asked in known:
                return 0.0
            if len(known) >= timing.step_ups:
                return max(min(known.values()) + timing.step_up_seconds - now, 1.0)
            write_steps(root, id, Steps(asked={**known, asked: now}))
            return 0.0
    return 1.0


def finished(root: Path, id: str) -> None:
    """A grant came of it: the next need may be offered a login at once."""
    remove_snooze(root, id)
