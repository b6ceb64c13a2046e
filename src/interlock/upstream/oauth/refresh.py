"""One refresh for the machine: under the grant's lock, from what is on disk, with every ending of it kept there.

A refresh token is good once: who presents it a second time may burn the grant for all. So the token is marked as presented
before it leaves, and whoever comes next, after a crash too, knows. A refusal is not at once believed (login is spent last).
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

import msgspec

from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Answer, FetchFailed
from interlock.upstream.oauth.grant import Grant, Refusal
from interlock.upstream.oauth.grant_store import Busy, Held, token_hash
from interlock.upstream.oauth.refusal import Class, classify, may_wipe
from interlock.upstream.oauth.shared import Shared
from interlock.upstream.oauth.tokens import BadTokenAnswer, TokenRefused, grant_from, read_answer

TOKEN_CALL_SECONDS = 8.0
"""Of one request to the token endpoint. Two of them fit into the time that another process waits for the lock."""
LOCK_SECONDS = 20.0
MARGIN_SECONDS = 5.0
"""An access token with less than that to live is not sent any more: it could expire on its way."""


class NeedLogin(Exception):
    """Nothing that a program can do gets a token. `why` is for people."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def usable(grant: Grant, now: float) -> bool:
    """True where the access token may be sent. `now` is on the server's clock."""
    if grant.access_token is None:
        return False
    if grant.expires_at is not None and grant.expires_at - MARGIN_SECONDS <= now:
        return False
    return grant.not_before is None or grant.not_before <= now + 1.0


def refresh_at(grant: Grant, lead: float) -> float | None:
    """When to refresh ahead of need, on the server's clock. None: never by itself.

    What nobody waits for waits for the refresh token's own `nbf`; a short-lived token is renewed in its last quarter.
    """
    if grant.refresh_token is None or grant.state == "dead":
        return None
    times = []
    if grant.expires_at is not None:
        life = max(grant.expires_at - grant.obtained_at, 0.0)
        times.append(grant.expires_at - min(lead, life / 4))
    if grant.refresh_expires_at is not None:
        # An unused session must not rot: the refresh token itself is renewed before it dies.
        life = max(grant.refresh_expires_at - grant.obtained_at, 0.0)
        times.append(grant.refresh_expires_at - max(lead, life / 4))
    if not times:
        return None
    return max(min(times), grant.refresh_not_before or 0.0)


async def renew(
    shared: Shared, server: str, id: str, found: Discovered, *, rejected: str | None, waited: bool
) -> Grant:
    """A grant whose access token is not `rejected` and may be sent. Raises Fault or NeedLogin.

    `waited`: a caller waits for it, so that a refusal may be risked; else an early refresh is left for later.
    """
    try:
        async with shared.store.locked(id, LOCK_SECONDS) as held:
            return await _renew(shared, server, found, held, rejected, waited)
    except Busy:
        raise _wait(
            server, "another process of this machine has been renewing the grant for too long",
            shared.timing.knock_seconds,
        ) from None  # fmt: skip


async def _renew(
    shared: Shared, server: str, found: Discovered, held: Held, rejected: str | None, waited: bool
) -> Grant:
    timing = shared.timing
    grant = held.read()
    if grant is None:
        raise NeedLogin("this machine has no grant for it yet")
    now = time.time() + grant.skew
    if usable(grant, now) and (rejected is None or grant.access_token != rejected):
        return grant  # somebody else was here first
    if grant.refresh_token is None:
        raise NeedLogin("the access token is no longer good, and there is no refresh token")
    if grant.state == "dead":
        raise NeedLogin(_last_words(grant, "the authorization server has ended the grant"))
    if grant.refresh_expires_at is not None and grant.refresh_expires_at <= now:
        # No grace here: the token itself says that it is over.
        held.write(msgspec.structs.replace(grant, state="dead"))
        raise NeedLogin("the refresh token has outlived its own expiry")
    early = grant.refresh_not_before is not None and grant.refresh_not_before > now + 1.0
    refusal = grant.refusal
    if early and not waited:
        raise _early(server, grant, now)
    if refusal is not None and 0 <= now - refusal.last_at < timing.knock_seconds:
        # The door was knocked at a moment ago, by whichever process: nobody knocks again so soon.
        raise _early(server, grant, now) if early else _refused(server, grant, now, timing.grace_seconds)
    return await _present(shared, server, found, held, grant, rejected, early)


