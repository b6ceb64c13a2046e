"""Rows: what a server asks in the middle of a call reaches the client, and the answer comes back, whatever the eras."""

from __future__ import annotations

import asyncio

import pytest

from .client import Message, Refusal, accept, decline
from .world import Pair

pytestmark = pytest.mark.asyncio(loop_scope="session")


def questions(pair: Pair, mark: int) -> list[tuple[str, Message]]:
    """The questions since a mark. `_meta` of a question is the transport's own affair."""
    return [(method, {k: v for k, v in params.items() if k != "_meta"}) for method, params in pair.client.asked[mark:]]


@pytest.mark.row("elicitation by form: accepted, and declined")
async def test_a_form(pair: Pair) -> None:
    mark = len(pair.client.asked)
    answer = await pair.call("ask_elicit", {"message": "Which colour?"})
    # The server's name stands in the text, so that none can pose as Interlock or as another.
    message = f"[{pair.key}] Which colour?"
    assert questions(pair, mark) == [
        (
            "elicitation/create",
            {
                "mode": "form",
                "message": message,
                "requestedSchema": {
                    "type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"],
                },
            },
        )
    ]  # fmt: skip
    assert answer.structured["answer"] == {
        "action": "accept", "content": {"colour": message}, "xAnswer": {"deep": [1, 2.5]},
    }  # fmt: skip
    pair.client.answerer = decline
    declined = await pair.call("ask_elicit", {"message": "Again?"})
    assert declined.structured["answer"] == {"action": "decline"}


@pytest.mark.row("elicitation by URL")
async def test_a_url(pair: Pair) -> None:
    client, mark, asked = pair.client, pair.client.mark(), len(pair.client.asked)
    answer = await pair.call("ask_elicit", {"message": "Sign in", "mode": "url"})
    assert answer.structured["answer"] == {"action": "accept"}
    [(method, params)] = questions(pair, asked)
    assert method == "elicitation/create"
    identity = params.pop("elicitationId", None)
    assert params == {"mode": "url", "message": f"[{pair.key}] Sign in", "url": "https://example.com/authorize"}
    if client.era == "legacy":
        assert isinstance(identity, str)
        assert identity, "2025-11-25 wants an id on every URL"
    completed = client.since(mark, "notifications/elicitation/complete")
    if pair.cell.pairing == ("legacy", "legacy"):
        assert completed == [{"elicitationId": "elicitation-1"}]
        assert identity == "elicitation-1"
    else:
        assert completed == []


@pytest.mark.row("a URL that has to be visited before the call (-32042)")
async def test_a_url_that_is_required(pair: Pair) -> None:
    params = pair.params("url_required")
    if pair.cell.pairing == ("legacy", "legacy"):
        error = (await pair.call("url_required")).error
        assert error["code"] == -32042
        [wanted] = error["data"]["elicitations"]
        assert (wanted["url"], wanted["elicitationId"]) == ("https://example.com/sign-in", "elicitation-2")
        return
    if pair.cell.pairing == ("modern", "legacy"):
        # The call did not run: the modern client is asked for the visit, and its retry is the call anew.
        result = (await pair.client.request("tools/call", params)).result
        assert result["resultType"] == "input_required"
        [question] = result["inputRequests"].values()
        assert question["method"] == "elicitation/create"
        assert question["params"]["mode"] == "url"
        assert question["params"]["url"] == "https://example.com/sign-in"
        assert question["params"]["message"] == f"[{pair.key}] Please sign in."
        again = await pair.client.request("tools/call", pair.client.answered(params, result))
        assert again.result["resultType"] == "input_required", (
            "this fixture is never satisfied, but it was called again"
        )
        return
    mark = len(pair.client.asked)
    assert (await pair.call("url_required")).text == "signed in"
    assert questions(pair, mark)[0][1]["url"] == "https://example.com/sign-in"


@pytest.mark.row("sampling")
async def test_sampling(pair: Pair) -> None:
    mark = len(pair.client.asked)
    answer = await pair.call("ask_sampling", {"prompt": "Say hi"})
    assert questions(pair, mark) == [
        (
            "sampling/createMessage",
            {"messages": [{"role": "user", "content": {"type": "text", "text": "Say hi"}}], "maxTokens": 100},
        )
    ]
    assert answer.structured["answer"] == {
        "role": "assistant",
        "content": {"type": "text", "text": "sampled: Say hi", "xItem": 2},
        "model": "test-model",
        "stopReason": "endTurn",
        "xAnswer": 1,
    }


@pytest.mark.row("roots")
async def test_roots(pair: Pair) -> None:
    answer = await pair.call("ask_roots")
    assert answer.structured["answer"] == {"roots": [{"uri": "file:///project", "name": "project", "xRoot": 1}]}


@pytest.mark.row("several questions at once, and one after the other")
async def test_several_questions(pair: Pair) -> None:
    answer = await pair.call("ask_many", {"count": 5})
    assert [item["text"] for item in answer.result["content"]] == [f"[{pair.key}] Question {n}" for n in range(5)]
    answer = await pair.call("ask_rounds", {"count": 4})
    assert answer.text == ",".join(f"[{pair.key}] Round {n}" for n in range(4))


@pytest.mark.row("questions of prompts/get and resources/read")
async def test_questions_of_prompts_and_resources(pair: Pair) -> None:
    prompt = await pair.client.ask("prompts/get", {"name": pair.name("ask_prompt")})
    assert prompt.result["messages"][0]["content"]["text"] == f"[{pair.key}] Which topic?"
    read = await pair.client.ask("resources/read", {"uri": pair.uri("lab://asking")})
    assert read.result["contents"] == [
        {"uri": pair.uri("lab://asking"), "mimeType": "text/plain", "text": f"[{pair.key}] Which part?"}
    ]


@pytest.mark.row("questions of several calls at once: each answer reaches the call that asked")
async def test_questions_of_several_calls(pair: Pair) -> None:
    """On stdio and HTTP+SSE a legacy question names no call, so another call of the client may carry it: all get answers."""
    answers = await asyncio.gather(*(pair.call("ask_elicit", {"message": f"m{n}"}) for n in range(8)))
    assert [answer.structured["answer"]["content"]["colour"] for answer in answers] == [
        f"[{pair.key}] m{n}" for n in range(8)
    ]


@pytest.mark.row("a client that refuses a question, and one that cannot be asked")
async def test_a_refused_question(pair: Pair) -> None:
    client = pair.client
    if client.era == "legacy":
        client.answerer = lambda method, params: Refusal(-1, "the person left")
        refused = await pair.call("ask_elicit", {"message": "m"})
        client.answerer = accept
        assert refused.result["isError"] is True
        assert "the person left" in refused.text
    else:
        mute = {k: v for k, v in client.capabilities.items() if k not in ("elicitation", "sampling", "roots")}
        meta = {**client.modern_meta(), "io.modelcontextprotocol/clientCapabilities": mute}
        answer = await pair.call("ask_elicit", {"message": "m"}, meta=meta)
        if pair.cell.server.era == "modern":
            assert answer.error["code"] == -32021
            assert answer.error["data"] == {"requiredCapabilities": {"elicitation": {}}}
        else:
            assert answer.result["isError"] is True
            assert "elicitation" in answer.text
    assert (await pair.call("echo", {"value": "still there"})).text == "still there"
