"""Answers of token endpoints, readable tokens, and the grants they make."""

from __future__ import annotations

import base64
import json
import math
import secrets
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.fetch import Answer
from interlock.upstream.oauth.grant import Grant, Refusal, Registration
from interlock.upstream.oauth.tokens import (
    BadTokenAnswer,
    TokenRefused,
    Tokens,
    claims,
    grant_from,
    read_answer,
    wrong_audience,
)

NOW = 1_800_000_000.0


def answer(body: object, status: int = 200, content_type: str = "application/json") -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, {"content-type": content_type}, raw, "https://a.example/token", None)


def part(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def jwt(**payload: object) -> str:
    return f"{part({'alg': 'none'})}.{part(payload)}.{part('signature')}"


# -- answers


def test_a_plain_answer() -> None:
    tokens = read_answer(
        answer({"access_token": "a", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "r", "scope": "x y"})
    )
    assert tokens == Tokens(access_token="a", scope=("x", "y"), expires_in=3600.0, refresh_token="r")


@pytest.mark.parametrize("kind", ["bearer", "BEARER", " Bearer ", "", None])
def test_the_type_is_read_in_any_case(kind: str | None) -> None:
    body = {"access_token": "a"} if kind is None else {"access_token": "a", "token_type": kind}
    assert read_answer(answer(body)).token_type == "Bearer"


@pytest.mark.parametrize("kind", ["DPoP", "mac", 1, ["Bearer"], "Bearer x"])
def test_other_types_cannot_be_used(kind: object) -> None:
    with pytest.raises(BadTokenAnswer, match="Bearer"):
        read_answer(answer({"access_token": "a", "token_type": kind}))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3600, 3600.0),
        ("3600", 3600.0),
        (" 3600.5 ", 3600.5),
        (0.5, 0.5),
        (0, None),
        (-1, None),
        (None, None),
        (True, None),
        ("soon", None),
        ("inf", None),
        ("nan", None),
        ([], None),
        ({}, None),
        (10**400, None),
        ("9" * 40, None),
        (10**15, 10 * 366 * 86400.0),
    ],
)
def test_lifetimes(value: object, expected: float | None) -> None:
    assert read_answer(answer({"access_token": "a", "expires_in": value})).expires_in == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a b a", ("a", "b")), ("", None), (None, None), (["a", 1, "b"], ("a", "b")), (7, None), ('"', None)],
)
def test_scopes(value: object, expected: tuple[str, ...] | None) -> None:
    assert read_answer(answer({"access_token": "a", "scope": value})).scope == expected


@pytest.mark.parametrize("content_type", ["application/json", "text/html", "", "application/x-www-form-urlencoded"])
def test_json_of_any_declared_type(content_type: str) -> None:
    assert read_answer(answer({"access_token": "a"}, content_type=content_type)).access_token == "a"
    with pytest.raises(TokenRefused):
        read_answer(answer({"error": "invalid_grant"}, 400, content_type))


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/x-www-form-urlencoded"])
def test_a_form_in_place_of_json(content_type: str) -> None:
    body = urlencode({"access_token": "a b"[:1], "expires_in": "60", "scope": "x,y z", "token_type": "bearer"}).encode()
    assert read_answer(answer(body, content_type=content_type)) == Tokens("a", scope=("x,y", "z"), expires_in=60.0)
    with pytest.raises(TokenRefused) as caught:
        read_answer(answer(b"error=bad_verification_code&error_description=too+old", 200, content_type))
    assert (caught.value.error, caught.value.description) == ("bad_verification_code", "too old")


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_an_oauth_error_whatever_the_status(status: int) -> None:
    with pytest.raises(TokenRefused) as caught:
        read_answer(answer({"error": "invalid_grant", "error_description": "gone\r\n\x1b[31m now"}, status))
    assert (caught.value.status, caught.value.error) == (status, "invalid_grant")
    assert caught.value.description == "gone [31m now"


