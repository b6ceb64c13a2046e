"""What a call answers with while a person has to log in."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.upstream.oauth.grant import Grant


@dataclass(frozen=True, slots=True)
class Offer:
    """Times are on this machine's clock."""

    url: str
    """To open in a browser, anywhere. Empty: no login is offered now (`snoozed_until`), or none is needed (`grant`)."""
    user_code: str | None
    """To type in there (RFC 8628); None with a browser login."""
    mine: bool
    """This process owns the listener, or asks the token endpoint for the device code."""
    expires_at: float
    snoozed_until: float | None = None
    """Set where the last login was not finished: until then, only a person's own wish opens another."""
    grant: Grant | None = None
    """A grant that has come since the caller looked: use it in place of a login."""
