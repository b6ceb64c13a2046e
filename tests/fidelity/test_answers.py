"""What a server answers arrives: results, errors, lists and the handshake, for each era on either side."""

from __future__ import annotations

import json

import pytest

from . import cases
from .cases import ERRORS, RESULTS, ErrorRow, Row
from .conftest import DOWN, EACH, KINDS, Kind, Setting
from .peer import Asked, Era, member, members

ITEM = {"tools/call": "call", "prompts/get": "ask", "resources/read": "file:///one"}


def params_of(setting: Setting, method: str) -> tuple[bytes, str | None]:
    """The params of a request that reaches the server's own item, and its `Mcp-Name`."""
    if method in ITEM:
        name = setting.exposed(method, ITEM[method])
        key = "uri" if method == "resources/read" else "name"
        return json.dumps({key: name, **({"arguments": {}} if method == "tools/call" else {})}).encode(), name
    if method == "completion/complete":
        ref = {"type": "ref/prompt", "name": setting.exposed("prompts/get", "ask")}
        return json.dumps({"ref": ref, "argument": {"name": "topic", "value": ""}}).encode(), None
    return b'{"x":1}', None


def answer_with(setting: Setting, method: str, member_name: str, body: bytes, envelope: bytes = b"") -> None:
    def answer(asked: Asked) -> list[bytes] | None:
        if asked.method != method:
            return None
        return [b'{"jsonrpc":"2.0","id":$ID' + envelope + b',"' + member_name.encode() + b'":' + body + b"}"]

    setting.script.answer = answer


def rows_of(kinds: list[Kind]) -> pytest.MarkDecorator:
    """Each result, for each of these kinds of server that can say it."""
    pairs = [
        pytest.param(kind, row, id=f"{kind}-{row.id}")
        for kind in kinds
        for row in RESULTS
        if row.only[0] in ("*", kind.up) and row.only[1] in ("*", kind.transport)
    ]
    return pytest.mark.parametrize(("setting", "row"), pairs, indirect=["setting"])


@DOWN
@rows_of(KINDS)
def test_results(setting: Setting, down: Era, row: Row) -> None:
    kind = setting.kind
    answer_with(setting, row.method, "result", cases.said(row, kind.up))
    params, name = params_of(setting, row.method)
    response = setting.http(down).request(row.method, params, name=name)
    assert (response.status, len(response.messages)) == (200, 1)
    expected = cases.heard(row, kind.up, down, kind.names)
    assert response.last == b'{"jsonrpc":"2.0","id":1,"result":' + expected + b"}"


@DOWN
@rows_of([kind for kind in KINDS if (kind.transport, kind.names) == ("http", "verbatim")])
def test_results_reach_a_host_on_stdio(setting: Setting, down: Era, row: Row) -> None:
    """`interlock connect` with some kinds of server: the way back is the same, the line is not."""
    kind = setting.kind
    answer_with(setting, row.method, "result", cases.said(row, kind.up))
    params, name = params_of(setting, row.method)
    response = setting.client(down, "stdio").request(row.method, params, name=name)
    expected = cases.heard(row, kind.up, down, kind.names)
    assert response.last == b'{"jsonrpc":"2.0","id":1,"result":' + expected + b"}"


METHODS = ["tools/call", "prompts/get", "resources/read", "completion/complete", "com.example/do"]
# 2026-07-28, Streamable HTTP: the status says it too, where the specification gives one.
STATUS = {-32601: 404}


@EACH
@DOWN
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row.id)
def test_errors(setting: Setting, down: Era, method: str, row: ErrorRow) -> None:
    answer_with(setting, method, "error", row.error.encode())
    params, name = params_of(setting, method)
    response = setting.http(down).request(method, params, name=name)
    expected = row.heard(down)
    assert response.messages == [b'{"jsonrpc":"2.0","id":1,"error":' + expected + b"}"]
    code = json.loads(expected)["code"]
    assert response.status == (STATUS.get(code, 200) if down == "modern" else 200)


@EACH
@DOWN
@pytest.mark.parametrize("method", ["tools/call", "com.example/do"])
def test_the_envelope_is_made_anew(setting: Setting, down: Era, method: str) -> None:
    """Members beside `id` and `result` or `error` are dropped: the envelope is one hop's, and strict clients refuse more."""
    params, name = params_of(setting, method)
    answer_with(setting, method, "error", b'{"code":5,"message":"m"}', b',"x-envelope":{"a":1}')
    response = setting.http(down).request(method, params, name=name, id=b'"an id \\u00e9\\/ of ours"')
    assert response.last == '{"jsonrpc":"2.0","id":"an id é/ of ours","error":{"code":5,"message":"m"}}'.encode()


@EACH
@DOWN
@pytest.mark.parametrize("method", list(cases.LISTS))
def test_lists(setting: Setting, down: Era, method: str) -> None:
    """Every page of the server, on one page of ours, without its cursors."""
    response = setting.http(down).request(method)
    expected = cases.heard_list(method, setting.kind.up, down, setting.kind.names)
    assert response.messages == [b'{"jsonrpc":"2.0","id":1,"result":' + expected + b"}"]
    assert b"of-the-server" not in response.last
    cursors = {asked.message.get("params", {}).get("cursor") for asked in setting.script.taken(method)}
    assert cursors >= {f"of-the-server-{number}" for number in range(1, len(setting.script.lists[method]))}


@EACH
@DOWN
def test_the_handshake(setting: Setting, down: Era) -> None:
    """Capabilities that Interlock knows nothing of are passed; the rest of the answer is Interlock's own.

    Instructions are text from perhaps several servers: each under its server's name, unless there is only the one.
    """
    client = setting.http(down)
    if down == "legacy":
        hello = member(type(client)(client.port, down).hello, "result")
    else:
        hello = member(client.request("server/discover").last, "result")
    capabilities = member(hello, "capabilities")
    known = b'"completions":{},"logging":{},'
    assert capabilities.endswith(known + cases.EXTRA_CAPABILITIES + b"}")
    text = cases.INSTRUCTIONS if setting.kind.names == "verbatim" else f"# Server raw\n{cases.INSTRUCTIONS}"
    assert json.loads(member(hello, "instructions")) == text
    assert b"x-hello" not in hello
    if down == "legacy":
        assert b'"io.modelcontextprotocol/serverInfo":' + member(hello, "serverInfo") == cases.INFO.encode()
    else:
        assert member(hello, "_meta") == b"{" + cases.INFO.encode() + b"}"


@EACH
@DOWN
def test_a_stream_with_an_answer_is_as_good_as_plain_json(setting: Setting, down: Era) -> None:
    row = RESULTS[0]

    def answer(asked: Asked) -> list[bytes] | None:
        if asked.method != row.method:
            return None
        unheard = b'{"jsonrpc":"2.0","method":"notifications/com.example/quiet"}'
        return [unheard, b'{"jsonrpc":"2.0","id":$ID,"result":' + cases.said(row, setting.kind.up) + b"}"]

    setting.script.answer = answer
    params, name = params_of(setting, row.method)
    response = setting.http(down).request(row.method, params, name=name)
    assert (
        response.last
        == b'{"jsonrpc":"2.0","id":1,"result":' + cases.heard(row, setting.kind.up, down, setting.kind.names) + b"}"
    )
    assert [name for name, _ in members(response.last)] == ["jsonrpc", "id", "result"]
