"""Clients of the scripted authorization server: registered by themselves (RFC 7591), given in advance, or named by a document."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from interlock.lab.auth.behaviour import Behaviour
from interlock.lab.auth.families import OAuthError
from interlock.lab.auth.truth import Truth
from interlock.lab.jsonrpc import JsonObject

LOOPBACK = {"127.0.0.1", "::1", "localhost"}


@dataclass(frozen=True, slots=True)
class Client:
    client_id: str
    auth_method: str
    secret: str | None
    redirect_uris: tuple[str, ...]
    secret_expires_at: float | None = None
    any_port: bool = False
    """Whether loopback redirect URIs may have any port (RFC 8252, section 7.3)."""

    def allows(self, redirect_uri: str) -> bool:
        return redirect_uri in self.redirect_uris or (
            self.any_port
            and any(_without_port(redirect_uri) == _without_port(known) for known in self.redirect_uris)
            and urlsplit(redirect_uri).hostname in LOOPBACK
        )


class Clients:
    """Who may ask for tokens. `preset` is the id of a public client known from the start; `machine` one with a secret."""

    def __init__(self, behaviour: Behaviour, truth: Truth) -> None:
        self._behaviour = behaviour
        self._truth = truth
        self.preset = "preset-client"
        self.machine = "machine-client"
        self.machine_secret = secrets.token_urlsafe(24)
        self._clients: dict[str, Client] = {}
        self._lasting = {
            self.preset: Client(self.preset, "none", None, tuple(_preset_redirects()), any_port=True),
            self.machine: Client(self.machine, "client_secret_basic", self.machine_secret, ()),
        }

    def forget(self) -> None:
        """Lose every client that registered itself."""
        self._clients.clear()

    def register(self, body: JsonObject, now: float) -> JsonObject:
        """Dynamic registration (RFC 7591); the answer. Raises OAuthError, as for a redirect URI that is not taken."""
        self._truth.registered.append(body)
        redirects = body.get("redirect_uris")
        uris = [uri for uri in redirects if isinstance(uri, str)] if isinstance(redirects, list) else []
        grant_types = body.get("grant_types", ["authorization_code"])
        if not isinstance(grant_types, list):
            raise OAuthError("invalid_client_metadata", "grant_types must be a list")
        if not uris and "authorization_code" in grant_types:
            raise OAuthError("invalid_redirect_uri", "at least one redirect URI is needed")
        for uri in uris:
            self._check_redirect(uri, body.get("application_type"))
        method = self._behaviour.client_auth
        lifetime = self._behaviour.secret_lifetime
        secret = None if method == "none" else secrets.token_urlsafe(24)
        ends = None if secret is None or lifetime is None else now + lifetime
        client = Client(f"client-{secrets.token_hex(8)}", method, secret, tuple(uris), ends)
        self._clients[client.client_id] = client
        self._truth.counts["registrations"] += 1
        answer: JsonObject = {
            "client_id": client.client_id,
            "client_id_issued_at": int(now),
            "redirect_uris": uris,
            "grant_types": grant_types,
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
        }
        if "application_type" in body:
            answer["application_type"] = body["application_type"]
        if secret is not None:
            answer |= {"client_secret": secret, "client_secret_expires_at": 0 if ends is None else int(ends)}
        return answer

    def named(self, client_id: str) -> Client | None:
        """The client of that id."""
        if client_id.startswith("https://") and self._behaviour.client_metadata_documents:
            # The document is not fetched (no server on loopback has a trusted certificate): taken as if it lists these.
            return Client(client_id, "none", None, tuple(_preset_redirects()), any_port=True)
        return self._clients.get(client_id) or self._lasting.get(client_id)

    def authenticated(self, form: Mapping[str, str], authorization: str | None, now: float) -> Client:
        """The client behind a request to the token endpoint. Raises OAuthError invalid_client."""
        given_id, secret, method = form.get("client_id"), form.get("client_secret"), "none"
        if secret is not None:
            method = "client_secret_post"
        basic = _basic(authorization)
        if basic is not None:
            (given_id, secret), method = basic, "client_secret_basic"
        client = None if given_id is None else self.named(given_id)
        if client is None:
            raise OAuthError("invalid_client", "unknown client", 401)
        if client.auth_method != method:
            raise OAuthError("invalid_client", f"authenticate with {client.auth_method}", 401)
        if client.secret is not None and secret != client.secret:
            raise OAuthError("invalid_client", "wrong secret", 401)
        if client.secret_expires_at is not None and now >= client.secret_expires_at:
            raise OAuthError("invalid_client", "the secret has expired", 401)
        return client

    def _check_redirect(self, uri: str, application_type: object) -> None:
        parts = urlsplit(uri)
        refused = self._behaviour.refuse_redirect
        if refused == "all" or (refused == "localhost" and parts.hostname == "localhost"):
            raise OAuthError("invalid_redirect_uri", "this redirect URI is not allowed")
        if parts.fragment or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)):
            raise OAuthError("invalid_redirect_uri", "https or loopback, without a fragment")
        if self._behaviour.strict_application_type and parts.scheme == "http" and application_type != "native":
            raise OAuthError("invalid_redirect_uri", "loopback redirect URIs are for native applications")


def _preset_redirects() -> list[str]:
    return [f"http://{host}/callback" for host in ("localhost", "127.0.0.1", "[::1]")]


def _without_port(uri: str) -> str:
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.hostname}{parts.path}?{parts.query}"


def _basic(authorization: str | None) -> tuple[str, str] | None:
    """Id and secret of HTTP Basic, each form-encoded first (RFC 6749, section 2.3.1)."""
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        client_id, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (unquote(client_id), unquote(secret)) if colon else None
