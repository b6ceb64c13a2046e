"""An answer that is none is said to be none, at once and to the one call that it was for."""

from __future__ import annotations

import json
import time

import pytest

from interlock.catalog.snapshot import KINDS, build
from interlock.wire import bounds, codes
from interlock.wire.eras import Era as WireEra
from interlock.wire.messages import Raw

from .conftest import DOWN, EACH, Setting
from .peer import Asked, Era
from .test_answers import answer_with, params_of

METHODS = ["tools/call", "prompts/get", "resources/read", "completion/complete", "com.example/do"]


def fault_of(message: bytes) -> dict[str, object]:
    """What Interlock says of its own failure: the `data` of an error, or the `_meta` of a tool's result."""
    found = json.loads(message)
    if "error" in found:
        assert found["error"]["code"] == codes.code_of(found["error"]["data"]["error"])
        data: dict[str, object] = found["error"]["data"]
        return data
    assert found["result"]["isError"] is True
    meta: dict[str, object] = found["result"]["_meta"]
    return meta


@EACH
@DOWN
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("body", ["null", "5", '"text"', "[]", "true"])
def test_results_that_are_no_objects(setting: Setting, down: Era, method: str, body: str) -> None:
    answer_with(setting, method, "result", body.encode())
    params, name = params_of(setting, method)
    response = setting.http(down).request(method, params, name=name)
    fault = fault_of(response.last)
    assert (fault["error"], fault["verdict"], fault["server"]) == ("bad-answer", "outcome_unknown", "raw")


BROKEN = [
    pytest.param(b'{"jsonrpc":"2.0","id":$ID,"result":{"a":NaN}}', id="not JSON"),
    pytest.param(b'{"result":{"a":Infinity},"jsonrpc":"2.0","id":$ID}', id="not JSON, id last"),
    pytest.param(b'{"jsonrpc":"2.0","id":$ID,"result":' + b"[" * 5000 + b"]" * 5000 + b"}", id="too deep"),
    pytest.param(b'{"jsonrpc":"1.0","id":$ID,"result":{}}', id="another version"),
    pytest.param(b'{"jsonrpc":"2.0","id":$ID,"error":{"code":"x"}}', id="error without code"),
    pytest.param(b'{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":""}}', id="result and error"),
]


@EACH
@pytest.mark.parametrize("answer", BROKEN)
def test_broken_answers_end_their_call_at_once(setting: Setting, answer: bytes) -> None:
    """Nobody has to wait for a deadline (300 s here) where it is plain which call was answered."""
    setting.script.answer = lambda asked: [answer] if asked.method == "tools/call" else None
    params, name = params_of(setting, "tools/call")
    began = time.monotonic()
    response = setting.http("legacy").request("tools/call", params, name=name)
    assert time.monotonic() - began < 20
    assert fault_of(response.last)["error"] == "bad-answer"


@EACH
def test_ids_that_come_back_as_floats(setting: Setting) -> None:
    """Some languages know one kind of number only."""
    params, name = params_of(setting, "tools/call")

    def answer(asked: Asked) -> list[bytes] | None:
        if asked.method != "tools/call":
            return None
        return [b'{"jsonrpc":"2.0","id":' + asked.id + b'.0,"result":{"content":[]}}']

    setting.script.answer = answer
    response = setting.http("legacy").request("tools/call", params, name=name)
    assert response.messages == [b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}']


def test_a_list_without_end_is_cut() -> None:
    item = Raw(b'{"name":"t","inputSchema":{"type":"object"}}')
    many = b"[" + b",".join([b"1"] * (bounds.MAX_LIST_ITEMS + 5)) + b"]"
    problems: list[str] = []
    snapshot = build(
        "s", WireEra.LEGACY, {"tools": [{"tools": Raw(b"[" + bytes(item) + b"," + many[1:])}]}, capabilities={}, instructions=None,
        server_info=None, over_http=False, problems=problems, at=0.0,
    )  # fmt: skip
    assert list(snapshot.tools) == ["t"]
    assert set(snapshot.listings) == set(KINDS)
    assert (
        problems[0]
        == f"s: tools/list has {bounds.MAX_LIST_ITEMS + 6} items; the first {bounds.MAX_LIST_ITEMS} are used"
    )
