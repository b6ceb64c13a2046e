"""Refreshes that nobody waits for: ahead of expiry, also in a process that is not used, and once for the whole machine."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

from interlock.model.fault import Fault
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.known_grant import KnownGrant
from interlock.upstream.oauth.refresh import NeedLogin, refresh_at
from interlock.upstream.oauth.timing import Timing

CHECK_SECONDS = 300.0
"""How far ahead a refresh is planned in one step: a machine that slept must not wait for a timer of before."""
MAX_PAUSE = 3600.0
SPREAD_SECONDS = 2.0
"""Not all processes of the machine at the same moment: the first one does it, the others find it done."""


class Ahead:
    """Plans and runs them for one server. `renew` refreshes the grant that it is given, if it is still that one."""

    def __init__(self, known: KnownGrant, timing: Timing, renew: Callable[[Grant], Awaitable[object]]) -> None:
        self._known = known
        self._timing = timing
        self._renew = renew
        self._failures = 0
        self._of: float | None = None
        """Which grant the failures are about: when it was obtained."""
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Task[None] | None = None
        self._closed = False

    def plan(self) -> None:
        """Set the timer for the grant as it is now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        grant = self._known.grant
        due = refresh_at(grant, self._timing.refresh_lead) if grant is not None else None
        if grant is None or due is None or self._closed:
            return
        if grant.obtained_at != self._of:
            self._of, self._failures = grant.obtained_at, 0
        delay = max(due - self._known.now(), 0.0)
        delay = max(delay, self._pause(grant)) + random.uniform(0.0, SPREAD_SECONDS)
        self._timer = asyncio.get_running_loop().call_later(min(delay, CHECK_SECONDS), self._ring)

    def _pause(self, grant: Grant) -> float:
        """What went wrong before is tried again ever more rarely; a refusal at first within its grace."""
        pause = 0.0
        if self._failures:
            pause = self._timing.knock_seconds * 2.0 ** min(self._failures - 1, 12)
        if grant.refusal is not None and grant.refusal.kind != "early":
            pause = max(pause, self._timing.grace_seconds / 2 * 2.0 ** min(grant.refusal.count - 1, 12))
        return min(pause, MAX_PAUSE)

    def _ring(self) -> None:
        self._timer = None
        if not self._closed and (self._work is None or self._work.done()):
            self._work = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            known = self._known
            known.look()
            grant = known.grant
            due = refresh_at(grant, self._timing.refresh_lead) if grant is not None else None
            if grant is not None and due is not None and due <= known.now() + 0.5:
                self._failures += 1
                # Nobody waits for it: what goes wrong is in the log, and the next call says it.
                with contextlib.suppress(Fault, NeedLogin):
                    await self._renew(grant)
                    self._failures = 0
                known.look()
        finally:
            self.plan()

    def close(self) -> asyncio.Task[None] | None:
        """Plan no more; what is under way, if anything."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        return self._work if self._work is not None and not self._work.done() else None
