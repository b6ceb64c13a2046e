"""What a client does in each scenario of the official suite, through a bridge: list, call, answer questions, log in.

The scenarios' own contract is in the suite's README: the scenario's name, its context and the protocol revision come in
the environment, and the client ends with 0 where its session went as it should.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from .bridges import Settings
from .person import Person
from .session import Json, Reply, Session

METADATA_DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The Client ID Metadata Document that the suite's server knows; nobody fetches it."""
REQUEST_SECONDS = 8.0
SCENARIO_SECONDS = 24.0
"""Below the suite's own 30 s, so that a bridge that hangs is reported by us, with its words."""
_ATTEMPTS = 6
_SETTLE_SECONDS = 3.0


class Unmet(Exception):
    """The session did not go as it should; the message says which request, and what the bridge said."""


def settings_for(scenario: str, context: Json, revision: str) -> Settings:
    """The client's settings that a scenario prescribes."""
    credentials = scenario.startswith("auth/client-credentials")
    return Settings(
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        client_metadata_url=METADATA_DOCUMENT if scenario == "auth/basic-cimd" else None,
        flow="client-credentials" if credentials else "browser",
        era="auto" if revision >= "2026-07-28" else "legacy",
        timeout=REQUEST_SECONDS,
        # The 2025-03-26 servers of the back-compatibility suite have no metadata that could advertise PKCE.
        allow_missing_pkce=False,
    )


def answer(method: str, params: Json) -> Json | None:
    """A host's answers to the server's questions: accept with the schema's defaults, no roots, an empty sample."""
    if method == "elicitation/create":
        properties = (params.get("requestedSchema") or {}).get("properties") or {}
        content: Json = {name: schema["default"] for name, schema in properties.items() if "default" in schema}
        if not content and "confirmed" in properties:
            content = {"confirmed": True}
        return {"action": "accept", "content": content}
    if method == "roots/list":
        return {"roots": []}
    if method == "sampling/createMessage":
        return {"role": "assistant", "content": {"type": "text", "text": ""}, "model": "none"}
    return None


CAPABILITIES: Json = {"elicitation": {"form": {}}, "roots": {}, "sampling": {}}
ASKED = frozenset({"sep-2322-client-request-state", "elicitation-sep1034-client-defaults"})
"""Scenarios in which the server asks the host something. In all others the host says, as most do, that it cannot answer."""


def capabilities_for(scenario: str) -> Json:
    return CAPABILITIES if scenario in ASKED else {}


@dataclass(slots=True)
class Visitor:
    """A host's part of a scenario: a session, the person who clicks for it, and how often each request was tried."""

    session: Session
    person: Person
    context: Json
    attempts: dict[str, int] = field(default_factory=dict)

    async def until_answered(self, what: str, ask: Callable[[], Awaitable[Reply]]) -> Reply:
        """Ask, and while the answer is that a person has to log in, wait for the click and ask again.

        A bridge that answers nothing until the click is asked once: its answer comes late, or never.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            self.attempts[what] = attempt
            known = len(self.person.clicks)
            reply = await ask()
            if not reply.failed:
                return reply
            if not reply.urls and len(self.person.clicks) == known and not self.person.busy:
                return reply
            await self.person.settled()
        return reply

    async def tools(self) -> list[Json]:
        """The server's tools. Before the login a bridge may have none to show; then the first call brings the URL."""
        await self._opened()
        reply = await self.until_answered("tools/list", lambda: self.ask("tools/list"))
        listed = _tools_of(reply)
        for _ in range(_ATTEMPTS):
            if listed or not (self.person.clicks or self.session.urls):
                break
            await self.person.settled()
            await self.session.wait_for(self._list_changed, seconds=_SETTLE_SECONDS)
            reply = await self.until_answered("tools/list", lambda: self.ask("tools/list"))
            listed = _tools_of(reply)
        if reply.result is None:
            raise Unmet(f"tools were not listed: {describe(reply)}")
        return listed

    async def first_tool(self) -> Json:
        listed = await self.tools()
        if not listed:
            raise Unmet("the list of tools was empty")
        return listed[0]

    async def call(self, tool: str, arguments: Json | None = None) -> Reply:
        return await self.until_answered(
            f"call {tool}", lambda: self.session.call(tool, arguments, seconds=REQUEST_SECONDS)
        )

    async def must_call(self, tool: str, arguments: Json | None = None) -> Reply:
        reply = await self.call(tool, arguments)
        if reply.result is None:
            raise Unmet(f"{tool} was not answered with a result: {describe(reply)}")
        return reply

    async def _opened(self) -> None:
        reply = await self.session.open(seconds=SCENARIO_SECONDS)
        if reply.result is None:
            raise Unmet(f"{reply.method} was not answered: {describe(reply)}")

    async def ask(self, method: str, params: Json | None = None) -> Reply:
        return await self.session.request(method, params, seconds=REQUEST_SECONDS)

    def _list_changed(self) -> bool:
        return any(method == "notifications/tools/list_changed" for _, method in self.session.notices)


