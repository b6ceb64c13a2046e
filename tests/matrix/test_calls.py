"""Rows: what goes into a call and what comes out of it, byte by byte where it matters."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest

from interlock.lab.content import PIXEL_PNG, SILENCE_WAV

from .client import CAPABILITIES, Message
from .world import Pair

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.row("result intact: unknown members and content types, big integers, key order")
async def test_a_result_arrives_as_it_was_sent(pair: Pair) -> None:
    answer = await pair.call("fidelity", {})
    result = answer.result
    assert [key for key in result if key not in ("resultType",)] == [
        "zFirst", "content", "structuredContent", "_meta", "xTop",
    ]  # fmt: skip
    assert result["content"] == [
        {"type": "text", "text": "known", "xItem": 1, "annotations": {"priority": 1, "xA": 2, "audience": ["user"]}},
        {"type": "vendor-chart", "data": [1, 2.0], "nested": {"b": 1, "a": 2}},
    ]
    assert b'"data":[1,2.0],"nested":{"b":1,"a":2}' in answer.raw
    assert b'"big":1152921504606846977,"f":1.0,"b":{"z":1,"a":null}' in answer.raw
    assert result["structuredContent"]["text"] == "\u00e9\u2028\U0001f600"
    assert result["xTop"] == {"kept": True}
    own = {"io.modelcontextprotocol/serverInfo"} if pair.client.era == "modern" else set()
    assert {key: value for key, value in result["_meta"].items() if key not in own} == {"com.example/trace": "abc"}
    assert set(result["_meta"]) == {"com.example/trace"} | own


@pytest.mark.row("tool errors and protocol errors intact, unknown members of `error` too")
async def test_errors_arrive_as_what_they_are(pair: Pair) -> None:
    failed = await pair.call("fail", {"message": "no luck"})
    assert failed.result["isError"] is True
    assert failed.text == "no luck"
    assert "_meta" not in failed.result or set(failed.result["_meta"]) == {"io.modelcontextprotocol/serverInfo"}
    broken = await pair.call("vendor_error", {})
    assert broken.error == {"code": -31999, "message": "vendor", "data": {"x": [1]}, "xErr": {"deep": True}}


@pytest.mark.row("request intact: arguments, `_meta` and capabilities reach the server")
async def test_a_request_arrives_as_it_was_sent(pair: Pair) -> None:
    arguments = {"zz": 1, "big": 1152921504606846977, "f": 1.0, "nested": {"b": [None, True], "a": "\u00e9\U0001f600"}}
    meta = {
        "com.example/trace": {"z": 1, "a": 2.0},
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }
    seen = (await pair.call("whoami", arguments, meta=meta)).structured
    assert json.dumps(seen["params"]["arguments"]) == json.dumps(arguments)
    passed = {
        key: value for key, value in seen["params"]["_meta"].items() if not key.startswith("io.modelcontextprotocol/")
    }
    assert json.dumps(passed) == json.dumps(meta)
    assert seen["params"]["name"] == "whoami"
    assert seen["era"] == pair.cell.server.era
    assert json.dumps(seen["capabilities"]) == json.dumps(CAPABILITIES)
    assert seen["clientInfo"]["name"] == "interlock"


@pytest.mark.row("5 MB text result")
async def test_a_large_text_arrives_whole(pair: Pair) -> None:
    text = (await pair.call("big", {"bytes": 5 * 1024 * 1024})).text
    assert len(text) == 5 * 1024 * 1024
    expected = ("0123456789" * (len(text) // 10 + 1))[: len(text)]
    assert hashlib.sha256(text.encode()).digest() == hashlib.sha256(expected.encode()).digest()


@pytest.mark.row("binary content: image, audio, blob and link")
async def test_binary_content_arrives_and_its_resources_are_reachable(pair: Pair) -> None:
    image, audio, blob, link = (await pair.call("binary", {})).result["content"]
    assert image == {"type": "image", "data": PIXEL_PNG, "mimeType": "image/png"}
    assert audio == {"type": "audio", "data": SILENCE_WAV, "mimeType": "audio/wav"}
    assert blob["resource"] == {"uri": pair.uri("lab://blob"), "mimeType": "image/png", "blob": PIXEL_PNG}
    assert link["uri"] == pair.uri("lab://text")
    read = (await pair.client.request("resources/read", {"uri": blob["resource"]["uri"]})).result
    assert read["contents"] == [{"uri": pair.uri("lab://blob"), "mimeType": "image/png", "blob": PIXEL_PNG, "xPart": 1}]
    read = (await pair.client.request("resources/read", {"uri": link["uri"]})).result
    assert read["contents"][0]["text"] == "text"


@pytest.mark.row("prompts and resources: get, read, templates, not found")
async def test_prompts_and_resources(pair: Pair) -> None:
    client = pair.client
    prompt = (await client.request("prompts/get", {"name": pair.name("greet"), "arguments": {"name": "Ada"}})).result
    assert prompt["messages"] == [{"role": "user", "content": {"type": "text", "text": "Greet Ada", "xItem": 1}}]
    assert prompt["description"] == "A greeting."
    assert prompt["xTop"] == 1
    item = (await client.request("resources/read", {"uri": pair.uri("lab://item/a%20b")})).result
    assert item["contents"] == [{"uri": pair.uri("lab://item/a%20b"), "mimeType": "text/plain", "text": "a%20b"}]
    if client.era == "modern":
        assert (item["resultType"], item["ttlMs"]) == ("complete", 1000 if pair.cell.server.era == "modern" else 0)
        assert item["cacheScope"] == ("public" if pair.cell.server.era == "modern" else "private")
    else:
        assert not {"resultType", "ttlMs", "cacheScope"} & item.keys()
    missing = await client.request("resources/read", {"uri": pair.uri("lab://nowhere")})
    # -32002 exists in the legacy era only; a modern server's -32602 is what legacy clients expect of bad parameters.
    both_legacy = pair.cell.pairing == ("legacy", "legacy")
    assert missing.error["code"] == (-32002 if both_legacy else -32602)
    assert missing.error["data"] == {"uri": "lab://nowhere"}


@pytest.mark.row("completion of prompts and resource templates, with context")
async def test_completion(pair: Pair) -> None:
    argument = {"name": "name", "value": "pa"}
    reference: Message = {"type": "ref/prompt", "name": pair.name("greet")}
    done = await pair.client.request("completion/complete", {"ref": reference, "argument": argument})
    assert done.result["completion"] == {
        "values": ["pa-alpha", "pa-beta"], "total": 2, "hasMore": False, "xKind": "ref/prompt",
    }  # fmt: skip
    reference = {"type": "ref/resource", "uri": pair.uri("lab://item/{id}")}
    params = {"ref": reference, "argument": argument, "context": {"arguments": {"other": "x"}}}
    done = await pair.client.request("completion/complete", params)
    assert done.result["completion"]["values"] == ["pa-alpha", "pa-beta", "pa-with-context"]
    assert done.result["completion"]["xKind"] == "ref/resource"


@pytest.mark.row("32 concurrent calls answered out of order")
async def test_many_calls_at_once_find_their_own_answers(pair: Pair) -> None:
    client, mark = pair.client, pair.client.mark()
    calls = [
        client.start("tools/call", pair.params("echo", {"value": f"v{n}", "delay_ms": (31 - n) * 15}))
        for n in range(32)
    ]
    answers = await asyncio.gather(*(call.answer() for call in calls))
    assert [answer.structured["value"] for answer in answers] == [f"v{n}" for n in range(32)]
    ids = [call.id for call in calls]
    order = [message["id"] for message in client.inbox[mark:] if message.get("id") in ids]
    assert len(order) == 32
    assert order.index(ids[-1]) < order.index(ids[0]), "the call that was sent first is answered after the last"


@pytest.mark.row("ids of any kind: strings, zero, beyond 2^53, the same id again")
async def test_ids_of_any_kind(pair: Pair) -> None:
    for identity in ("text \u00e9", "1", 0, -5, 9007199254740993, "text \u00e9"):
        answer = await pair.client.request("tools/call", pair.params("echo", {"value": "x"}), id=identity)
        assert answer.message["id"] == identity
        assert type(answer.message["id"]) is type(identity)
