"""What a client asks arrives at the server: params, arguments, other people's `_meta`; and what is made anew on the way."""

from __future__ import annotations

import json

import pytest

from . import cases
from .conftest import DOWN, EACH, KINDS, Setting, each
from .gateway import CAPABILITIES
from .peer import Asked, Era, members

ARGUMENTS = (
    '{"b":9007199254740993,"a":[1.0,1E+5,-0.0,123456789012345678901234567890],"é":"\\u00e9\\/\\ud83d\\ude00 😀","nul":null,'
    '"dup":1,"dup":2, "space" : { } }'
)
META = b'"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","com.example/x":{"n":1.0,"z":1,"a":2},"x":null'
INFO = cases.INFO.partition(":")[2].encode()

# Params with `$NAME` for what the client calls the item; the server's own name for it; the method.
REQUESTS = [
    pytest.param("tools/call", "call", '{"x-first":1.0,"name":$NAME,"arguments":' + ARGUMENTS + ',"x-param":{"z":1,"a":2}}', id="call"),
    pytest.param("tools/call", "call", '{"name":$NAME}', id="call without arguments"),
    pytest.param("tools/call", "call", '{"arguments":null,"name":$NAME}', id="call with null"),
    pytest.param("prompts/get", "ask", '{"name":$NAME,"arguments":{"topic":"\\u00e9"},"x-param":[1.0]}', id="prompt"),
    pytest.param("resources/read", "file:///one", '{"x-param":1E+2,"uri":$NAME}', id="resource"),
    pytest.param(
        "completion/complete", "ask",
        '{"ref":{"type":"ref/prompt","x-ref":1.0,"name":$NAME},"argument":{"name":"topic","value":"","x-a":1.0},"context":'
        '{"arguments":{"z":"1","a":"2"}},"x-param":1}', id="completion of a prompt",
    ),
    pytest.param(
        "completion/complete", "file:///{path}",
        '{"ref":{"type":"ref/resource","uri":$NAME},"argument":{"name":"path","value":"x"}}', id="completion of a template",
    ),
    pytest.param("com.example/do", "", '{"anything":{"n":1.0,"z":1,"a":2},"uri":"file:///a","name":"call"}', id="unknown method"),
]  # fmt: skip


def given(setting: Setting, method: str, item: str, template: str) -> tuple[bytes, str | None]:
    if "$NAME" not in template:
        return template.encode(), None
    by_uri = method == "resources/read" or "uriTemplate" in template or '"ref/resource"' in template
    name = setting.exposed("resources/read" if by_uri else method, item)
    return template.replace("$NAME", json.dumps(name)).encode(), name if method != "completion/complete" else None


def arrived(setting: Setting, method: str) -> Asked:
    return setting.script.taken(method)[-1]


@EACH
@DOWN
@pytest.mark.parametrize(("method", "item", "template"), REQUESTS)
def test_params_arrive(setting: Setting, down: Era, method: str, item: str, template: str) -> None:
    params, name = given(setting, method, item, template)
    setting.script.answer = lambda asked: (
        [b'{"jsonrpc":"2.0","id":$ID,"result":{}}'] if asked.method == method else None
    )
    setting.http(down).request(method, params, name=name, meta=META)
    asked = arrived(setting, method)
    wanted = template.replace("$NAME", json.dumps(item)).encode()
    found = members(asked.member("params"))
    assert found[:-1] == members(wanted), "every member, in order, spelled as it was, with the server's own name"
    assert found[-1][0] == "_meta"
    ours = b""
    if setting.kind.up == "modern":
        level = b',"io.modelcontextprotocol/logLevel":"info"' if down == "legacy" else b""
        ours = (
            b',"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":' + INFO
            + b',"io.modelcontextprotocol/clientCapabilities":' + CAPABILITIES + level
        )  # fmt: skip
    assert found[-1][1] == b"{" + META + ours + b"}"


@EACH
@DOWN
def test_meta_is_not_invented(setting: Setting, down: Era) -> None:
    """A legacy server gets none where the client sent none; a modern one gets what its revision demands."""
    params, name = given(setting, "tools/call", "call", '{"name":$NAME,"arguments":{}}')
    setting.script.answer = lambda asked: (
        [b'{"jsonrpc":"2.0","id":$ID,"result":{}}'] if asked.method == "tools/call" else None
    )
    setting.http(down).request("tools/call", params, name=name)
    found = dict(members(arrived(setting, "tools/call").member("params")))
    if setting.kind.up == "legacy":
        assert list(found) == ["name", "arguments"]
    else:
        names = ["protocolVersion", "clientInfo", "clientCapabilities", *(["logLevel"] if down == "legacy" else [])]
        assert [key for key, _ in members(found["_meta"])] == [f"io.modelcontextprotocol/{each}" for each in names]


@EACH
@DOWN
def test_progress_tokens_are_our_own(setting: Setting, down: Era) -> None:
    """A client's token may be text that another client uses too; the server gets a number of ours."""
    params, name = given(setting, "tools/call", "call", '{"name":$NAME,"arguments":{}}')
    setting.script.answer = lambda asked: (
        [b'{"jsonrpc":"2.0","id":$ID,"result":{}}'] if asked.method == "tools/call" else None
    )
    setting.http(down).request(
        "tools/call", params, name=name, meta=b'"progressToken":"secret-\\u0031","com.example/x":1.0'
    )
    meta = dict(members(arrived(setting, "tools/call").member("params", "_meta")))
    assert meta["progressToken"].isdigit()
    assert meta["com.example/x"] == b"1.0"


@each([kind for kind in KINDS if kind.transport == "http"])
@DOWN
def test_headers(setting: Setting, down: Era) -> None:
    """What is declared is sent, without the space around it; what mirrors the body says what the server's own body says."""
    params, name = given(setting, "tools/call", "call", '{"name":$NAME,"arguments":{}}')
    setting.script.answer = lambda asked: (
        [b'{"jsonrpc":"2.0","id":$ID,"result":{}}'] if asked.method == "tools/call" else None
    )
    setting.http(down).request("tools/call", params, name=name)
    headers = arrived(setting, "tools/call").headers
    assert headers["x-secret"] == "Bearer s3cret"
    assert headers["content-type"] == "application/json"
    if setting.kind.up == "modern":
        shown = {key: value for key, value in headers.items() if key.startswith("mcp-")}
        assert shown == {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "call"}
    else:
        shown = {key: value for key, value in headers.items() if key.startswith("mcp-")}
        assert shown == {"mcp-protocol-version": "2025-11-25", "mcp-session-id": "fidelity-session"}


@EACH
@DOWN
def test_padded_headers_of_the_client_count_as_trimmed(setting: Setting, down: Era) -> None:
    """RFC 9110, 5.5: space around a field value is not part of it."""
    client = setting.http(down)
    params, name = given(setting, "tools/call", "call", '{"name":$NAME,"arguments":{}}')
    setting.script.answer = lambda asked: (
        [b'{"jsonrpc":"2.0","id":$ID,"result":{}}'] if asked.method == "tools/call" else None
    )
    headers = {key: f" \t{value} \t" for key, value in client.headers("tools/call", name).items()}
    with client.open("POST", client.message("tools/call", params, b"", b"7"), headers) as response:
        assert response.status == 200
        assert json.loads(response.read())["id"] == 7
