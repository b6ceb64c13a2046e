"""What a caller is told where the grant could not be renewed: what to do first, then why."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime

from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Grant, Refusal


def early(server: str, grant: Grant, now: float) -> Fault:
    """Refused before the refresh token's own time. The first refusal may be a matter of seconds; only a repeated one is told
    with the hour."""
    hour = grant.refresh_not_before or now
    repeated = grant.refusal is not None and grant.refusal.kind == "early" and grant.refusal.count > 1
    seconds = max(hour - now, 1.0) if repeated else 1.0
    when = f"retry in {seconds:.0f} s, at {clock(hour)} on the server's clock" if repeated else "retry now"
    return Fault(
        "grant-refused",
        f"{server}: the grant may not be renewed yet; it is intact, and the server did not get the request. To do: {when}.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, wait_seconds=round(seconds, 1),
    )  # fmt: skip


def refused(server: str, grant: Grant, refusal: Refusal, now: float, grace: float, knock: float) -> Fault:
    """Refused, and the grace runs. The door is knocked at again when that is over, and never sooner than `knock` allows."""
    left = min(max(refusal.first_at + grace - now, 1.0), max(grace, 1.0))
    seconds = max(left, min(refusal.last_at + knock - now, knock))
    return Fault(
        "grant-refused",
        f"{server}: {last_words(grant, 'the authorization server refused to renew the grant')}. The server did not get the "
        f"request. Retry in {seconds:.0f} s: if it is still refused then, a sign-in is offered.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, wait_seconds=round(seconds, 1),
    )  # fmt: skip


def held(server: str, grant: Grant, now: float, knock: float | None = None) -> Fault:
    """The access token is good from later on only. `knock`: so soon it is tried all the same."""
    seconds = max((grant.not_before or 0.0) - now, 1.0)
    if knock is not None:
        seconds = min(seconds, max(knock, 1.0))
    return Fault(
        "grant-refused",
        f"{server}: the token that was issued is not good yet. The server did not get the request, and the grant is intact. "
        f"Retry in {seconds:.0f} s.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, wait_seconds=round(seconds, 1),
    )  # fmt: skip


def unreachable(server: str, found: Discovered, what: str, seconds: float, *, kept: bool = True) -> Fault:
    """An outage of the authorization server. It never leads to a sign-in."""
    return wait(
        server, f"the authorization server {found.issuer} could not be asked: {what.rstrip('.')}", seconds, kept=kept
    )


def wait(server: str, why: str, seconds: float, *, kept: bool = True) -> Fault:
    """It clears by itself. `kept`: there is a grant, and it is as it was."""
    seconds = max(seconds, 1.0)
    return Fault(
        "auth-unreachable",
        f"{server}: {why}. The server did not get the request{', and the grant is kept' if kept else ''}. Retry in "
        f"{seconds:.0f} s.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, wait_seconds=round(seconds, 1),
    )  # fmt: skip


def gone(server: str, why: str) -> Fault:
    """The MCP server itself is not there, so nobody can say how it wants to be asked."""
    return Fault(
        "unreachable", f"{server}: {why}. The server did not get the request.",
        stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=server,
    )  # fmt: skip


def misconfigured(server: str, why: str, address: str = "") -> Fault:
    """Authorization cannot work until somebody changes a setting. `address`: of the server, as the commands take it."""
    return Fault(
        "auth-misconfigured",
        f"{server}: {why}. The server did not get the request. `{command('doctor bridge', address or server)}` shows "
        "each step.",
        stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=server,
    )  # fmt: skip


def not_kept(server: str, trouble: str) -> Fault:
    """This machine's store refuses; `trouble` says what to do."""
    return Fault(
        "auth-misconfigured",
        f"{server}: the grants of this machine cannot be used: {trouble} The server did not get the request.",
        stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=server,
    )  # fmt: skip


def command(words: str, server: str) -> str:
    """`interlock WORDS SERVER`, to be copied into a shell."""
    return f"interlock {words} {shlex.quote(server)}"


def quoted(word: str, text: str) -> str:
    """An OAuth error and its description, in the server's words."""
    return f"{word}: {text}" if text else word


def last_words(grant: Grant, why: str) -> str:
    """`why`, with what the server said last."""
    refusal = grant.refusal
    lost = "; the answer to the refresh before was lost" if grant.state != "live" and grant.presented_again else ""
    return why + lost if refusal is None else f"{why} ({quoted(refusal.error, refusal.description)}{lost})"


def clock(seconds: float) -> str:
    """A time on the server's clock, for people."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "an unreadable time"
