"""`_meta` taken apart and made anew on each hop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire import eras, messages, revisions
from interlock.wire.eras import Era, has_capability, implementation, legacy_meta, modern_meta, pick_legacy, take_meta
from interlock.wire.messages import Raw, WireError

from .texts import LINE_SPACE, objects, values

P = "io.modelcontextprotocol/"
OURS = {
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/subscriptionId",
    "io.modelcontextprotocol/serverInfo",
}
INFO = b'{"name":"interlock","version":"1"}'


def test_names_of_the_specification() -> None:
    assert OURS == eras.OWNED  # 2026-07-28, basic/index, `_meta`, Reserved keys
    assert eras.MODERN_VERSIONS == ("2026-07-28",)
    assert eras.LEGACY_VERSIONS == ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
    # 2026-07-28, server/utilities/caching
    assert {
        "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read",
    } == eras.CACHEABLE  # fmt: skip
    assert {"tools/call", "prompts/get", "resources/read"} == eras.MAY_ASK  # basic/patterns/mrtr
    assert eras.QUESTIONS == {
        "elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots",
    }  # fmt: skip
    assert revisions.PREFIX == P


def taken(meta: str) -> tuple[dict[str, bytes], str | None, bytes | None, bytes | None, bytes | None, bytes | None]:
    params = {"_meta": Raw(meta.encode()), "other": Raw(b"1")}
    found = take_meta(params)
    assert set(params) == {"other"}

    def plain(raw: Raw | None) -> bytes | None:
        return None if raw is None else bytes(raw)

    rest = {key: bytes(value) for key, value in found.rest.items()}
    return (
        rest,
        found.version,
        plain(found.client_info),
        plain(found.capabilities),
        plain(found.log_level),
        plain(found.progress_token),
    )


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ("{}", ({}, None, None, None, None, None)),
        ("null", ({}, None, None, None, None, None)),
        (
            '{"traceparent":"00-a-b-01","%sprotocolVersion":"2026-07-28","%sclientInfo":{"name":"c"},"com.example/x":{"a":1.0},'
            '"%sclientCapabilities":{},"progressToken":"t","%slogLevel":"info","%ssubscriptionId":1,"%sserverInfo":{},'
            '"%sfuture":7}' % ((P,) * 7),
            (
                {"traceparent": b'"00-a-b-01"', "com.example/x": b'{"a":1.0}', P + "future": b"7"},
                "2026-07-28", b'{"name":"c"}', b"{}", b'"info"', b'"t"',
            ),
        ),
        ('{"io.modelcontextprotocol\\/protocolVersion":"2026-07-28"}', ({}, "2026-07-28", None, None, None, None)),
        ('{"io.modelcontextprotocol/protocolVersion":5}', ({}, None, None, None, None, None)),
        ('{"progressToken":0}', ({}, None, None, None, None, b"0")),
        ('{"progressToken":1.0}', ({}, None, None, None, None, b"1.0")),
        ('{"progressToken":null}', ({}, None, None, None, None, None)),
    ],
)  # fmt: skip
def test_taking_meta_apart(meta: str, expected: object) -> None:
    assert taken(meta) == expected


@pytest.mark.parametrize(
    "meta",
    [
        "[]",
        "5",
        '"x"',
        '{"progressToken":[1]}',
        '{"progressToken":{}}',
        '{"progressToken":true}',
        '{"progressToken":"%s"}' % ("x" * 1023),
    ],
)
def test_meta_that_is_refused(meta: str) -> None:
    with pytest.raises(WireError) as caught:
        taken(meta)
    assert caught.value.code == -32602


def test_no_meta() -> None:
    params = {"a": Raw(b"1")}
    assert take_meta(params).rest == {}
    assert set(params) == {"a"}


KEYS = st.one_of(st.sampled_from(sorted(OURS)), st.sampled_from(["traceparent", "com.example/x", "a b", "é", P + "x"]))


@given(objects(values(LINE_SPACE), LINE_SPACE, KEYS))
def test_what_is_not_ours_passes_both_ways(text: str) -> None:
    rest, *_ = taken(text)
    members = messages.read_map(text.encode())
    others = {key: bytes(value) for key, value in members.items() if key not in OURS}
    assert rest == others
    raws = {key: Raw(value) for key, value in rest.items()}
    up = messages.read_map(modern_meta(raws, INFO, Raw(b'{"roots":{}}'), Raw(b'"debug"'), 7))
    assert {key: bytes(value) for key, value in up.items()} == {
        **others,
        P + "protocolVersion": b'"2026-07-28"',
        P + "clientInfo": INFO,
        P + "clientCapabilities": b'{"roots":{}}',
        P + "logLevel": b'"debug"',
        "progressToken": b"7",
    }
    assert list(up)[: len(others)] == list(others)
    legacy = legacy_meta(raws, 7)
    assert legacy is not None
    assert {key: bytes(value) for key, value in messages.read_map(legacy).items()} == {**others, "progressToken": b"7"}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            modern_meta({}, INFO, None, None, None),
            b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":' + INFO
            + b',"io.modelcontextprotocol/clientCapabilities":{}}',
        ),
        (
            modern_meta({"traceparent": Raw(b'"t"')}, b"{}", Raw(b'{"a":1}'), Raw(b'"info"'), 3, "2027-01-01"),
            b'{"traceparent":"t","io.modelcontextprotocol/protocolVersion":"2027-01-01","io.modelcontextprotocol/clientInfo":{},'
            b'"io.modelcontextprotocol/clientCapabilities":{"a":1},"io.modelcontextprotocol/logLevel":"info","progressToken":3}',
        ),
        (legacy_meta({}, None), None),
        (legacy_meta({}, 4), b'{"progressToken":4}'),
        (legacy_meta({"a": Raw(b"1.0")}, None), b'{"a":1.0}'),
    ],
)  # fmt: skip
def test_meta_that_we_make(made: Raw | None, expected: bytes | None) -> None:
    assert (None if made is None else bytes(made)) == expected


@pytest.mark.parametrize(
    ("requested", "answered"),
    [(version, version) for version in eras.LEGACY_VERSIONS]
    + [("2026-07-28", "2025-11-25"), ("1.0", "2025-11-25"), ("", "2025-11-25"), ("9999-99-99", "2025-11-25")],
)
def test_the_answer_to_initialize(requested: str, answered: str) -> None:
    """2025-11-25, basic/lifecycle, Version Negotiation: the same where it is supported, else our latest."""
    assert pick_legacy(requested) == answered


@pytest.mark.parametrize(
    ("capabilities", "question", "expected"),
    [
        (b'{"elicitation":{}}', "elicitation/create", True),
        (b'{"elicitation":{"form":{}}}', "elicitation/create", True),
        (b'{"sampling":{}}', "elicitation/create", False),
        (b'{"sampling":{}}', "sampling/createMessage", True),
        (b'{"roots":{"listChanged":true}}', "roots/list", True),
        (b'{"roots":null}', "roots/list", False),
        (b"{}", "roots/list", False),
        (b"[]", "roots/list", False),
        (None, "roots/list", False),
        (b'{"tools":{}}', "tools/list", False),
    ],
)
def test_has_capability(capabilities: bytes | None, question: str, expected: bool) -> None:
    assert has_capability(None if capabilities is None else Raw(capabilities), question) is expected


def test_implementation() -> None:
    assert implementation("a", "1") == b'{"name":"a","version":"1"}'
    assert implementation("a", "1", "T") == b'{"name":"a","version":"1","title":"T"}'
    assert Era("modern") is Era.MODERN