@pytest.mark.parametrize(
    "encode", [str, lambda text: quote(text, safe=""), quote_plus, lambda text: json.dumps(text)[1:-1]]
)
def test_an_echo_of_the_request_shows_no_secret_in_any_form(encode: Callable[[str], str]) -> None:
    token, secret = "rt/" + secrets.token_urlsafe(9) + "+a b==", "p@ss/w0rd+long=" + secrets.token_urlsafe(6)
    basic = base64.b64encode(f"corp:{quote_plus(secret)}".encode()).decode()
    echo = f"bad body: refresh_token={encode(token)}&client_secret={encode(secret)}, with Basic {basic}, in field grant_type"
    with pytest.raises(TokenRefused) as caught:
        read_answer(answer({"error": "invalid_request", "error_description": echo}, 400), [token, secret])
    shown = caught.value.description
    assert shown.startswith("bad body: refresh_token=[redacted]")
    assert "field grant_type" in shown
    for form in (token, secret, encode(token), encode(secret), basic, secret[:14], encode(secret)[:12]):
        assert form not in shown


def test_error_texts_are_cut_and_masked() -> None:
    word, signed = secrets.token_urlsafe(24), jwt(sub="x")
    with pytest.raises(TokenRefused) as caught:
        read_answer(
            answer({"error": "e" * 500, "error_description": f"no {word} and {signed} and " + "x" * 5000}, 400), [word]
        )
    assert len(caught.value.error) == 64
    assert len(caught.value.description) == 200
    assert caught.value.description.startswith("no [redacted] and [redacted] and xxx")
    assert word not in str(caught.value)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 200),
        (b"<html>", 200),
        (b"<html>", 502),
        ([], 200),
        ({}, 200),
        ({}, 400),
        ({"error": {"code": 1}}, 400),
        ({"error": ""}, 400),
        ({"error": None}, 200),
        ({"access_token": ""}, 200),
        ({"access_token": 1}, 200),
        ({"access_token": ["a"]}, 200),
        ({"access_token": "a b"}, 200),
        ({"access_token": "a\r\nx: y"}, 200),
        ({"access_token": "é"}, 200),
        ({"access_token": "a" * 40_000}, 200),
        ({"access_token": "a"}, 400),
        ({"access_token": "a"}, 302),
        (b"[" * 100_000, 200),
        (b"access_token", 200),
    ],
)
def test_what_is_neither(body: object, status: int) -> None:
    with pytest.raises(BadTokenAnswer) as caught:
        read_answer(answer(body, status))
    assert caught.value.status == status


def test_no_token_in_a_repr() -> None:
    word = secrets.token_urlsafe(24)
    assert word not in repr(read_answer(answer({"access_token": word, "refresh_token": word})))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        "access_token",
        "token_type",
        "expires_in",
        "refresh_token",
        "scope",
        "error",
        "error_description",
        "refresh_expires_in",
    ]
)


@given(st.dictionaries(NAMES, JSON, max_size=8), st.sampled_from([200, 201, 302, 400, 401, 503]))
def test_any_answer_is_tokens_or_one_of_two_errors(body: dict[str, object], status: int) -> None:
    try:
        tokens = read_answer(answer(body, status))
    except (TokenRefused, BadTokenAnswer) as error:
        said = str(error)
    else:
        said = ""
        assert tokens.access_token == body["access_token"]
        assert tokens.access_token.isascii()
        assert " " not in tokens.access_token
        assert tokens.expires_in is None or 0 < tokens.expires_in < math.inf
    assert said.isprintable()


@given(st.binary(max_size=200), st.sampled_from([200, 400]))
def test_any_bytes_are_tokens_or_one_of_two_errors(body: bytes, status: int) -> None:
    with pytest.raises((TokenRefused, BadTokenAnswer)):
        read_answer(answer(body, status))


# -- readable tokens


def test_claims_of_a_signed_token() -> None:
    assert claims(jwt(exp=5, aud="x")) == {"exp": 5, "aud": "x"}


