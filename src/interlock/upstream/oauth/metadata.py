"""Turns the JSON of the two metadata documents into values. The documents are strangers' words: types, sizes and addresses are checked.

A field that is not needed and cannot be read is left out, and said so in a remark; a field that everything rests on makes the
document unusable.
"""

from __future__ import annotations

from interlock.upstream.oauth import scopes
from interlock.upstream.oauth.documents import ResourceMetadata, ServerMetadata
from interlock.wire.address import MAX_LENGTH, BadAddress, permitted

MAX_ENTRIES = 256
MAX_ENTRY = 512


class BadDocument(ValueError):
    """The document cannot be used; the message says why, for people."""


def resource_metadata(document: dict[str, object], remarks: list[str]) -> ResourceMetadata:
    """Protected resource metadata (RFC 9728 section 2). Raises BadDocument."""
    resource = _identifier(document, "resource")
    servers = document.get("authorization_servers", [])
    if not isinstance(servers, list):
        raise BadDocument("its authorization_servers is not a list")
    named = [each for each in servers[:MAX_ENTRIES] if isinstance(each, str) and 0 < len(each) <= MAX_LENGTH]
    if servers and not named:
        raise BadDocument("its authorization_servers has no readable entry")
    return ResourceMetadata(
        resource=resource,
        authorization_servers=tuple(named),
        scopes_supported=_scopes(document, "scopes_supported", remarks),
    )


def server_metadata(document: dict[str, object], *, loopback: bool, remarks: list[str]) -> ServerMetadata:
    """Authorization server metadata (RFC 8414 section 2). Raises BadDocument.

    `loopback`: the issuer is on this machine, and so may its endpoints be.
    """
    issuer = _identifier(document, "issuer")
    noted: list[str] = []

    def endpoint(name: str) -> str | None:
        value = document.get(name)
        if value is None:
            return None
        try:
            if not isinstance(value, str):
                raise BadAddress("not a string")
            if permitted(value, loopback=loopback).fragment:
                raise BadAddress("it has a fragment")
        except BadAddress as error:
            noted.append(f"The authorization server's {name} is not used: {error}.")
            return None
        return value

    metadata = ServerMetadata(
        issuer=issuer,
        authorization_endpoint=endpoint("authorization_endpoint"),
        token_endpoint=endpoint("token_endpoint"),
        registration_endpoint=endpoint("registration_endpoint"),
        revocation_endpoint=endpoint("revocation_endpoint"),
        device_authorization_endpoint=endpoint("device_authorization_endpoint"),
        scopes_supported=_scopes(document, "scopes_supported", noted),
        grant_types_supported=_words(document, "grant_types_supported", noted),
        token_endpoint_auth_methods_supported=_words(document, "token_endpoint_auth_methods_supported", noted),
        code_challenge_methods_supported=_words(document, "code_challenge_methods_supported", noted),
        authorization_response_iss_parameter_supported=_flag(
            document, "authorization_response_iss_parameter_supported"
        ),
        client_id_metadata_document_supported=_flag(document, "client_id_metadata_document_supported"),
    )
    remarks.extend(noted)
    return metadata


def same_but_slash(one: str, other: str) -> bool:
    """Whether two issuers differ in nothing but the slash after a bare host."""
    short, long = sorted((one, other), key=len)
    return long == f"{short}/" and short.count("/") == 2


def _identifier(document: dict[str, object], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise BadDocument(f"it has no {name}")
    if len(value) > MAX_LENGTH or not value.isprintable():
        raise BadDocument(f"its {name} is not an address")
    return value


def _words(document: dict[str, object], name: str, remarks: list[str]) -> tuple[str, ...] | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, list):
        remarks.append(f"{name} is not a list, and was not read.")
        return None
    return tuple(each for each in value[:MAX_ENTRIES] if isinstance(each, str) and len(each) <= MAX_ENTRY)


def _scopes(document: dict[str, object], name: str, remarks: list[str]) -> tuple[str, ...] | None:
    words = _words(document, name, remarks)
    return None if words is None else scopes.union(words)


def _flag(document: dict[str, object], name: str) -> bool:
    """Also a quoted "true": for the flags read here, reading more as true is the stricter side or asks nothing of anybody."""
    value = document.get(name)
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")
