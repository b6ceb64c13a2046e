"""Why a grant that this machine has is of no use for a server: it moved to another authorization server, or the grant is another's."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Grant
from interlock.wire.address import shown


def former_issuer(grants: Iterable[Grant], found: Discovered) -> str | None:
    """The issuer of the newest grant for the same address that is of no use at the issuer which the server names now."""
    others = [each for each in grants if each.server_url == found.server_url and each.issuer != found.issuer]
    return max(others, key=lambda each: each.obtained_at).issuer if others else None


def neighbour(grants: Iterable[Grant], found: Discovered) -> str | None:
    """The URL of another server that has a grant for the same resource, where that is not good for this server by itself."""
    others = [
        each
        for each in grants
        if found.borrowed
        and (each.resource, each.issuer) == (found.resource, found.issuer)
        and each.server_url != found.server_url
    ]
    return max(others, key=lambda each: each.obtained_at).server_url if others else None


def not_for_this(other: str, found: Discovered) -> str:
    """For people, without a full stop."""
    return (
        f"this machine has a grant for {shown(found.resource)} that was given for the server {shown(other)}; this server gets one "
        "only where a person signs in for it"
    )


def sentence(former: str, found: Discovered) -> str:
    """For people, without a full stop."""
    return (
        f"the server now names another authorization server, {found.issuer}: the grant that this machine has from {former} "
        "is of no use there"
    )
