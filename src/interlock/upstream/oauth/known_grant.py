"""What one process knows of a server's grant: how it is asked for, what stands on disk now, and which tokens were refused."""

from __future__ import annotations

import time
from collections.abc import Callable

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.client_of import preset_of
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_ids import filed_under
from interlock.upstream.oauth.grant_store import StoreTrouble, token_hash
from interlock.upstream.oauth.issuer_binding import allowed
from interlock.upstream.oauth.refresh import usable
from interlock.upstream.oauth.server_clock import ServerClock
from interlock.upstream.oauth.shared import Shared
from interlock.upstream.secret_forms import masked

LOOK_SECONDS = 0.25
"""How often the grant's file is looked at, so that a sign-in of another process is seen."""
KEPT_SECRETS = 8


class KnownGrant:
    """The disk is the truth; this is a copy of it, at most `LOOK_SECONDS` old."""

    def __init__(self, url: str, settings: OAuth, shared: Shared, taken: Callable[[], None]) -> None:
        """`taken` is called after another grant, or the same in another state, was read. Reads nothing yet."""
        self.url = url
        self.found: Discovered | None = None
        self.id: str | None = None
        self.grant: Grant | None = None
        self.trouble: StoreTrouble | None = None
        """Why the store could not be read when it was last tried."""
        self.clock = ServerClock()
        self._settings = settings
        self._shared = shared
        self._taken = taken
        self._preset = preset_of(settings, shared.environ)
        self._stamp: tuple[int, int] | None = None
        self._looked = 0.0
        self._refused: dict[str, None] = {}
        self._secrets: dict[str, None] = {}

    def now(self) -> float:
        """The time on the authorization server's clock."""
        return self.clock.now(time.time())

    def header(self) -> str | None:
        """The value of `Authorization` to send now, or None. Empty: nothing is known, and the server's challenge will tell."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self.look()
        grant = self.grant
        if grant is None:
            return "" if self.found is None and self.trouble is None else None
        if usable(grant, self.now()) and not (self._refused and self.was_refused(grant)):
            return f"Bearer {grant.access_token}"
        return None

    def look(self) -> None:
        """Read the grant again if its file has changed. A few microseconds where it has not. Never raises."""
        self._looked = time.monotonic()
        try:
            if self.id is None:
                found = self._shared.store.recalled(self.url, self._settings.resource)
                if found is not None and allowed(self._settings, found.issuer):
                    self.settle(found)
            elif (stamp := self._shared.store.stamp(self.id)) != self._stamp or self.trouble is not None:
                self._take(self._shared.store.read(self.id))
                self._stamp = stamp
            self.trouble = None
        except StoreTrouble as trouble:
            self.trouble = trouble

    def settle(self, found: Discovered) -> None:
        """This is how the server wants to be asked; the grant for it may be there already. Raises StoreTrouble."""
        self.found = found
        self.id = filed_under(found, self._preset)
        self._stamp = self._shared.store.stamp(self.id)
        self._take(self._shared.store.read(self.id))

    def refuse(self, token: str) -> None:
        """The server did not take this token: it is not sent again while there may be another."""
        self._refused[token_hash(token)] = None
        while len(self._refused) > KEPT_SECRETS:
            del self._refused[next(iter(self._refused))]

    def was_refused(self, grant: Grant) -> bool:
        return token_hash(grant.access_token or "") in self._refused

    def pardon(self, grant: Grant) -> None:
        """Let the token be sent once more."""
        self._refused.pop(token_hash(grant.access_token or ""), None)

    def secrets(self) -> tuple[str, ...]:
        """Those of this grant and of the ones before it, as far as they are kept."""
        return tuple(self._secrets)

    def mask(self, text: str) -> str:
        """Without the secrets of this grant and of those before it: a late answer may quote an old one."""
        return masked(text, self._secrets)

    def _take(self, grant: Grant | None) -> None:
        before, self.grant = self.grant, grant
        if grant is None:
            return
        self.clock.taken(grant)
        for secret in (grant.access_token, grant.refresh_token, grant.registration.client_secret):
            if secret and len(secret) >= 6 and secret not in self._secrets:
                self._secrets[secret] = None
        while len(self._secrets) > 3 * KEPT_SECRETS:
            del self._secrets[next(iter(self._secrets))]
        if before is None or before.generation != grant.generation:
            self._taken()
