"""What a person and a patient caller do in the situations: open a sign-in, click once, come back when told to wait."""

from __future__ import annotations

import asyncio
import time
import urllib.error
import urllib.request

from .session import Reply, Session
from .stage import PATIENCE, Stage

POLITE_SECONDS = 12.0
"""How long a caller keeps coming back when it is told to wait."""


def from_the_start(processes: int) -> float:
    """Seconds for the first answers: interpreters that start at once share the processors before any of them can answer."""
    return PATIENCE / 4 + 0.25 * processes


async def open_flow(on: Stage, processes: int) -> None:
    """Bridges without a grant, and a published URL; each was asked for one call, which counts."""
    await on.start(processes, opened=False)
    seconds = from_the_start(processes)
    await asyncio.gather(*(session.open(seconds=seconds) for session in on.sessions))
    await on.echo(seconds=seconds)
    await on.sessions[0].wait_for(lambda: bool(on.urls), seconds=PATIENCE)


def first_url(on: Stage) -> str:
    """Raises RuntimeError where none was published."""
    for url in [*on.urls, *on.browser.tabs()]:
        return url
    raise RuntimeError(f"{on.bridge.name} published no URL")


async def click_once(on: Stage) -> bool:
    """Whether the latest URL, opened by hand, lands."""
    for url in reversed([*on.urls, *on.browser.tabs()]):
        visit = await asyncio.to_thread(on.visit, url)
        return visit.landing == "landed"
    return False


async def until_url(on: Stage, session: Session) -> Reply:
    """Ask again as often and as late as the bridge says, until it names a URL, or says nothing within `PATIENCE`."""
    end = time.monotonic() + POLITE_SECONDS
    while True:
        reply = await on.ask(session, "echo", PATIENCE / 2, value="x")
        if reply.urls or reply.state == "unanswered" or not reply.failed or time.monotonic() > end:
            return reply
        await asyncio.sleep(waits(reply))


async def heals(on: Stage) -> bool:
    """Whether every bridge comes to answer calls, with nobody at the screen, when asked again as late as it says."""

    async def tries(session: Session) -> bool:
        end = time.monotonic() + POLITE_SECONDS
        while True:
            reply = await session.call("echo", {"value": "x"}, seconds=PATIENCE / 2)
            if not reply.failed:
                return True
            if time.monotonic() > end:
                return False
            await asyncio.sleep(waits(reply))

    return all(await asyncio.gather(*(tries(session) for session in on.sessions)))


def waits(reply: Reply) -> float:
    """How long to wait before the next try: what the bridge says, within reason."""
    seconds = reply.details.get("wait_seconds")
    return min(max(float(seconds), 0.5), POLITE_SECONDS) if isinstance(seconds, (int, float)) else 0.5


async def comes_back(on: Stage) -> bool:
    """Whether a new bridge works with nobody at the screen."""
    await on.start(1, opened=False)
    await on.sessions[-1].open(seconds=PATIENCE / 2)
    return await heals(on)


def visit_quietly(url: str) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=5).close()
    except (urllib.error.URLError, OSError):
        return
