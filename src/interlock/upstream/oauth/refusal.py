"""What a token endpoint's refusal means, and what it gives the right to forget.

The error codes are those of RFC 6749 section 5.2 and RFC 8707 section 2, and a few that large providers use in their place.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal

from interlock.upstream.oauth.fetch import FetchFailed
from interlock.upstream.oauth.tokens import BadTokenAnswer, TokenRefused

Wipe = Literal["registration", "refresh_token"]


class Class(Enum):
    """In what way a request for a token failed."""

    EARLY = "early"
    """The refresh token may not be used yet; it is as good as before."""
    GRANT = "grant"
    """The grant was refused. Alone it proves no death: a grace runs first."""
    CLIENT = "client"
    """The authorization server does not know this client (any more)."""
    SCOPE = "scope"
    RESOURCE = "resource"
    """The `resource` parameter was refused (RFC 8707)."""
    CONFIGURATION = "configuration"
    """Another refusal that time alone will not mend."""
    BUSY = "busy"
    """The authorization server asks to come again later."""
    OUTAGE = "outage"
    """No answer, or none that says anything about the grant."""


_BY_CODE: Final = {
    "invalid_grant": Class.GRANT,
    # In place of invalid_grant: GitHub, Slack, Microsoft Entra and others.
    "bad_refresh_token": Class.GRANT,
    "bad_verification_code": Class.GRANT,
    "consent_required": Class.GRANT,
    "expired_token": Class.GRANT,
    "interaction_required": Class.GRANT,
    "invalid_refresh_token": Class.GRANT,
    "invalid_token": Class.GRANT,
    "login_required": Class.GRANT,
    "token_expired": Class.GRANT,
    "token_revoked": Class.GRANT,
    "invalid_client": Class.CLIENT,
    "unauthorized_client": Class.CLIENT,
    "invalid_scope": Class.SCOPE,
    "insufficient_scope": Class.SCOPE,
    "invalid_target": Class.RESOURCE,
    "slow_down": Class.BUSY,
    "temporarily_unavailable": Class.BUSY,
    "server_error": Class.OUTAGE,
}


def classify(error: TokenRefused | FetchFailed | BadTokenAnswer, *, early: bool) -> Class:
    """The class of a failed request for a token.

    `early`: the refresh token's own `nbf` had not come when it was presented, so a refusal of the grant says only that.
    """
    if isinstance(error, FetchFailed):
        return Class.OUTAGE
    by_status = _by_status(error.status)
    if by_status is not None:
        return by_status
    if isinstance(error, BadTokenAnswer):
        # Perhaps from something in between. A success that cannot be read is a lost answer.
        if error.status < 300:
            return Class.OUTAGE
        return Class.EARLY if early and error.status >= 400 else Class.CONFIGURATION
    known = _BY_CODE.get(error.error.lower(), Class.CONFIGURATION)
    if known in (Class.GRANT, Class.CONFIGURATION) and early:
        return Class.EARLY
    return known


def _by_status(status: int) -> Class | None:
    """What a status says by itself, whatever the body."""
    if status in (429, 503):
        return Class.BUSY
    if status == 425:  # RFC 8470: too early
        return Class.EARLY
    if status >= 500 or status in (408, 499):
        return Class.OUTAGE
    return None


def may_wipe(cls: Class) -> frozenset[Wipe]:
    """What may be forgotten at once. A refused grant is kept: its grace decides, and then a login replaces it."""
    return frozenset({"registration"}) if cls is Class.CLIENT else frozenset()
