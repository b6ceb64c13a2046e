"""One admission for list and call: what is denied is neither listed nor callable, and looks like what does not exist."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from interlock.lab.jsonrpc import JsonObject
from interlock.manifest.config import Policy, Rule, ToolOverride

from .desk import AUTO, FILE, Desk, config, running
from .wire import Answer, request

Era = Literal["modern", "legacy"]
ERAS: tuple[Era, ...] = ("modern", "legacy")
DENIED, UNKNOWN = "lab__secret", "lab__secre7"
"""Two names of the same length, so that even sizes can be compared."""


@asynccontextmanager
async def asker(desk: Desk, era: Era) -> AsyncIterator[Asker]:
    yield Asker(desk, era, await desk.open_session() if era == "legacy" else "")


class Asker:
    """One client, whatever its era."""

    def __init__(self, desk: Desk, era: Era, session: str) -> None:
        self.desk = desk
        self.era = era
        self.session = session

    async def ask(self, method: str, params: JsonObject | None = None) -> Answer:
        if self.era == "modern":
            return await self.desk.modern(method, params)
        return await self.desk.legacy(self.session, method, params)

    async def names(self) -> list[str]:
        result = (await self.ask("tools/list")).json["result"]
        return [tool["name"] for tool in result["tools"]]  # type: ignore[index]


def alike(denied: Answer, unknown: Answer, one: str = DENIED, other: str = UNKNOWN) -> bool:
    """The same answer to the last byte, but for the name that it repeats. Session ids are headers of their own."""
    return (
        denied.status == unknown.status
        and denied.headers == unknown.headers
        and denied.body.replace(one.encode(), b"NAME") == unknown.body.replace(other.encode(), b"NAME")
        and one.encode() not in denied.body.replace(f": {one}".encode(), b"", 1)
    )


@pytest.mark.parametrize("down", ERAS)
@pytest.mark.parametrize("up", ERAS)
@pytest.mark.parametrize("listed_first", [True, False])
async def test_denied_and_unknown_are_alike(tmp_path: Path, down: Era, up: Era, listed_first: bool) -> None:
    async with running(tmp_path, era=up, deny=("secret",)) as desk, asker(desk, down) as client:
        if listed_first:
            names = await client.names()
            assert "lab__echo" in names
            assert DENIED not in names
        denied = await client.ask("tools/call", {"name": DENIED, "arguments": {}})
        unknown = await client.ask("tools/call", {"name": UNKNOWN, "arguments": {}})
        assert alike(denied, unknown)
        error = denied.json["error"]
        assert isinstance(error, dict)
        assert (error["code"], error["message"]) == (-32602, f"Unknown tool: {DENIED}")
        data = error["data"]
        assert (data["verdict"], data["retry"], data["server"]) == ("never_reached", "never", None)
        assert DENIED not in await client.names()
        assert "secret" not in desk.tools.calls
        # The reason stands in the local trace.
        traces = [trace for trace in desk.runtime.journal.recent(10) if trace.method == "tools/call"]
        statuses = {trace.name: (trace.status, [mark.rule for mark in trace.marks if mark.rule]) for trace in traces}
        assert statuses["lab/secret"] == ("denied", [str(FILE)])
        assert statuses[None] == ("error", [])


@pytest.mark.parametrize("down", ERAS)
@pytest.mark.parametrize("state", ["dead", "disabled", "blocked", "remembered and dead"])
async def test_denied_and_unknown_are_alike_whatever_the_server_does(tmp_path: Path, down: Era, state: str) -> None:
    """Of a server that is down, both say that it is down; of one that may not run, both say nothing."""
    port = 9  # nobody listens there
    if state == "remembered and dead":
        async with running(tmp_path, deny=("secret",)) as desk, asker(desk, "modern") as client:
            await client.names()
            port = int(str(desk.runtime.servers["lab"].config.transport.endpoint).split(":")[2].split("/")[0])  # type: ignore[union-attr]
    server = config("lab", port, deny=("secret",))
    if state == "disabled":
        server = replace(server, enabled=False)
    elif state == "blocked":
        server = replace(server, blocked="not trusted")
    async with running(tmp_path, configs={"lab": server}) as desk, asker(desk, down) as client:
        denied = await client.ask("tools/call", {"name": DENIED, "arguments": {}})
        unknown = await client.ask("tools/call", {"name": UNKNOWN, "arguments": {}})
        assert alike(denied, unknown) or denied.body == unknown.body  # a server that is down is named, not the tool
        again = await client.ask("tools/call", {"name": DENIED, "arguments": {}})
        assert again.body == denied.body
        if state in ("disabled", "blocked"):
            assert denied.json["error"]["message"] == f"Unknown tool: {DENIED}"  # type: ignore[index]
            assert await client.names() == []


@pytest.mark.parametrize("down", ERAS)
async def test_allow_lists_deny_what_they_do_not_name(tmp_path: Path, down: Era) -> None:
    async with running(tmp_path, allow=(Rule("ec*", FILE),)) as desk, asker(desk, down) as client:
        assert await client.names() == ["lab__echo"]
        denied = await client.ask("tools/call", {"name": DENIED})
        assert alike(denied, await client.ask("tools/call", {"name": UNKNOWN}))
        assert "result" in (await client.ask("tools/call", {"name": "lab__echo"})).json


@pytest.mark.parametrize("down", ERAS)
@pytest.mark.parametrize("up", ERAS)
@pytest.mark.parametrize("listed_first", [True, False])
async def test_verbatim_names_hide_no_less(tmp_path: Path, down: Era, up: Era, listed_first: bool) -> None:
    """With a list of denied tools, the server's own words for an unknown tool would tell it from a denied one."""
    async with running(tmp_path, era=up, deny=("secret",), names="verbatim") as desk, asker(desk, down) as client:
        if listed_first:
            assert "secret" not in await client.names()
        denied = await client.ask("tools/call", {"name": "secret"})
        unknown = await client.ask("tools/call", {"name": "secre7"})
        assert alike(denied, unknown, "secret", "secre7")
        assert "result" in (await client.ask("tools/call", {"name": "echo"})).json
        assert desk.tools.calls == ["echo"]


