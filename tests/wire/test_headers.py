"""The HTTP headers that mirror a request's body (2026-07-28, basic/transports/streamable-http)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.wire import codes, headers
from interlock.wire.headers import check_params, check_standard, decode_value, encode_value, param_headers, spell
from interlock.wire.messages import Raw, WireError

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
HEADER = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=30)


@dataclass(frozen=True)
class Param:
    header_name: str
    path: Sequence[str]


@pytest.mark.parametrize(
    ("value", "header"),
    [
        # the table under "Encoding examples"
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        # its edges
        ("", ""),
        ("a\tb", "a\tb"),
        ("\ta", "=?base64?CWE=?="),
        ("a ", "=?base64?YSA=?="),
        ("a b", "a b"),
        ("\x7f", "=?base64?fw==?="),
        ("a\r\nx-evil: 1", "=?base64?YQ0KeC1ldmlsOiAx?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("=?base64?open", "=?base64?open"),
        ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
        ("~!#", "~!#"),
    ],
)
def test_encoding_of_values(value: str, header: str) -> None:
    assert encode_value(value) == header
    assert decode_value(header) == value


@given(TEXTS)
@example("=?base64?")
@example("=?base64??=")
def test_values_survive_and_are_safe_in_a_header(value: str) -> None:
    header = encode_value(value)
    assert decode_value(header) == value
    assert all(char == "\t" or " " <= char <= "~" for char in header)
    assert header == header.strip(" \t")


@pytest.mark.parametrize(
    "header",
    ["=?base64?%%%?=", "=?base64?YQ?=", "=?base64?YQ=?=", "=?base64?/w==?=", "=?base64?Y Q==?=", "=?base64?YQ==YQ==?="],
)
def test_broken_base64(header: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        decode_value(header)


@given(HEADER)
def test_any_header_is_decoded_or_refused(header: str) -> None:
    try:
        decode_value(header)
    except ValueError:
        assert header.startswith("=?base64?")


def modern(method: str, name: str | None = None, version: str = "2026-07-28") -> dict[bytes, bytes]:
    made = {b"mcp-protocol-version": version.encode(), b"mcp-method": method.encode()}
    if name is not None:
        made[b"mcp-name"] = encode_value(name).encode()
    return made


def refusal(check: Callable[[], None]) -> str | None:
    """What the check objects to, None where it passes. It may only ever raise the one error."""
    try:
        check()
    except WireError as error:
        return error.message if error.code == codes.HEADER_MISMATCH == -32020 else f"the wrong code: {error.code}"
    return None


def verdict(given: dict[bytes, bytes], method: str, name: str | None, version: str = "2026-07-28") -> str | None:
    """None where the check passes, else its message."""
    return refusal(
        lambda: check_standard(given, method, version, None if name is None else Raw(json.dumps(name).encode()))
    )


@pytest.mark.parametrize(
    ("given", "method", "name", "expected"),
    [
        (modern("tools/call", "x"), "tools/call", "x", None),
        (modern("prompts/get", "é"), "prompts/get", "é", None),
        (modern("resources/read", "file:///a b"), "resources/read", "file:///a b", None),
        (modern("tools/list"), "tools/list", None, None),
        (modern("tools/list", "ignored"), "tools/list", None, None),
        ({**modern("tools/call", "x"), b"mcp-name": b" \tx "}, "tools/call", "x", None),
        ({b"mcp-method": b"m"}, "m", None, "Header mismatch: the MCP-Protocol-Version header is missing"),
        ({b"mcp-protocol-version": b"2026-07-28"}, "m", None, "Header mismatch: the Mcp-Method header is missing"),
        (modern("tools/call"), "tools/call", "x", "Header mismatch: the Mcp-Name header is missing"),
        (
            modern("m", version="2025-11-25"), "m", None,
            "Header mismatch: MCP-Protocol-Version header value '2025-11-25' does not match body value '2026-07-28'",
        ),
        (modern("Tools/List"), "tools/list", None,
         "Header mismatch: Mcp-Method header value 'Tools/List' does not match body value 'tools/list'"),
        # the example of the specification
        (modern("tools/call", "foo"), "tools/call", "bar",
         "Header mismatch: Mcp-Name header value 'foo' does not match body value 'bar'"),
        (modern("tools/call", "x"), "tools/call", None,
         "Header mismatch: Mcp-Name header value 'x' does not match body value None"),
        # two headers of the same name arrive joined: no reader of the first or the last one may be right
        ({**modern("tools/call"), b"mcp-name": b"x, x"}, "tools/call", "x",
         "Header mismatch: Mcp-Name header value 'x, x' does not match body value 'x'"),
        ({**modern("tools/call"), b"mcp-name": b"=?base64?!?="}, "tools/call", "x",
         "Header mismatch: the Mcp-Name header is not valid base64: "),
        ({**modern("tools/call"), b"mcp-name": "é".encode()}, "tools/call", "é",
         "Header mismatch: the mcp-name header has characters that a header may not hold"),
        ({**modern("tools/call"), b"mcp-name": b"a\x00"}, "tools/call", "a\x00",
         "Header mismatch: the mcp-name header has characters that a header may not hold"),
    ],
)  # fmt: skip
def test_standard_headers(given: dict[bytes, bytes], method: str, name: str | None, expected: str | None) -> None:
    found = verdict(given, method, name)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found.startswith(expected)


def test_a_long_value_is_not_repeated_whole() -> None:
    found = verdict(modern("tools/call", "x"), "tools/call", "y" * 1_000_000)
    assert found is not None
    assert len(found) < 300


@given(TEXTS, TEXTS)
def test_a_name_passes_where_it_is_the_same_and_nowhere_else(one: str, other: str) -> None:
    assert verdict(modern("tools/call", one), "tools/call", one) is None
    assert (verdict(modern("tools/call", one), "tools/call", other) is None) is (one == other)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a b", "a b"), ("", ""), (True, "true"), (False, "false"), (0, "0"), (42, "42"), (-7, "-7"),
        (2**53 - 1, "9007199254740991"),
        (2**70, "1180591620717411303424"), (42.0, "42"), (-0.0, "0"), (1.5, None), (1e300, None),
        (None, None), ([1], None), ({}, None),
    ],
)  # fmt: skip
def test_spelling(value: object, text: str | None) -> None:
    assert spell(value) == text


REGION = Param("Mcp-Param-Region", ("region",))
DEEP = Param("Mcp-Param-Deep", ("a", "b"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (b'{"region":"us-west1"}', [("Mcp-Param-Region", "us-west1")]),
        (b'{"region":"\\u4e16"}', [("Mcp-Param-Region", "=?base64?5LiW?=")]),
        (b'{"region":true,"a":{"b":7}}', [("Mcp-Param-Region", "true"), ("Mcp-Param-Deep", "7")]),
        (b'{"region":null,"a":null}', []),
        (b'{"region":[],"a":[{"b":1}]}', []),
        (b'{"a":{"b":{"c":1}}}', []),
        (b"[]", []),
        (None, []),
    ],
)
def test_headers_of_a_call(arguments: bytes | None, expected: list[tuple[str, str]]) -> None:
    assert param_headers([REGION, DEEP], None if arguments is None else Raw(arguments)) == expected


def params_pass(given: dict[bytes, bytes], arguments: bytes | None, params: Sequence[Param] = (REGION,)) -> bool:
    found = refusal(lambda: check_params(given, params, None if arguments is None else Raw(arguments)))
    assert found is None or found.startswith("Header mismatch: ")
    return found is None


@pytest.mark.parametrize(
    ("header", "arguments", "passes"),
    [
        # the table under "Server Behavior for Custom Headers"
        (b"us", b'{"region":"us"}', True),
        (b"eu", b'{"region":"us"}', False),
        (None, b'{"region":null}', True),
        (b"us", b'{"region":null}', False),
        (None, b"{}", True),
        (None, None, True),
        (b"us", b"{}", False),
        (None, b'{"region":"us"}', False),
        # decoded before it is compared; case counts
        (b"=?base64?dXM=?=", b'{"region":"us"}', True),
        (b"=?base64?dXM?=", b'{"region":"us"}', False),
        (b"US", b'{"region":"us"}', False),
        (b" us\t", b'{"region":"us"}', True),
        (b"us, us", b'{"region":"us"}', False),
        # integers as numbers, and nothing that is only nearly one
        (b"42", b'{"region":42}', True),
        (b"42.0", b'{"region":42}', True),
        (b"42", b'{"region":42.0}', True),
        (b"42.00", b'{"region":42.0}', True),
        (b"-0", b'{"region":0}', True),
        (b"42.1", b'{"region":42}', False),
        (b"4_2", b'{"region":42}', False),
        (b"+42", b'{"region":42}', False),
        (b"042", b'{"region":42}', False),
        (b"0x2a", b'{"region":42}', False),
        (b"4.2e1", b'{"region":42}', False),
        (b"", b'{"region":0}', False),
        (b"nan", b'{"region":0}', False),
        (b"9007199254740993", b'{"region":9007199254740993}', True),
        (b"9007199254740992", b'{"region":9007199254740993}', False),
        (b"9007199254740993.0", b'{"region":9007199254740992}', False),
        (b"1.5", b'{"region":1.5}', True),
        (b"1.50", b'{"region":1.5}', True),
        (b"1.6", b'{"region":1.5}', False),
        (b"42", b'{"region":"42"}', True),
        (b"42.0", b'{"region":"42"}', False),
        (b"true", b'{"region":true}', True),
        (b"True", b'{"region":true}', False),
        (b"1", b'{"region":true}', False),
        (b"false", b'{"region":false}', True),
        # what a header cannot say needs none, and matches none
        (None, b'{"region":["us"]}', True),
        (b"us", b'{"region":["us"]}', False),
        (None, b'{"region":1.5}', True),
        (b"\xff", b'{"region":"us"}', False),
    ],
)
def test_param_headers_are_checked(header: bytes | None, arguments: bytes | None, passes: bool) -> None:
    given = {} if header is None else {b"mcp-param-region": header}
    assert params_pass(given, arguments) is passes


VALUES = st.one_of(
    TEXTS, st.booleans(), st.integers(-(2**60), 2**60), st.none(), st.floats(allow_nan=False, allow_infinity=False)
)


@given(VALUES, VALUES)
def test_headers_that_we_write_pass_and_those_of_another_value_do_not(one: object, other: object) -> None:
    def arguments(value: object) -> bytes:
        return json.dumps({"region": value}).encode()

    made = {name.lower().encode(): text.encode() for name, text in param_headers([REGION], Raw(arguments(one)))}
    assert params_pass(made, arguments(one))
    if made and params_pass(made, arguments(other)):
        assert spell(other) == spell(one)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_bytes_pass_or_are_refused(header: bytes, arguments: bytes) -> None:
    params_pass({b"mcp-param-region": header}, arguments, [REGION, DEEP])
    found = refusal(lambda: check_standard({b"mcp-protocol-version": header}, "m", "2026-07-28", Raw(arguments)))
    assert found is not None
    assert found.startswith("Header mismatch: ")


def test_which_methods_have_a_name() -> None:
    assert headers.NAME_SOURCE == {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
