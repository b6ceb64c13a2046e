"""The two metadata documents of the scripted servers, as their settings have them."""

from __future__ import annotations

from urllib.parse import urlsplit

from interlock.lab.auth.behaviour import Behaviour
from interlock.lab.jsonrpc import JsonObject

PRM = "/.well-known/oauth-protected-resource"
OAUTH = "/.well-known/oauth-authorization-server"
OIDC = "/.well-known/openid-configuration"


def server_metadata(behaviour: Behaviour, issuer: str) -> JsonObject:
    """Authorization server metadata (RFC 8414)."""
    document: JsonObject = {
        "issuer": behaviour.metadata_issuer or issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "revocation_endpoint": f"{issuer}/revoke",
        "device_authorization_endpoint": f"{issuer}/device_authorization",
        "response_types_supported": ["code"],
        "grant_types_supported": [
            "authorization_code",
            "refresh_token",
            "client_credentials",
            "urn:ietf:params:oauth:grant-type:device_code",
        ],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
    }
    if behaviour.registration:
        document["registration_endpoint"] = f"{issuer}/register"
    if behaviour.pkce != "absent":
        document["code_challenge_methods_supported"] = [behaviour.pkce]
    if behaviour.iss_advertised:
        document["authorization_response_iss_parameter_supported"] = True
    if behaviour.client_metadata_documents:
        document["client_id_metadata_document_supported"] = True
    if behaviour.as_scopes is not None:
        document["scopes_supported"] = list(behaviour.as_scopes)
    return document


def server_metadata_paths(behaviour: Behaviour, issuer: str) -> set[str]:
    """Where that document answers, for an issuer with a path or without."""
    path = urlsplit(issuer).path.rstrip("/")
    places = {"oauth": OAUTH + path, "oidc-inserted": OIDC + path, "oidc-appended": path + OIDC}
    return {places[place] for place in behaviour.metadata}


def resource_metadata(behaviour: Behaviour, resource: str, issuer: str) -> JsonObject:
    """Protected resource metadata (RFC 9728)."""
    servers = (issuer,) if behaviour.authorization_servers is None else behaviour.authorization_servers
    document: JsonObject = {
        "resource": behaviour.resource or resource,
        "authorization_servers": list(servers),
        "bearer_methods_supported": ["header"],
    }
    if behaviour.scopes_supported is not None:
        document["scopes_supported"] = list(behaviour.scopes_supported)
    return document


def resource_metadata_url(behaviour: Behaviour, resource: str) -> str | None:
    """Where that document answers; None: nowhere."""
    parts = urlsplit(resource)
    origin = f"{parts.scheme}://{parts.netloc}"
    if behaviour.resource_metadata == "absent":
        return None
    return origin + PRM + (parts.path if behaviour.resource_metadata == "path" else "")
