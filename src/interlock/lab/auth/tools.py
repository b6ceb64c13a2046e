"""The tools behind the token: writes that are counted, and what a test needs to see who it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from interlock.lab.auth.truth import Applied, Truth
from interlock.lab.auth.verifier import Holder
from interlock.lab.jsonrpc import JsonObject
from interlock.lab.registry import Call, Content, Handler, Tool, arguments_of, text_result

WRITES = ("write", "admin_write")
SESSION = "mcp-session-id"

Lookup = Callable[[str], Holder | None]
"""Who bears the token of an `Authorization` header."""


def lab_content(name: str, truth: Truth, lookup: Lookup) -> Content:
    """A fresh server: `echo`, `slow`, `read`, `whoami`, `sign_in` and the writes."""
    content = Content(name=name, instructions="Fixture behind an authorization server.")
    authors: dict[str, str] = {}

    async def echo(call: Call) -> JsonObject:
        return text_result(_text(call, "value"))

    async def slow(call: Call) -> JsonObject:
        seconds = arguments_of(call).get("seconds")
        await asyncio.sleep(seconds if isinstance(seconds, (int, float)) else 1.0)
        return text_result("slept")

    async def read(call: Call) -> JsonObject:
        return text_result(str(truth.writes[_text(call, "key")]))

    async def whoami(call: Call) -> JsonObject:
        holder = lookup(call.headers.get("authorization", ""))
        seen: JsonObject = {"client": None, "scope": None, "audience": None, "author": author_of(call)}
        if holder is not None:
            seen |= {"client": holder.client_id, "scope": " ".join(holder.scope), "audience": holder.audience}
        return {"content": [{"type": "text", "text": str(seen["client"])}], "structuredContent": seen}

    async def sign_in(call: Call) -> JsonObject:
        authors[call.headers.get(SESSION, "")] = _text(call, "author")
        truth.counts["sign_ins"] += 1
        return text_result(f"signed in as {_text(call, 'author')}")

    def author_of(call: Call) -> str | None:
        return authors.get(call.headers.get(SESSION, ""))

    def writes(tool: str) -> Handler:
        async def write(call: Call) -> JsonObject:
            key, holder = _text(call, "key"), lookup(call.headers.get("authorization", ""))
            truth.writes[key] += 1
            client = None if holder is None else holder.client_id
            truth.applied.append(Applied(time.time(), tool, key, _text(call, "text"), author_of(call), client))
            return text_result(f"wrote {key}")

        return write

    reads: JsonObject = {"readOnlyHint": True}
    content.add_tools(
        _tool("echo", "Answers with `value`.", echo, reads, value="string"),
        _tool("slow", "Answers after `seconds`.", slow, reads, seconds="number"),
        _tool("read", "How often `key` was written.", read, reads, key="string"),
        _tool("whoami", "What the token says.", whoami, reads),
        _tool("sign_in", "Names the author of this session's writes.", sign_in, {}, author="string"),
        *(_tool(name, "Writes `text` under `key`.", writes(name), {}, key="string", text="string") for name in WRITES),
    )
    return content


def _tool(name: str, description: str, run: Handler, annotations: JsonObject, **properties: str) -> Tool:
    schema: JsonObject = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    definition: JsonObject = {"name": name, "description": description, "inputSchema": schema}
    return Tool(definition | ({"annotations": annotations} if annotations else {}), run)


def _text(call: Call, name: str) -> str:
    return str(arguments_of(call).get(name, ""))