async def _present(
    shared: Shared, server: str, found: Discovered, held: Held, grant: Grant, rejected: str | None, early: bool
) -> Grant:
    """Send the refresh token, at most twice: once more where the answer was lost and the server may still have it."""
    token = grant.refresh_token
    assert token is not None
    lost_before = grant.state == "spent"
    for attempt in range(2):
        now = time.time() + grant.skew
        # On disk before it leaves: a crash from here on is known as `spent, answer lost`.
        spent = held.write(
            msgspec.structs.replace(grant, state="spent", presented_at=now, presented_again=lost_before or attempt > 0)
        )
        try:
            answer = await _ask(shared, found, grant)
            tokens = read_answer(answer)
        except FetchFailed as failure:
            if not failure.sent:
                held.write(msgspec.structs.replace(grant, generation=spent.generation))
                raise _unreachable(server, found, failure.what, shared) from None
            shared.log.write("refresh-answer-lost", found.resource, failure.what, (token,))
            if attempt == 0:
                continue
            raise _unreachable(server, found, failure.what, shared) from None
        except (TokenRefused, BadTokenAnswer) as refusal:
            raise _no(shared, server, found, held, grant, refusal, early) from None
        local = time.time()
        skew = answer.skew if answer.skew is not None else grant.skew
        made = grant_from(
            tokens, found=found, registration=grant.registration, asked_scope=grant.scope, now=local, skew=skew,
            previous=grant,
        )  # fmt: skip
        fresh = held.write(msgspec.structs.replace(made, after_rejection=rejected is not None))
        shared.log.write("refreshed", found.resource, _what(fresh), (token, fresh.access_token or ""))
        _note_skew(shared, found, skew)
        return fresh
    raise AssertionError("the last attempt returns or raises")


async def _ask(shared: Shared, found: Discovered, grant: Grant) -> Answer:
    registration = grant.registration
    form = {
        "grant_type": "refresh_token",
        "refresh_token": grant.refresh_token or "",
        # Also on refresh, whether the server supports it or not (2026-07-28, authorization: Resource Parameter).
        "resource": grant.resource,
    }
    return await post_token(
        shared, found, form, registration.client_id, registration.client_secret, registration.auth_method
    )


async def post_token(
    shared: Shared, found: Discovered, form: dict[str, str], client_id: str, secret: str | None, method: str
) -> Answer:
    """A token request, with the client's own authentication (RFC 6749, 2.3.1). Raises FetchFailed."""
    endpoint = found.metadata.token_endpoint
    if endpoint is None:
        raise FetchFailed("its metadata names no token endpoint", sent=False)
    basic = None
    if method == "client_secret_basic" and secret is not None:
        basic = (client_id, secret)
    else:
        form["client_id"] = client_id
        if method == "client_secret_post" and secret is not None:
            form["client_secret"] = secret
    return await shared.fetch.post_form(endpoint, form, TOKEN_CALL_SECONDS, basic)


def _no(
    shared: Shared,
    server: str,
    found: Discovered,
    held: Held,
    grant: Grant,
    error: TokenRefused | BadTokenAnswer,
    early: bool,
) -> Fault | NeedLogin:
    """What follows from a refusal: what is kept, what is wiped, and what the caller is told."""
    kind = classify(error, early=early)
    word = error.error if isinstance(error, TokenRefused) else "bad answer"
    text = error.description if isinstance(error, TokenRefused) else str(error)
    now = time.time() + grant.skew
    before = grant.refusal
    refusal = Refusal(
        first_at=before.first_at if before is not None else now,
        last_at=now, count=(before.count if before is not None else 0) + 1, error=word, description=text,
    )  # fmt: skip
    secrets = (grant.refresh_token or "", grant.access_token or "")
    shared.log.write("refresh-refused", found.resource, f"{kind.name.lower()}: {word} {text}".strip(), secrets)
    if kind is Class.EARLY:
        kept = held.write(msgspec.structs.replace(grant, state="live", refusal=refusal))
        return _early(server, kept, now)
    if kind is Class.GRANT:
        over = now - refusal.first_at >= shared.timing.grace_seconds and refusal.count > 1
        kept = held.write(msgspec.structs.replace(grant, state="dead" if over else "refused", refusal=refusal))
        if over:
            return NeedLogin(_last_words(kept, "the authorization server has refused the grant for good"))
        return _refused(server, kept, now, shared.timing.grace_seconds)
    if kind is Class.CLIENT:
        registration = grant.registration
        if "registration" in may_wipe(kind) and registration.source == "dynamic":
            shared.store.drop_registration(registration.issuer, registration.client_id)
            held.write(msgspec.structs.replace(grant, state="dead", refusal=refusal))
            return NeedLogin(
                "the authorization server has forgotten this client; it is registered anew at the next sign-in"
            )
        held.write(msgspec.structs.replace(grant, refusal=refusal))
        return misconfigured(
            server, f"the authorization server {found.issuer} does not accept the client id or secret that is configured "
            f"({_quoted(word, text)})",
        )  # fmt: skip
    if kind in (Class.BUSY, Class.OUTAGE):
        # It has answered, so the token is as good as it was; an answer that cannot be read may have held the next one.
        unread = isinstance(error, BadTokenAnswer)
        held.write(msgspec.structs.replace(grant, state="spent" if unread else grant.state, presented_at=now))
        return _unreachable(server, found, f"it answered {_quoted(word, text)}", shared)
    held.write(msgspec.structs.replace(grant, refusal=refusal))
    return misconfigured(server, f"the authorization server {found.issuer} refused the refresh ({_quoted(word, text)})")


