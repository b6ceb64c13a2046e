"""Results and errors of one era in the words of the other, and everything else as it came."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire import messages, translate
from interlock.wire.eras import CACHEABLE, OWNED, Era
from interlock.wire.messages import Raw, read_map

from .texts import LINE_SPACE, objects, values

M, L = Era.MODERN, Era.LEGACY
INFO = b'{"name":"interlock"}'
P = b"io.modelcontextprotocol/"
OURS = b'"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"interlock"}}'


def translated(body: bytes, method: str, up: Era, down: Era) -> bytes:
    return translate.result_for(read_map(body), body, method=method, up=up, down=down, server_info=INFO)


@pytest.mark.parametrize(
    ("method", "up", "down", "body", "expected"),
    [
        # same era, legacy: not a byte changes
        ("tools/call", L, L, b'{ "content":[], "x":1.0 }', b'{ "content":[], "x":1.0 }'),
        ("tools/call", L, L, b'{"content":[],"_meta":{"a":1}}', b'{"content":[],"_meta":{"a":1}}'),
        ("tools/call", L, L, b'{"resultType":"odd","ttlMs":1}', b'{"resultType":"odd","ttlMs":1}'),
        ("tools/call", L, L, b'{"structuredContent":[1]}', b'{"structuredContent":[1]}'),
        # a server's own word on who it is goes no further, in either spelling
        (
            "tools/call", L, L, b'{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"Interlock"},"a":1},"x":1}',
            b'{"_meta":{"a":1},"x":1}',
        ),
        ("tools/call", L, L, b'{"_meta":{"io.modelcontextprotocol\\/serverInfo":{}},"x":1}', b'{"x":1}'),
        ("tools/call", L, L, b'{"_meta":{"%srelated":1}}' % P, b'{"_meta":{"%srelated":1}}' % P),
        # same era, modern: our identity at the end, or in the place of the server's own `_meta`
        ("tools/call", M, M, b'{"resultType":"complete","n":1.0}', b'{"resultType":"complete","n":1.0,' + OURS + b"}"),
        ("tools/call", M, M, b'{"resultType":"x.y/other","n":1} ', b'{"resultType":"x.y/other","n":1,' + OURS + b"}"),
        (
            "tools/call", M, M, b'{"_meta":{"a":1,"%sserverInfo":{"name":"s"}},"resultType":"complete"}' % P,
            b'{"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"interlock"}},"resultType":"complete"}',
        ),
        ("tools/call", M, M, b'{"_meta":null,"resultType":"complete"}', b"{" + OURS + b',"resultType":"complete"}'),
        ("tools/call", M, M, b"{}", b'{"resultType":"complete",' + OURS + b"}"),
        # a cacheable result without its hints gets the ones that promise nothing (server/utilities/caching)
        (
            "resources/read", M, M, b'{"resultType":"complete","ttlMs":5,"cacheScope":"public"}',
            b'{"resultType":"complete","ttlMs":5,"cacheScope":"public",' + OURS + b"}",
        ),
        (
            "resources/read", M, M, b'{"resultType":"complete","ttlMs":5}',
            b'{"resultType":"complete","ttlMs":5,"cacheScope":"private",' + OURS + b"}",
        ),
        (
            "resources/read", M, M, b'{"resultType":"input_required","requestState":"s","_meta":{}}',
            b'{"resultType":"input_required","requestState":"s",' + OURS + b"}",
        ),
        # legacy server, modern client
        (
            "tools/call", L, M, b'{"content":[],"n":1.0}',
            b'{"resultType":"complete","content":[],"n":1.0,' + OURS + b"}",
        ),
        (
            "resources/read", L, M, b'{"contents":[]}',
            b'{"resultType":"complete","contents":[],"ttlMs":0,"cacheScope":"private",' + OURS + b"}",
        ),
        (
            "tools/call", L, M, b'{"_meta":{"a":1},"content":[]}',
            b'{"resultType":"complete","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"interlock"}},"content":[]}',
        ),
        # no legacy result is incomplete, whatever a server calls it
        (
            "tools/call", L, M, b'{"resultType":"input_required","x":1}',
            b'{"resultType":"complete","x":1,' + OURS + b"}",
        ),
        # modern server, legacy client
        ("tools/call", M, L, b'{"resultType":"complete","content":[],"n":1.0}', b'{"content":[],"n":1.0}'),
        (
            "resources/read", M, L,
            b'{"contents":[],"ttlMs":5,"cacheScope":"private","resultType":"complete","_meta":{"a":1}}',
            b'{"contents":[],"_meta":{"a":1}}',
        ),
        ("tools/call", M, L, b'{"ttlMs":5,"cacheScope":"x"}', b'{"ttlMs":5,"cacheScope":"x"}'),
        # structured content that is no object exists in the modern era only: it becomes text where there is none
        (
            "tools/call", M, L, b'{"content":[],"structuredContent":[1,2.0]}',
            b'{"content":[{"type":"text","text":"[1,2.0]"}]}',
        ),
        (
            "tools/call", M, L, b'{"structuredContent":"a\\"b"}',
            b'{"content":[{"type":"text","text":"\\"a\\\\\\"b\\""}]}',
        ),
        ("tools/call", M, L, b'{"content":null,"structuredContent":7}', b'{"content":[{"type":"text","text":"7"}]}'),
        (
            "tools/call", M, L, b'{"content":[{"type":"text","text":"7"}],"structuredContent":7}',
            b'{"content":[{"type":"text","text":"7"}]}',
        ),
        (
            "tools/call", M, L, b'{"content":[],"structuredContent":{"a":1}}',
            b'{"content":[],"structuredContent":{"a":1}}',
        ),
        ("prompts/get", M, L, b'{"structuredContent":[1]}', b'{"structuredContent":[1]}'),
    ],
)  # fmt: skip
def test_results(method: str, up: Era, down: Era, body: bytes, expected: bytes) -> None:
    assert translated(body, method, up, down) == expected


WORDS = {"resultType", "ttlMs", "cacheScope", "_meta", "structuredContent", "content"}
NAMES = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=6), st.sampled_from(["isError", "contents", "x-1", "tools", "é"])
).filter(lambda name: name not in WORDS)
PAIRS = list(itertools.product(Era, Era))


@given(
    objects(values(LINE_SPACE), LINE_SPACE, NAMES),
    st.none() | objects(values(LINE_SPACE), LINE_SPACE),
    st.sampled_from([None, '"complete"', '"other"']),
    st.sampled_from(["tools/call", "resources/read", "x/unknown"]),
    st.sampled_from(PAIRS),
)
def test_unknown_members_pass_in_order_and_spelling(
    text: str, meta: str | None, kind: str | None, method: str, pair: tuple[Era, Era]
) -> None:
    added = [f'"_meta":{meta}'] if meta is not None else []
    added += [f'"resultType":{kind}'] if kind is not None else []
    inner = ",".join(filter(None, [text.strip()[1:-1].strip(), *added]))
    body = ("{" + inner + "}").encode()
    before = read_map(body)
    after = read_map(translated(body, method, *pair))
    kept = {name: bytes(value) for name, value in before.items() if name not in WORDS}
    assert {name: bytes(value) for name, value in after.items() if name not in WORDS} == kept
    assert [name for name in after if name in kept] == list(kept)
    sent = {key: bytes(value) for key, value in read_map(before.get("_meta", b"{}")).items() if key not in OWNED}
    got = {key: bytes(value) for key, value in read_map(after.get("_meta", b"{}")).items() if key not in OWNED}
    assert got == sent
    if pair[1] is Era.MODERN:
        assert bytes(read_map(after["_meta"])["io.modelcontextprotocol/serverInfo"]) == INFO
        assert "resultType" in after
        if method in CACHEABLE and kind != '"other"':
            assert {"ttlMs", "cacheScope"} <= set(after)
    elif pair[0] is Era.MODERN:
        assert "resultType" not in after
    else:
        assert json.loads(translated(body, method, *pair)) is not None


@pytest.mark.parametrize(
    ("body", "down", "expected"),
    [
        (b'{"code":-32602,"message":"m"}', M, b'{"code":-32602,"message":"m"}'),
        (b'{ "code" : 7, "message":"m", "x":1.0 }', M, b'{ "code" : 7, "message":"m", "x":1.0 }'),
        # codes that the modern era took back (basic/index, Error Codes); all else of the error stays
        (
            b'{"code":-32002,"message":"m","data":{"uri":"u"},"x":1.0}',
            M,
            b'{"code":-32602,"message":"m","data":{"uri":"u"},"x":1.0}',
        ),
        (b'{"message":"m","code": -32002 }', M, b'{"message":"m","code":-32602}'),
        (
            b'{"code":-32042,"message":"m","data":{"elicitations":[]}}',
            M,
            b'{"code":-32603,"message":"m","data":{"elicitations":[]}}',
        ),
        (b'{"code":-32002,"message":"m"}', L, b'{"code":-32002,"message":"m"}'),
        (b'{"code":-32042,"message":"m"}', L, b'{"code":-32042,"message":"m"}'),
        (b'{"code":1,"message":"code -32002 and -32042"}', M, b'{"code":1,"message":"code -32002 and -32042"}'),
        (b'{"code":-320021,"message":""}', M, b'{"code":-320021,"message":""}'),
        (b"[-32002]", M, b"[-32002]"),
    ],
)
def test_errors(body: bytes, down: Era, expected: bytes) -> None:
    assert translate.error_for(body, method="resources/read", down=down) == expected
    assert translate.error_for(body, method="tools/call", down=down) == expected


@pytest.mark.parametrize(
    ("body", "well_formed", "code"),
    [
        (b'{"code":-32602,"message":"m"}', True, -32602),
        (b'{"code":0,"message":"","x":1}', True, 0),
        (b'{"code":123456789012345678901,"message":""}', True, 123456789012345678901),
        (b'{"code":1.5,"message":"m"}', False, None),
        (b'{"code":"1","message":"m"}', False, None),
        (b'{"code":true,"message":"m"}', False, None),
        (b'{"code":null,"message":"m"}', False, None),
        (b'{"message":"m"}', False, None),
        (b'{"code":1}', False, 1),
        (b'{"code":1,"message":null}', False, 1),
        (b'{"code":1,"message":["m"]}', False, 1),
        (b"null", False, None),
        (b'"failed"', False, None),
        (b"[]", False, None),
        (b"{", False, None),
    ],
)
def test_what_an_error_is(body: bytes, well_formed: bool, code: int | None) -> None:
    assert translate.well_formed_error(body) is well_formed
    assert translate.error_code(body) == code


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"isError":true}', True),
        (b'{"isError": true }', True),
        (b'{"isError":false}', False),
        (b'{"isError":"true"}', False),
        (b'{"isError":null}', False),
        (b"{}", False),
    ],
)
def test_is_error_result(body: bytes, expected: bool) -> None:
    assert translate.is_error_result(read_map(body)) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{}", "complete"),
        (b'{"resultType":"input_required"}', "input_required"),
        (b'{"resultType":"x/y"}', "x/y"),
        (b'{"resultType":null}', "complete"),
        (b'{"resultType":5}', "complete"),
    ],
)
def test_result_type(body: bytes, expected: str) -> None:
    assert translate.result_type(read_map(body)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            b'{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","url":"https://a","n":1.0},5,{"url":"b"}]}}',
            [{"mode": b'"url"', "url": b'"https://a"', "n": b"1.0"}, {"url": b'"b"'}],
        ),
        (b'{"code":-32042,"message":"m","data":{"elicitations":{}}}', []),
        (b'{"code":-32042,"message":"m","data":[]}', []),
        (b'{"code":-32042,"message":"m"}', []),
        (b'{"code":-32041,"message":"m","data":{"elicitations":[{"url":"a"}]}}', []),
        (b"5", []),
    ],
)
def test_url_elicitations(body: bytes, expected: list[dict[str, bytes]]) -> None:
    found = translate.url_elicitations(body)
    assert [{key: bytes(value) for key, value in one.items()} for one in found] == expected


@given(st.binary(max_size=60))
def test_any_bytes_are_taken(data: bytes) -> None:
    translate.well_formed_error(data)
    translate.error_code(data)
    translate.url_elicitations(data)
    for down in Era:
        translate.error_for(data, method="resources/read", down=down)
    assert isinstance(translate.result_type({"resultType": Raw(data)}), str)
    messages.try_map(data)
