"""The one exception that a call may end in: what happened, where, what may have taken effect and what to do next."""

from __future__ import annotations

from interlock.model.stage import Stage
from interlock.model.verdict import Retry, Verdict

_RETRY: dict[Verdict, Retry] = {
    Verdict.NEVER_REACHED: "safe",
    Verdict.WAIT: "later",
    Verdict.OUTCOME_UNKNOWN: "check-first",
}


class Fault(Exception):
    """A request that Interlock itself has to answer with an error.

    `slug` names the entry in docs/errors.md (for example `timeout`) and fixes the numeric code (wire/codes.py).
    `message` is for people: it says what happened and what to do. It never holds a secret, an argument or a result.
    """

    __slots__ = (
        "approval_id",
        "authorize_url",
        "http_status",
        "message",
        "retry",
        "server",
        "slug",
        "stage",
        "tool",
        "verdict",
        "wait_seconds",
    )

    def __init__(
        self,
        slug: str,
        message: str,
        *,
        stage: Stage,
        verdict: Verdict,
        server: str | None = None,
        tool: str | None = None,
        retry: Retry | None = None,
        wait_seconds: float | None = None,
        authorize_url: str | None = None,
        approval_id: str | None = None,
        http_status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.slug = slug
        self.message = message
        self.stage = stage
        self.verdict = verdict
        self.server = server
        self.tool = tool
        self.retry: Retry = retry or _RETRY[verdict]
        self.wait_seconds = wait_seconds
        self.authorize_url = authorize_url
        self.approval_id = approval_id
        self.http_status = http_status
        """The status that an upstream HTTP server answered, where that is what went wrong."""