def _tools_of(reply: Reply) -> list[Json]:
    tools = (reply.result or {}).get("tools")
    return tools if isinstance(tools, list) else []


def describe(reply: Reply) -> str:
    """One line about a reply that was not what it should be."""
    if reply.state in ("unanswered", "ended"):
        return f"{reply.method} {reply.state}"
    return f"{reply.method} {reply.state}: {(reply.text or str(reply.result))[:300]}"


def stub_arguments(schema: Json) -> Json:
    """The least that a tool's schema requires."""
    by_type: dict[str, Any] = {"string": "x", "integer": 0, "number": 0, "boolean": False, "object": {}, "array": []}
    properties = schema.get("properties") or {}
    return {
        name: by_type.get(str((properties.get(name) or {}).get("type")), "x") for name in schema.get("required") or []
    }


async def _lists(visitor: Visitor) -> None:
    await visitor.tools()


async def _calls_named(visitor: Visitor, *calls: tuple[str, Json]) -> None:
    await visitor.tools()
    for tool, arguments in calls:
        await visitor.must_call(tool, arguments)


async def _authorizes(visitor: Visitor) -> None:
    """List, then call the first tool; how the call ends is for the scenario to judge."""
    tool = await visitor.first_tool()
    await visitor.call(tool["name"], {})


async def _every_standard_header(visitor: Visitor) -> None:
    tool = await visitor.first_tool()
    await visitor.call(tool["name"], stub_arguments(tool.get("inputSchema") or {}))
    for listing, key, reading, name in (
        ("resources/list", "resources", "resources/read", "uri"),
        ("prompts/list", "prompts", "prompts/get", "name"),
    ):
        listed = await visitor.ask(listing)
        found = (listed.result or {}).get(key)
        if isinstance(found, list) and found:
            await visitor.ask(reading, {name: found[0][name]})


async def _calls_all_surfaced(visitor: Visitor) -> None:
    for tool in await visitor.tools():
        await visitor.call(tool["name"], stub_arguments(tool.get("inputSchema") or {}))


async def _replays_calls(visitor: Visitor) -> None:
    surfaced = {tool["name"] for tool in await visitor.tools()}
    for call in visitor.context.get("toolCalls") or []:
        if call["name"] in surfaced:
            await visitor.call(call["name"], call.get("arguments") or {})


async def _echoes_schema(visitor: Visitor) -> None:
    focal = next(tool for tool in await visitor.tools() if tool["name"] == "json_schema_2020_12_tool")
    await visitor.must_call("json_schema_echo", {"schema": focal["inputSchema"]})


async def _reconnects(visitor: Visitor) -> None:
    await visitor.tools()
    await visitor.call("test_reconnection")


_ADD = ("add_numbers", {"a": 5, "b": 3})
_HANDLERS: dict[str, Callable[[Visitor], Awaitable[None]]] = {
    "initialize": _lists,
    "json-schema-ref-no-deref": _lists,
    "json-schema-2020-12-preservation": _echoes_schema,
    "tools_call": lambda visitor: _calls_named(visitor, _ADD),
    "request-metadata": lambda visitor: _calls_named(visitor, _ADD),
    "sse-retry": _reconnects,
    "elicitation-sep1034-client-defaults": lambda visitor: _calls_named(
        visitor, ("test_client_elicitation_defaults", {})
    ),
    "sep-2322-client-request-state": lambda visitor: _calls_named(
        visitor,
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_no_result_type", {}),
    ),
    "http-standard-headers": _every_standard_header,
    "http-invalid-tool-headers": _calls_all_surfaced,
    "http-custom-headers": _replays_calls,
}


async def play(scenario: str, visitor: Visitor) -> None:
    """The client's part of a scenario. Raises Unmet where the session did not go as it should."""
    handler = _HANDLERS.get(scenario)
    if handler is None and not scenario.startswith("auth/"):
        raise Unmet(f"unknown scenario {scenario}")
    try:
        async with asyncio.timeout(SCENARIO_SECONDS):
            await (handler or _authorizes)(visitor)
    except TimeoutError:
        raise Unmet(f"the scenario did not end within {SCENARIO_SECONDS:.0f} s") from None
