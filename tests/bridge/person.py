"""The person at the browser: opens each authorize URL once, after a while, and tells what came of it."""

from __future__ import annotations

import asyncio
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from .session import Published

Landing = Literal["landed", "refused", "rejected", "failed"]
"""`landed`: the callback answered 2xx. `rejected`: it, or the authorization server, answered 4xx or 5xx. `refused`:
nobody listened there. `failed`: anything else."""
_VISIT_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Visit:
    """What a click came to. `end` is the last URL, without its query, which may hold a code."""

    landing: Landing
    status: int | None = None
    end: str = ""
    page: str = ""


@dataclass(slots=True)
class Click:
    url: str
    seen: float
    """When it was published, in seconds since the session began."""
    clicked: float | None = None
    done: float | None = None
    visit: Visit | None = None


def follow(url: str) -> Visit:
    """Open a URL as a browser would, redirects included, for authorization servers that ask nothing."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_VISIT_SECONDS) as answer:
            return Visit("landed", answer.status, _bare(answer.url), answer.read(4096).decode(errors="replace"))
    except urllib.error.HTTPError as error:
        return Visit("rejected", error.code, _bare(error.url), error.read(4096).decode(errors="replace"))
    except urllib.error.URLError as error:
        refused = isinstance(error.reason, ConnectionRefusedError)
        return Visit("refused" if refused else "failed", page=str(error.reason))
    except OSError as error:
        return Visit("failed", page=str(error))


def _bare(url: str) -> str:
    return url.partition("?")[0]


@dataclass(slots=True)
class Person:
    """Give `notice` to a session's `on_url`. Clicks the first `most` distinct URLs, each `after` seconds after it was seen."""

    after: float = 0.0
    most: int = 8
    visit: Callable[[str], Visit] = follow
    clicks: list[Click] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def notice(self, published: Published) -> None:
        if len(self.clicks) >= self.most or any(click.url == published.url for click in self.clicks):
            return
        click = Click(published.url, published.at)
        self.clicks.append(click)
        task = asyncio.create_task(self._click(click))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Wait until every click so far has come to its end."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    async def _click(self, click: Click) -> None:
        began = time.monotonic()
        if self.after > 0:
            await asyncio.sleep(self.after)
        click.clicked = click.seen + time.monotonic() - began
        click.visit = await asyncio.to_thread(self.visit, click.url)
        click.done = click.seen + time.monotonic() - began
