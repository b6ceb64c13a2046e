"""The parts of the fixture servers: pages, sealed state, header rules."""

from __future__ import annotations

import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.lab.content import conformance_content, fixed, tool
from interlock.lab.jsonrpc import HEADER_MISMATCH, INVALID_PARAMS, UNSUPPORTED_VERSION, JsonObject, RpcError
from interlock.lab.levels import at_least
from interlock.lab.listing import list_page
from interlock.lab.modern_engine import MODERN_VERSION
from interlock.lab.modern_headers import check_headers, decoded, mirrored_parameters
from interlock.lab.registry import Content, text_result
from interlock.lab.seal import LIFETIME_SECONDS, seal, unseal


def numbered(count: int, page_size: int | None) -> Content:
    content = Content("pages", page_size=page_size)
    content.add_tools(*(tool(f"t{number}", "", fixed(text_result(""))) for number in range(count)))
    return content


@given(count=st.integers(0, 40), page_size=st.one_of(st.none(), st.integers(1, 45)))
def test_pages_hold_everything_once_and_in_order(count: int, page_size: int | None) -> None:
    content = numbered(count, page_size)
    names: list[object] = []
    cursor: object = None
    for _ in range(count + 2):
        page = list_page(content, "tools/list", {} if cursor is None else {"cursor": cursor})
        items = page["tools"]
        assert isinstance(items, list)
        assert len(items) <= (page_size or count)
        names += [item["name"] for item in items]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert cursor is None
    assert names == [f"t{number}" for number in range(count)]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        7,
        "%%%",
        base64.urlsafe_b64encode(b"prompts/list:1").decode(),
        base64.urlsafe_b64encode(b"tools/list:99").decode(),
    ],
)
def test_a_cursor_of_another_list_is_refused(cursor: object) -> None:
    with pytest.raises(RpcError) as caught:
        list_page(numbered(3, 1), "tools/list", {"cursor": cursor})
    assert caught.value.code == INVALID_PARAMS


def test_sealed_state_comes_back() -> None:
    state: JsonObject = {"answers": {"a": {"action": "accept"}}}
    assert unseal(seal(state, "tools/call x"), "tools/call x") == state


def test_sealed_state_is_bound_to_its_request() -> None:
    with pytest.raises(RpcError, match="does not belong"):
        unseal(seal({}, "tools/call x"), "tools/call y")


def test_sealed_state_lapses(monkeypatch: pytest.MonkeyPatch) -> None:
    token = seal({}, "r")
    later = time.time() + LIFETIME_SECONDS + 1
    monkeypatch.setattr("time.time", lambda: later)
    with pytest.raises(RpcError, match="lapsed"):
        unseal(token, "r")


@given(position=st.integers(0, 10_000), letter=st.sampled_from("Ab0_-=.~"))
def test_no_changed_character_passes(position: int, letter: str) -> None:
    token = seal({"round": 1}, "r")
    place = position % len(token)
    changed = token[:place] + letter + token[place + 1 :]
    if changed == token:
        return
    try:
        same = [base64.urlsafe_b64decode(part) for part in changed.split(".")] == [
            base64.urlsafe_b64decode(part) for part in token.split(".")
        ]
    except ValueError:
        same = False
    if same:  # Base64 leaves a few bits unused: a change there alters no byte
        assert unseal(changed, "r") == {"round": 1}
    else:
        with pytest.raises(RpcError):
            unseal(changed, "r")


@given(st.text())
def test_no_invented_state_passes(token: str) -> None:
    with pytest.raises(RpcError):
        unseal(token, "r")


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (None, None),
        ("plain", "plain"),
        ("=?base64?SGVsbG8sIOS4lueVjA==?=", "Hello, 世界"),
        ("=?base64?IHBhZGRlZCA=?=", " padded "),
        ("=?base64??=", ""),
        ("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
    ],
)
def test_header_values_are_decoded(sent: str | None, meant: str | None) -> None:
    assert decoded("Mcp-Name", sent) == meant


@pytest.mark.parametrize("sent", ["=?base64?SGVsbG8?=", "=?base64?!!!!?=", "=?base64?/w==?=", "caf\u00e9", "a\x00b"])
def test_malformed_header_values_are_refused(sent: str) -> None:
    with pytest.raises(RpcError) as caught:
        decoded("Mcp-Name", sent)
    assert (caught.value.code, caught.value.status) == (HEADER_MISMATCH, 400)


def request(method: str, **params: object) -> JsonObject:
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN_VERSION, "io.modelcontextprotocol/clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}}


GOOD = {"mcp-protocol-version": MODERN_VERSION, "mcp-method": "tools/call", "mcp-name": "test_x_mcp_header"}
CALL = request("tools/call", name="test_x_mcp_header", arguments={"region": "eu"})


@pytest.mark.parametrize(
    ("message", "headers", "code"),
    [
        (CALL, {**GOOD, "mcp-param-region": "eu"}, None),
        (CALL, {**GOOD, "mcp-param-region": "=?base64?ZXU=?="}, None),
        (CALL, {**GOOD, "mcp-param-region": "us"}, HEADER_MISMATCH),
        (CALL, GOOD, HEADER_MISMATCH),
        (request("tools/call", name="test_x_mcp_header"), GOOD, None),
        (request("tools/call", name="test_x_mcp_header", arguments={"region": None}), GOOD, None),
        (request("tools/call", name="test_x_mcp_header"), {**GOOD, "mcp-param-region": "eu"}, HEADER_MISMATCH),
        (CALL, {**GOOD, "mcp-param-region": "eu", "mcp-name": "other"}, HEADER_MISMATCH),
        (CALL, {**GOOD, "mcp-param-region": "eu", "mcp-method": "tools/list"}, HEADER_MISMATCH),
        (CALL, {**GOOD, "mcp-param-region": "eu", "mcp-protocol-version": "2025-11-25"}, HEADER_MISMATCH),
        (request("tools/list"), {"mcp-method": "tools/list"}, HEADER_MISMATCH),
        (request("tools/list"), {"mcp-protocol-version": MODERN_VERSION, "mcp-method": "TOOLS/LIST"}, HEADER_MISMATCH),
        (request("tools/list"), {"mcp-protocol-version": MODERN_VERSION, "mcp-method": "tools/list"}, None),
        ({"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}, {}, UNSUPPORTED_VERSION),
    ],
)
def test_headers_must_agree_with_the_body(message: JsonObject, headers: dict[str, str], code: int | None) -> None:
    content = conformance_content("headers")
    if code is None:
        check_headers(message, headers, content)
        return
    with pytest.raises(RpcError) as caught:
        check_headers(message, headers, content)
    assert (caught.value.code, caught.value.status) == (code, 400)


def test_mirrored_parameters_follow_properties_only() -> None:
    schema = {
        "properties": {
            "a": {"type": "string", "x-mcp-header": "A"},
            "b": {"properties": {"c": {"type": "integer", "x-mcp-header": "C"}}},
            "d": {"items": {"x-mcp-header": "Never"}},
        },
        "anyOf": [{"properties": {"e": {"x-mcp-header": "Never"}}}],
    }
    assert list(mirrored_parameters(schema)) == [("A", ("a",)), ("C", ("b", "c"))]


@pytest.mark.parametrize(
    ("level", "threshold", "passes"),
    [("debug", "info", False), ("info", "info", True), ("emergency", "debug", True), ("made-up", "error", True)],
)
def test_log_levels_are_ordered(level: str, threshold: str, passes: bool) -> None:
    assert at_least(level, threshold) is passes
