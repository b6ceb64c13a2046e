"""The token requests of one authorization that are under way: each goes on to its end, whoever waits for it and whoever gives up.

When the process ends, only a refresh whose token has left is waited for, and not for long: it is on disk as spent, and the
next process knows what that means. Nothing is lost by cutting off all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from interlock.upstream.oauth.grant import Grant

PARTING_SECONDS = 5.0


class Renewals:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[Grant]] = set()
        self._presented: set[asyncio.Task[Grant]] = set()

    async def finished(self, work: Coroutine[object, object, Grant]) -> Grant:
        """What comes of it. It goes on where the caller is cancelled."""
        task = asyncio.get_running_loop().create_task(work)
        self._open.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def presented(self) -> None:
        """A refresh token is about to leave. Called within the work itself."""
        task = asyncio.current_task()
        self._presented.update(each for each in self._open if each is task)

    def cut(self) -> None:
        """Cancel all whose token has not left."""
        for task in self._open - self._presented:
            task.cancel()

    async def close(self) -> None:
        """Cut; wait a moment for the others; cancel them too."""
        self.cut()
        if self._presented:
            await asyncio.wait(self._presented, timeout=PARTING_SECONDS)
        left = list(self._open)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _done(self, task: asyncio.Task[Grant]) -> None:
        self._open.discard(task)
        self._presented.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited may have gone
