"""Gets a client id from an authorization server: configured, a metadata document, or dynamic registration, in this order.

MCP 2026-07-28, client-registration; RFC 7591; OAuth Client ID Metadata Document (draft 00).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Literal

from interlock.manifest.config import OAuth
from interlock.upstream.oauth import scopes
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Answer, Fetcher, FetchFailed
from interlock.upstream.oauth.grant import Registration
from interlock.upstream.oauth.tokens import cleaned, number
from interlock.wire.address import BadAddress, shown, take_apart

CLIENT_NAME = "Interlock"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
SET_CLIENT_ID = (
    "Register a client there by hand and set oauth.clientId (--client-id) for this server, with oauth.clientSecretEnv "
    "(--client-secret-env) if it has a secret."
)
_DOCUMENT_SECONDS = 5.0
_EXPIRY_MARGIN = 30.0

AuthMethod = Literal["none", "client_secret_post", "client_secret_basic"]


class RegistrationFailed(Exception):
    """`what`: for people, with what to do. `unreachable`: an outage that may pass by itself."""

    def __init__(self, what: str, *, unreachable: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.unreachable = unreachable


async def register(
    fetch: Fetcher,
    found: Discovered,
    settings: OAuth,
    environ: Mapping[str, str],
    redirect_uri: str | None,
    seconds: float,
) -> Registration:
    """Who we are to `found.issuer`, within `seconds`. Raises RegistrationFailed.

    `redirect_uri` is the one that will be listened on; None for flows without a browser. The registration's own
    `redirect_uri` is the one to use: an authorization server may have taken only the same port by another loopback name.
    """
    end = time.monotonic() + seconds
    if settings.client_id is not None or settings.client_id_env is not None:
        return _preset(found, settings, environ, redirect_uri)
    metadata = found.metadata
    document = settings.client_metadata_url
    if document is not None and metadata.client_id_metadata_document_supported:
        _check_document_url(document)
        declared = await declared_redirects(fetch, document, min(seconds / 2, _DOCUMENT_SECONDS))
        if redirect_uri is None or declared is None or covered(redirect_uri, declared):
            return Registration(
                issuer=found.issuer, client_id=document, source="metadata-document", redirect_uri=redirect_uri
            )
        if metadata.registration_endpoint is None:
            listed = ", ".join(shown(each) for each in declared[:5]) or "none"
            raise RegistrationFailed(
                f"The client metadata document {shown(document)} does not list the redirect URI {redirect_uri} (it lists {listed}). "
                "Set oauth.callbackPort (--callback-port) to a port that it declares, or correct the document."
            )
    if metadata.registration_endpoint is None:
        offers = ""
        if metadata.client_id_metadata_document_supported:
            offers = (
                " It takes Client ID Metadata Documents: oauth.clientMetadataUrl (--client-metadata-url) names yours."
            )
        raise RegistrationFailed(
            f"The authorization server {shown(found.issuer)} does not let clients register themselves. {SET_CLIENT_ID}{offers}"
        )
    return await _dynamic(fetch, found, settings, metadata.registration_endpoint, redirect_uri, end)


def still_valid(
    registration: Registration, settings: OAuth, environ: Mapping[str, str], redirect_uri: str | None, now: float
) -> bool:
    """Whether a kept registration may be used again. `now` is on the authorization server's clock; no network is used."""
    if settings.client_id is not None or settings.client_id_env is not None:
        # The configured id wins over whatever was kept.
        return (
            registration.source == "preset"
            and registration.client_id == _configured_id(settings, environ)
            and registration.client_secret == _configured_secret(settings, environ)
        )
    if registration.source == "preset":
        return False
    if registration.source == "metadata-document":
        return registration.client_id == settings.client_metadata_url
    if registration.secret_expires_at is not None and now >= registration.secret_expires_at - _EXPIRY_MARGIN:
        return False
    if settings.flow == "client-credentials" and registration.client_secret is None:
        return False
    return redirect_uri is None or (
        registration.redirect_uri is not None
        and redirect_uri in (registration.redirect_uri, *_other_names(registration.redirect_uri))
    )


# -- configured


def _configured_id(settings: OAuth, environ: Mapping[str, str]) -> str | None:
    if settings.client_id is not None:
        return settings.client_id
    return (environ.get(settings.client_id_env, "").strip() or None) if settings.client_id_env is not None else None


def _configured_secret(settings: OAuth, environ: Mapping[str, str]) -> str | None:
    name = settings.client_secret_env
    return (environ.get(name, "").strip() or None) if name is not None else None


