"""A grant as it is kept on disk: what one authorization server gave this machine for one resource, and what became of it.

Times are seconds since the epoch on the authorization server's clock, unless a name says otherwise (clock.py).
"""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["live", "spent", "refused", "dead"]
"""`spent`: the refresh token was presented and no answer came. `refused`: it was refused, and may yet be taken (a grace
runs). `dead`: only a login helps."""


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """Who we are to one authorization server. Kept per issuer, never used with another (2026-07-28, client-registration)."""

    issuer: str
    client_id: str
    source: Literal["preset", "metadata-document", "dynamic"]
    client_secret: str | None = None
    secret_expires_at: float | None = None
    """None: never, or there is no secret."""
    auth_method: Literal["none", "client_secret_post", "client_secret_basic"] = "none"
    redirect_uri: str | None = None
    """The redirect URI that was registered; None where the registration has no redirect (client credentials)."""

    def __repr__(self) -> str:
        # A repr ends up in tracebacks; no secret may.
        return f"Registration({self.issuer!r}, {self.client_id!r}, {self.source})"


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The token endpoint's no to a refresh, in its own words (cut, masked)."""

    first_at: float
    last_at: float
    count: int
    error: str
    description: str = ""
    kind: str = ""
    """The class of the refusal (refusal.py): only those of one kind make a standing one."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Immutable; a change is a new value with a higher generation (grant_store.py)."""

    server_url: str
    resource: str
    issuer: str
    registration: Registration
    generation: int = 0
    state: State = "live"
    access_token: str | None = None
    scope: tuple[str, ...] = ()
    """What was granted, or asked for where the server did not say."""
    obtained_at: float = 0.0
    expires_at: float | None = None
    """Of the access token: its own `exp` before `expires_in`. None: unknown."""
    not_before: float | None = None
    """Of the access token."""
    refresh_token: str | None = None
    refresh_not_before: float | None = None
    """From the refresh token's own `nbf`, where it is a readable token."""
    refresh_expires_at: float | None = None
    presented_at: float | None = None
    """When the refresh token was last presented; with `spent`, no answer came since."""
    presented_again: bool = False
    """With `spent`: it was presented once more after the answer was lost."""
    unanswered_at: float | None = None
    """When the authorization server was last asked in vain; None once it has answered again."""
    refusal: Refusal | None = None
    signed_in_at: float | None = None
    """When a person signed in, carried over refreshes; None: `obtained_at` is that hour."""
    after_rejection: bool = False
    """True where the access token was fetched because the server took the one before it no longer."""
    skew: float = 0.0
    """Seconds to add to this machine's clock to get the server's (from `Date` headers)."""

    def __repr__(self) -> str:
        return f"Grant({self.resource!r}, {self.issuer!r}, generation {self.generation}, {self.state})"
