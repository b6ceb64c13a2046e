"""What every part of a login stands on: the store, the log, the clock's settings, and the lock of one grant's login."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from interlock.upstream.oauth import file_lock, private_files
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Fetcher
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_ids import checked
from interlock.upstream.oauth.grant_log import GrantLog
from interlock.upstream.oauth.grant_store import Busy, GrantStore
from interlock.upstream.oauth.timing import Timing

KEEP_SECONDS = 60.0
"""For so long a new grant waits for the grant's lock. A refresh holds it for less than half of that."""


def _nothing(step: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Ground:
    """Shared by all logins of one process."""

    store: GrantStore
    fetch: Fetcher
    log: GrantLog
    build: Callable[[], str]
    timing: Timing
    on_grant: Callable[[str, Grant], None]
    reached: Callable[[str], None] = _nothing
    """Told the name of each step of a login as it is reached; tests end the process there."""

    @property
    def root(self) -> Path:
        return self.store.root

    def login_lock(self, id: str, seconds: float) -> AbstractAsyncContextManager[None]:
        """Held while a login of this grant is opened, taken over, or redeemed. Raises Busy, StoreTrouble."""
        private_files.make(self.root)
        return file_lock.locked(self.root / f"{checked(id)}.login.lock", seconds)

    async def keep(self, id: str, grant: Grant) -> Grant:
        """Store a grant that a login brought. Raises Busy where the lock stays held for a minute, StoreTrouble."""
        async with self.store.locked(id, KEEP_SECONDS) as held:
            kept = held.write(grant)
        self.reached("stored")
        return kept

    def settled(self, id: str, since: int) -> Grant | None:
        """A live grant of a later generation than `since`: what the login was for may work now."""
        grant = self.store.read(id)
        if grant is None or grant.generation <= since or grant.state != "live" or grant.access_token is None:
            return None
        return grant

    def generation(self, id: str) -> int:
        """0: no grant."""
        grant = self.store.read(id)
        return grant.generation if grant is not None else 0


def host_of(found: Discovered) -> str:
    """The resource's host, which is what grant.log says a line is about."""
    return found.resource.partition("//")[2].partition("/")[0].rpartition("@")[2] or "unknown"


__all__ = ["Busy", "Ground", "host_of"]