def _preset(found: Discovered, settings: OAuth, environ: Mapping[str, str], redirect_uri: str | None) -> Registration:
    client_id, secret = _configured_id(settings, environ), _configured_secret(settings, environ)
    if not client_id:
        raise RegistrationFailed(
            f"The client id for {shown(found.issuer)} is to come from the environment variable {settings.client_id_env}, which is "
            "not set where Interlock runs. Set it there and try again."
        )
    if settings.client_secret_env is not None and secret is None:
        raise RegistrationFailed(
            f"The client secret for {shown(found.issuer)} is to come from the environment variable {settings.client_secret_env}, "
            "which is not set where Interlock runs. Set it there and try again."
        )
    method = _method(found, secret is not None)
    if method is None:
        offered = ", ".join(found.metadata.token_endpoint_auth_methods_supported or ())
        raise RegistrationFailed(
            f"The authorization server {shown(found.issuer)} takes client secrets in no way that Interlock knows "
            f"(it offers {cleaned(offered, ())})."
        )
    return Registration(
        issuer=found.issuer,
        client_id=client_id,
        source="preset",
        client_secret=secret,
        auth_method=method,
        redirect_uri=redirect_uri,
    )


def _method(found: Discovered, with_secret: bool) -> AuthMethod | None:
    """How to authenticate. A list that is not there means client_secret_basic (RFC 8414 section 2)."""
    if not with_secret:
        return "none"
    offered = found.metadata.token_endpoint_auth_methods_supported
    if offered is None or "client_secret_basic" in offered:
        return "client_secret_basic"
    return "client_secret_post" if "client_secret_post" in offered else None


# -- a metadata document


def _check_document_url(url: str) -> None:
    """https, with a path, without fragment, user, or dot segments (draft 00, section 3). Raises RegistrationFailed."""
    try:
        address = take_apart(url)
        if address.scheme.lower() != "https":
            raise BadAddress("it is not https")
        if address.path in ("", "/"):
            raise BadAddress("it has no path")
        if address.fragment:
            raise BadAddress("it has a fragment")
        if {".", ".."} & set(address.path.split("/")):
            raise BadAddress("its path has dot segments")
    except BadAddress as error:
        raise RegistrationFailed(
            f"oauth.clientMetadataUrl (--client-metadata-url) cannot be a client id: {error}."
        ) from None


async def declared_redirects(fetch: Fetcher, url: str, seconds: float) -> tuple[str, ...] | None:
    """The redirect URIs that a client metadata document lists; None where it cannot be read from here.

    That proves nothing: it is the authorization server that has to read it. Raises RegistrationFailed where the document is
    there and is for another client id.
    """
    try:
        document = (await fetch.get(url, seconds)).json()
    except FetchFailed:
        return None
    if document is None or "client_id" not in document:
        return None
    if document["client_id"] != url:
        raise RegistrationFailed(
            f"The client metadata document {shown(url)} has a client_id other than its address: no server may take it."
        )
    listed = document.get("redirect_uris")
    return tuple(each for each in listed[:100] if isinstance(each, str)) if isinstance(listed, list) else None


def covered(redirect_uri: str, declared: tuple[str, ...]) -> bool:
    """Whether a redirect URI is among the declared ones: exactly, or as one of this machine without a port (RFC 8252 section 7.3)."""
    if redirect_uri in declared:
        return True
    try:
        ours = take_apart(redirect_uri)
    except BadAddress:
        return False
    return f"{ours.scheme}://{ours.authority.removesuffix(f':{ours.port}')}{ours.path}" in declared and ours.loopback


# -- dynamic


async def _dynamic(
    fetch: Fetcher, found: Discovered, settings: OAuth, endpoint: str, redirect_uri: str | None, end: float
) -> Registration:
    wish = _wish(found, settings, redirect_uri)
    answer = await _post(fetch, endpoint, wish, end)
    used = redirect_uri
    if answer.status == 400:
        adjusted, used = _adjusted(wish, answer, found, redirect_uri)
        if adjusted is not None:
            wish = adjusted
            answer = await _post(fetch, endpoint, wish, end)
    document = answer.json()
    if answer.status not in (200, 201) or document is None:
        raise _refused(answer, endpoint, used)
    return registered(document, found, settings, used)


def _wish(found: Discovered, settings: OAuth, redirect_uri: str | None) -> dict[str, object]:
    """Client metadata (RFC 7591 section 2). `application_type`: without it OpenID servers take us for a web site."""
    scope = scopes.wanted(found, settings)
    grant_types = {
        "browser": ["authorization_code", "refresh_token"],
        "device": [DEVICE_GRANT, "refresh_token"],
        "client-credentials": ["client_credentials"],
    }[settings.flow]
    wish: dict[str, object] = {
        "client_name": CLIENT_NAME,
        "application_type": "native",
        "grant_types": grant_types,
        "response_types": ["code"] if settings.flow == "browser" else [],
        "token_endpoint_auth_method": _wished_method(found, settings),
    }
    if redirect_uri is not None:
        wish["redirect_uris"] = [redirect_uri]
    if scope:
        wish["scope"] = " ".join(scope)
    return wish


def _wished_method(found: Discovered, settings: OAuth) -> AuthMethod:
    offered = found.metadata.token_endpoint_auth_methods_supported
    if settings.flow != "client-credentials" and (offered is None or "none" in offered):
        return "none"
    return _method(found, True) or "client_secret_basic"


