"""Discovery against real servers on loopback: the orders, the refusals, the old servers, and documents that lie."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.challenge import Bearer
from interlock.upstream.oauth.discovery import DiscoveryFailed, discover, issuer_metadata
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Answer, Fetcher
from interlock.upstream.oauth.metadata import BadDocument, resource_metadata, same_but_slash, server_metadata

from .peer import Peer, Say, peer

PRM = "/.well-known/oauth-protected-resource"
ASM = "/.well-known/oauth-authorization-server"
OIDC = "/.well-known/openid-configuration"


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    """The MCP server. It wants a sign-in, and does not say how."""
    async with peer() as running:
        running.routes = dict.fromkeys(("/mcp", "/"), Say(401))
        yield running


@pytest.fixture
async def issuer() -> AsyncIterator[Peer]:
    """Its authorization server."""
    async with peer() as running:
        yield running


@pytest.fixture
async def fetch() -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(user_agent="interlock/test", environ={})
    yield fetcher
    await fetcher.close()


def metadata(issuer: str, **more: object) -> dict[str, object]:
    root = issuer.rstrip("/")
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{root}/authorize",
        "token_endpoint": f"{root}/token",
        "code_challenge_methods_supported": ["S256"],
        **more,
    }


def good(server: Peer, issuer: Peer, **more: object) -> None:
    server.routes[f"{PRM}/mcp"] = Say(200, {"resource": f"{server.root}/mcp", "authorization_servers": [issuer.root]})
    issuer.routes[ASM] = Say(200, metadata(issuer.root, **more))


async def found(
    fetch: Fetcher, server: Peer, challenge: Bearer | None = None, settings: OAuth | None = None, path: str = "/mcp"
) -> Discovered:
    return await discover(fetch, f"{server.root}{path}", challenge, settings or OAuth(), 10)


async def refused(
    fetch: Fetcher, server: Peer, challenge: Bearer | None = None, settings: OAuth | None = None
) -> DiscoveryFailed:
    with pytest.raises(DiscoveryFailed) as caught:
        await found(fetch, server, challenge, settings)
    assert caught.value.what.isprintable()
    assert len(caught.value.what) < 6000
    return caught.value


async def test_all_is_as_it_should_be(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    good(
        server,
        issuer,
        registration_endpoint=f"{issuer.root}/register",
        scopes_supported=["openid"],
        authorization_response_iss_parameter_supported=True,
        client_id_metadata_document_supported=True,
    )
    server.routes[f"{PRM}/mcp"] = Say(
        200,
        {"resource": f"{server.root}/mcp", "authorization_servers": [issuer.root], "scopes_supported": ["b", "a", "b"]},
    )
    result = await found(fetch, server, Bearer(scope=("c",)))
    assert (result.server_url, result.resource, result.issuer) == (
        f"{server.root}/mcp",
        f"{server.root}/mcp",
        issuer.root,
    )
    assert (result.scopes_supported, result.challenge_scope) == (("b", "a"), ("c",))
    assert (result.conventional, result.remarks) == (False, ())
    assert result.metadata.token_endpoint == f"{issuer.root}/token"
    assert result.metadata.registration_endpoint == f"{issuer.root}/register"
    assert result.metadata.scopes_supported == ("openid",)
    assert result.metadata.authorization_response_iss_parameter_supported
    assert result.metadata.client_id_metadata_document_supported
    assert (server.paths(), issuer.paths()) == ([f"{PRM}/mcp"], [ASM])


# -- where documents are looked for


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/mcp", [f"{PRM}/mcp", PRM]),
        ("/mcp/", [f"{PRM}/mcp", PRM]),
        ("/a/b?x=1", [f"{PRM}/a/b?x=1", PRM]),
        ("", [PRM]),
        ("/", [PRM]),
    ],
)
async def test_the_order_of_resource_metadata(
    server: Peer, issuer: Peer, fetch: Fetcher, path: str, expected: list[str]
) -> None:
    server.routes[PRM] = Say(200, {"resource": server.root, "authorization_servers": [issuer.root]})
    issuer.routes[ASM] = Say(200, metadata(issuer.root))
    result = await found(fetch, server, path=path)
    assert server.paths() == expected
    assert result.resource == server.root  # as it was written: no slash is added


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", [ASM, OIDC]),
        ("/", [ASM, OIDC]),
        ("/tenant/1", [f"{ASM}/tenant/1", f"{OIDC}/tenant/1", f"/tenant/1{OIDC}"]),
        ("/tenant/", [f"{ASM}/tenant", f"{OIDC}/tenant", f"/tenant{OIDC}"]),
    ],
)
async def test_the_order_of_server_metadata(
    server: Peer, issuer: Peer, fetch: Fetcher, path: str, expected: list[str]
) -> None:
    name = issuer.root + path
    server.routes[f"{PRM}/mcp"] = Say(200, {"resource": f"{server.root}/mcp", "authorization_servers": [name]})
    for last in range(len(expected)):
        issuer.seen.clear()
        issuer.routes = {expected[last]: Say(200, metadata(name))}
        assert (await found(fetch, server)).issuer == name
        assert issuer.paths() == expected[: last + 1]


async def test_the_challenge_names_the_place(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    good(server, issuer)
    server.routes["/elsewhere"] = server.routes.pop(f"{PRM}/mcp")
    result = await found(fetch, server, Bearer(resource_metadata=(f"{server.root}/elsewhere",)))
    assert (server.paths(), result.remarks) == (["/elsewhere"], ())


async def test_each_named_place_is_tried_then_the_usual_ones(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    good(server, issuer)
    named = ("javascript:alert(1)", "http://a.example/x", f"{server.root}/gone", f"{server.root}/html")
    server.routes["/html"] = Say(200, b"<html>")
    result = await found(fetch, server, Bearer(resource_metadata=named))
    assert server.paths() == ["/gone", "/html", f"{PRM}/mcp"]
    assert len(result.remarks) == 1
    assert "challenge names" in result.remarks[0]


async def test_the_second_of_two_named_places(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    good(server, issuer)
    server.routes["/second"] = server.routes.pop(f"{PRM}/mcp")
    result = await found(fetch, server, Bearer(resource_metadata=(f"{server.root}/first", f"{server.root}/second")))
    assert (server.paths(), result.remarks) == (["/first", "/second"], ())


# -- what a resource may say of itself


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        ("{root}/mcp", "/mcp"),
        ("{root}", "/mcp"),
        ("{root}/", "/mcp"),
        ("{root}/mcp/", "/mcp"),
        ("{root}/mcp", "/mcp/"),
        ("{root}/mcp", "/mcp/deep"),
        ("{ROOT}/mcp", "/mcp"),
    ],
)
async def test_resources_that_cover_the_server(
    server: Peer, issuer: Peer, fetch: Fetcher, resource: str, path: str
) -> None:
    text = resource.format(root=server.root, ROOT=server.root.replace("http", "HTTP"))
    server.routes[PRM] = Say(200, {"resource": text, "authorization_servers": [issuer.root]})
    issuer.routes[ASM] = Say(200, metadata(issuer.root))
    assert (await found(fetch, server, path=path)).resource == text


@pytest.mark.parametrize(
    "resource",
    [
        "https://evil.example/mcp",
        "{root}/other",
        "{root}/mc",
        "{root}/mcp/deeper",
        "{root}/mcp#x",
        "{root}/mcp?x=1",
        "{root}0/mcp",
        "{user}/mcp",
        "mcp",
        "",
        7,
        None,
        ["{root}/mcp"],
        "x" * 5000,
        "\x1b[31m",
    ],
)
async def test_resources_that_do_not(server: Peer, issuer: Peer, fetch: Fetcher, resource: object) -> None:
    good(server, issuer)
    if isinstance(resource, str):
        resource = resource.format(root=server.root, user=server.root.replace("//", "//u:p@"))
    server.routes[f"{PRM}/mcp"] = Say(200, {"resource": resource, "authorization_servers": [issuer.root]})
    failure = await refused(fetch, server)
    assert not failure.unreachable
    assert "resource" in failure.what
    assert issuer.seen == []


@pytest.mark.parametrize(
    ("place", "resource", "taken"),
    [
        # The server's own URL, whoever publishes it (RFC 9728 section 3.3).
        ("{issuer}/prm", "{root}/b/mcp", True),
        ("{root}/b/prm", "{root}/b/mcp", True),
        ("{root}/b/prm", "{root}/b/mcp/", True),
        # More than the server: the origin's own well-known place alone may say so.
        ("{issuer}/prm", "{root}", False),
        ("{issuer}/.well-known/oauth-protected-resource", "{root}", False),
        ("{root}/b/prm", "{root}", False),
        ("{root}/b/prm", "{root}/b", False),
        ("{root}/b/.well-known/oauth-protected-resource", "{root}", False),
        ("{root}/.well-known/oauth-protected-resource-of-b", "{root}", False),
        ("{root}/.well-known/oauth-protected-resource", "{root}", True),
        ("{root}/.well-known/oauth-protected-resource/b/mcp", "{root}", True),
        ("{root}/.well-known/oauth-protected-resource/b", "{root}/b", True),
        ("{root}/.well-known/oauth-protected-resource/b/mcp", "{root}/a/mcp", False),
    ],
)
async def test_who_may_say_what_the_resource_is(
    server: Peer, issuer: Peer, fetch: Fetcher, place: str, resource: str, taken: bool
) -> None:
    url = place.format(root=server.root, issuer=issuer.root)
    claimed = resource.format(root=server.root)
    host = issuer if url.startswith(issuer.root) else server
    document = Say(200, {"resource": claimed, "authorization_servers": [issuer.root]})
    host.routes[url.removeprefix(host.root)] = document
    issuer.routes[ASM] = Say(200, metadata(issuer.root))
    challenge = Bearer(resource_metadata=(url,))
    if taken:
        result = await found(fetch, server, challenge, path="/b/mcp")
        assert (result.resource, result.borrowed, result.remarks) == (claimed, False, ())
        return
    with pytest.raises(DiscoveryFailed) as caught:
        await found(fetch, server, challenge, path="/b/mcp")
    assert not caught.value.unreachable
    assert repr(claimed) in caught.value.what
    assert ASM not in issuer.paths()


async def test_a_named_document_for_another_resource_is_not_replaced(
    server: Peer, issuer: Peer, fetch: Fetcher
) -> None:
    """The neighbour on a shared host: its own document lies, and the host's would lend it the tokens of all."""
    server.routes["/b/prm"] = Say(200, {"resource": server.root, "authorization_servers": [issuer.root]})
    server.routes[PRM] = Say(200, {"resource": server.root, "authorization_servers": [issuer.root]})
    issuer.routes[ASM] = Say(200, metadata(issuer.root))
    challenge = Bearer(resource_metadata=(f"{server.root}/b/prm",))
    with pytest.raises(DiscoveryFailed, match="well-known place"):
        await found(fetch, server, challenge, path="/b/mcp")
    assert server.paths() == ["/b/prm"]


