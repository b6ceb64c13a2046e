"""Whether the resource that a metadata document names is the server that was asked: whose tokens a server gets depends on it."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.metadata import BadDocument
from interlock.wire.address import Address, BadAddress, take_apart


def usual_places(server: Address) -> Iterator[str]:
    """RFC 9728 section 3.1: the well-known path goes between host and path; then the root one."""
    well_known = f"{server.root}/.well-known/oauth-protected-resource"
    path = server.path.rstrip("/")
    if path or server.query:
        yield f"{well_known}{path}{server.query}"
    yield well_known


def must_cover(resource: str, server: Address, place: str, settings: OAuth, remarks: list[str]) -> bool:
    """Whether the resource fits the server by itself, and not only because a setting says so. Raises BadDocument for neither.

    RFC 9728 section 3.3: the resource is the server's own URL, whoever published that. One that has the server within it
    (many publish their origin) counts only where the server's own origin says so, at its well-known place: a tenant
    of a shared host can put a document anywhere else, and would get the tokens of its neighbours.
    """
    if is_own(resource, server) or (_covers(resource, server) and _is_well_known(place, server)):
        return True
    if settings.resource is not None and settings.resource == resource:
        remarks.append(
            "The resource metadata is for another address; the setting oauth.resource (--resource) says that this is meant so."
        )
        return False
    if _covers(resource, server):
        raise BadDocument(
            f"its resource is {resource[:300]!r}, which is more than this server, and only the well-known place of the server's "
            "own origin may say that"
        )
    raise BadDocument(f"its resource is {resource[:300]!r}, which is not this server")


def _is_well_known(place: str, server: Address) -> bool:
    """Whether the document's address belongs to the server's origin as a whole (RFC 9728 section 3.1)."""
    address = take_apart(place)
    path = "/.well-known/oauth-protected-resource"
    return address.origin == server.origin and (address.path == path or address.path.startswith(f"{path}/"))


def is_own(resource: str, server: Address) -> bool:
    """Whether the resource is the server's own URL; a slash at the end makes no other."""
    try:
        claimed = take_apart(resource)
    except BadAddress:
        return False
    same = claimed.origin == server.origin and claimed.path.rstrip("/") == server.path.rstrip("/")
    return same and claimed.query == server.query and not claimed.fragment


def _covers(resource: str, server: Address) -> bool:
    try:
        claimed = take_apart(resource)
    except BadAddress:
        return False
    if claimed.origin != server.origin or claimed.fragment or (claimed.query and claimed.query != server.query):
        return False
    path = claimed.path.rstrip("/")
    return server.path.rstrip("/") == path or server.path.startswith(f"{path}/")


def own_resource(server: Address) -> str:
    """The server's own address as a resource: no fragment, and no slash after a bare host (2026-07-28: Canonical Server URI)."""
    path = "" if server.path == "/" and not server.query else server.path
    return f"{server.root}{path}{server.query}"