async def _post(fetch: Fetcher, endpoint: str, wish: dict[str, object], end: float) -> Answer:
    try:
        answer = await fetch.post_json(endpoint, wish, end - time.monotonic())
    except FetchFailed as failure:
        raise RegistrationFailed(
            f"The client could not be registered: {failure.what} Try again later.", unreachable=True
        ) from None
    if answer.status >= 500 or answer.status in (408, 429):
        raise RegistrationFailed(
            f"The client could not be registered: {shown(endpoint)} answered HTTP {answer.status}. Try again later.",
            unreachable=True,
        )
    return answer


def _adjusted(
    wish: dict[str, object], answer: Answer, found: Discovered, redirect_uri: str | None
) -> tuple[dict[str, object] | None, str | None]:
    """One more try after a refusal, with what it seems to be about changed; and the redirect URI that goes with it."""
    error, description = _error(answer)
    about_redirect = error == "invalid_redirect_uri" or "redirect" in description.lower()
    if redirect_uri is not None and about_redirect:
        # Some servers take loopback addresses only (RFC 8252 section 8.3 advises against the name `localhost`).
        for other in _other_names(redirect_uri):
            return {**wish, "redirect_uris": [other]}, other
    if error not in ("invalid_client_metadata", "invalid_scope", "invalid_request"):
        return None, redirect_uri
    smaller = {name: value for name, value in wish.items() if name != "scope"}
    grant_types, offered = wish["grant_types"], found.metadata.grant_types_supported
    if offered is not None and "refresh_token" not in offered and isinstance(grant_types, list):
        smaller["grant_types"] = [each for each in grant_types if each != "refresh_token"]
    return (smaller if smaller != wish else None), redirect_uri


def _other_names(redirect_uri: str) -> tuple[str, ...]:
    """The same loopback listener by its other name: both are bound."""
    for name, other in (("localhost", "127.0.0.1"), ("127.0.0.1", "localhost")):
        if redirect_uri.startswith(f"http://{name}:"):
            return (redirect_uri.replace(name, other, 1),)
    return ()


def _error(answer: Answer) -> tuple[str, str]:
    document = answer.json() or {}
    error, description = document.get("error"), document.get("error_description")
    return (
        cleaned(error, (), 64) if isinstance(error, str) else "",
        cleaned(description, ()) if isinstance(description, str) else "",
    )


def _refused(answer: Answer, endpoint: str, redirect_uri: str | None) -> RegistrationFailed:
    error, description = _error(answer)
    said = f"HTTP {answer.status}" + (f", {error}" if error else "") + (f": {description}" if description else "")
    where = shown(endpoint)
    if redirect_uri is not None and (error == "invalid_redirect_uri" or "redirect" in description.lower()):
        return RegistrationFailed(
            f"{where} refused to register this client because of its redirect URI {redirect_uri} ({said}). If it takes fixed ports "
            f"only, set oauth.callbackPort (--callback-port). Otherwise: {SET_CLIENT_ID}"
        )
    if answer.status in (200, 201):
        return RegistrationFailed(f"{where} answered a registration with something that is not JSON. {SET_CLIENT_ID}")
    return RegistrationFailed(f"{where} refused to register this client ({said}). {SET_CLIENT_ID}")


def registered(
    document: dict[str, object], found: Discovered, settings: OAuth, redirect_uri: str | None
) -> Registration:
    """The registration that an answer makes (RFC 7591 section 3.2.1). Raises RegistrationFailed."""
    issuer = shown(found.issuer)
    client_id, secret = document.get("client_id"), document.get("client_secret")
    if not isinstance(client_id, str) or not client_id or len(client_id) > 4096 or not client_id.isprintable():
        raise RegistrationFailed(f"{issuer} answered a registration without a client_id. {SET_CLIENT_ID}")
    if not isinstance(secret, str) or not secret:
        secret = None
    said = document.get("token_endpoint_auth_method")
    method: AuthMethod
    if said in ("none", "client_secret_post", "client_secret_basic"):
        method = said
    elif isinstance(said, str) and said:
        raise RegistrationFailed(
            f"{issuer} registered this client for the authentication method {cleaned(said, (), 64)!r}, which Interlock does not know. "
            f"{SET_CLIENT_ID}"
        )
    elif secret is None:
        method = "none"
    else:
        method = _method(found, True) or "client_secret_basic"
    if method != "none" and secret is None:
        raise RegistrationFailed(f"{issuer} registered this client for {method} and gave it no secret. {SET_CLIENT_ID}")
    if settings.flow == "client-credentials" and method == "none":
        raise RegistrationFailed(f"{issuer} gave this client no secret, which client credentials need. {SET_CLIENT_ID}")
    # 0 means that the secret never expires (RFC 7591 section 3.2.1).
    expiry = number(document.get("client_secret_expires_at"))
    return Registration(
        issuer=found.issuer,
        client_id=client_id,
        source="dynamic",
        client_secret=secret if method != "none" else None,
        secret_expires_at=expiry if method != "none" and expiry is not None and expiry > 0 else None,
        auth_method=method,
        redirect_uri=redirect_uri,
    )
