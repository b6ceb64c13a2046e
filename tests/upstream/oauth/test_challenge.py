"""The challenge parser: what RFC 9110 allows, what servers send instead, and anything at all."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.oauth.challenge import Bearer, bearer, parse

PARSED = [
    ("", []),
    ("   ", []),
    (", ,,", []),
    ("Bearer", [("bearer", {})]),
    ('Bearer realm="x"', [("bearer", {"realm": ("x",)})]),
    ("BEARER Realm=x", [("bearer", {"realm": ("x",)})]),
    ('Bearer realm = "x"', [("bearer", {"realm": ("x",)})]),
    ('Bearer realm\t=\t"x" , error="e"', [("bearer", {"realm": ("x",), "error": ("e",)})]),
    (r'Bearer realm="a\"b\\c"', [("bearer", {"realm": ('a"b\\c',)})]),
    ('Bearer realm=""', [("bearer", {"realm": ("",)})]),
    ('Bearer realm="a, Basic b=c"', [("bearer", {"realm": ("a, Basic b=c",)})]),
    ('Basic realm="a", Bearer error="b"', [("basic", {"realm": ("a",)}), ("bearer", {"error": ("b",)})]),
    ("Negotiate abc==, Bearer", [("negotiate", {}), ("bearer", {})]),
    ("Negotiate abc==,Bearer a=b", [("negotiate", {}), ("bearer", {"a": ("b",)})]),
    ('Newauth realm="apps", type=1, title="Login to \\"apps\\"", Basic realm="simple"',
     [("newauth", {"realm": ("apps",), "type": ("1",), "title": ('Login to "apps"',)}), ("basic", {"realm": ("simple",)})]),
    ('Bearer a=1, a=2, A="3"', [("bearer", {"a": ("1", "2", "3")})]),
    # What servers send though they should not.
    ('Bearer realm="x" error="y"', [("bearer", {"realm": ("x",), "error": ("y",)})]),
    ("Bearer resource_metadata=https://h.example/a?b=c", [("bearer", {"resource_metadata": ("https://h.example/a?b=c",)})]),
    ('Bearer error=not quoted at all, scope="s"', [("bearer", {"error": ("not",), "scope": ("s",)})]),
    ('Bearer ,realm="x"', [("bearer", {"realm": ("x",)})]),
    ('Bearer\r\n  realm="x",\r\n\terror="y"', [("bearer", {"realm": ("x",), "error": ("y",)})]),
    ('Bearer error="never closed, scope="s', [("bearer", {"error": ("never closed, scope=",)})]),
    ('Bearer scope="never closed', [("bearer", {})]),
    ('Bearer scope="ends in an escape\\', [("bearer", {})]),
    ("=x", []),
    ('"a, b" Bearer, Basic', [("basic", {})]),
    ('realm="x", Bearer', [("bearer", {})]),
    ("Bearer é=1, a=2", [("bearer", {"a": ("2",)})]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), PARSED)
def test_values(value: str, expected: list[tuple[str, dict[str, tuple[str, ...]]]]) -> None:
    assert [(each.scheme, each.params) for each in parse(value)] == expected


BEARERS = [
    (None, None),
    ("", None),
    ('Basic realm="Bearer"', None),
    ("Bearer", Bearer()),
    # A word inside another parameter's quotes is no parameter.
    ('Bearer error_description="bad scope=admin here", scope="files:read"',
     Bearer(error_description="bad scope=admin here", scope=("files:read",))),
    ('Bearer resource_metadata = "https://h/x"', Bearer(resource_metadata=("https://h/x",))),
    ('Bearer resource_metadata="https://h/1", resource_metadata="https://h/2", resource_metadata="https://h/1"',
     Bearer(resource_metadata=("https://h/1", "https://h/2"))),
    ('Bearer error="invalid_token", scope="b a  b"', Bearer(error="invalid_token", scope=("b", "a"))),
    ('Bearer scope=""', Bearer()),
    ('Bearer scope="a", Basic realm="r", Bearer error="insufficient_scope", resource_metadata="m"',
     Bearer(error="insufficient_scope", scope=("a",), resource_metadata=("m",))),
    ('DPoP algs="ES256", Bearer resource_metadata="m"', Bearer(resource_metadata=("m",))),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), BEARERS)
def test_bearer(value: str | None, expected: Bearer | None) -> None:
    assert bearer(value) == expected


@given(st.text(max_size=200))
def test_anything_is_read_without_an_error(value: str) -> None:
    for challenge in parse(value):
        assert challenge.scheme == challenge.scheme.lower() != ""
        assert all(name == name.lower() and values for name, values in challenge.params.items())
    bearer(value)


@given(st.text(alphabet='Bb ,="\\\t=a1:/', max_size=60))
def test_what_looks_like_a_challenge_is_read_without_an_error(value: str) -> None:
    parse(value)
    bearer(value)


_TOKENS = st.from_regex(re.compile(r"[a-z!#$%&'*+.^_`|~0-9-]{1,12}"), fullmatch=True)
_TEXTS = st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)


@given(
    st.lists(
        st.tuples(_TOKENS, st.lists(st.tuples(_TOKENS, _TEXTS), min_size=1, max_size=4)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([", ", ",", " ,\t"]),
    st.sampled_from(["=", " = ", "= "]),
)
def test_what_is_written_by_the_rules_is_read_back(
    challenges: list[tuple[str, list[tuple[str, str]]]], comma: str, equals: str
) -> None:
    def quoted(text: str) -> str:
        return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'

    written = comma.join(
        scheme + " " + comma.join(f"{name}{equals}{quoted(text)}" for name, text in params)
        for scheme, params in challenges
    )
    expected = []
    for scheme, params in challenges:
        merged: dict[str, tuple[str, ...]] = {}
        for name, text in params:
            merged[name] = (*merged.get(name, ()), text)
        expected.append((scheme, merged))
    assert [(each.scheme, each.params) for each in parse(written)] == expected


@pytest.mark.parametrize("piece", ["a", '"', "\\", ",", "=", " ", "a=", 'a="', "a ", "Bearer ", '"\\', 'a="b" ', "-=-"])
def test_long_values_are_read_at_once(piece: str) -> None:
    # Nothing is measured in milliseconds: a reader that goes back over what it read would need hours for this.
    value = piece * (60_000 // len(piece))
    started = time.monotonic()
    for prefix in ("", "Bearer ", 'Bearer x="'):
        parse(prefix + value)
    assert time.monotonic() - started < 30
