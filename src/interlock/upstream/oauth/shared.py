"""What all authorizations of one process share: the machine's grants, the log, open sign-ins, and one HTTP client."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from interlock.upstream.oauth.fetch import Fetcher
from interlock.upstream.oauth.flow import Logins
from interlock.upstream.oauth.grant_log import GrantLog
from interlock.upstream.oauth.grant_store import GrantStore
from interlock.upstream.oauth.timing import Timing

SKEW_SAID_SECONDS = 3600.0


def _nothing(step: str) -> None:
    pass


@dataclass(slots=True)
class Shared:
    """`announce` tells the person at the machine something on standard error; each text is passed on once."""

    store: GrantStore
    fetch: Fetcher
    log: GrantLog
    logins: Logins
    timing: Timing
    environ: Mapping[str, str] = field(repr=False)
    announce: Callable[[str], None]
    offers: bool = True
    """False in a process that is over before anybody could have clicked: it says which command signs in."""
    reached: Callable[[str], None] = _nothing
    """Told the name of each step of a refresh or a login as it is reached; tests end the process there."""
    _said: set[str] = field(default_factory=set)
    _skew_said: dict[str, float] = field(default_factory=dict)

    def say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.announce(text)

    def may_say_skew(self, resource: str) -> bool:
        """Whether grant.log may be told now that this resource's clock differs from ours. True once an hour."""
        now = time.monotonic()
        last = self._skew_said.get(resource)
        if last is not None and now - last < SKEW_SAID_SECONDS:
            return False
        self._skew_said[resource] = now
        return True

    async def close(self) -> None:
        await self.logins.close()
        await self.fetch.close()


def shared_for(
    home: Path,
    environ: Mapping[str, str],
    *,
    build: Callable[[], str],
    user_agent: str,
    announce: Callable[[str], None],
    open_browser: Callable[[str], bool] | None,
    offers: bool = True,
    timing: Timing | None = None,
    reached: Callable[[str], None] = _nothing,
) -> Shared:
    """Everything for one process. `open_browser` is None where no browser may be opened from here."""
    timing = timing or Timing()
    log = GrantLog(home, build)
    store = GrantStore(home, log)
    fetch = Fetcher(user_agent=user_agent, environ=environ)
    logins = Logins(home, store, fetch, log, build=build, open_browser=open_browser, timing=timing, reached=reached)
    return Shared(store, fetch, log, logins, timing, environ, announce, offers, reached)
