"""Whether a server that this machine has signed in to names another authorization server now."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Grant


def former_issuer(grants: Iterable[Grant], found: Discovered) -> str | None:
    """The issuer of the newest grant for the same address that is of no use at the issuer which the server names now."""
    others = [each for each in grants if each.server_url == found.server_url and each.issuer != found.issuer]
    return max(others, key=lambda each: each.obtained_at).issuer if others else None


def sentence(former: str, found: Discovered) -> str:
    """For people, without a full stop."""
    return (
        f"the server now names another authorization server, {found.issuer}: the grant that this machine has from {former} "
        "is of no use there"
    )