async def test_a_query_tells_servers_apart(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    document = Say(200, {"resource": f"{server.root}/mcp", "authorization_servers": [issuer.root]})
    server.routes |= {"/prm": document, PRM: document}
    issuer.routes[ASM] = Say(200, metadata(issuer.root))
    with pytest.raises(DiscoveryFailed, match="well-known place"):
        await found(fetch, server, Bearer(resource_metadata=(f"{server.root}/prm",)), path="/mcp?tenant=b")
    assert (await found(fetch, server, path="/mcp?tenant=b")).resource == f"{server.root}/mcp"


async def test_dot_segments_get_no_token(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    for path in ("/a/../b/mcp", "/a/%2e%2E/b", "/a/."):
        with pytest.raises(DiscoveryFailed, match="dot segments"):
            await found(fetch, server, path=path)
    assert server.seen == []


async def test_a_person_may_confirm_a_foreign_resource(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    good(server, issuer)
    server.routes[f"{PRM}/mcp"] = Say(200, {"resource": "api://mine", "authorization_servers": [issuer.root]})
    result = await found(fetch, server, settings=OAuth(resource="api://mine"))
    assert (result.resource, result.borrowed) == ("api://mine", True)
    assert "meant so" in result.remarks[0]
    assert not (await refused(fetch, server, settings=OAuth(resource="api://other"))).unreachable


async def test_the_setting_replaces_the_resource(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    good(server, issuer)
    result = await found(fetch, server, settings=OAuth(resource="urn:x"))
    assert (result.resource, result.borrowed) == ("urn:x", True)
    same = await found(fetch, server, settings=OAuth(resource=f"{server.root}/mcp"))
    assert (same.resource, same.borrowed) == (f"{server.root}/mcp", False)
    server.routes[f"{PRM}/mcp"] = Say(200, {"resource": server.root, "authorization_servers": [issuer.root]})
    assert not (await found(fetch, server, settings=OAuth(resource=server.root))).borrowed


# -- the authorization server that the settings name


async def test_only_the_issuer_of_the_settings_is_asked(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    async with peer() as second:
        server.routes[PRM] = Say(200, {"resource": server.root, "authorization_servers": [issuer.root, second.root]})
        second.routes[ASM] = Say(200, metadata(second.root))
        for name in (second.root, f"{second.root}/"):
            assert (await found(fetch, server, settings=OAuth(issuer=name))).issuer == second.root
        assert issuer.seen == []
        failure = await refused(fetch, server, settings=OAuth(issuer="https://login.example"))
        assert not failure.unreachable
        for text in (issuer.root, second.root, "https://login.example", "oauth.issuer (--issuer)"):
            assert text in failure.what
        assert issuer.seen == []


async def test_the_issuer_of_the_settings_serves_a_server_that_names_none(
    server: Peer, issuer: Peer, fetch: Fetcher
) -> None:
    issuer.routes[ASM] = Say(200, metadata(issuer.root))
    result = await found(fetch, server, settings=OAuth(issuer=issuer.root))
    assert (result.issuer, result.conventional, result.resource) == (issuer.root, False, f"{server.root}/mcp")
    assert ASM not in server.paths()
    issuer.routes.clear()
    assert not (await refused(fetch, server, settings=OAuth(issuer=issuer.root))).unreachable


# -- who the issuer is


async def test_metadata_of_another_issuer_is_not_used(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    good(server, issuer)
    issuer.routes[ASM] = Say(200, metadata("https://honest.example"))
    failure = await refused(fetch, server)
    assert not failure.unreachable
    assert "https://honest.example" in failure.what
    issuer.routes[OIDC] = Say(200, metadata(issuer.root))
    assert (await found(fetch, server)).issuer == issuer.root


@pytest.mark.parametrize(("named", "claimed"), [("", "/"), ("/", "")])
async def test_only_the_slash_after_a_bare_host_is_forgiven(
    server: Peer, issuer: Peer, fetch: Fetcher, named: str, claimed: str
) -> None:
    server.routes[PRM] = Say(200, {"resource": server.root, "authorization_servers": [issuer.root + named]})
    issuer.routes[ASM] = Say(200, metadata(issuer.root + claimed))
    result = await found(fetch, server)
    assert result.issuer == issuer.root + claimed
    assert "slash" in result.remarks[0]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example", "https://a.example/", True),
        ("https://a.example/x", "https://a.example/x/", False),
        ("https://a.example", "https://A.example/", False),
        ("https://a.example:443", "https://a.example/", False),
        ("https://a.example/", "https://a.example//", False),
        ("https://a.example", "https://a.example", False),
        ("", "/", False),
    ],
)
def test_what_differs_in_that_slash_alone(one: str, other: str, same: bool) -> None:
    assert same_but_slash(one, other) is same_but_slash(other, one) is same


@pytest.mark.parametrize("change", ["upper", "port", "path"])
async def test_issuers_are_raw_strings(server: Peer, issuer: Peer, fetch: Fetcher, change: str) -> None:
    good(server, issuer)
    claimed = {
        "upper": issuer.root.replace("http", "HTTP"),
        "port": issuer.root.replace("127.0.0.1", "localhost"),
        "path": f"{issuer.root}/x",
    }[change]
    issuer.routes[ASM] = Say(200, metadata(claimed))
    assert not (await refused(fetch, server)).unreachable


async def test_the_first_usable_authorization_server_is_taken(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    async with peer() as second:
        second.routes[ASM] = Say(200, metadata(second.root))
        names = [
            "ftp://x",
            f"{issuer.root}?q",
            f"{issuer.root}#f",
            "http://u:p@127.0.0.1:1",
            7,
            issuer.root,
            second.root,
        ]
        server.routes[PRM] = Say(200, {"resource": server.root, "authorization_servers": names})
        assert (await found(fetch, server)).issuer == second.root
        assert issuer.paths() == [ASM, OIDC]


async def test_a_preferred_issuer_is_the_only_one_tried(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    async with peer() as second:
        names = [issuer.root, second.root]
        server.routes[PRM] = Say(200, {"resource": server.root, "authorization_servers": names})
        for each in (issuer, second):
            each.routes[ASM] = Say(200, metadata(each.root))
        url = f"{server.root}/mcp"
        assert (await discover(fetch, url, None, OAuth(), 10, prefer_issuer=second.root)).issuer == second.root
        assert issuer.seen == []
        gone = await discover(fetch, url, None, OAuth(), 10, prefer_issuer="https://old.example")
        assert gone.issuer == issuer.root
        second.routes[ASM] = Say(503)
        with pytest.raises(DiscoveryFailed) as caught:
            await discover(fetch, url, None, OAuth(), 10, prefer_issuer=second.root)
        assert caught.value.unreachable


@pytest.mark.parametrize("servers", [7, "https://a.example", [7], ["x" * 5000], {}])
async def test_lists_of_issuers_that_are_none(server: Peer, fetch: Fetcher, servers: object) -> None:
    server.routes[PRM] = Say(200, {"resource": server.root, "authorization_servers": servers})
    assert not (await refused(fetch, server)).unreachable


# -- PKCE and endpoints


@pytest.mark.parametrize("methods", [None, [], ["plain"], "S256", 7])
async def test_without_pkce_no_login(server: Peer, issuer: Peer, fetch: Fetcher, methods: object) -> None:
    good(server, issuer, code_challenge_methods_supported=methods)
    failure = await refused(fetch, server)
    assert not failure.unreachable
    assert "oauth.allowMissingPkce" in failure.what
    result = await found(fetch, server, settings=OAuth(allow_missing_pkce=True))
    assert "Not conforming" in result.remarks[-1]
    good(server, issuer, code_challenge_methods_supported=methods, device_authorization_endpoint=f"{issuer.root}/d")
    for flow in ("device", "client-credentials"):
        assert (await found(fetch, server, settings=OAuth(flow=flow))).issuer == issuer.root


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint"])
@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "",
        "/token",
        "javascript:alert(document.cookie)",
        "data:text/html,x",
        "http://a.example/token",
        "https://user:pass@a.example/token",
        "https://a.example/token#x",
        "https://a.example/\nx",
        "https://a.example/" + "x" * 5000,
    ],
)
async def test_endpoints_that_may_not_be_used(
    server: Peer, issuer: Peer, fetch: Fetcher, name: str, value: object
) -> None:
    good(server, issuer, **{name: value})
    failure = await refused(fetch, server)
    assert not failure.unreachable
    assert name in failure.what
    assert "pass" not in failure.what


async def test_an_endpoint_that_is_not_needed_is_left_out(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    good(server, issuer, registration_endpoint="javascript:x", revocation_endpoint=7)
    result = await found(fetch, server)
    assert (result.metadata.registration_endpoint, result.metadata.revocation_endpoint) == (None, None)
    assert len(result.remarks) == 2


async def test_the_device_flow_needs_its_endpoint(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    good(server, issuer)
    assert "device_authorization_endpoint" in (await refused(fetch, server, settings=OAuth(flow="device"))).what


# -- servers of before


async def test_a_server_without_any_metadata(server: Peer, fetch: Fetcher) -> None:
    result = await found(fetch, server)
    assert (result.conventional, result.issuer, result.resource) == (True, server.root, f"{server.root}/mcp")
    assert result.metadata.authorization_endpoint == f"{server.root}/authorize"
    assert result.metadata.token_endpoint == f"{server.root}/token"
    assert result.metadata.registration_endpoint == f"{server.root}/register"
    assert "2025-03-26" in result.remarks[0]
    assert result.remarks[-1].startswith("Not conforming: ")
    assert server.paths() == [f"{PRM}/mcp", PRM, "/mcp", ASM, OIDC]
    assert (await found(fetch, server, path="/")).resource == server.root


async def test_a_remote_server_without_any_metadata_promises_no_pkce() -> None:
    """MCP 2026-07-28 makes no exception for revision 2025-03-26: PKCE is to be verified by metadata, or refused."""

    class Silent(Fetcher):
        async def get(self, url: str, seconds: float) -> Answer:
            return Answer(404, {}, b"", url, None)

    fetch = Silent(user_agent="interlock/test", environ={})
    url = "https://remote.example/mcp"
    with pytest.raises(DiscoveryFailed) as caught:
        await discover(fetch, url, Bearer(), OAuth(), 5)
    assert not caught.value.unreachable
    assert "nothing says that it checks PKCE with S256" in caught.value.problem
    assert "oauth.allowMissingPkce (--allow-missing-pkce)" in caught.value.todo
    result = await discover(fetch, url, Bearer(), OAuth(allow_missing_pkce=True), 5)
    assert result.metadata.token_endpoint == "https://remote.example/token"
    assert result.remarks[-1].startswith("Not conforming: ")
    machine = await discover(fetch, url, Bearer(), OAuth(flow="client-credentials"), 5)
    assert not any("PKCE" in each for each in machine.remarks)
    await fetch.close()


NOTHING = Say(404)
JSON_RPC = Say(404, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}})


@pytest.mark.parametrize(
    ("post", "get", "there"),
    [
        (NOTHING, NOTHING, False),
        (Say(404, {"detail": "Not Found"}), Say(404, b"<html>"), False),
        (Say(401), NOTHING, True),
        (NOTHING, Say(401), True),  # 2024-11-05: the endpoint is only ever fetched
        (JSON_RPC, NOTHING, True),
        (Say(404, headers={"www-authenticate": "Bearer"}), NOTHING, True),
        (Say(500), NOTHING, True),
    ],
)
async def test_an_address_without_an_mcp_server_is_no_old_server(
    server: Peer, fetch: Fetcher, post: Say, get: Say, there: bool
) -> None:
    server.routes["/mcp"] = lambda seen: post if seen.method == "POST" else get
    server.routes[ASM] = Say(200, metadata(server.root))
    if there:
        assert (await found(fetch, server)).conventional
        return
    failure = await refused(fetch, server)
    assert (failure.gone, failure.unreachable) == (True, False)
    assert failure.problem == f"HTTP 404: there is no MCP server at {server.root}/mcp."
    assert failure.todo == "Check the path of its URL."


async def test_a_challenge_shows_that_there_is_one(server: Peer, fetch: Fetcher) -> None:
    server.routes["/mcp"] = NOTHING
    assert (await found(fetch, server, Bearer())).conventional
    assert "/mcp" not in server.paths()


async def test_a_server_that_is_its_own_authorization_server(server: Peer, fetch: Fetcher) -> None:
    server.routes[ASM] = Say(200, metadata(server.root, token_endpoint=f"{server.root}/t"))
    result = await found(fetch, server)
    assert (result.conventional, result.metadata.token_endpoint, result.remarks) == (True, f"{server.root}/t", ())
    server.routes[ASM] = Say(200, metadata(server.root, code_challenge_methods_supported=None))
    assert "PKCE" in (await refused(fetch, server)).what


async def test_metadata_there_that_is_wrong_is_not_replaced_by_guesses(server: Peer, fetch: Fetcher) -> None:
    server.routes[ASM] = Say(200, metadata("https://evil.example"))
    assert not (await refused(fetch, server)).unreachable


@pytest.mark.parametrize(
    "answer", [Say(200, b"<html>"), Say(200, {}), Say(200, []), Say(401), Say(403), Say(405), Say(204)]
)
async def test_what_is_no_resource_metadata(server: Peer, fetch: Fetcher, answer: Say) -> None:
    server.routes |= {f"{PRM}/mcp": answer, PRM: answer}
    assert (await found(fetch, server)).conventional


async def test_a_named_document_that_is_not_there_is_said(server: Peer, fetch: Fetcher) -> None:
    result = await found(fetch, server, Bearer(resource_metadata=(f"{server.root}/gone",)))
    assert result.conventional
    assert "not there" in result.remarks[0]


# -- outages are not answers


@pytest.mark.parametrize("answer", [Say(500), Say(503), Say(429), Say(408), Say(raw=b""), Say(200, b"x" * 2_000_000)])
async def test_an_outage_is_not_read_as_an_old_server(server: Peer, fetch: Fetcher, answer: Say) -> None:
    server.routes = {PRM: answer}
    assert (await refused(fetch, server)).unreachable


@pytest.mark.parametrize("answer", [Say(500), Say(503), Say(429), Say(raw=b"")])
async def test_an_authorization_server_that_is_down(server: Peer, issuer: Peer, fetch: Fetcher, answer: Say) -> None:
    good(server, issuer)
    issuer.routes[ASM] = answer
    failure = await refused(fetch, server)
    assert failure.unreachable
    assert issuer.root in failure.what


async def test_nobody_is_there(server: Peer, fetch: Fetcher) -> None:
    async with peer() as gone:
        root = gone.root
    server.routes[PRM] = Say(200, {"resource": server.root, "authorization_servers": [root]})
    assert (await refused(fetch, server)).unreachable
    assert (await refused(fetch, gone)).unreachable


async def test_who_is_away_is_told_apart(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    """The MCP server's own host, which gives no connection, or somebody else's."""
    async with peer() as away:
        root = away.root
    with pytest.raises(DiscoveryFailed) as caught:
        await discover(fetch, f"{root}/mcp", None, OAuth(), 10)
    assert (caught.value.gone, caught.value.unreachable) == (True, True)
    port = root.rpartition(":")[2]
    assert f"nothing listens at 127.0.0.1:{port}. Start the server, or correct its URL." in caught.value.what
    server.routes[PRM] = Say(200, {"resource": server.root, "authorization_servers": [root]})
    failure = await refused(fetch, server)
    assert (failure.gone, failure.unreachable) == (False, True)
    with pytest.raises(DiscoveryFailed) as caught:
        await issuer_metadata(fetch, root, f"{root}/mcp", 10)
    assert not caught.value.gone


async def test_one_issuer_s_metadata_whatever_the_server_names_now(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    good(server, issuer)
    async with peer() as former:
        former.routes[OIDC] = Say(200, metadata(former.root, revocation_endpoint=f"{former.root}/revoke"))
        told = await issuer_metadata(fetch, former.root, f"{server.root}/mcp", 10)
    assert (told.issuer, told.revocation_endpoint) == (former.root, f"{former.root}/revoke")


async def test_metadata_for_another_address_names_the_one_to_use(server: Peer, fetch: Fetcher) -> None:
    named = server.root.replace("127.0.0.1", "localhost") + "/mcp"
    server.routes[PRM] = Say(200, {"resource": named, "authorization_servers": [server.root]})
    failure = await refused(fetch, server)
    assert failure.todo.startswith(f"Use the address that it names, {named}.")
    assert "oauth.resource (--resource)" in failure.todo
    assert named in failure.problem


async def test_one_silent_place_leaves_time_for_the_next(server: Peer, issuer: Peer, fetch: Fetcher) -> None:
    server.routes[f"{PRM}/mcp"] = Say(hang=True)
    server.routes[PRM] = Say(200, {"resource": server.root, "authorization_servers": [issuer.root]})
    issuer.routes[ASM] = Say(200, metadata(issuer.root))
    assert (await discover(fetch, f"{server.root}/mcp", None, OAuth(), 3)).issuer == issuer.root


async def test_one_deadline_covers_everything(server: Peer, fetch: Fetcher) -> None:
    server.routes = {path: Say(hang=True) for path in (f"{PRM}/mcp", PRM, ASM, OIDC)}
    started = time.monotonic()
    with pytest.raises(DiscoveryFailed) as caught:
        await discover(fetch, f"{server.root}/mcp", None, OAuth(), 0.6)
    assert caught.value.unreachable
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("url", ["http://a.example/mcp", "https://u:p@a.example/mcp", "stdio", "https://é.example"])
async def test_servers_that_get_no_token(fetch: Fetcher, url: str) -> None:
    with pytest.raises(DiscoveryFailed, match="No grant is asked for") as caught:
        await discover(fetch, url, None, OAuth(), 5)
    assert not caught.value.unreachable


async def test_a_remote_servers_challenge_calls_nothing_on_this_machine(issuer: Peer, fetch: Fetcher) -> None:
    with pytest.raises(DiscoveryFailed):
        await discover(fetch, "https://a.invalid/mcp", Bearer(resource_metadata=(f"{issuer.root}/x",)), OAuth(), 5)
    assert issuer.seen == []


# -- documents with anything in them

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.sampled_from(["https://a.example", "S256"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        "resource",
        "authorization_servers",
        "scopes_supported",
        "issuer",
        "authorization_endpoint",
        "token_endpoint",
        "code_challenge_methods_supported",
        "authorization_response_iss_parameter_supported",
        "grant_types_supported",
    ]
)


@given(st.dictionaries(FIELDS, JSON, max_size=9))
def test_any_document_is_read_or_refused(document: dict[str, object]) -> None:
    remarks: list[str] = []
    try:
        resource_metadata(document, remarks)
    except BadDocument:
        remarks.clear()
    try:
        read = server_metadata(document, loopback=False, remarks=remarks)
    except BadDocument:
        return
    for endpoint in (read.authorization_endpoint, read.token_endpoint):
        assert endpoint is None or endpoint.startswith("https://")
    assert all(isinstance(each, str) for each in read.code_challenge_methods_supported or ())
    assert all(each.isprintable() for each in remarks)


def test_long_lists_are_cut() -> None:
    many = ["s" * 10 + str(number) for number in range(5000)]
    read = server_metadata(
        {"issuer": "https://a.example", "scopes_supported": many, "grant_types_supported": [*many, "x" * 600]},
        loopback=False,
        remarks=[],
    )
    assert len(read.scopes_supported or ()) == 200
    assert len(read.grant_types_supported or ()) == 256