@pytest.mark.parametrize(
    "token",
    [
        "",
        "opaque",
        "a.b",
        "a.b.c",
        f"{part({'alg': 'x'})}.{part([1])}.s",
        f"{part({'typ': 'x'})}.{part({'exp': 1})}.s",
        f"{part({'alg': 'x'})}.{part(b'{')}.s",
        f"{part({'alg': 'x'})}.é.s",
        f"{part({'alg': 'x'})}.+/+/.s",
        f"{part({'alg': 'x'})}.{part(b'[' * 20_000)}.s",
        f"{part({'alg': 'RSA-OAEP', 'enc': 'x'})}.a.b.c.d",
        f"{part({'alg': 'x'})}.{part({'x': 'y' * 40_000})}.s",
    ],
)
def test_tokens_that_cannot_be_read(token: str) -> None:
    assert claims(token) is None


@given(st.text(max_size=100))
def test_any_text_has_claims_or_none(token: str) -> None:
    claims(token)
    claims(f"{part({'alg': 'x'})}.{token}.s")
    wrong_audience(token, "x")


@given(st.dictionaries(st.sampled_from(["exp", "nbf", "aud", "iat"]), JSON))
def test_any_claims_make_tokens_with_sensible_moments(payload: dict[str, object]) -> None:
    tokens = read_answer(answer({"access_token": jwt(**payload), "refresh_token": jwt(**payload)}))
    for moment in (tokens.access_exp, tokens.access_nbf, tokens.refresh_exp, tokens.refresh_nbf):
        assert moment is None or 0 < moment < 1e11
    assert tokens.audience is None or all(isinstance(each, str) for each in tokens.audience)


def test_moments_and_audience_come_from_the_tokens() -> None:
    tokens = read_answer(
        answer({"access_token": jwt(exp=20, nbf="10", aud=["x", 1, "y"]), "refresh_token": jwt(exp=200.5, nbf=100)})
    )
    assert (tokens.access_exp, tokens.access_nbf) == (20.0, 10.0)
    assert (tokens.refresh_exp, tokens.refresh_nbf) == (200.5, 100.0)
    assert tokens.audience == ("x", "y")


@pytest.mark.parametrize(
    "payload", [{"exp": 1_800_000_000_000}, {"exp": 0}, {"exp": "x"}, {"exp": None}, {"exp": True}]
)
def test_moments_that_make_no_sense(payload: dict[str, object]) -> None:
    assert read_answer(answer({"access_token": jwt(**payload)})).access_exp is None


def test_a_start_after_the_end_is_no_start() -> None:
    tokens = read_answer(answer({"access_token": jwt(exp=10, nbf=20)}))
    assert (tokens.access_exp, tokens.access_nbf) == (10.0, None)


# -- audiences


def test_a_wrong_audience_names_both_sides() -> None:
    sentence = wrong_audience(jwt(aud="https://other.example"), "https://mcp.example/mcp")
    assert sentence is not None
    assert "'https://other.example'" in sentence
    assert "'https://mcp.example/mcp'" in sentence
    assert "oauth.resource" in sentence


def test_a_slash_alone_is_said_so() -> None:
    sentence = wrong_audience(jwt(aud=["https://mcp.example/"]), "https://mcp.example")
    assert sentence is not None
    assert "slash" in sentence


@pytest.mark.parametrize(
    "token",
    ["opaque", jwt(sub="x"), jwt(aud="https://mcp.example/mcp"), jwt(aud=["a", "https://mcp.example/mcp"]), jwt(aud=7)],
)
def test_nothing_is_said_of_audiences_that_fit_or_are_unknown(token: str) -> None:
    assert wrong_audience(token, "https://mcp.example/mcp") is None


def test_an_audience_of_nobody_and_one_of_many() -> None:
    assert "nobody" in (wrong_audience(jwt(aud=[]), "x") or "")
    many = wrong_audience(jwt(aud=[f"{number}\x1b" * 300 for number in range(90)]), "x") or ""
    assert many.isprintable()
    assert len(many) < 1600


# -- grants

REGISTRATION = Registration(issuer="https://a.example", client_id="me", source="dynamic")
FOUND = Discovered(
    server_url="https://s.example/mcp",
    resource="https://s.example",
    issuer="https://a.example",
    metadata=ServerMetadata(issuer="https://a.example"),
)


