"""The fixture servers on stdio: eras, errors, cancellation, questions, and the ways they misbehave."""

from __future__ import annotations

import asyncio

import pytest

from .raw_client import MODERN_META, Message, started

INITIALIZE: Message = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
    "clientInfo": {"name": "raw", "version": "1"},
}


def error_of(answer: Message) -> dict[str, object]:
    error = answer["error"]
    assert isinstance(error, dict)
    return error


def result_of(answer: Message) -> dict[str, object]:
    result = answer["result"]
    assert isinstance(result, dict)
    return result


async def test_the_modern_server_refuses_initialize_and_says_what_it_speaks() -> None:
    async with started("modern_server", "--stdio") as server:
        error = error_of(await server.ask(1, "initialize", INITIALIZE))
        assert error["code"] == -32022
        assert error["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}


async def test_the_legacy_server_knows_no_discovery() -> None:
    async with started("legacy_server", "--stdio") as server:
        assert error_of(await server.modern(1, "server/discover"))["code"] == -32601
        assert result_of(await server.ask(2, "initialize", INITIALIZE))["protocolVersion"] == "2025-11-25"


async def test_a_legacy_server_may_be_silent_before_initialize() -> None:
    async with started("matrix_server", "--era", "legacy", "--stdio", "--before-initialize", "silent") as server:
        server.send({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": MODERN_META}})
        await server.ask(2, "initialize", INITIALIZE)
        assert server.seen == []


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({}, -32602),
        ({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}, -32602),
        ({"_meta": {**MODERN_META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}}, -32022),
        ({"_meta": {**MODERN_META, "io.modelcontextprotocol/logLevel": "loud"}}, -32602),
        ({"_meta": MODERN_META, "cursor": "nonsense"}, -32602),
    ],
)
async def test_modern_metadata_is_checked(params: Message, code: int) -> None:
    async with started("modern_server", "--stdio") as server:
        assert error_of(await server.ask("a", "tools/list", params))["code"] == code


async def test_a_modern_question_needs_the_clients_capability() -> None:
    meta = {**MODERN_META, "io.modelcontextprotocol/clientCapabilities": {}}
    async with started("modern_server", "--stdio") as server:
        answer = await server.ask(
            1, "tools/call", {"_meta": meta, "name": "test_input_required_result_multiple_inputs"}
        )
        assert error_of(answer)["code"] == -32021
        assert error_of(answer)["data"] == {"requiredCapabilities": {"elicitation": {}, "sampling": {}, "roots": {}}}


async def test_answers_of_earlier_rounds_travel_in_the_state() -> None:
    name = {"name": "test_input_required_result_multi_round"}
    async with started("modern_server", "--stdio") as server:
        first = result_of(await server.modern(1, "tools/call", **name))
        assert list(first["inputRequests"]) == ["step1"]  # type: ignore[call-overload]
        second = result_of(
            await server.modern(
                2,
                "tools/call",
                **name,
                requestState=first["requestState"],
                inputResponses={"step1": {"action": "accept", "content": {"name": "Ann"}}},
            )
        )
        assert list(second["inputRequests"]) == ["step2"]  # type: ignore[call-overload]
        third = result_of(
            await server.modern(
                3,
                "tools/call",
                **name,
                requestState=second["requestState"],
                inputResponses={"step2": {"action": "accept", "content": {"color": "red"}}},
            )
        )
        assert third["content"] == [{"type": "text", "text": "Ann likes red."}]


async def test_legacy_questions_are_asked_together_and_their_ids_are_the_servers_own() -> None:
    async with started("legacy_server", "--stdio") as server:
        await server.ask(1, "initialize", INITIALIZE)
        call = {"name": "test_input_required_result_multiple_inputs"}
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        asked = [
            await server.until(method=method)
            for method in ("elicitation/create", "sampling/createMessage", "roots/list")
        ]
        assert [question["id"] for question in asked] == [1, 2, 3]
        assert server.seen == []
        answers = [
            {"action": "accept", "content": {"name": "Ann"}},
            {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}},
            {"roots": []},
        ]
        for question, answer in reversed(list(zip(asked, answers, strict=True))):
            server.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        assert result_of(await server.until(id=1))["content"] == [{"type": "text", "text": "Hello Ann"}]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_cancelled_call_stops_and_is_remembered(era: str) -> None:
    meta = {"_meta": {**MODERN_META, "progressToken": "p"}} if era == "modern" else {"_meta": {"progressToken": "p"}}
    async with started("matrix_server", "--era", era, "--stdio") as server:
        if era == "legacy":
            await server.ask(0, "initialize", INITIALIZE)
        for label in ("one", "two"):
            call = {**meta, "name": "sleep", "arguments": {"ms": 400, "label": label}}
            server.send({"jsonrpc": "2.0", "id": label, "method": "tools/call", "params": call})
        await server.until(method="notifications/progress")
        for target in ("one", "never-started", 5):
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": target}})
        assert result_of(await server.until(id="two"))["content"] == [{"type": "text", "text": "slept two"}]
        assert all("id" not in message for message in server.seen)
        log = result_of(await server.ask("log", "tools/call", {**meta, "name": "cancel_log"}))["structuredContent"]
        assert log == {
            "cancelledLabels": ["one"],
            "finishedLabels": ["two"],
            "cancelledIds": ["one"],
            "strayIds": ["never-started", 5],
        }


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_unknown_members_are_sent_as_they_are(era: str) -> None:
    async with started("matrix_server", "--era", era, "--stdio") as server:
        if era == "legacy":
            await server.ask(0, "initialize", INITIALIZE)
        answer = result_of(await server.modern(1, "tools/call", name="fidelity"))
        assert answer["structuredContent"]["big"] == 1152921504606846977  # type: ignore[index]
        assert answer["xTop"] == {"kept": True}
        assert answer["content"][1]["type"] == "vendor-chart"  # type: ignore[index]
        error = error_of(await server.modern(2, "tools/call", name="vendor_error"))
        assert error == {"code": -31999, "message": "vendor", "data": {"x": [1]}, "xErr": {"deep": True}}
        assert result_of(await server.modern(3, "vendor/echo", a=1))["vendorResult"] is True