@pytest.mark.parametrize("down", ERAS)
async def test_verbatim_names_without_lists_leave_unknown_names_to_the_server(tmp_path: Path, down: Era) -> None:
    async with running(tmp_path, names="verbatim") as desk, asker(desk, down) as client:
        error = (await client.ask("tools/call", {"name": "no_such_tool"})).json["error"]
        assert isinstance(error, dict)
        assert "interlock" not in (error.get("data") or {})


@pytest.mark.parametrize("down", ERAS)
@pytest.mark.parametrize(
    ("method", "params", "word"),
    [
        ("prompts/get", {"name": "lab__no"}, "prompt"),
        ("prompts/get", {"name": "nobody__no"}, "prompt"),
        ("resources/read", {"uri": "nobody+x://y"}, "resource"),
        ("resources/read", {"uri": "x://y"}, "resource"),
        ("tools/call", {"name": "echo"}, "tool"),  # the server's own name is not the exposed one
        ("tools/call", {"name": "lab/echo"}, "tool"),
        ("tools/call", {"name": "LAB__ECHO"}, "tool"),
    ],
)
async def test_unknown_names(desk: Desk, down: Era, method: str, params: JsonObject, word: str) -> None:
    async with asker(desk, down) as client:
        error = (await client.ask(method, params)).json["error"]
        assert isinstance(error, dict)
        name = params.get("name", params.get("uri"))
        assert error["message"] == f"Unknown {word}: {name}"
        assert error["code"] == (-32002 if (down, method) == ("legacy", "resources/read") else -32602)


