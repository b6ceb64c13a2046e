"""The authorization request: one URL to open, and what has to be remembered to take its answer (RFC 6749 section 4.1.1)."""

from __future__ import annotations

import time
from urllib.parse import urlencode

from interlock.upstream.oauth.browser import harmless
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.flow_note import Pending
from interlock.upstream.oauth.grant import Registration
from interlock.upstream.oauth.pkce import challenge_of, new_state, new_verifier
from interlock.wire.address import BadAddress, permitted


class NoEndpoint(Exception):
    """The authorization server cannot be asked in a browser. The text is for people."""


def authorize_request(
    found: Discovered, registration: Registration, redirect_uri: str, scope: tuple[str, ...]
) -> tuple[str, Pending]:
    """A new URL with a state and a verifier of its own. Raises NoEndpoint."""
    endpoint = found.metadata.authorization_endpoint
    if endpoint is None:
        raise NoEndpoint(f"the metadata of {found.issuer} names no authorization endpoint")
    try:
        permitted(endpoint)
    except BadAddress as error:
        raise NoEndpoint(f"the authorization endpoint of {found.issuer} is not one to open: {error}") from None
    verifier = new_verifier()
    pending = Pending(
        state=new_state(),
        verifier=verifier,
        redirect_uri=redirect_uri,
        created=time.time(),
        scope=scope,
        issuer=found.issuer,
    )
    query = {
        "response_type": "code",
        "client_id": registration.client_id,
        "redirect_uri": redirect_uri,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": "S256",
        "state": pending.state,
        # Verbatim, whether the server supports it or not (2026-07-28, authorization: Resource Parameter Implementation).
        "resource": found.resource,
    }
    if scope:
        query["scope"] = " ".join(scope)
    if "offline_access" in scope:
        # OpenID Connect Core section 11: without it, the server ignores the wish for a refresh token.
        query["prompt"] = "consent"
    # The endpoint's own query stays as it is (RFC 6749 section 3.1).
    # but for what a shell could misread: people, and programs for them, paste the URL into one.
    base = harmless(endpoint.partition("#")[0])
    return f"{base}{'&' if '?' in base else '?'}{urlencode(query)}", pending
