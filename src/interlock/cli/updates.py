"""What a long-lived command does about newer releases: looks now and then, and says it in the next tool answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import Task

    from interlock.serve.runtime import Runtime

FIRST_SECONDS = 2.0
"""Not while the first answers are due."""
AGAIN_SECONDS = 900.0
"""How often it is asked whether it is time to look; the six hours are the machine's, not this process's."""


def watch(runtime: Runtime, home: Path) -> Task[None]:
    """Runs until it is cancelled."""
    import asyncio  # here: the first answer to a host does not wait for it

    return asyncio.get_running_loop().create_task(_watch(runtime, home))


async def _watch(runtime: Runtime, home: Path) -> None:
    import asyncio

    said: str | None = None
    pause = FIRST_SECONDS
    while True:
        await asyncio.sleep(pause)
        pause = AGAIN_SECONDS
        text = await asyncio.to_thread(_look, home)
        if text is not None and text != said:
            runtime.pipeline.notice = said = text


def _look(home: Path) -> str | None:
    from interlock.install.look import look_if_due
    from interlock.install.notice import notice

    look_if_due(home, os.environ)
    return notice(home)