# -- approval ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("down", ERAS)
@pytest.mark.parametrize("can_ask", [False, True])
@pytest.mark.parametrize("reply", ["accept", "no in the form", "decline", "cancel"])
async def test_ask_goes_to_the_person(tmp_path: Path, down: Era, can_ask: bool, reply: str) -> None:
    """Through the client's elicitation where it has one; otherwise the call says that it needs approval, and is not made."""
    policy = Policy(default_approval="prompt", default_approval_origin=FILE)
    capabilities: JsonObject = {"elicitation": {"form": {}}} if can_ask else {}
    async with running(tmp_path, policy=policy) as desk:
        params: JsonObject = {"name": "lab__echo", "arguments": {"text": "hello"}}
        answer = _person(reply)
        if down == "modern":
            first = (await desk.modern("tools/call", params, capabilities=capabilities)).json["result"]  # type: ignore[arg-type]
            if can_ask:
                assert first["resultType"] == "input_required"  # type: ignore[index]
                question = first["inputRequests"]["interlock_approval"]["params"]["message"]  # type: ignore[index]
                assert "lab/echo" in question
                assert "hello" in question
                retry = {
                    **params,
                    "requestState": first["requestState"],  # type: ignore[index]
                    "inputResponses": {"interlock_approval": answer},
                }
                first = (await desk.modern("tools/call", retry, capabilities=capabilities)).json["result"]  # type: ignore[arg-type]
        else:
            session = await desk.open_session(capabilities=capabilities)
            async with desk.wire() as client:
                client.send(desk.legacy_request("tools/call", params, session=session))
                if can_ask:
                    await client.head()
                    asked = await client.event()
                    assert "lab/echo" in asked["params"]["message"]  # type: ignore[index]
                    body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}).encode()
                    await desk.send(request("POST", "/mcp", body, desk.head(), mcp_session_id=session))
                    first = (await client.event())["result"]
                else:
                    first = (await client.answer()).json["result"]
        assert isinstance(first, dict)
        text, meta = first["content"][0]["text"], first.get("_meta", {})
        if can_ask and reply == "accept":
            assert text == '{"text": "hello"}'
            assert desk.tools.calls == ["echo"]
            return
        assert desk.tools.calls == []
        assert first["isError"] is True
        if can_ask:
            assert (meta["error"], meta["verdict"], meta["retry"]) == ("declined", "never_reached", "never")
        else:
            assert (meta["error"], meta["verdict"], meta["stage"]) == ("needs-approval", "wait", "authorize")
            assert str(FILE) in text
            assert "interlock call lab/echo" in text


def _person(reply: str) -> JsonObject:
    if reply == "accept":
        return {"action": "accept", "content": {"approve": True}}
    if reply == "no in the form":
        return {"action": "accept", "content": {"approve": False}}
    return {"action": reply}


async def test_an_approval_is_good_for_one_request_of_one_caller(tmp_path: Path) -> None:
    policy = Policy(default_approval="prompt")
    capabilities: JsonObject = {"elicitation": {"form": {}}}
    async with running(tmp_path, policy=policy) as desk:
        second = desk.credentials.token("second")
        params: JsonObject = {"name": "lab__echo", "arguments": {"text": "hello"}}
        first = (await desk.modern("tools/call", params, capabilities=capabilities)).json["result"]  # type: ignore[arg-type]
        retry: JsonObject = {
            **params,
            "requestState": first["requestState"],  # type: ignore[index]
            "inputResponses": {"interlock_approval": _person("accept")},
        }
        tampered = dict(retry, requestState=str(retry["requestState"])[:-2] + "AA")
        elsewhere = dict(retry, name="lab__hold")
        otherwise = dict(retry, arguments={"text": "something else"})
        for wrong, token in ((tampered, None), (elsewhere, None), (otherwise, None), (retry, second)):
            answer = await desk.modern("tools/call", wrong, capabilities=capabilities, token=token)  # type: ignore[arg-type]
            assert answer.json["error"]["code"] == -32602  # type: ignore[index]
        assert desk.tools.calls == []
        answer = await desk.modern("tools/call", retry, capabilities=capabilities)  # type: ignore[arg-type]
        assert "content" in answer.json["result"]  # type: ignore[operator]
        assert desk.tools.calls == ["echo"]


async def test_an_approval_cannot_be_used_twice(tmp_path: Path) -> None:
    """The person said yes to one call, not to as many as the client cares to send."""
    policy = Policy(default_approval="prompt")
    capabilities: JsonObject = {"elicitation": {"form": {}}}
    async with running(tmp_path, policy=policy) as desk:
        params: JsonObject = {"name": "lab__echo", "arguments": {"text": "hello"}}
        first = (await desk.modern("tools/call", params, capabilities=capabilities)).json["result"]  # type: ignore[arg-type]
        retry: JsonObject = {
            **params,
            "requestState": first["requestState"],  # type: ignore[index]
            "inputResponses": {"interlock_approval": _person("accept")},
        }
        for _ in range(3):
            await desk.modern("tools/call", retry, capabilities=capabilities)  # type: ignore[arg-type]
        assert desk.tools.calls == ["echo"]


