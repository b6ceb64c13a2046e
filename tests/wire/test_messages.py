"""Reading and writing JSON-RPC messages."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.wire import bounds, codes, messages
from interlock.wire.messages import Kind, Raw, WireError, parse

from .texts import LINE_SPACE, any_object, objects, values

V = b'{"jsonrpc":"2.0",'


def seen(data: bytes, *, strict: bool = False) -> tuple[object, ...]:
    """What `parse` made of it, in plain values."""
    try:
        message = parse(data, strict=strict)
    except WireError as error:
        return ("refused", error.code, error.id, error.response_id)
    if message.kind is Kind.REQUEST:
        return ("request", message.id, message.method, None if message.params is None else bytes(message.params))
    if message.kind is Kind.NOTIFICATION:
        return ("notification", message.method, None if message.params is None else bytes(message.params))
    return (message.kind.value, message.id, bytes(message.body))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # the four kinds (2026-07-28 and 2025-11-25, basic/index, Messages)
        (V + b'"id":1,"method":"tools/list"}', ("request", 1, "tools/list", None)),
        (V + b'"id":"a","method":"x","params":{"b":1}}', ("request", "a", "x", b'{"b":1}')),
        (V + b'"method":"notifications/initialized"}', ("notification", "notifications/initialized", None)),
        (V + b'"method":"n","params":{}}', ("notification", "n", b"{}")),
        (V + b'"id":7,"result":{"a":[1,2]}}', ("result", 7, b'{"a":[1,2]}')),
        (V + b'"id":7,"error":{"code":1,"message":"m"}}', ("error", 7, b'{"code":1,"message":"m"}')),
        (V + b'"error":{"code":1,"message":"m"}}', ("error", None, b'{"code":1,"message":"m"}')),
        (V + b'"id":null,"error":{}}', ("error", None, b"{}")),
        # any order, white space around, an end of line
        (b' {"result":{},"id":1,"jsonrpc":"2.0"} \r\n', ("result", 1, b"{}")),
        (b'{"method":"m","params":{"x":1},"jsonrpc":"2.0","id":3}', ("request", 3, "m", b'{"x":1}')),
        # ids: text and integers of any size that is sane; integers written as floats
        (V + b'"id":0,"result":{}}', ("result", 0, b"{}")),
        (V + b'"id":-5,"result":{}}', ("result", -5, b"{}")),
        (V + b'"id":"","result":{}}', ("result", "", b"{}")),
        (V + b'"id":9007199254740993,"result":{}}', ("result", 2**53 + 1, b"{}")),
        (V + b'"id":36893488147419103232,"result":{}}', ("result", 2**65, b"{}")),
        (V + b'"id":1.0,"result":{}}', ("result", 1, b"{}")),
        (V + b'"id":1e2,"method":"m"}', ("request", 100, "m", None)),
        (V + b'"id":"' + b"x" * 256 + b'","result":{}}', ("result", "x" * 256, b"{}")),
        # what is not looked into stays as it came
        (
            V + b'"id":1,"result":{"n":1.0,"big":12345678901234567890123,"e":1E+5,"s":"\\u00e9\\/","k":{"b":1,"a":2}}}',
            (
                "result",
                1,
                b'{"n":1.0,"big":12345678901234567890123,"e":1E+5,"s":"\\u00e9\\/","k":{"b":1,"a":2}}',
            ),
        ),
        (V + b'"id":1,"method":"m","params":[1]}', ("request", 1, "m", b"[1]")),
        (V + b'"id":1,"result":5}', ("result", 1, b"5")),
        # members that JSON-RPC does not define belong to one hop
        (V + b'"id":1,"result":{},"x":{"deep":[1]}}', ("result", 1, b"{}")),
        # both, one of them null: some libraries write that
        (V + b'"id":1,"result":{"a":1},"error":null}', ("result", 1, b'{"a":1}')),
        (V + b'"id":1,"result":null,"error":{"code":1,"message":"m"}}', ("error", 1, b'{"code":1,"message":"m"}')),
        (V + b'"id":1,"result":null}', ("result", 1, b"null")),
        # a byte order mark (RFC 8259, 8.1: may be ignored)
        (b"\xef\xbb\xbf" + V + b'"id":1,"result":{}}', ("result", 1, b"{}")),
        # a repeated member: the last one counts, for everybody behind us too, since the envelope is written anew
        (V + b'"id":1,"id":2,"method":"a","method":"b"}', ("request", 2, "b", None)),
    ],
)
def test_messages_in_order(data: bytes, expected: tuple[object, ...]) -> None:
    assert seen(data) == expected
    assert seen(data, strict=True) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # not JSON: -32700, with the id where it can be seen, so that nobody waits for an answer in vain
        (b"", (codes.PARSE_ERROR, None, None)),
        (b"   ", (codes.PARSE_ERROR, None, None)),
        (b"\x00", (codes.PARSE_ERROR, None, None)),
        (b"{", (codes.PARSE_ERROR, None, None)),
        (b"hello", (codes.PARSE_ERROR, None, None)),
        (V + b'"id":1,"method":"m"}x', (codes.PARSE_ERROR, 1, None)),
        (V + b'"id":1,"method":"m","params":{"a":NaN}}', (codes.PARSE_ERROR, 1, None)),
        (V + b'"id":1,"method":"m","params":{"a":01}}', (codes.PARSE_ERROR, 1, None)),
        (V + b"'id':1}", (codes.PARSE_ERROR, None, None)),
        (V + b'"id":"q","method":"m","params":{"a', (codes.PARSE_ERROR, "q", None)),
        (V + b'"id":4,"result":{"a":Infinity}}', (codes.PARSE_ERROR, None, 4)),
        (V + b'"id":4,"error":{"a":', (codes.PARSE_ERROR, None, 4)),
        (b'{"id":4,"result":{"a":', (codes.PARSE_ERROR, None, 4)),
        (b'{"result":{"a":NaN},"jsonrpc":"2.0","id":8}', (codes.PARSE_ERROR, None, 8)),
        (b'{"error":{"a":NaN},"jsonrpc":"2.0","id":"z"} ', (codes.PARSE_ERROR, None, "z")),
        (b'{"method":"m","params":{"a":NaN},"jsonrpc":"2.0","id":9}', (codes.PARSE_ERROR, 9, None)),
        (b'{"x":{"a":NaN},"jsonrpc":"2.0","id":9}', (codes.PARSE_ERROR, None, None)),
        (V + b'"id":1,"result":"a raw\ttab"}', (codes.PARSE_ERROR, None, 1)),
        (V + b'"id":1,"result":"a raw\nline break"}', (codes.PARSE_ERROR, None, 1)),
        # JSON, but no message: -32600
        (b"null", (codes.INVALID_REQUEST, None, None)),
        (b"1", (codes.INVALID_REQUEST, None, None)),
        (b'"x"', (codes.INVALID_REQUEST, None, None)),
        (b"[]", (codes.INVALID_REQUEST, None, None)),
        (b"{}", (codes.INVALID_REQUEST, None, None)),
        (b'{"jsonrpc":"2.0"}', (codes.INVALID_REQUEST, None, None)),
        (b'{"jsonrpc":"1.0","id":1,"method":"m"}', (codes.INVALID_REQUEST, 1, None)),
        (b'{"id":1,"method":"m"}', (codes.INVALID_REQUEST, 1, None)),
        (b'{"id":1,"result":{}}', (codes.INVALID_REQUEST, None, 1)),
        (b'{"id":1,"params":{}}', (codes.INVALID_REQUEST, 1, None)),
        (b'{"id":1,"error":{}}', (codes.INVALID_REQUEST, None, 1)),
        (b'{"jsonrpc":2.0,"id":1,"method":"m"}', (codes.INVALID_REQUEST, 1, None)),
        (b'{"jsonrpc":2,"id":1,"result":{}}', (codes.INVALID_REQUEST, None, 1)),
        (V + b'"id":1}', (codes.INVALID_REQUEST, 1, None)),
        (V + b'"id":null,"method":"m"}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"id":null,"result":{}}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"result":{}}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"id":true,"method":"m"}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"id":[],"method":"m"}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"id":{},"result":{}}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"id":1.5,"method":"m"}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"id":1e400,"method":"m"}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"id":' + b"9" * 257 + b',"method":"m"}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"id":' + b"9" * 5000 + b',"method":"m"}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"id":"' + b"x" * 257 + b'","result":{}}', (codes.INVALID_REQUEST, None, None)),
        (V + b'"id":1,"method":5}', (codes.INVALID_REQUEST, 1, None)),
        (V + b'"id":1,"method":null}', (codes.INVALID_REQUEST, 1, None)),
        (V + b'"id":1,"method":"' + b"m" * 257 + b'"}', (codes.INVALID_REQUEST, 1, None)),
        (V + b'"id":1,"method":"m","result":{}}', (codes.INVALID_REQUEST, 1, None)),
        (V + b'"id":1,"method":"m","error":{}}', (codes.INVALID_REQUEST, 1, None)),
        (V + b'"id":1,"result":{},"error":{}}', (codes.INVALID_REQUEST, None, 1)),
        # the method becomes a header: a line break in it would start another one
        (V + b'"id":1,"method":"m\\r\\nx-evil: 1"}', (codes.INVALID_REQUEST, 1, None)),
        (V + b'"id":1,"method":"m\\u0000"}', (codes.INVALID_REQUEST, 1, None)),
        (V + b'"id":1,"method":"m\\u0085"}', (codes.INVALID_REQUEST, 1, None)),
    ],
)
def test_messages_that_are_refused(data: bytes, expected: tuple[object, ...]) -> None:
    assert seen(data) == ("refused", *expected)
    assert seen(data, strict=True) == ("refused", *expected)


@pytest.mark.parametrize(
    ("data", "lenient", "strict"),
    [
        # JavaScript writes cut strings as unpaired surrogates; many readers refuse them, so they become U+FFFD
        (b'"cut \\ud83d"', b'"cut \\ufffd"', b'"cut \\ufffd"'),
        (b'"\\ude00"', b'"\\ufffd"', b'"\\ufffd"'),
        (b'"\\uD83D\\ude00 \\ud83d\\uDE00"', b'"\\uD83D\\ude00 \\ud83d\\uDE00"', b'"\\uD83D\\ude00 \\ud83d\\uDE00"'),
        (b'"\\ud83d\\ud83d\\ude00"', b'"\\ufffd\\ud83d\\ude00"', b'"\\ufffd\\ud83d\\ude00"'),
        (b'"\\ud83d\\ude00\\ude00"', b'"\\ud83d\\ude00\\ufffd"', b'"\\ud83d\\ude00\\ufffd"'),
        (b'"\\ud83d\\n"', b'"\\ufffd\\n"', b'"\\ufffd\\n"'),
        # an escaped backslash before a `u` begins no escape
        (b'"\\\\ud83d \\ud83d"', b'"\\\\ud83d \\ufffd"', b'"\\\\ud83d \\ufffd"'),
        (b'"\\\\\\ud83d"', b'"\\\\\\ufffd"', b'"\\\\\\ufffd"'),
        (b'"\\\\ud83d\\ude00"', b'"\\\\ud83d\\ufffd"', b'"\\\\ud83d\\ufffd"'),
        (b'"\\ud83d\\\\ude00"', b'"\\ufffd\\\\ude00"', b'"\\ufffd\\\\ude00"'),
        # bytes that are not UTF-8: shown as U+FFFD where a server says them, refused where a client does
        (b'"caf\xe9"', b'"caf\xef\xbf\xbd"', None),
        (b'"\xed\xa0\xbd"', b'"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"', None),
        (b'{"\xff":1}', b'{"\xef\xbf\xbd":1}', None),
        ('"naïve 世界 😀"'.encode(), '"naïve 世界 😀"'.encode(), '"naïve 世界 😀"'.encode()),
        # line breaks between tokens, which a peer that takes a message a line would read as the end of one
        (b'{\n  "a": [\r\n1 ],\r"b":2}', b'{   "a": [  1 ], "b":2}', b'{   "a": [  1 ], "b":2}'),
    ],
)
def test_what_is_mended(data: bytes, lenient: bytes, strict: bytes | None) -> None:
    message = V + b'"id":1,"result":' + data + b"}"
    assert seen(message) == ("result", 1, lenient)
    assert seen(message, strict=True) == (
        ("refused", codes.PARSE_ERROR, None, 1) if strict is None else ("result", 1, strict)
    )


def test_a_surrogate_is_mended_in_ids_and_methods_too() -> None:
    assert seen(V + b'"id":"a\\ud83d","method":"m\\udc00","params":{}}') == ("request", "a\ufffd", "m\ufffd", b"{}")


def test_a_second_message_cannot_hide_in_a_pretty_printed_one() -> None:
    inner = b'{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"denied"}}'
    data = V + b'"id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":\n' + inner + b"\n}}}"
    message = parse(data, strict=True)
    line = messages.request(1, message.method, message.params)
    assert b"\n" not in line
    assert json.loads(line) == json.loads(data)


@pytest.mark.parametrize("opened", [b"[", b'{"a":', b'[{"a":'])
def test_depth_is_bounded(opened: bytes) -> None:
    closed = opened.replace(b'"a":', b"")[::-1].replace(b"[", b"]").replace(b"{", b"}")
    levels = opened.count(b"[") + opened.count(b"{")

    def nested(depth: int) -> bytes:
        return V + b'"id":6,"result":' + opened * (depth // levels) + b"1" + closed * (depth // levels) + b"}"

    assert seen(nested(bounds.MAX_DEPTH - 2))[0] == "result"  # the envelope is a level too
    for depth in (bounds.MAX_DEPTH, 900, 2_000, 100_000, 1_000_000):
        assert seen(nested(depth)) == ("refused", codes.INVALID_REQUEST, None, 6)
    request = V + b'"id":6,"method":"m","params":' + opened * 50_000
    assert seen(request) == ("refused", codes.INVALID_REQUEST, 6, None)  # it never ends, but that is found out later


def test_brackets_in_text_are_no_depth() -> None:
    text = b'"' + b'[{\\"' * 5000 + b'"'
    assert seen(V + b'"id":1,"result":' + text + b"}") == ("result", 1, text)


def test_the_number_of_values_is_bounded() -> None:
    many = V + b'"id":3,"result":[' + b"1," * (bounds.MAX_VALUES + 1) + b"1]}"
    assert seen(many) == ("refused", codes.INVALID_REQUEST, None, 3)
    text = b'"' + b"1," * (bounds.MAX_VALUES + 1) + b'"'
    assert seen(V + b'"id":3,"result":' + text + b"}") == ("result", 3, text)


@given(st.binary(max_size=200))
@example(b'{"jsonrpc":"2.0","id":1,"result":"\\ud800')
@example(b'{"jsonrpc":"2.0","id":"\\ud800\\ud800\\')
@example(b"\xef\xbb\xbf\xef\xbb\xbf{}")
def test_nothing_but_wire_error_is_raised(data: bytes) -> None:
    seen(data)
    seen(data, strict=True)
    for read in (messages.read_map, messages.split_batch):
        try:
            read(data)
        except WireError:
            continue
    for attempt in (messages.try_map, messages.try_list, messages.try_str, messages.try_json, messages.is_batch):
        attempt(data)


TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b'"',
    b"\\",
    b'"jsonrpc":"2.0"',
    b'"id":',
    b"1",
    b'"method":"m"',
    b'"result":',
]
TOKENS += [
    b'"params":',
    b'"error":',
    b"null",
    b"-",
    b".",
    b"e",
    b"\\ud83d",
    b"\\ude00",
    b"\xe9",
    b"\n",
    b" ",
    b"1e400",
    b"\x00",
]


@given(st.lists(st.sampled_from(TOKENS), max_size=30).map(b"".join))
def test_what_is_read_is_json_whatever_came(data: bytes) -> None:
    """The reader skips what it does not look into; it must not skip faults, or they would reach the other side."""
    for strict in (True, False):
        try:
            message = parse(data, strict=strict)
        except WireError:
            continue
        for part in (message.params, message.body):
            if part is not None:
                text = bytes(part).decode("utf-8")
                json.loads(text)
                assert "\n" not in text
                assert "\r" not in text


@given(any_object(), st.integers(0, 3))
def test_params_and_results_survive_byte_for_byte(text: str, kind: int) -> None:
    body = text.encode()
    data = [
        V + b'"id":1,"method":"m","params":' + body + b"}",
        V + b'"method":"m","params":' + body + b"}",
        V + b'"id":1,"result":' + body + b"}",
        b'{"error":' + body + b',"id":1,"jsonrpc":"2.0"}',
    ][kind]
    flat = body.replace(b"\n", b" ").replace(b"\r", b" ")
    assert seen(data, strict=True)[-1] == flat
    message = parse(data)
    again = {
        Kind.REQUEST: lambda: messages.request(1, message.method, message.params),
        Kind.NOTIFICATION: lambda: messages.notification(message.method, message.params),
        Kind.RESULT: lambda: messages.result(1, message.body),
        Kind.ERROR: lambda: messages.error(1, message.body),
    }[message.kind]()
    assert seen(again) == seen(data)


@given(objects(values(LINE_SPACE), LINE_SPACE))
def test_members_survive_byte_for_byte_in_order(text: str) -> None:
    members = messages.read_map(text.encode())
    assert list(members) == list(json.loads(text))
    assert json.loads(messages.write_map(members), parse_float=str, parse_int=str) == json.loads(
        text, parse_float=str, parse_int=str
    )
    for value in members.values():
        assert bytes(value).decode() in text


@given(st.lists(values(LINE_SPACE), max_size=4))
def test_items_survive_byte_for_byte(texts: list[str]) -> None:
    items = messages.try_list(("[" + ",".join(texts) + "]").encode())
    assert items is not None
    assert [bytes(item).decode() for item in items] == texts


@given(st.one_of(st.integers(-(2**70), 2**70), st.text(st.characters(codec="utf-8"), max_size=40)))
def test_ids_survive(id: int | str) -> None:
    assert seen(messages.request(id, "m", None)) == ("request", id, "m", None)
    assert seen(messages.result(id, b"{}")) == ("result", id, b"{}")
    assert seen(messages.error(id, b"{}")) == ("error", id, b"{}")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (messages.request(1, "a/b", None), b'{"jsonrpc":"2.0","id":1,"method":"a/b"}'),
        (messages.request("x", "a", b'{"b":1}'), b'{"jsonrpc":"2.0","id":"x","method":"a","params":{"b":1}}'),
        (messages.notification("n", None), b'{"jsonrpc":"2.0","method":"n"}'),
        (messages.notification("n", Raw(b"{}")), b'{"jsonrpc":"2.0","method":"n","params":{}}'),
        (messages.result(2, b"{}"), b'{"jsonrpc":"2.0","id":2,"result":{}}'),
        (messages.error(2, b'{"code":1}'), b'{"jsonrpc":"2.0","id":2,"error":{"code":1}}'),
        # the id is left out, not null, where it could not be read (2025-11-25 and 2026-07-28, Error Responses)
        (messages.error(None, b'{"code":1}'), b'{"jsonrpc":"2.0","error":{"code":1}}'),
        (messages.error_body(-32602, "no"), b'{"code":-32602,"message":"no"}'),
        (messages.error_body(1, "m", {"a": [1]}), b'{"code":1,"message":"m","data":{"a":[1]}}'),
        (messages.error_body(1, "path \udcff", {"a": "\udcff"}), '{"code":1,"message":"path \ufffd"}'.encode()),
    ],
)
def test_messages_that_we_write(made: bytes, expected: bytes) -> None:
    assert made == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (None, {}),
        (b"{}", {}),
        (b"null", {}),
        (b" null ", {}),
        (b'{"a":1,"b":{"c":2}}', {"a": b"1", "b": b'{"c":2}'}),
        (b"[]", None),
        (b"1", None),
        (b'"x"', None),
        (b"true", None),
        (b"{", None),
        (b"", None),
        (b'{"a":1,}', None),
    ],
)
def test_read_map(raw: bytes | None, expected: dict[str, bytes] | None) -> None:
    if expected is None:
        with pytest.raises(WireError) as caught:
            messages.read_map(raw)
        assert caught.value.code == codes.INVALID_PARAMS
    else:
        assert {key: bytes(value) for key, value in messages.read_map(raw).items()} == expected
    if raw is not None and raw.strip() != b"null":
        found = messages.try_map(raw)
        assert (None if found is None else {key: bytes(value) for key, value in found.items()}) == expected


@pytest.mark.parametrize(
    ("raw", "text", "value", "items"),
    [
        (None, None, None, None),
        (b'"a\\u00e9"', "aé", "aé", None),
        (b"5", None, 5, None),
        (b"[1,[2]]", None, [1, [2]], [b"1", b"[2]"]),
        (b"null", None, None, None),
        (b"1.0", None, 1.0, None),
        (b"9" * 5000, None, None, None),
        (b"[" * 5000, None, None, None),
        (b'"\\ud83d"', None, None, None),
        (b'"\xff"', None, None, None),
    ],
)
def test_reading_that_gives_none(raw: bytes | None, text: str | None, value: object, items: list[bytes] | None) -> None:
    assert messages.try_str(raw) == text
    assert messages.try_json(raw) == value
    found = messages.try_list(raw)
    assert (None if found is None else [bytes(item) for item in found]) == items


@pytest.mark.parametrize(
    ("id", "expected"),
    [
        (7, 7),
        ("7", 7),
        ("0", 0),
        ("", None),
        ("x", None),
        ("-1", None),
        ("7.0", None),
        ("\u0667", None),
        ("9" * 20, None),
        (None, None),
    ],
)
def test_ids_of_ours_that_come_back(id: int | str | None, expected: int | None) -> None:
    assert messages.own_id(id) == expected


M = b'{"jsonrpc":"2.0","method":"m"}'


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"[" + M + b"]", [M]),
        (b" [ " + M + b" ,\n" + M + b"] ", [M, M]),
        (b"[" + b",".join([M] * 1000) + b"]", [M] * 1000),
        (b"[" + b",".join([M] * 1001) + b"]", codes.INVALID_REQUEST),
        (b"[]", codes.INVALID_REQUEST),
        (b"[1]", codes.INVALID_REQUEST),
        (b"[" + M + b",{}]", codes.INVALID_REQUEST),
        (b"[" + b"1," * 3_000_000 + b"1]", codes.INVALID_REQUEST),
        (b"[" + M, codes.PARSE_ERROR),
        (b"[" + M + b",]", codes.PARSE_ERROR),
        (b"[" * 100_000, codes.INVALID_REQUEST),
    ],
)
def test_batches(data: bytes, expected: list[bytes] | int) -> None:
    assert messages.is_batch(data)
    if isinstance(expected, int):
        with pytest.raises(WireError) as caught:
            messages.split_batch(data)
        assert caught.value.code == expected
    else:
        assert messages.split_batch(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"), [(b"{}", False), (b"", False), (b" [", True), (b"\r\n[1]", True), (b"x[", False)]
)
def test_is_batch(data: bytes, expected: bool) -> None:
    assert messages.is_batch(data) is expected
