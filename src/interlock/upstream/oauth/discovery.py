"""Finds out how a server wants its callers authorized: its resource metadata, and its authorization server's metadata.

Protected resource metadata: RFC 9728. Authorization server metadata: RFC 8414 and OpenID Connect discovery. Orders and refusals:
MCP 2026-07-28, authorization-server-discovery. Servers of 2025-03-26 have neither; their origin is the authorization server.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.challenge import Bearer
from interlock.upstream.oauth.discovery_search import DiscoveryFailed, Search, no_mcp_server
from interlock.upstream.oauth.documents import Discovered, ResourceMetadata, ServerMetadata
from interlock.upstream.oauth.fetch import Fetcher
from interlock.upstream.oauth.metadata import BadDocument, resource_metadata, same_but_slash, server_metadata
from interlock.upstream.oauth.resource_fit import is_own, must_cover, own_resource, usual_places
from interlock.wire.address import Address, BadAddress, permitted, shown, take_apart

__all__ = ["DiscoveryFailed", "discover", "issuer_metadata", "no_mcp_server"]

MAX_CANDIDATES = 8
"""Addresses of resource metadata, and authorization servers, that are tried."""


async def discover(
    fetch: Fetcher,
    server_url: str,
    challenge: Bearer | None,
    settings: OAuth,
    seconds: float,
    *,
    prefer_issuer: str | None = None,
) -> Discovered:
    """Everything needed to ask for a grant for `server_url`, within `seconds`. Raises DiscoveryFailed.

    `challenge`: of the 401 or 403 that led here, if one did. `prefer_issuer`: where a grant exists already; taken if the
    server still names it, and then no other one is tried.
    """
    try:
        server = permitted(server_url)  # a token sent over plain http belongs to everybody on the way
    except BadAddress as error:
        raise DiscoveryFailed(f"No grant is asked for {shown(server_url)}: {error}.", unreachable=False) from None
    search = Search(fetch, server, seconds)
    remarks: list[str] = []
    resource, vouched = await _resource(search, server, challenge, settings, remarks)
    if resource is None and challenge is None and await search.has_no_mcp_server(server_url):
        raise no_mcp_server(server_url)
    named = resource.authorization_servers if resource is not None else ()
    if settings.issuer is not None:
        issuers = _only(settings.issuer, named or (server.root,), published=bool(named))
    else:
        issuers = _issuers(named, prefer_issuer) if named else (server.root,)
    conventional = resource is None and issuers == (server.root,)
    if resource is not None and not named and issuers == (server.root,):
        remarks.append("The resource metadata names no authorization server; the server's own origin was taken.")
    metadata = await _server(search, issuers, server, remarks, conventional)
    if metadata is not None:
        _has_endpoints(metadata, settings)
        _promises_pkce(metadata, settings, remarks)
    else:
        metadata = _usual_endpoints(server)
        remarks.append("The server publishes no metadata at all; the endpoints of revision 2025-03-26 are taken.")
        _has_endpoints(metadata, settings)
        _nobody_promises_pkce(server, settings, remarks)
    own = resource.resource if resource is not None else own_resource(server)
    asked_for = settings.resource or own
    return Discovered(
        server_url=server_url,
        resource=asked_for,
        issuer=metadata.issuer,
        metadata=metadata,
        scopes_supported=resource.scopes_supported if resource is not None else None,
        challenge_scope=challenge.scope if challenge is not None else None,
        conventional=conventional,
        borrowed=not (is_own(asked_for, server) or (vouched and asked_for == own)),
        remarks=tuple(remarks),
    )


async def issuer_metadata(fetch: Fetcher, issuer: str, server_url: str, seconds: float) -> ServerMetadata:
    """The metadata of one authorization server, whatever the MCP server names now. Raises DiscoveryFailed."""
    try:
        server = permitted(server_url)
    except BadAddress as error:
        raise DiscoveryFailed(f"{shown(server_url)}: {error}.", unreachable=False) from None
    # The origin of nobody: where the issuer is away, the MCP server is not to blame.
    metadata = await _server(Search(fetch, None, seconds), (issuer,), server, [], False)
    assert metadata is not None
    return metadata


# -- the resource


async def _resource(
    search: Search, server: Address, challenge: Bearer | None, settings: OAuth, remarks: list[str]
) -> tuple[ResourceMetadata | None, bool]:
    """The resource metadata that fits the server, None where it has none; and whether it fits without a setting that says so."""
    wrong: list[str] = []
    claimed = ""
    named = challenge.resource_metadata[:MAX_CANDIDATES] if challenge is not None else ()
    usual = tuple(usual_places(server))
    for url in dict.fromkeys((*named, *usual)):
        if wrong and named and url not in named:
            # What the challenge names is the server's own word, and it speaks of another resource: nothing replaces it.
            break
        try:
            permitted(url, loopback=server.loopback)
        except BadAddress as error:
            search.seen.append(f"{shown(url)}: not tried, {error}")
            continue
        document = await search.document(url)
        if document is None:
            continue
        if "resource" not in document and "authorization_servers" not in document:
            search.seen.append(f"{shown(url)}: not resource metadata")
            continue
        try:
            noted: list[str] = []
            found = resource_metadata(document, noted)
            vouched = must_cover(found.resource, server, url, settings, noted)
        except BadDocument as error:
            wrong.append(f"{shown(url)}: {error}")
            claimed = claimed or str(document.get("resource") or "")
            continue
        remarks += noted
        if named and url not in named:
            remarks.append(f"The resource metadata that the challenge names could not be used; {shown(url)} was taken.")
        return found, vouched
    if wrong:
        search.seen[:0] = wrong
        raise search.failure(
            f"The resource metadata of {shown(server.root + server.path)} cannot be used.",
            _cure(claimed),
        )
    if search.outage:
        raise search.failure(f"The resource metadata of {shown(server.root + server.path)} could not be read.", "")
    if named:
        remarks.append("The challenge names resource metadata that is not there; the server's own origin was taken.")
    return None, False


def _cure(claimed: str) -> str:
    """What to do where the metadata is for another address than the one that was given."""
    try:
        plain = not take_apart(claimed).fragment
    except BadAddress:
        plain = False
    if not plain:
        return "The server's operator has to correct it."
    return (
        f"Use the address that it names, {shown(claimed)}. Where this one is right too, set oauth.resource (--resource) to exactly "
        "the `resource` that it names."
    )


# -- the authorization server


def _issuers(named: tuple[str, ...], preferred: str | None) -> tuple[str, ...]:
    """Which authorization servers to try. The choice is the client's (RFC 9728 section 7.6): in the server's order."""
    if preferred is not None:
        for issuer in named:
            if issuer == preferred or same_but_slash(issuer, preferred):
                return (issuer,)
    return tuple(dict.fromkeys(named))[:MAX_CANDIDATES]


def _only(issuer: str, named: tuple[str, ...], *, published: bool) -> tuple[str, ...]:
    """The authorization server that the settings name, and no other. Raises DiscoveryFailed where the server names others.

    A server that publishes nothing has nothing against it (2026-07-28, authorization-server-discovery: pre-configured values).
    """
    for each in named:
        if each == issuer or same_but_slash(each, issuer):
            return (each,)
    if not published:
        return (issuer,)
    listed = ", ".join(shown(each) for each in named[:4])
    raise DiscoveryFailed(
        f"The server names the authorization server {listed}, and the settings allow {shown(issuer)} alone. Nothing was sent to it.",
        todo="Ask the server's operator; if it has moved, correct oauth.issuer (--issuer).",
        unreachable=False,
    )


async def _server(
    search: Search,
    issuers: tuple[str, ...],
    server: Address,
    remarks: list[str],
    conventional: bool,
) -> ServerMetadata | None:
    """The metadata of the first issuer that has any; None where a conventional one publishes nothing at all."""
    wrong = False
    for issuer in issuers:
        try:
            address = permitted(issuer, loopback=server.loopback)
            if address.query or address.fragment:
                raise BadAddress("an issuer has no query and no fragment")
        except BadAddress as error:
            search.seen.append(f"issuer {shown(issuer)}: not tried, {error}")
            continue
        for url in _server_places(address):
            document = await search.document(url)
            if document is None:
                continue
            try:
                noted: list[str] = []
                metadata = server_metadata(document, loopback=address.loopback, remarks=noted)
                _must_be(metadata.issuer, issuer, noted)
            except BadDocument as error:
                wrong = True
                search.seen.append(f"{shown(url)}: {error}")
                continue
            remarks += noted
            return metadata
    if conventional and not wrong and not search.outage:
        return None
    listed = ", ".join(shown(each) for each in issuers[:4])
    raise search.failure(
        f"No usable metadata of the authorization server ({listed}) was found.",
        "The operator of the server or of its authorization server has to correct it.",
    )


def _server_places(issuer: Address) -> Iterator[str]:
    """The three places for an issuer with a path, the two for one without (2026-07-28, authorization-server-discovery)."""
    path = issuer.path.rstrip("/")
    yield f"{issuer.root}/.well-known/oauth-authorization-server{path}"
    yield f"{issuer.root}/.well-known/openid-configuration{path}"
    if path:
        yield f"{issuer.root}{path}/.well-known/openid-configuration"


def _must_be(claimed: str, expected: str, remarks: list[str]) -> None:
    """Identical strings (RFC 8414 section 3.3); only the slash after a bare host is forgiven. Raises BadDocument."""
    if claimed == expected:
        return
    if not same_but_slash(claimed, expected):
        raise BadDocument(f"it says that its issuer is {claimed[:300]!r}, and {expected[:300]!r} was asked for")
    remarks.append(
        f"The issuer is {claimed!r} in its own metadata and {expected!r} in the server's: not the same string. The slash was forgiven."
    )


def _usual_endpoints(server: Address) -> ServerMetadata:
    """Where a server of 2025-03-26 has its endpoints if it publishes nothing (authorization: Fallbacks for Servers without
    Metadata Discovery)."""
    return ServerMetadata(
        issuer=server.root,
        authorization_endpoint=f"{server.root}/authorize",
        token_endpoint=f"{server.root}/token",
        registration_endpoint=f"{server.root}/register",
    )


def _has_endpoints(metadata: ServerMetadata, settings: OAuth) -> None:
    """Whether the flow that the manifest asks for can run there. Raises DiscoveryFailed."""
    needed = {"token_endpoint": metadata.token_endpoint}
    if settings.flow == "browser":
        needed["authorization_endpoint"] = metadata.authorization_endpoint
    elif settings.flow == "device":
        needed["device_authorization_endpoint"] = metadata.device_authorization_endpoint
    missing = [name for name, value in needed.items() if value is None]
    if missing:
        raise DiscoveryFailed(
            f"The authorization server {shown(metadata.issuer)} names no usable {' and no usable '.join(missing)}, which the flow "
            f"{settings.flow!r} needs.",
            todo="Choose another oauth.flow (--flow), or ask its operator.",
            unreachable=False,
        )


def _nobody_promises_pkce(server: Address, settings: OAuth, remarks: list[str]) -> None:
    """A server that publishes nothing promises no PKCE either, and MCP 2026-07-28 has no exception for it. Raises DiscoveryFailed.

    Revision 2025-03-26 knew servers without metadata and asked them to check PKCE; on this machine that is believed. On
    the way to another one a code can be stolen, so it takes the setting.
    """
    if settings.flow != "browser":
        return
    if not server.loopback and not settings.allow_missing_pkce:
        raise DiscoveryFailed(
            f"{shown(server.root)} publishes no metadata, so nothing says that it checks PKCE with S256, and MCP forbids a sign-in "
            "there.",
            todo="Ask its operator to publish it (RFC 8414); or, knowing the risk that a stolen code can be used, set "
            "oauth.allowMissingPkce (--allow-missing-pkce) for this server. That is not conforming.",
            unreachable=False,
        )
    remarks.append(
        "Not conforming: nothing says that the authorization server checks PKCE. The challenge (S256) is sent all the same."
    )


def _promises_pkce(metadata: ServerMetadata, settings: OAuth, remarks: list[str]) -> None:
    """Without the promise of PKCE no login (2026-07-28, security-considerations: Authorization Code Protection). Raises
    DiscoveryFailed."""
    if settings.flow != "browser" or "S256" in (metadata.code_challenge_methods_supported or ()):
        return
    if not settings.allow_missing_pkce:
        raise DiscoveryFailed(
            f"The authorization server {shown(metadata.issuer)} does not say that it checks PKCE with S256 "
            "(code_challenge_methods_supported), and MCP forbids a sign-in there.",
            todo="Ask its operator; or, knowing the risk that a stolen code can be used, set oauth.allowMissingPkce "
            "(--allow-missing-pkce) for this server. That is not conforming.",
            unreachable=False,
        )
    remarks.append(
        "The authorization server does not promise PKCE; oauth.allowMissingPkce (--allow-missing-pkce) goes on all the same. Not "
        "conforming."
    )
