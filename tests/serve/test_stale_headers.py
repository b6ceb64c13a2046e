"""A server that mirrors a parameter into a header since its tools were listed: listed anew, and called once more."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from interlock.lab.jsonrpc import JsonObject
from interlock.lab.registry import Call, Tool, text_result

from .desk import running
from .test_admission import asker

Era = Literal["modern", "legacy"]


@pytest.mark.parametrize("down", ["modern", "legacy"])
async def test_a_refused_header_is_mended_by_a_new_list(down: Era, tmp_path: Path) -> None:
    calls = []

    async def where(call: Call) -> JsonObject:
        calls.append(call)
        return text_result("done")

    plain = {"type": "object", "properties": {"region": {"type": "string"}}}
    mirrored = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    async with running(tmp_path) as desk:
        desk.content.add_tools(Tool({"name": "where", "inputSchema": plain}, where))
        async with asker(desk, down) as client:
            assert "lab__where" in await client.names()
            desk.content.add_tools(Tool({"name": "where", "inputSchema": mirrored}, where))  # and nobody is told
            answer = await client.ask("tools/call", {"name": "lab__where", "arguments": {"region": "north"}})
            assert answer.json["result"]["content"] == [{"type": "text", "text": "done"}]  # type: ignore[index,call-overload]
            assert len(calls) == 1