async def test_changes_are_announced_after_the_call_to_those_who_listen() -> None:
    async with started("matrix_server", "--era", "modern", "--stdio") as server:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["lab://text"], "madeUp": True}
        server.send(
            {
                "jsonrpc": "2.0",
                "id": "sub",
                "method": "subscriptions/listen",
                "params": {"_meta": MODERN_META, "notifications": wanted},
            }
        )
        agreed = await server.until(method="notifications/subscriptions/acknowledged")
        subscription = {"io.modelcontextprotocol/subscriptionId": "sub"}
        agreed_filter = {"toolsListChanged": True, "resourceSubscriptions": ["lab://text"]}
        assert agreed["params"] == {"_meta": subscription, "notifications": agreed_filter}
        await server.modern(1, "tools/call", name="touch", arguments={"uri": "lab://other", "after_ms": 0})
        await server.modern(2, "tools/call", name="change_prompts", arguments={"after_ms": 0})
        await server.modern(3, "tools/call", name="touch", arguments={"after_ms": 10})
        updated = await server.until(method="notifications/resources/updated")
        assert updated["params"] == {"_meta": subscription, "uri": "lab://text"}
        await server.modern(4, "tools/call", name="change_tools", arguments={"after_ms": 10})
        await server.until(method="notifications/tools/list_changed")
        assert server.seen == []
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert result_of(await server.until(id="sub")) == {
            "resultType": "complete",
            "_meta": {**subscription, "io.modelcontextprotocol/serverInfo": {"name": "matrix", "version": "1.0.0"}},
        }


async def test_a_crash_ends_the_process_with_its_code() -> None:
    async with started("matrix_server", "--era", "modern", "--stdio") as server:
        server.send(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "tools/call",
                "params": {"_meta": MODERN_META, "name": "crash", "arguments": {"code": 9}},
            }
        )
        async with asyncio.timeout(10):
            assert await server.process.wait() == 9


async def test_a_flooding_server_sends_every_kind_of_rubbish_and_still_answers() -> None:
    async with started("matrix_server", "--era", "legacy", "--stdio", "--flood", "2000") as server:
        assert server.process.stdout is not None
        server.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
        needles = (b"no JSON", b"notifications/message", b"list_changed", b"never-asked", b"unknown-", b'"id":1,')
        missing = set(needles)
        async with asyncio.timeout(10):
            while missing:
                line = await server.process.stdout.readline()
                missing -= {needle for needle in missing if needle in line}


async def test_garbage_is_answered_and_survived() -> None:
    async with started("modern_server", "--stdio") as server:
        for garbage in (b"{", b"[]", b"3", b'"x"', b'{"jsonrpc":"1.0","id":1,"method":"ping"}', b"\xff\xfe"):
            server.send(garbage)
            answer = await server.until()
            assert error_of(answer)["code"] in (-32700, -32600, -32602)
        assert "result" in await server.modern(1, "tools/list")
