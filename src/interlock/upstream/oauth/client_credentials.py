"""The client credentials grant, for machines with nobody in front of them (RFC 6749, 4.4): a secret in, a token out."""

from __future__ import annotations

import time

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import FetchFailed
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_store import Busy
from interlock.upstream.oauth.refresh import LOCK_SECONDS, misconfigured, post_token, usable
from interlock.upstream.oauth.refusal import Class, classify
from interlock.upstream.oauth.registration import RegistrationFailed, register
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
            if grant is not None and grant.access_token != rejected and usable(grant, time.time() + grant.skew):
                return grant
            registration = await register(shared.fetch, found, settings, shared.environ, None, LOCK_SECONDS)
            form = {"grant_type": "client_credentials", "resource": found.resource}
            if scope:
                form["scope"] = " ".join(scope)
            answer = await post_token(
                shared, found, form, registration.client_id, registration.client_secret, registration.auth_method
            )
            tokens = read_answer(answer)
            fresh = grant_from(
                tokens, found=found, registration=registration, asked_scope=scope, now=time.time(), skew=answer.skew or 0.0,
                previous=None,
            )  # fmt: skip
            written = held.write(fresh)
            shared.log.write("token-obtained", found.resource, "client credentials", (tokens.access_token,))
            return written
    except Busy:
        raise _later(
            shared, server, "another process of this machine has been asking for a token for too long"
        ) from None
    except RegistrationFailed as failure:
        raise misconfigured(server, failure.what) from None
    except (FetchFailed, TokenRefused, BadTokenAnswer) as error:
        kind = classify(error, early=False)
        what = f"{error.error}: {error.description}" if isinstance(error, TokenRefused) else str(error)
        shared.log.write("token-refused", found.resource, what)
        if kind in (Class.BUSY, Class.OUTAGE):
            raise _later(shared, server, f"the authorization server {found.issuer} gave no token ({what})") from None
        raise misconfigured(server, f"the authorization server {found.issuer} refused a token ({what})") from None


def _later(shared: Shared, server: str, why: str) -> Fault:
    seconds = shared.timing.knock_seconds
    return Fault(
        "auth-unreachable",
        f"{server}: {why}. The server did not act on the request. Retry in {seconds:.0f} s.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, wait_seconds=seconds,
    )  # fmt: skip
