"""Which scopes are asked for, and how sets of them are joined."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.scopes import split, union, wanted

SETS = st.lists(st.sampled_from(["a", "b", "files:read", "files:write", "offline_access"]), max_size=5)


@given(SETS, SETS, SETS)
def test_a_union_loses_nothing_repeats_nothing_and_keeps_the_order(a: list[str], b: list[str], c: list[str]) -> None:
    joined = union(a, b)
    assert set(joined) == set(a) | set(b)
    assert len(joined) == len(set(joined))
    assert joined[: len(set(a))] == tuple(dict.fromkeys(a))
    assert union(union(a, b), c) == union(a, union(b, c)) == union(a, b, c)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("a b", ("a", "b")),
        (" a\tb\n a ", ("a", "b")),
        ('a "quoted" b\\c é d', ("a", "d")),
        ("x" * 513, ()),
    ],
)
def test_split(text: str, expected: tuple[str, ...]) -> None:
    assert split(text) == expected


def test_there_is_an_end_to_scopes() -> None:
    assert len(split(" ".join(f"s{number}" for number in range(10_000)))) == 200


@pytest.mark.parametrize(
    ("settings", "challenge", "resource", "server", "expected"),
    [
        ((), None, None, None, ()),
        ((), None, None, ("openid", "email", "offline_access"), ()),  # the authorization server's list is no source
        ((), None, ("r",), ("openid",), ("r",)),
        ((), ("c",), ("r",), None, ("c",)),
        (("s",), ("c",), ("r",), ("offline_access",), ("s",)),
        ((), ("c",), None, ("offline_access",), ("c", "offline_access")),
        ((), ("offline_access", "c"), None, ("offline_access",), ("offline_access", "c")),
        ((), None, (), ("offline_access",), ()),
    ],
)
def test_what_is_asked_for(
    settings: tuple[str, ...],
    challenge: tuple[str, ...] | None,
    resource: tuple[str, ...] | None,
    server: tuple[str, ...] | None,
    expected: tuple[str, ...],
) -> None:
    found = Discovered(
        server_url="https://s.example/mcp",
        resource="https://s.example/mcp",
        issuer="https://a.example",
        metadata=ServerMetadata(issuer="https://a.example", scopes_supported=server),
        scopes_supported=resource,
        challenge_scope=challenge,
    )
    assert wanted(found, OAuth(scopes=settings)) == expected