async def test_an_approved_call_that_the_server_asks_about_goes_on_once(tmp_path: Path) -> None:
    """Its later rounds are not asked for again, and so must not be a way to make the call again and again."""
    policy = Policy(default_approval="prompt")
    capabilities: JsonObject = {"elicitation": {"form": {}}}
    async with running(tmp_path, policy=policy) as desk:
        params: JsonObject = {"name": "lab__asks", "arguments": {}}
        first = (await desk.modern("tools/call", params, capabilities=capabilities)).json["result"]  # type: ignore[arg-type]
        approved: JsonObject = {
            **params,
            "requestState": first["requestState"],  # type: ignore[index]
            "inputResponses": {"interlock_approval": _person("accept")},
        }
        second = (await desk.modern("tools/call", approved, capabilities=capabilities)).json["result"]  # type: ignore[arg-type]
        answered: JsonObject = {
            **params,
            "requestState": second["requestState"],  # type: ignore[index]
            "inputResponses": {"q": {"action": "accept", "content": {"value": "x"}}},
        }
        outcomes = [(await desk.modern("tools/call", answered, capabilities=capabilities)).json for _ in range(3)]  # type: ignore[arg-type]
        assert "content" in outcomes[0]["result"]  # type: ignore[operator]
        assert [each["error"]["code"] for each in outcomes[1:]] == [-32602, -32602]  # type: ignore[index]
        assert desk.tools.calls == ["asks"]


@pytest.mark.parametrize("box", [False, None, 0, 1, "true", "false", "", [], {}, [True]], ids=repr)
async def test_only_a_plain_true_in_the_box_is_a_yes(tmp_path: Path, box: object) -> None:
    capabilities: JsonObject = {"elicitation": {"form": {}}}
    async with running(tmp_path, policy=Policy(default_approval="prompt")) as desk:
        params: JsonObject = {"name": "lab__echo", "arguments": {}}
        first = (await desk.modern("tools/call", params, capabilities=capabilities)).json["result"]  # type: ignore[arg-type]
        said = {"interlock_approval": {"action": "accept", "content": {"approve": box, "extra": True}}}
        retry: JsonObject = {**params, "requestState": first["requestState"], "inputResponses": said}  # type: ignore[index,dict-item]
        answer = await desk.modern("tools/call", retry, capabilities=capabilities)  # type: ignore[arg-type]
        assert answer.json["result"]["isError"] is True  # type: ignore[index]
        assert desk.tools.calls == []


@pytest.mark.parametrize(
    "method",
    [
        "Tools/Call",
        "tools/Call",
        "tools.call",
        "tools//call",
        "TOOLS_CALL",
        "notifications/cancelled",
        "Resources/Read",
    ],
)
async def test_no_spelling_of_a_known_method_gets_past_the_gates(tmp_path: Path, method: str) -> None:
    """Unknown methods go to a single server as they are; a lenient one must not find a call among them."""
    async with running(tmp_path, policy=AUTO, deny=("secret",)) as desk:
        session = await desk.open_session()
        answer = await desk.legacy(session, method, {"name": "secret", "arguments": {}, "requestId": 1})
        error = answer.json["error"]  # type: ignore[index]
        assert (error["code"], error["message"]) == (-32601, f"Method not found: {method}")
        assert (error["data"]["error"], error["data"]["verdict"]) == ("unknown-method", "never_reached")
        assert desk.tools.calls == []


@pytest.mark.parametrize(
    ("override", "calls"),
    [(ToolOverride(approval="auto"), ["echo"]), (ToolOverride(approval="always"), []), (ToolOverride(read=True), [])],
)
async def test_one_tool_may_have_a_word_of_its_own(tmp_path: Path, override: ToolOverride, calls: list[str]) -> None:
    policy = Policy(default_approval="prompt")
    async with running(tmp_path, policy=policy, tools={"echo": override}) as desk:
        await desk.modern("tools/call", {"name": "lab__echo"})
        assert desk.tools.calls == calls


async def test_the_read_hint_reaches_a_host_only_where_the_manifest_vouches_for_it(tmp_path: Path) -> None:
    for tools, hint in (
        ({}, None),
        ({"echo": ToolOverride(read=True)}, True),
        ({"echo": ToolOverride(read=False)}, None),
    ):
        async with running(tmp_path, policy=AUTO, tools=tools) as desk:
            desk.content.tools["echo"].definition["annotations"] = {"readOnlyHint": True, "title": "Echo"}
            result = (await desk.modern("tools/list")).json["result"]
            echo = next(tool for tool in result["tools"] if tool["name"] == "lab__echo")  # type: ignore[index]
            assert echo["annotations"].get("readOnlyHint") is hint
            assert echo["annotations"]["title"] == "Echo"
