"""What a grant is filed under, and how a token is named without being shown."""

from __future__ import annotations

import hashlib
import re

import msgspec

from interlock.upstream.oauth.documents import Discovered

_ID = re.compile(r"[0-9a-f]{32}")


def grant_id(resource: str, issuer: str, preset_client: str | None) -> str:
    """32 hex digits. By resource, issuer and a client id that the settings name; never by the server's key in a manifest.

    Raw strings: `https://a` and `https://a/` are two (RFC 8414 section 3.3).
    """
    return digest("grant", resource, issuer, preset_client)


def filed_under(found: Discovered, preset_client: str | None) -> str:
    """The id of the grant for what was discovered.

    Servers with one resource share its grant, where the resource is their own or their origin says so. One that only a
    setting gives the resource has a grant of its own: a person signed in for another server, not for it.
    """
    if found.borrowed:
        return digest("grant", found.resource, found.issuer, preset_client, found.server_url)
    return grant_id(found.resource, found.issuer, preset_client)


def digest(*parts: str | None) -> str:
    """32 hex digits over the parts; no two lists of parts run into each other."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]


def token_hash(token: str) -> str:
    """Tells tokens apart without being one: 64 hex digits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def checked(id: str) -> str:
    """The id itself. Raises ValueError for anything that `grant_id` cannot have made: it becomes a file's name."""
    if not _ID.fullmatch(id):
        raise ValueError(f"not the id of a grant: {id[:64]!r}")
    return id
