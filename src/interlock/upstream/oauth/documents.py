"""The two metadata documents of MCP authorization, as far as a client reads them, and what was found out of both.

Strings are kept as they came: issuers and resources are compared as raw strings (RFC 8414 section 3.3, RFC 9207, RFC 9728).
"""

from __future__ import annotations

import msgspec


class ResourceMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Protected resource metadata (RFC 9728)."""

    resource: str
    authorization_servers: tuple[str, ...] = ()
    scopes_supported: tuple[str, ...] | None = None


class ServerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Authorization server metadata (RFC 8414, or OpenID Connect discovery)."""

    issuer: str
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    scopes_supported: tuple[str, ...] | None = None
    grant_types_supported: tuple[str, ...] | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    code_challenge_methods_supported: tuple[str, ...] | None = None
    authorization_response_iss_parameter_supported: bool = False
    client_id_metadata_document_supported: bool = False


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of how one server wants its callers authorized. Kept on disk, so that a restart needs no discovery."""

    server_url: str
    resource: str
    """For the `resource` parameter (RFC 8707), verbatim from the resource metadata, or the setting that overrides it."""
    issuer: str
    metadata: ServerMetadata
    scopes_supported: tuple[str, ...] | None = None
    """Of the resource; the authorization server's own list is no source of scopes."""
    challenge_scope: tuple[str, ...] | None = None
    """From the challenge that led here; it is authoritative (2026-07-28, authorization: Scope Selection)."""
    conventional: bool = False
    """True where the server had no resource metadata and its origin was taken as the issuer (2025-03-26)."""
    borrowed: bool = False
    """True where only a setting says that `resource` is meant for this server: it is neither the server's own URL nor
    what the server's own origin names. Then the grant is for `server_url` alone (`filed_under`)."""
    remarks: tuple[str, ...] = ()
    """What is not as the specification asks and was tolerated, in sentences for people."""
