"""The client credentials grant, for machines with nobody in front of them (RFC 6749, 4.4): a secret in, a token out."""

from __future__ import annotations

import time

import msgspec

from interlock.manifest.config import OAuth
from interlock.upstream.oauth import refresh_words as words
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import FetchFailed
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.grant_store import Busy, Held, StoreTrouble
from interlock.upstream.oauth.ground import host_of
from interlock.upstream.oauth.issuer_binding import hold
from interlock.upstream.oauth.refresh import LOCK_SECONDS, TOKEN_SECONDS, held_back, note_skew, post_token, usable
from interlock.upstream.oauth.refusal import Class, classify
from interlock.upstream.oauth.registration import RegistrationFailed, register, still_valid
from interlock.upstream.oauth.server_clock import skew_at_issue
from interlock.upstream.oauth.shared import Shared
from interlock.upstream.oauth.tokens import BadTokenAnswer, TokenRefused, grant_from, read_answer


async def obtain(
    shared: Shared,
    server: str,
    id: str,
    found: Discovered,
    settings: OAuth,
    scope: tuple[str, ...],
    *,
    rejected: str | None,
) -> Grant:
    """A token for the client itself, from disk where another process has just got one. Raises Fault."""
    try:
        async with shared.store.locked(id, LOCK_SECONDS) as held:
            grant = held.read()
            now = time.time() + (grant.skew if grant is not None else 0.0)
            if grant is not None and grant.access_token != rejected and (usable(grant, now) or held_back(grant, now)):
                return grant
            return await _asked(shared, server, found, settings, scope, held, grant, again=rejected is not None)
    except Busy:
        why = "another process of this machine has been asking for a token for too long"
        raise words.wait(server, why, shared.timing.knock_seconds, kept=False) from None
    except RegistrationFailed as failure:
        if failure.unreachable:
            raise words.wait(server, failure.what.rstrip("."), shared.timing.knock_seconds, kept=False) from None
        raise words.misconfigured(server, failure.what.rstrip("."), found.server_url) from None
    except StoreTrouble as trouble:
        raise words.not_kept(server, str(trouble)) from None


async def _asked(
    shared: Shared,
    server: str,
    found: Discovered,
    settings: OAuth,
    scope: tuple[str, ...],
    held: Held,
    before: Grant | None,
    *,
    again: bool,
) -> Grant:
    ends = time.monotonic() + TOKEN_SECONDS
    registration = _kept(before, settings, shared)
    if registration is None:
        hold(shared.store, found, settings, shared.environ)
        registration = await register(shared.fetch, found, settings, shared.environ, None, TOKEN_SECONDS / 2)
    form = {"grant_type": "client_credentials", "resource": found.resource}
    if scope:
        form["scope"] = " ".join(scope)
    secrets = tuple(each for each in (registration.client_secret,) if each)
    held.reserve()
    try:
        answer = await post_token(shared, found, form, registration, ends - time.monotonic())
        tokens = read_answer(answer, secrets)
    except (FetchFailed, TokenRefused, BadTokenAnswer) as error:
        kind = classify(error, early=False)
        what = words.quoted(error.error, error.description) if isinstance(error, TokenRefused) else str(error)
        shared.log.write("token-refused", host_of(found), f"{kind.value}: {what}", secrets)
        if kind is Class.CLIENT and before is not None and registration.source == "dynamic":
            held.write(msgspec.structs.replace(before, state="dead"))  # the next try registers anew
        if kind in (Class.BUSY, Class.OUTAGE):
            knock = shared.timing.knock_seconds
            raise words.unreachable(server, found, what, knock, kept=before is not None) from None
        why = f"the authorization server {found.issuer} refused a token for this client ({what})"
        raise words.misconfigured(server, why, found.server_url) from None
    skew = skew_at_issue(answer, tokens, time.time(), before.skew if before is not None else 0.0)
    fresh = grant_from(
        tokens, found=found, registration=registration, asked_scope=scope, now=time.time(), skew=skew, previous=None
    )
    written = held.write(msgspec.structs.replace(fresh, after_rejection=again))
    shared.log.write("token-obtained", host_of(found), "client credentials", (tokens.access_token, *secrets))
    note_skew(shared, found, skew)
    return written


def _kept(before: Grant | None, settings: OAuth, shared: Shared) -> Registration | None:
    """The client that registered itself for the token before; one that is configured is read anew each time."""
    kept = before.registration if before is not None and before.state != "dead" else None
    if kept is None or kept.source != "dynamic" or not still_valid(kept, settings, shared.environ, None, time.time()):
        return None
    return kept
