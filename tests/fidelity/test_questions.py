"""What a server asks arrives, and so does the answer: elicitation, sampling and roots, in all four pairings of eras."""

from __future__ import annotations

import json

import pytest

from .conftest import EACH, KINDS, Setting, each
from .gateway import messages_of
from .peer import WAIT, Asked, member, members

_FORM = (
    '"mode":"form","message":$SAYS,"requestedSchema":{"type":"object","properties":{"b":{"type":"number","default":1.0},"a":{"type":'
    '"string","x-p":1E+2}},"required":["b"],"x-s":{"z":1,"a":2}},"x-ask":9007199254740993,"_meta":{"com.example/k":1.0}'
)
_SAMPLE = (
    '"messages":[{"role":"user","content":{"type":"text","text":"\\u00e9\\/","x-c":1.0},"x-m":1}],"maxTokens":1E+2,"temperature":1.0,'
    '"modelPreferences":{"hints":[{"name":"m","x-h":1}]},"x-ask":{"z":1,"a":2}'
)
# Method, params (`$SAYS` is the message), the client's answer.
QUESTIONS = [
    pytest.param(
        "elicitation/create", "{" + _FORM + "}",
        '{"action":"accept","content":{"b":1.0,"a":"\\u00e9"},"x-answer":{"z":1,"a":123456789012345678901}}', id="elicitation",
    ),
    pytest.param(
        "sampling/createMessage", "{" + _SAMPLE + "}",
        '{"role":"assistant","content":{"type":"com.example/odd","v":1.0},"model":"m","stopReason":"odd","x-answer":[1.0]}',
        id="sampling",
    ),
    pytest.param(
        "roots/list", '{"x-ask":1.0}', '{"roots":[{"uri":"file:\\/\\/\\/p","name":"p","x-r":1.0}],"x-answer":1E+2}', id="roots",
    ),
]  # fmt: skip


def said(setting: Setting, params: str) -> tuple[bytes, bytes]:
    """The params as the server sends them, and as the client gets them.

    Where there can be several servers the text of a question names the one that asks, so that none can pose as another.
    """
    shown = '"[raw] Say \\"hi\\""' if setting.kind.names == "prefixed" else '"Say \\"hi\\""'
    return params.replace("$SAYS", '"Say \\"hi\\""').encode(), params.replace("$SAYS", shown).encode()


def legacy_server(setting: Setting, method: str, params: bytes) -> None:
    """A server that asks in the middle of a call."""

    def answer(asked: Asked) -> list[bytes] | None:
        if asked.method != "tools/call":
            return None
        question = b'{"jsonrpc":"2.0","id":"ask-\\u0031","method":"' + method.encode() + b'","params":' + params + b"}"
        return [question, WAIT, b'{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"done":1.0}}']

    setting.script.answer = answer


def modern_server(setting: Setting, method: str, params: bytes) -> None:
    """A server that ends the first round with a question."""

    def answer(asked: Asked) -> list[bytes] | None:
        if asked.method != "tools/call":
            return None
        if b'"inputResponses"' in asked.raw:
            return [b'{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[],"done":1.0}}']
        asks = b'{"one \\u00e9":{"x-q":1.0,"method":"' + method.encode() + b'","params":' + params + b"}}"
        required = (
            b'{"resultType":"input_required","inputRequests":'
            + asks
            + b',"requestState":"st\\u0061te \\/ 1","x-i":1.0}'
        )
        return [b'{"jsonrpc":"2.0","id":$ID,"result":' + required + b"}"]

    setting.script.answer = answer


def call(setting: Setting, extra: bytes = b"") -> tuple[bytes, str]:
    name = setting.exposed("tools/call", "call")
    return b'{"name":' + json.dumps(name).encode() + b',"arguments":{"n":1.0},"x-p":1.0' + extra + b"}", name


def ask_legacy_client(setting: Setting, reply: bytes, form: bytes = b"%s") -> tuple[bytes, bytes]:
    """Call, answer the one question with `reply`; returns the question and the final answer, as they came.

    `form` is how the question's id comes back.
    """
    client = setting.http("legacy")
    params, name = call(setting)
    body = client.message("tools/call", params, b"", b'"the call"')
    with client.open("POST", body, client.headers("tools/call", name)) as response:
        messages = messages_of(response)
        question = next(messages)
        posted = client.post(b'{"jsonrpc":"2.0","id":' + form % member(question, "id") + b',"result":' + reply + b"}")
        assert posted.status == 202
        return question, next(messages)


