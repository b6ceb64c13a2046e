"""How a client shows who it is to a token endpoint (RFC 6749 section 2.3)."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.upstream.oauth.grant import Registration


def signed(registration: Registration, form: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, str] | None]:
    """The form with the client's identity added, and the pair for `Fetcher.post_form(basic=...)` where that carries it."""
    if registration.auth_method == "client_secret_basic" and registration.client_secret is not None:
        return dict(form), (registration.client_id, registration.client_secret)
    signed_form = {**form, "client_id": registration.client_id}
    if registration.auth_method == "client_secret_post" and registration.client_secret is not None:
        signed_form["client_secret"] = registration.client_secret
    return signed_form, None