def _quoted(word: str, text: str) -> str:
    return f"{word}: {text}" if text else word


def _last_words(grant: Grant, why: str) -> str:
    refusal = grant.refusal
    return why if refusal is None else f"{why} ({_quoted(refusal.error, refusal.description)})"


def _what(grant: Grant) -> str:
    until = "unknown" if grant.expires_at is None else clock(grant.expires_at)
    return f"generation {grant.generation}, access token good until {until} on the server's clock"


def clock(seconds: float) -> str:
    """A time on the server's clock, for people."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "an unreadable time"


def _note_skew(shared: Shared, found: Discovered, skew: float) -> None:
    if abs(skew) > 30:
        ahead = "behind" if skew > 0 else "ahead of"
        shared.log.write(
            "clock-skew", found.resource,
            f"this machine's clock is {abs(skew):.0f} s {ahead} the server's; times are judged on the server's. Cure: NTP",
        )  # fmt: skip


def _early(server: str, grant: Grant, now: float) -> Fault:
    """Refused before the refresh token's own time. The first refusal may be a matter of seconds; only a repeated one is told
    with the hour."""
    hour = grant.refresh_not_before or now
    repeated = grant.refusal is not None and grant.refusal.count > 1
    wait = max(hour - now, 1.0) if repeated else 1.0
    when = f"retry in {wait:.0f} s, at {clock(hour)} on the server's clock" if repeated else "retry now"
    return Fault(
        "grant-refused",
        f"{server}: the grant may not be renewed yet; it is intact, and the server did not get the request. To do: {when}.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, wait_seconds=round(wait, 1),
    )  # fmt: skip


def _refused(server: str, grant: Grant, now: float, grace: float) -> Fault:
    first = grant.refusal.first_at if grant.refusal is not None else now
    wait = min(max(first + grace - now, 1.0), grace)
    return Fault(
        "grant-refused",
        f"{server}: {_last_words(grant, 'the authorization server refused to renew the grant')}. The server did not get the "
        f"request. Retry in {wait:.0f} s: if it is still refused then, a sign-in is offered.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, wait_seconds=round(wait, 1),
    )  # fmt: skip


def _unreachable(server: str, found: Discovered, what: str, shared: Shared) -> Fault:
    return _wait(
        server, f"the authorization server {found.issuer} could not be asked: {what}", shared.timing.knock_seconds
    )


def _wait(server: str, why: str, seconds: float) -> Fault:
    return Fault(
        "auth-unreachable",
        f"{server}: {why}. The server did not get the request, and the grant is kept. Retry in {seconds:.0f} s.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, wait_seconds=seconds,
    )  # fmt: skip


def misconfigured(server: str, why: str) -> Fault:
    """Authorization cannot work until somebody changes a setting."""
    return Fault(
        "auth-misconfigured",
        f"{server}: {why}. The server did not get the request. `interlock doctor bridge` shows each step.",
        stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=server,
    )  # fmt: skip


__all__ = ["NeedLogin", "clock", "misconfigured", "post_token", "refresh_at", "renew", "token_hash", "usable"]
