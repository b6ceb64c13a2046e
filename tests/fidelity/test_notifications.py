"""What a server says beside its answers arrives: progress, logs, changes, and what nobody knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .conftest import DOWN, EACH, Setting
from .gateway import HttpClient, messages_of
from .peer import Asked, Era

TOKEN = b'"t\\u006bn"'
REST = b'"x-p":{"z":1,"a":2.0},"big":9007199254740993,"_meta":{"com.example/k":1.0}'

# What the server says while a call is open, and what the client gets instead where that differs.
DURING = [
    pytest.param(
        b'"notifications/progress","params":{"progressToken":$TOKEN,"progress":1.0,"total":1E+2,"message":"\\u00e9\\/",' + REST + b"}",
        b'"notifications/progress","params":{"progressToken":' + TOKEN + b',"progress":1.0,"total":1E+2,"message":"\\u00e9\\/",'
        + REST + b"}",
        id="progress",
    ),
    pytest.param(
        # The client's own token, first whatever the order was.
        b'"notifications/progress","params":{"x":1,"progress":7,"progressToken":$TOKEN}',
        b'"notifications/progress","params":{"progressToken":' + TOKEN + b',"x":1,"progress":7}',
        id="progress in another order",
    ),
    pytest.param(
        b'"notifications/message","params":{"level":"warning","logger":"l","data":{"z":1.0,"a":[null]},' + REST + b"}", None, id="log"
    ),
    pytest.param(b'"notifications/com.example/odd","params":{"z":1.0,"a":2,' + REST + b"}", None, id="unknown"),
    pytest.param(
        # Without params means the same as with empty ones.
        b'"notifications/com.example/bare"', b'"notifications/com.example/bare","params":{}', id="unknown and bare"
    ),
]  # fmt: skip


@EACH
@DOWN
@pytest.mark.parametrize(("said", "expected"), DURING)
def test_during_a_call(setting: Setting, down: Era, said: bytes, expected: bytes | None) -> None:
    def answer(asked: Asked) -> list[bytes] | None:
        if asked.method != "tools/call":
            return None
        return [b'{"jsonrpc":"2.0","method":' + said + b"}", b'{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}']

    setting.script.answer = answer
    name = setting.exposed("tools/call", "call")
    meta = b'"progressToken":' + TOKEN
    if down == "modern":
        meta += b',"io.modelcontextprotocol/logLevel":"debug"'
    response = setting.http(down).request("tools/call", json.dumps({"name": name}).encode(), name=name, meta=meta)
    assert response.messages[:-1] == [b'{"jsonrpc":"2.0","method":' + (said if expected is None else expected) + b"}"]
    assert json.loads(response.last)["id"] == 1


@EACH
def test_a_modern_request_that_wants_no_log_gets_none(setting: Setting) -> None:
    """2026-07-28, server/utilities/logging: no log messages for a request that names no level."""

    def answer(asked: Asked) -> list[bytes] | None:
        if asked.method != "tools/call":
            return None
        said = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}'
        return [said, b'{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}']

    setting.script.answer = answer
    name = setting.exposed("tools/call", "call")
    response = setting.http("modern").request("tools/call", json.dumps({"name": name}).encode(), name=name)
    assert len(response.messages) == 1


@contextmanager
def heard(setting: Setting, down: Era, uri: str) -> Iterator[Iterator[bytes]]:
    """What a client hears outside any call: it listens for list changes and to one resource."""
    client = setting.http(down)
    start = len(setting.script.asked)
    # A client of its own, so that nothing that it missed before is delivered now.
    own = HttpClient(client.port, down)
    own.request("tools/list")
    exposed = setting.exposed("resources/read", uri)
    if down == "legacy":
        own.request("resources/subscribe", json.dumps({"uri": exposed}).encode())
        headers = own.headers(None, None) | {"accept": "text/event-stream"}
        opened = own.open("GET", None, headers)
    else:
        filters = {"toolsListChanged": True, "resourceSubscriptions": [exposed]}
        params = json.dumps({"notifications": filters}).encode()
        body = own.message("subscriptions/listen", params, b"", b'"the listen"')
        opened = own.open("POST", body, own.headers("subscriptions/listen", None))
    with opened as response:
        messages = messages_of(response)
        if down == "modern":
            first = json.loads(next(messages))
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert first["params"]["notifications"] == filters
        wanted = "resources/subscribe" if setting.kind.up == "legacy" else "subscriptions/listen"
        setting.script.wait(lambda asked: asked.method == wanted and uri.encode() in asked.raw, start)
        if (setting.kind.up, down) == ("legacy", "legacy"):
            # The client has a session of its own at the server, which has to be up and listed.
            if setting.kind.transport == "http":
                setting.script.wait(lambda asked: asked.method == "GET", start)
            for method, pages in setting.script.lists.items():
                last = f"of-the-server-{len(pages) - 1}".encode() if len(pages) > 1 else method.encode()
                setting.script.wait(
                    lambda asked, method=method, last=last: asked.method == method and last in asked.raw, start
                )
            own.request("com.example/do")
        yield messages


def tagged(down: Era, members: bytes) -> bytes:
    """`_meta` of what is heard: a modern client is told which of its listens it belongs to."""
    tag = b'"io.modelcontextprotocol/subscriptionId":"the listen"' if down == "modern" else b""
    inner = b",".join(part for part in (members, tag) if part)
    return b'"_meta":{' + inner + b"}" if inner else b""


@EACH
@DOWN
def test_resources_that_were_updated(setting: Setting, down: Era) -> None:
    uri = f"file:///watched-by-{down}"
    with heard(setting, down, uri) as messages:
        own = b',"io.modelcontextprotocol/subscriptionId":1' if setting.kind.up == "modern" else b""
        setting.peer.push(
            b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"x-first":1.0,"uri":"' + uri.encode()
            + b'","title":"\\u00e9","x-u":{"z":1,"a":2},"_meta":{"com.example/k":1.0' + own + b"}}}"
        )  # fmt: skip
        exposed = setting.exposed("resources/read", uri).encode()
        assert next(messages) == (
            b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"x-first":1.0,"uri":"' + exposed
            + b'","title":"\\u00e9","x-u":{"z":1,"a":2},' + tagged(down, b'"com.example/k":1.0') + b"}}"
        )  # fmt: skip


@EACH
@DOWN
def test_lists_that_changed(setting: Setting, down: Era) -> None:
    """A change is Interlock's own word: it has listed again, and several of them in a moment become one. Nothing else passes."""
    with heard(setting, down, f"file:///beside-{down}") as messages:
        setting.peer.push(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"x":1.0}}')
        params = b',"params":{' + tagged(down, b"") + b"}" if down == "modern" else b""
        assert next(messages) == b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"' + params + b"}"