def made(tokens: Tokens, *, skew: float = 0.0, previous: Grant | None = None, asked: tuple[str, ...] = ("x",)) -> Grant:
    return grant_from(
        tokens, found=FOUND, registration=REGISTRATION, asked_scope=asked, now=NOW, skew=skew, previous=previous
    )


def test_a_first_grant() -> None:
    grant = made(
        Tokens("a", expires_in=60.0, refresh_token="r", refresh_nbf=NOW + 30, refresh_exp=NOW + 600), skew=1800.0
    )
    assert grant == Grant(
        server_url=FOUND.server_url,
        resource=FOUND.resource,
        issuer=FOUND.issuer,
        registration=REGISTRATION,
        access_token="a",
        scope=("x",),
        obtained_at=NOW + 1800,
        expires_at=NOW + 1860,
        refresh_token="r",
        refresh_not_before=NOW + 30,
        refresh_expires_at=NOW + 600,
        skew=1800.0,
    )


@pytest.mark.parametrize(
    ("exp", "expires_in", "skew", "expected"),
    [
        (NOW + 100, 3600.0, 0.0, NOW + 100),
        (NOW + 100, None, 0.0, NOW + 100),
        (None, 3600.0, 0.0, NOW + 3600),
        (None, 3600.0, -1800.0, NOW + 1800),
        (None, None, 0.0, None),
        # Past at the hour of issue: the claim's clock is wrong, and the token is new all the same.
        (NOW - 100, 3600.0, 0.0, NOW + 3600),
        (NOW - 100, None, 0.0, None),
        (NOW + 100, 3600.0, 1800.0, NOW + 5400),
    ],
)
def test_the_end_of_an_access_token(
    exp: float | None, expires_in: float | None, skew: float, expected: float | None
) -> None:
    assert made(Tokens("a", access_exp=exp, expires_in=expires_in), skew=skew).expires_at == expected


def test_a_refresh_without_a_new_refresh_token_keeps_the_old_one() -> None:
    refused = Refusal(first_at=1, last_at=2, count=3, error="invalid_grant")
    previous = Grant(
        server_url=FOUND.server_url,
        resource=FOUND.resource,
        issuer=FOUND.issuer,
        registration=REGISTRATION,
        generation=7,
        state="spent",
        scope=("granted",),
        refresh_token="r",
        refresh_not_before=1.0,
        refresh_expires_at=2.0,
        presented_at=5.0,
        presented_again=True,
        refusal=refused,
    )
    grant = made(Tokens("b"), previous=previous, asked=())
    assert (grant.refresh_token, grant.refresh_not_before, grant.refresh_expires_at) == ("r", 1.0, 2.0)
    assert (grant.state, grant.presented_at, grant.presented_again, grant.refusal) == ("live", None, False, None)
    assert (grant.generation, grant.scope) == (7, ("granted",))
    rotated = made(Tokens("b", refresh_token="s", scope=("less",)), previous=previous)
    assert (rotated.refresh_token, rotated.refresh_not_before, rotated.refresh_expires_at) == ("s", None, None)
    assert rotated.scope == ("less",)


@pytest.mark.parametrize("field", ["issuer", "resource"])
def test_nothing_is_kept_of_another_issuers_or_resources_grant(field: str) -> None:
    other = {"server_url": "x", "resource": FOUND.resource, "issuer": FOUND.issuer, field: "https://other.example"}
    previous = Grant(registration=REGISTRATION, refresh_token="r", scope=("granted",), **other)
    grant = made(Tokens("b"), previous=previous, asked=())
    assert (grant.refresh_token, grant.scope, grant.generation) == (None, (), 0)


def test_the_life_of_an_opaque_refresh_token_is_read_beside_it() -> None:
    tokens = read_answer(answer({"access_token": "a", "refresh_token": "r", "refresh_expires_in": "600"}))
    assert made(tokens).refresh_expires_at == NOW + 600
    readable = read_answer(answer({"access_token": "a", "refresh_token": jwt(exp=NOW + 5), "refresh_expires_in": 600}))
    assert made(readable).refresh_expires_at == NOW + 5
