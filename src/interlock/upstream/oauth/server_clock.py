"""The time at the authorization server, which made the tokens' `exp` and `nbf`: from its own `Date`, and from what moved since.

The grant holds how far the clocks were apart when it was fetched. This machine's clock may be set, or drift in a sleep; the
resource server's `Date` shows by how much. That server's own clock may be wrong, so only changes of it count.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlock.upstream.oauth.clock import skew_of
from interlock.upstream.oauth.fetch import Answer
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.tokens import Tokens, claims, number

BACKDATED_SECONDS = 600.0
"""Some issuers date their tokens back by minutes, so that clocks that are a little behind take them."""
YOUNG_SECONDS = 60.0
"""For so long after a grant was fetched, what the resource server's clock says is a measure of how far those two are apart."""


def skew_at_issue(answer: Answer, tokens: Tokens, local: float, before: float) -> float:
    """Seconds from this machine's clock to that of the issuer, whose answer has just come: from its `Date`, else from the token.

    `before` is what was known, where neither tells.
    """
    if answer.skew is not None:
        return answer.skew
    issued = number((claims(tokens.access_token) or {}).get("iat"))
    if issued is None or not 0 < issued < 1e11:
        return before
    return issued - local if abs(issued - local - before) > BACKDATED_SECONDS else before


class ServerClock:
    """For one server of one process. `local` is this machine's clock."""

    def __init__(self) -> None:
        self._grant_skew = 0.0
        self._obtained_at: float | None = None
        self._heard: float | None = None
        self._apart: float | None = None
        self._date = b""

    def now(self, local: float) -> float:
        """The authorization server's time."""
        if self._heard is not None and self._apart is not None:
            return local + self._heard - self._apart
        return local + self._grant_skew

    def taken(self, grant: Grant) -> None:
        """Another grant, or the same renewed, counts from now on."""
        if grant.obtained_at != self._obtained_at or grant.skew != self._grant_skew:
            self._grant_skew, self._obtained_at, self._apart, self._date = grant.skew, grant.obtained_at, None, b""

    def heard(self, headers: Mapping[bytes, bytes], local: float) -> float | None:
        """An answer of the resource server. Its clock against ours, where that is news by more than half a minute."""
        date = headers.get(b"date", b"")
        # A stored answer has the `Date` of the first request for it (RFC 9111 section 4.2.3).
        if date == self._date or headers.get(b"age", b"").strip(b" 0"):
            return None
        self._date = date
        skew = skew_of(date.decode("latin-1"), local)
        if skew is None:
            return None
        before, self._heard = self._heard if self._heard is not None else self._grant_skew, skew
        if self._apart is None and self._obtained_at is not None:
            age = local + self._grant_skew - self._obtained_at
            if -YOUNG_SECONDS < age < YOUNG_SECONDS:
                self._apart = skew - self._grant_skew
        return skew if abs(skew) > 30 and abs(skew - before) > 30 else None
