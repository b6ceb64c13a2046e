"""Finds out how a server wants its callers authorized: its resource metadata, and its authorization server's metadata.

Protected resource metadata: RFC 9728. Authorization server metadata: RFC 8414 and OpenID Connect discovery. Orders and refusals:
MCP 2026-07-28, authorization-server-discovery. Servers of 2025-03-26 have neither; their origin is the authorization server.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.address import Address, BadAddress, permitted, shown, take_apart
from interlock.upstream.oauth.challenge import Bearer
from interlock.upstream.oauth.documents import Discovered, ResourceMetadata, ServerMetadata
from interlock.upstream.oauth.fetch import Answer, Fetcher, FetchFailed
from interlock.upstream.oauth.metadata import BadDocument, resource_metadata, same_but_slash, server_metadata
from interlock.upstream.oauth.resource_fit import is_own, must_cover, own_resource, usual_places

MAX_CANDIDATES = 8
"""Addresses of resource metadata, and authorization servers, that are tried."""


class DiscoveryFailed(Exception):
    """`what`: for people, what was tried and seen, and what to do. `unreachable`: an outage that may pass by itself."""

    def __init__(self, what: str, *, unreachable: bool, todo: str = "", seen: str = "", gone: bool = False) -> None:
        said = " ".join(filter(None, (what, todo, seen)))
        super().__init__(said)
        self.what = said
        self.problem = " ".join(filter(None, (what, seen)))
        """The same without what to do."""
        self.todo = todo
        self.unreachable = unreachable
        self.gone = gone
        """The MCP server itself cannot be reached at this address, or there is none: no authorization server is to blame."""


class _Search:
    """One discovery: its deadline, and what was seen so far, for the error."""

    def __init__(self, fetch: Fetcher, server: Address | None, seconds: float) -> None:
        self._fetch = fetch
        self._server = server
        self._end = time.monotonic() + seconds
        self._share = seconds / 3
        self.seen: list[str] = []
        self.outage = False

    async def document(self, url: str) -> dict[str, object] | None:
        """The JSON object at an address; None where there is none, which is then noted.

        Raises DiscoveryFailed where the MCP server's own host gives no connection: then nothing else is to be learned.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            self.outage = True
            self.seen.append(f"{shown(url)}: not tried, the time was up")
            return None
        try:
            # One address that hangs must leave time for the others.
            answer = await self._fetch.get(url, min(left, max(self._share, 1.0)))
        except FetchFailed as failure:
            if failure.unconnected and self._server is not None and take_apart(url).origin == self._server.origin:
                raise _gone(failure.what) from None
            self.outage = True
            self.seen.append(failure.what.rstrip("."))
            return None
        document = answer.json() if answer.status == 200 else None
        if document is None:
            self._note(url, answer)
        return document

    def _note(self, url: str, answer: Answer) -> None:
        if answer.status >= 500 or answer.status in (408, 429):
            self.outage = True
        if 300 <= answer.status < 400:
            what = f"HTTP {answer.status}, which leads to another origin and was not followed"
        elif answer.status == 200:
            what = "no JSON object"
        else:
            what = f"HTTP {answer.status}"
        self.seen.append(f"{shown(url)}: {what}")

    async def has_no_mcp_server(self, url: str) -> bool:
        """Whether the server itself says that there is nothing at this address, to a POST and to a GET: endpoints of 2024-11-05
        know only the latter. A 404 that is JSON-RPC speaks of the method (2026-07-28, transports). Raises DiscoveryFailed."""
        for post in (True, False):
            left = min(max(self._end - time.monotonic(), 0.0), max(self._share, 1.0))
            try:
                answer = await (self._fetch.post_json(url, _KNOCK, left) if post else self._fetch.get(url, left))
            except FetchFailed as failure:
                if failure.unconnected:
                    raise _gone(failure.what) from None
                return False
            if answer.status != 404 or "www-authenticate" in answer.headers:
                return False
            if (answer.json() or {}).get("jsonrpc") is not None:
                return False
        return True

    def failure(self, what: str, todo: str) -> DiscoveryFailed:
        """The error. An outage anywhere on the way outweighs: what was not reached may have been the right one."""
        seen = f"Seen: {'; '.join(self.seen[:12])}." if self.seen else ""
        advice = "It may pass by itself; try again later." if self.outage else todo
        return DiscoveryFailed(what, todo=advice, seen=seen, unreachable=self.outage)


_KNOCK = {"jsonrpc": "2.0", "id": "interlock-discovery", "method": "server/discover", "params": {}}


def _gone(why: str) -> DiscoveryFailed:
    todo = "Start the server, or correct its URL."
    return DiscoveryFailed(f"{why.rstrip('.')}.", todo=todo, unreachable=True, gone=True)


def no_mcp_server(url: str) -> DiscoveryFailed:
    """The address answers 404 and asks for no sign-in."""
    return DiscoveryFailed(
        f"HTTP 404: there is no MCP server at {shown(url)}.",
        todo="Check the path of its URL.",
        unreachable=False,
        gone=True,
    )


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
    search = _Search(fetch, server, seconds)
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
    metadata = await _server(_Search(fetch, None, seconds), (issuer,), server, [], False)
    assert metadata is not None
    return metadata


# -- the resource


async def _resource(
    search: _Search, server: Address, challenge: Bearer | None, settings: OAuth, remarks: list[str]
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
        f"The server names the authorization server {listed}, and the settings allow {shown(issuer)} alone (oauth.issuer, --issuer).",
        todo="Nothing was sent to it. Ask the server's operator; if it has moved, correct the setting.",
        unreachable=False,
    )


async def _server(
    search: _Search,
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
