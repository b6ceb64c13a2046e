"""A token that says itself that it is not good yet (RFC 7519, `nbf`): when it is tried all the same.

One that will be good in a moment is waited for. One whose time is far off shows that some clock is wrong, perhaps the one that
made it: so a request goes out with it once in a while. A refusal of that request says nothing else.
"""

from __future__ import annotations

import time

from interlock.upstream.oauth.grant import Grant

FAR_SECONDS = 60.0


class HeldToken:
    """For one server of one process. `now` is on the authorization server's clock."""

    def __init__(self, knock_seconds: float) -> None:
        self._knock_seconds = knock_seconds
        self._knocked: tuple[str, float] = ("", 0.0)

    def may_knock(self, grant: Grant, now: float) -> bool:
        """Whether it is sent now. True at most once in the knock interval."""
        token = grant.access_token or ""
        if (grant.not_before or 0.0) - now <= FAR_SECONDS or self.seconds_left(grant) is not None:
            return False
        self._knocked = (token, time.monotonic())
        return True

    def seconds_left(self, grant: Grant) -> float | None:
        """Until it may be sent again; None where it was not sent of late."""
        token, at = self._knocked
        left = at + self._knock_seconds - time.monotonic()
        return left if token == (grant.access_token or "") and left > 0 else None
