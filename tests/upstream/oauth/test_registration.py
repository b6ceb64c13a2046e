"""Getting a client id: the order, what is asked for, what servers answer, and when a kept registration is used again."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.client_auth import signed
from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.fetch import Fetcher
from interlock.upstream.oauth.grant import Registration
from interlock.upstream.oauth.registration import RegistrationFailed, covered, register, still_valid

from .peer import Peer, Say, Seen, peer

REDIRECT = "http://localhost:33500/callback"


@pytest.fixture
async def issuer() -> AsyncIterator[Peer]:
    async with peer() as running:
        yield running


@pytest.fixture
async def fetch() -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(user_agent="interlock/test", environ={})
    yield fetcher
    await fetcher.close()


def found(root: str, *, registers: bool = True, scopes: tuple[str, ...] | None = None, **more: object) -> Discovered:
    return Discovered(
        server_url="https://s.example/mcp",
        resource="https://s.example/mcp",
        issuer=root,
        metadata=ServerMetadata(issuer=root, registration_endpoint=f"{root}/register" if registers else None, **more),
        scopes_supported=scopes,
    )


async def failure(fetch: Fetcher, *args: object, **kwargs: object) -> RegistrationFailed:
    with pytest.raises(RegistrationFailed) as caught:
        await register(fetch, *args, **kwargs)
    assert caught.value.what.isprintable()
    return caught.value


# -- configured


async def test_a_configured_id_comes_first_and_asks_nobody(issuer: Peer, fetch: Fetcher) -> None:
    settings = OAuth(client_id="mine", client_metadata_url="https://c.example/client.json")
    everything = found(issuer.root, client_id_metadata_document_supported=True)
    assert await register(fetch, everything, settings, {}, REDIRECT, 5) == Registration(
        issuer=issuer.root, client_id="mine", source="preset", redirect_uri=REDIRECT
    )
    assert issuer.seen == []


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (None, "client_secret_basic"),
        (("client_secret_post", "client_secret_basic"), "client_secret_basic"),
        (("client_secret_post", "none"), "client_secret_post"),
    ],
)
async def test_a_configured_secret(fetch: Fetcher, methods: tuple[str, ...] | None, expected: str) -> None:
    word = secrets.token_urlsafe(12)
    settings = OAuth(client_id_env="ID", client_secret_env="SECRET")
    there = found("https://a.example", token_endpoint_auth_methods_supported=methods)
    result = await register(fetch, there, settings, {"ID": " mine ", "SECRET": word}, None, 5)
    assert (result.client_id, result.client_secret, result.auth_method) == ("mine", word, expected)


@pytest.mark.parametrize(
    ("settings", "environ", "name"),
    [
        (OAuth(client_id_env="ID"), {}, "ID"),
        (OAuth(client_id_env="ID"), {"ID": "  "}, "ID"),
        (OAuth(client_id="x", client_secret_env="SECRET"), {}, "SECRET"),
    ],
)
async def test_a_variable_that_is_not_set_is_named(
    fetch: Fetcher, settings: OAuth, environ: dict[str, str], name: str
) -> None:
    error = await failure(fetch, found("https://a.example"), settings, environ, REDIRECT, 5)
    assert f"environment variable {name}," in error.what
    assert not error.unreachable


async def test_a_secret_that_the_server_takes_in_no_known_way(fetch: Fetcher) -> None:
    there = found("https://a.example", token_endpoint_auth_methods_supported=("private_key_jwt",))
    settings = OAuth(client_id="x", client_secret_env="SECRET")
    error = await failure(fetch, there, settings, {"SECRET": secrets.token_urlsafe(12)}, REDIRECT, 5)
    assert "private_key_jwt" in error.what


# -- a metadata document


async def test_a_metadata_document_that_cannot_be_read_from_here_is_used(issuer: Peer, fetch: Fetcher) -> None:
    settings = OAuth(client_metadata_url="https://client.invalid/client.json")
    there = found(issuer.root, client_id_metadata_document_supported=True)
    assert await register(fetch, there, settings, {}, REDIRECT, 5) == Registration(
        issuer=issuer.root,
        client_id="https://client.invalid/client.json",
        source="metadata-document",
        redirect_uri=REDIRECT,
    )
    assert issuer.seen == []


async def test_a_metadata_document_is_not_used_where_the_server_takes_none(issuer: Peer, fetch: Fetcher) -> None:
    issuer.routes["/register"] = Say(201, {"client_id": "new"})
    settings = OAuth(client_metadata_url="https://client.invalid/client.json")
    assert (await register(fetch, found(issuer.root), settings, {}, REDIRECT, 5)).source == "dynamic"


@pytest.mark.parametrize(
    "url",
    [
        "http://c.example/client.json",
        "https://c.example",
        "https://c.example/",
        "https://c.example/a/../client.json",
        "https://c.example/client.json#x",
        "https://u:p@c.example/client.json",
        "client.json",
    ],
)
async def test_a_metadata_url_that_cannot_be_a_client_id(fetch: Fetcher, url: str) -> None:
    there = found("https://a.example", client_id_metadata_document_supported=True)
    error = await failure(fetch, there, OAuth(client_metadata_url=url), {}, REDIRECT, 5)
    assert "oauth.clientMetadataUrl" in error.what


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ((REDIRECT,), True),
        (("http://localhost/callback",), True),
        (("http://127.0.0.1/callback",), False),
        (("http://localhost:33501/callback",), False),
        (("http://localhost:33500/other",), False),
        ((), False),
    ],
)
def test_which_redirects_a_document_covers(declared: tuple[str, ...], expected: bool) -> None:
    assert covered(REDIRECT, declared) is expected
    assert covered("https://a.example:443/x", ("https://a.example/x",)) is False


# -- dynamic


async def test_what_is_asked_for(issuer: Peer, fetch: Fetcher) -> None:
    issuer.routes["/register"] = Say(201, {"client_id": "new", "redirect_uris": [REDIRECT]})
    result = await register(fetch, found(issuer.root, scopes=("a", "b")), OAuth(), {}, REDIRECT, 5)
    assert result == Registration(issuer=issuer.root, client_id="new", source="dynamic", redirect_uri=REDIRECT)
    assert issuer.seen[0].json() == {
        "client_name": "Interlock",
        "application_type": "native",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "redirect_uris": [REDIRECT],
        "scope": "a b",
    }


@pytest.mark.parametrize(
    ("flow", "grant_types", "method"),
    [
        ("device", ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"], "none"),
        ("client-credentials", ["client_credentials"], "client_secret_basic"),
    ],
)
async def test_flows_without_a_browser(
    issuer: Peer, fetch: Fetcher, flow: str, grant_types: list[str], method: str
) -> None:
    word = secrets.token_urlsafe(12)
    issuer.routes["/register"] = Say(201, {"client_id": "new", "client_secret": word})
    await register(fetch, found(issuer.root), OAuth(flow=flow), {}, None, 5)
    asked = issuer.seen[0].json()
    assert (asked["grant_types"], asked["response_types"], asked["token_endpoint_auth_method"]) == (
        grant_types,
        [],
        method,
    )
    assert "redirect_uris" not in asked
    assert "scope" not in asked


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (None, "none"),
        (("none", "client_secret_basic"), "none"),
        (("client_secret_basic",), "client_secret_basic"),
        (("client_secret_post",), "client_secret_post"),
        (("private_key_jwt",), "client_secret_basic"),
    ],
)
async def test_which_method_is_asked_for(
    issuer: Peer, fetch: Fetcher, methods: tuple[str, ...] | None, expected: str
) -> None:
    issuer.routes["/register"] = Say(201, {"client_id": "new"})
    await register(fetch, found(issuer.root, token_endpoint_auth_methods_supported=methods), OAuth(), {}, REDIRECT, 5)
    assert issuer.seen[0].json()["token_endpoint_auth_method"] == expected


@pytest.mark.parametrize(
    ("said", "with_secret", "expected"),
    [
        ("none", False, "none"),
        ("none", True, "none"),
        (None, False, "none"),
        (None, True, "client_secret_basic"),
        ("client_secret_post", True, "client_secret_post"),
        ("client_secret_basic", True, "client_secret_basic"),
    ],
)
async def test_the_servers_method_counts(
    issuer: Peer, fetch: Fetcher, said: str | None, with_secret: bool, expected: str
) -> None:
    word = secrets.token_urlsafe(12)
    more = {"client_secret": word} if with_secret else {}
    issuer.routes["/register"] = Say(201, {"client_id": "new", "token_endpoint_auth_method": said, **more})
    result = await register(fetch, found(issuer.root), OAuth(), {}, REDIRECT, 5)
    assert result.auth_method == expected
    assert result.client_secret == (word if expected != "none" else None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, None),
        (None, None),
        (1_800_000_000, 1_800_000_000.0),
        ("1800000000", 1_800_000_000.0),
        ("x", None),
        (-1, None),
    ],
)
async def test_when_a_secret_ends(issuer: Peer, fetch: Fetcher, value: object, expected: float | None) -> None:
    word = secrets.token_urlsafe(12)
    issuer.routes["/register"] = Say(201, {"client_id": "n", "client_secret": word, "client_secret_expires_at": value})
    assert (await register(fetch, found(issuer.root), OAuth(), {}, REDIRECT, 5)).secret_expires_at == expected


def _picky(
    field: str, accepts: Callable[[dict[str, object]], bool], error: str, description: str = ""
) -> Callable[[Seen], Say]:
    def answer(request: Seen) -> Say:
        if accepts(request.json()):
            return Say(201, {"client_id": "new"})
        return Say(400, {"error": error, "error_description": description or field})

    return answer


@pytest.mark.parametrize(
    ("error", "description"),
    [("invalid_redirect_uri", ""), ("invalid_client_metadata", "redirect_uris must not be localhost")],
)
async def test_a_refused_redirect_uri_is_tried_by_its_other_name(
    issuer: Peer, fetch: Fetcher, error: str, description: str
) -> None:
    other = REDIRECT.replace("localhost", "127.0.0.1")
    issuer.routes["/register"] = _picky("x", lambda asked: asked["redirect_uris"] == [other], error, description)
    result = await register(fetch, found(issuer.root), OAuth(), {}, REDIRECT, 5)
    assert (result.redirect_uri, len(issuer.seen)) == (other, 2)
    assert still_valid(result, OAuth(), {}, REDIRECT, 0.0)


async def test_a_redirect_uri_that_is_refused_twice_is_named(issuer: Peer, fetch: Fetcher) -> None:
    issuer.routes["/register"] = Say(400, {"error": "invalid_redirect_uri", "error_description": "no\x1b[31m loopback"})
    error = await failure(fetch, found(issuer.root), OAuth(), {}, REDIRECT, 5)
    assert len(issuer.seen) == 2
    assert "redirect URI http://127.0.0.1:33500/callback" in error.what
    assert "oauth.callbackPort" in error.what
    assert "oauth.clientId" in error.what
    assert not error.unreachable


@pytest.mark.parametrize("error", ["invalid_client_metadata", "invalid_scope", "invalid_request"])
async def test_scopes_that_may_not_be_registered_are_left_out(issuer: Peer, fetch: Fetcher, error: str) -> None:
    issuer.routes["/register"] = _picky("scope", lambda asked: "scope" not in asked, error)
    assert (await register(fetch, found(issuer.root, scopes=("a",)), OAuth(), {}, REDIRECT, 5)).client_id == "new"
    assert len(issuer.seen) == 2


async def test_grant_types_that_the_server_has_not_are_left_out(issuer: Peer, fetch: Fetcher) -> None:
    issuer.routes["/register"] = _picky(
        "grant_types", lambda asked: asked["grant_types"] == ["authorization_code"], "invalid_client_metadata"
    )
    there = found(issuer.root, grant_types_supported=("authorization_code",))
    assert (await register(fetch, there, OAuth(), {}, REDIRECT, 5)).client_id == "new"


async def test_there_is_one_more_try_and_no_third(issuer: Peer, fetch: Fetcher) -> None:
    issuer.routes["/register"] = Say(400, {"error": "invalid_client_metadata"})
    await failure(fetch, found(issuer.root, scopes=("a",)), OAuth(), {}, REDIRECT, 5)
    assert len(issuer.seen) == 2
    issuer.seen.clear()
    await failure(fetch, found(issuer.root), OAuth(), {}, REDIRECT, 5)
    assert len(issuer.seen) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Say(401),
        Say(403, {"error": "access_denied", "error_description": "x" * 3000}),
        Say(404),
        Say(307, b"", {"location": "/elsewhere"}),
        Say(201, b"<html>"),
        Say(201, []),
        Say(201, {}),
        Say(201, {"client_id": ""}),
        Say(201, {"client_id": 7}),
        Say(201, {"client_id": "a\r\nb"}),
        Say(201, {"client_id": "x" * 5000}),
        Say(201, {"client_id": "x", "token_endpoint_auth_method": "private_key_jwt"}),
        Say(201, {"client_id": "x", "token_endpoint_auth_method": "client_secret_basic"}),
        Say(201, {"client_id": "x", "token_endpoint_auth_method": "client_secret_basic", "client_secret": 7}),
    ],
)
async def test_refusals_tell_how_to_go_on(issuer: Peer, fetch: Fetcher, answer: Say) -> None:
    issuer.routes["/register"] = answer
    error = await failure(fetch, found(issuer.root), OAuth(), {}, REDIRECT, 5)
    assert "oauth.clientId" in error.what
    assert not error.unreachable
    assert len(error.what) < 700


@pytest.mark.parametrize("answer", [Say(500), Say(503), Say(429), Say(raw=b""), Say(hang=True)])
async def test_outages(issuer: Peer, fetch: Fetcher, answer: Say) -> None:
    issuer.routes["/register"] = answer
    assert (await failure(fetch, found(issuer.root), OAuth(), {}, REDIRECT, 0.5)).unreachable


async def test_nowhere_to_register(fetch: Fetcher) -> None:
    there = found("https://a.example", registers=False, client_id_metadata_document_supported=True)
    error = await failure(fetch, there, OAuth(), {}, REDIRECT, 5)
    assert "oauth.clientId" in error.what
    assert "oauth.clientMetadataUrl" in error.what


async def test_client_credentials_need_a_secret(issuer: Peer, fetch: Fetcher) -> None:
    issuer.routes["/register"] = Say(201, {"client_id": "new"})
    error = await failure(fetch, found(issuer.root), OAuth(flow="client-credentials"), {}, None, 5)
    assert "no secret" in error.what


# -- used again


def kept(**more: object) -> Registration:
    fields: dict[str, object] = {
        "issuer": "https://a.example",
        "client_id": "x",
        "source": "dynamic",
        "redirect_uri": REDIRECT,
    }
    return Registration(**{**fields, **more})


SECRET = secrets.token_urlsafe(12)
URL = "https://c.example/client.json"


@pytest.mark.parametrize(
    ("registration", "settings", "environ", "redirect", "expected"),
    [
        (kept(), OAuth(), {}, REDIRECT, True),
        (kept(), OAuth(), {}, None, True),
        (kept(), OAuth(), {}, REDIRECT.replace("localhost", "127.0.0.1"), True),
        (kept(), OAuth(), {}, REDIRECT.replace("33500", "33501"), False),
        (kept(redirect_uri=None), OAuth(), {}, REDIRECT, False),
        # The configured id wins.
        (kept(), OAuth(client_id="mine"), {}, REDIRECT, False),
        (kept(), OAuth(client_id="x"), {}, REDIRECT, False),
        (kept(source="preset"), OAuth(client_id="x"), {}, REDIRECT, True),
        (kept(source="preset"), OAuth(client_id_env="ID"), {"ID": "x"}, REDIRECT, True),
        (kept(source="preset"), OAuth(client_id_env="ID"), {"ID": "y"}, REDIRECT, False),
        (kept(source="preset"), OAuth(client_id_env="ID"), {}, REDIRECT, False),
        (kept(source="preset"), OAuth(), {}, REDIRECT, False),
        (
            kept(source="preset", client_secret=SECRET),
            OAuth(client_id="x", client_secret_env="S"),
            {"S": SECRET},
            None,
            True,
        ),
        (
            kept(source="preset", client_secret=SECRET),
            OAuth(client_id="x", client_secret_env="S"),
            {"S": "new"},
            None,
            False,
        ),
        (kept(source="preset", client_secret=SECRET), OAuth(client_id="x"), {}, None, False),
        # An expired secret cannot come back to life.
        (kept(client_secret=SECRET, secret_expires_at=2000.0), OAuth(), {}, REDIRECT, True),
        (kept(client_secret=SECRET, secret_expires_at=1020.0), OAuth(), {}, REDIRECT, False),
        (kept(client_secret=SECRET, secret_expires_at=900.0), OAuth(), {}, REDIRECT, False),
        (
            kept(source="metadata-document", client_id=URL),
            OAuth(client_metadata_url=URL),
            {},
            "http://localhost:1/callback",
            True,
        ),
        (kept(source="metadata-document", client_id=URL), OAuth(), {}, REDIRECT, False),
        (kept(), OAuth(flow="client-credentials"), {}, None, False),
        (kept(client_secret=SECRET), OAuth(flow="client-credentials"), {}, None, True),
    ],
)
def test_still_valid(
    registration: Registration, settings: OAuth, environ: dict[str, str], redirect: str | None, expected: bool
) -> None:
    assert still_valid(registration, settings, environ, redirect, 1000.0) is expected


# -- how a client shows who it is


def test_a_public_client_names_itself() -> None:
    assert signed(kept(), {"a": "b"}) == ({"a": "b", "client_id": "x"}, None)


def test_a_secret_goes_where_the_server_wants_it() -> None:
    post = kept(client_secret=SECRET, auth_method="client_secret_post")
    basic = kept(client_secret=SECRET, auth_method="client_secret_basic")
    assert signed(post, {"a": "b"}) == ({"a": "b", "client_id": "x", "client_secret": SECRET}, None)
    assert signed(basic, {"a": "b"}) == ({"a": "b"}, ("x", SECRET))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from(["client_id", "client_secret", "token_endpoint_auth_method", "client_secret_expires_at"]), JSON
    )
)
def test_any_answer_is_a_registration_or_a_refusal(document: dict[str, object]) -> None:
    from interlock.upstream.oauth.registration import registered

    try:
        result = registered(document, found("https://a.example"), OAuth(), REDIRECT)
    except RegistrationFailed:
        return
    assert result.client_id == document["client_id"]
    assert (result.auth_method == "none") is (result.client_secret is None)
