"""Prompts, resources and templates: repaired or withheld one by one, and untouched where in order."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import Prompt, Resource, ResourceTemplate

from interlock.catalog.entry_repair import EntryKind, repair_entry
from interlock.catalog.wellformed import Repaired

MODELS = {"prompts": Prompt, "resources": Resource, "templates": ResourceTemplate}
IDENTITY = {"prompts": "name", "resources": "uri", "templates": "uriTemplate"}


@pytest.mark.parametrize(
    ("kind", "raw", "identity"),
    [
        ("prompts", b'{"name":"p"}', "p"),
        ("prompts", b' { "name" : "p" , "arguments" : [ ] , "x":1.0} ', "p"),
        (
            "prompts",
            b'{"name":"p","arguments":[{"name":"a","required":true,"x":12345678901234567890}],"_meta":{}}',
            "p",
        ),
        ("resources", b'{"uri":"a:b","name":"n","size":5000000000,"mimeType":"text/plain","z":{"b":1,"a":2}}', "a:b"),
        ("resources", b'{"uri":"no scheme","name":""}', "no scheme"),
        (
            "resources",
            b'{"uri":"a:b","name":"n","annotations":{"audience":["user"],"priority":0.50,"lastModified":'
            b'"2026-11-30T08:00:00.1+01:00","v":1}}',
            "a:b",
        ),
        ("templates", b'{"uriTemplate":"a:{b}","name":"n","icons":[{"src":"x"}]}', "a:{b}"),
    ],
)
def test_an_entry_in_order_is_untouched(kind: EntryKind, raw: bytes, identity: str) -> None:
    assert repair_entry(kind, raw) == Repaired(raw, identity, ())


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        ("resources", b'{"uri":"a:b"}', b'{"uri":"a:b","name":"a:b"}'),
        ("resources", b'{"name":null,"uri":"a:b"}', b'{"name":"a:b","uri":"a:b"}'),
        ("templates", b'{"uriTemplate":"a:{b}"}', b'{"uriTemplate":"a:{b}","name":"a:{b}"}'),
        ("prompts", b'{"name":"p","title":null,"x":1.0}', b'{"name":"p","x":1.0}'),
        ("prompts", b'{"name":"p","arguments":null}', b'{"name":"p"}'),
        (
            "prompts",
            b'{"name":"p","arguments":[{"name":"a","x":1.0},{"description":"d"},"b",{"name":"c","required":"yes","y":1.0}]}',
            b'{"name":"p","arguments":[{"name":"a","x":1.0},{"name":"c","y":1.0}]}',
        ),
        ("resources", b'{"uri":"a","name":"n","size":"5","mimeType":null}', b'{"uri":"a","name":"n"}'),
        ("resources", b'{"uri":"a","name":"n","size":true}', b'{"uri":"a","name":"n"}'),
        ("resources", b'{"uri":"a","name":"n","annotations":{"priority":2}}', b'{"uri":"a","name":"n"}'),
        ("resources", b'{"uri":"a","name":"n","annotations":{"audience":["all"]}}', b'{"uri":"a","name":"n"}'),
        ("resources", b'{"uri":"a","name":"n","annotations":{"lastModified":"today"}}', b'{"uri":"a","name":"n"}'),
        ("resources", b'{"uri":"a","name":"n","annotations":[]}', b'{"uri":"a","name":"n"}'),
        ("templates", b'{"uriTemplate":"a","name":"n","icons":[{}]}', b'{"uriTemplate":"a","name":"n","icons":[]}'),
        ("prompts", b'{"name":"a","name":"b"}', b'{"name":"b"}'),
    ],
)
def test_an_entry_is_repaired(kind: EntryKind, raw: bytes, expected: bytes) -> None:
    repaired = repair_entry(kind, raw)
    assert repaired.raw == expected
    assert repaired.problems
    assert repair_entry(kind, expected).problems == ()


@pytest.mark.parametrize("kind", ["prompts", "resources", "templates"])
@pytest.mark.parametrize("raw", [b"{}", b"[]", b"null", b"", b"\xff", b'{"name":5,"uri":null,"uriTemplate":""}'])
def test_an_entry_without_identity_is_withheld(kind: EntryKind, raw: bytes) -> None:
    repaired = repair_entry(kind, raw)
    assert (repaired.raw, repaired.name) == (None, "")
    assert repaired.problems[0].startswith("withheld: ")


value = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.just("s"), st.lists(st.just("user"), max_size=1))
entries = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("n") | value,
        "uri": st.just("a:b") | value,
        "uriTemplate": st.just("a:{b}") | value,
        "title": value,
        "description": value,
        "mimeType": value,
        "size": value,
        "arguments": st.lists(
            st.fixed_dictionaries({}, optional={"name": st.just("a") | value, "required": value, "description": value}),
            max_size=2,
        )
        | value,
        "annotations": st.fixed_dictionaries({}, optional={"audience": value, "priority": value, "lastModified": value})
        | value,
        "icons": st.lists(st.fixed_dictionaries({}, optional={"src": value, "theme": value}), max_size=2) | value,
        "_meta": value | st.just({}),
        "unknown": value,
    },
)


@given(st.sampled_from(["prompts", "resources", "templates"]), entries)
def test_whatever_is_published_is_taken_by_the_sdk(kind: EntryKind, entry: dict[str, object]) -> None:
    raw = json.dumps(entry).encode()
    repaired = repair_entry(kind, raw)
    if repaired.raw is None:
        assert not entry.get(IDENTITY[kind]) or not isinstance(entry[IDENTITY[kind]], str)
        return
    published = json.loads(repaired.raw)
    MODELS[kind].model_validate(published)
    assert published[IDENTITY[kind]] == repaired.name == entry[IDENTITY[kind]]
    assert published.get("unknown") == entry.get("unknown")
    assert (repaired.problems == ()) == (repaired.raw == raw)
    assert repair_entry(kind, repaired.raw).problems == ()
