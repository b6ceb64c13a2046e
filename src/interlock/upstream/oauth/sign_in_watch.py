"""Looks out for the click on a sign-in that was offered, so that what waits for it goes on without another call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from interlock.upstream.oauth.known_grant import KnownGrant
from interlock.upstream.oauth.refresh import signed_in_at
from interlock.upstream.oauth.timing import Timing

WATCH_SECONDS = 0.5


class SignInWatch:
    """For one server of one process. The click may land in any process of the machine: the grant's file tells."""

    def __init__(self, known: KnownGrant, timing: Timing) -> None:
        self._known = known
        self._timing = timing
        self.task: asyncio.Task[None] | None = None

    def begin(self, available: Callable[[], None]) -> None:
        """Call `available` once a sign-in has brought a grant that may be used; only for as long as one may be finished."""
        if self.task is None or self.task.done():
            self.task = asyncio.get_running_loop().create_task(self._run(available))

    async def _run(self, available: Callable[[], None]) -> None:
        known, before = self._known, self._known.grant
        until = time.monotonic() + self._timing.login_seconds + self._timing.snooze_seconds
        while time.monotonic() < until:
            await asyncio.sleep(WATCH_SECONDS)
            known.look()
            grant = known.grant
            if grant is None or (before is not None and signed_in_at(grant) == signed_in_at(before)):
                continue
            if known.header():
                available()
                return