@EACH
@pytest.mark.parametrize(("method", "params", "reply"), QUESTIONS)
def test_a_legacy_client_is_asked(setting: Setting, method: str, params: str, reply: str) -> None:
    sent, shown = said(setting, params)
    (modern_server if setting.kind.up == "modern" else legacy_server)(setting, method, sent)
    start = len(setting.script.asked)
    question, answer = ask_legacy_client(setting, reply.encode())
    assert members(question)[0::2] == [("jsonrpc", b'"2.0"'), ("method", f'"{method}"'.encode())]
    assert member(question, "params") == shown
    assert answer == b'{"jsonrpc":"2.0","id":"the call","result":{"content":[],"done":1.0}}'
    if setting.kind.up == "legacy":
        told = setting.script.wait(lambda asked: asked.method == "", start)
        assert told.raw == b'{"jsonrpc":"2.0","id":"ask-1","result":' + reply.encode() + b"}"
    else:
        retry = setting.script.wait(lambda asked: b'"inputResponses"' in asked.raw, start)
        found = dict(members(retry.member("params")))
        assert found.pop("_meta")
        assert found == {
            "name": b'"call"',
            "arguments": b'{"n":1.0}',
            "x-p": b"1.0",
            "inputResponses": '{"one é":'.encode() + reply.encode() + b"}",
            "requestState": b'"st\\u0061te \\/ 1"',
        }


@each([kind for kind in KINDS if kind.up == "legacy"])
@pytest.mark.parametrize("form", [b'"%s"', b"%s.0"])
def test_the_id_of_a_question_may_come_back_in_another_form(setting: Setting, form: bytes) -> None:
    legacy_server(setting, "roots/list", b"{}")
    _, answer = ask_legacy_client(setting, b'{"roots":[]}', form)
    assert answer == b'{"jsonrpc":"2.0","id":"the call","result":{"content":[],"done":1.0}}'


@EACH
@pytest.mark.parametrize(("method", "params", "reply"), QUESTIONS)
def test_a_modern_client_is_asked(setting: Setting, method: str, params: str, reply: str) -> None:
    sent, shown = said(setting, params)
    (modern_server if setting.kind.up == "modern" else legacy_server)(setting, method, sent)
    start = len(setting.script.asked)
    client = setting.http("modern")
    first_params, name = call(setting)
    first = client.request("tools/call", first_params, name=name)
    required = dict(members(member(first.last, "result")))
    assert required["resultType"] == b'"input_required"'
    [(key, request)] = members(required["inputRequests"])
    asked = dict(members(request))
    assert (asked["method"], asked["params"]) == (f'"{method}"'.encode(), shown)
    if setting.kind.up == "modern":
        assert key == "one é"
        assert asked["x-q"] == b"1.0"
        assert required["x-i"] == b"1.0"
    # A state of the server's own goes out under our seal, and comes back to it as it was.
    assert b"state" not in required["requestState"]
    responses = json.dumps(key, ensure_ascii=False).encode() + b":" + reply.encode()
    extra = b',"inputResponses":{' + responses + b'},"requestState":' + required["requestState"]
    second_params, name = call(setting, extra)
    second = client.request("tools/call", second_params, name=name, id=b"2")
    assert member(second.last, "result", "done") == b"1.0"
    if setting.kind.up == "legacy":
        told = setting.script.wait(lambda each: each.method == "", start)
        assert told.raw == b'{"jsonrpc":"2.0","id":"ask-1","result":' + reply.encode() + b"}"
    else:
        retry = setting.script.wait(lambda each: b'"inputResponses"' in each.raw, start)
        found = dict(members(retry.member("params")))
        assert found["inputResponses"] == '{"one é":'.encode() + reply.encode() + b"}"
        assert json.loads(found["requestState"]) == "state / 1"
        assert (found["name"], found["arguments"], found["x-p"]) == (b'"call"', b'{"n":1.0}', b"1.0")


@each([kind for kind in KINDS if kind.up == "legacy"])
def test_a_refusal_arrives_as_it_was_said(setting: Setting) -> None:
    """Only a legacy client can refuse with an error, and only a legacy server can hear one."""
    sent, _ = said(setting, "{" + _FORM + "}")
    legacy_server(setting, "elicitation/create", sent)
    start = len(setting.script.asked)
    client = setting.http("legacy")
    params, name = call(setting)
    error = b'{"code":-1,"message":"no \\u00e9","data":{"n":1.0},"x-e":1E+2}'
    with client.open(
        "POST", client.message("tools/call", params, b"", b"5"), client.headers("tools/call", name)
    ) as response:
        messages = messages_of(response)
        client.post(b'{"jsonrpc":"2.0","id":' + member(next(messages), "id") + b',"error":' + error + b"}")
        assert member(next(messages), "id") == b"5"
    told = setting.script.wait(lambda asked: asked.method == "", start)
    assert told.raw == b'{"jsonrpc":"2.0","id":"ask-1","error":' + error + b"}"
