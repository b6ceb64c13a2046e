"""A notebook that lives in memory: a legacy MCP server (2025-11-25, `initialize`) over stdio.

Run it as `python notes.py`; it uses the standard library only. Its tool `crash` ends the process in
the middle of a call, so that the demo can show what Interlock says about a call whose outcome nobody knows.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

JsonObject = dict[str, object]

_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
_NOTES = [
    "Signals: a signal shows go only when every point on the route is locked.",
    "Groceries: bread, coffee, pears.",
    "Retry rule: never repeat a write whose outcome is unknown; look first.",
]


def _text_argument(description: str, name: str) -> JsonObject:
    return {"type": "object", "properties": {name: {"type": "string", "description": description}}, "required": [name]}


_TOOLS: list[JsonObject] = [
    {
        "name": "search",
        "description": "Find notes that contain a word.",
        "inputSchema": _text_argument("the word to look for", "query"),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "add",
        "description": "Write a new note.",
        "inputSchema": _text_argument("the note", "text"),
        "annotations": {"readOnlyHint": False, "destructiveHint": False},
    },
    {
        "name": "crash",
        "description": "End this server in the middle of the call, for demonstrations.",
        "inputSchema": {"type": "object", "properties": {}},
    },
]


def _search(arguments: JsonObject) -> str:
    query = str(arguments.get("query", "")).lower()
    return "\n".join(note for note in _NOTES if query in note.lower()) or "no note matches"


def _add(arguments: JsonObject) -> str:
    _NOTES.append(str(arguments.get("text", "")))
    return f"written; {len(_NOTES)} notes now"


def _crash(arguments: JsonObject) -> str:
    print("notes: ending in the middle of a call, as asked", file=sys.stderr, flush=True)
    os._exit(3)


_HANDLERS: dict[str, Callable[[JsonObject], str]] = {"search": _search, "add": _add, "crash": _crash}


def _initialize(params: JsonObject) -> JsonObject:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in _VERSIONS else _VERSIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "notes", "version": "1.0.0"},
        "instructions": "A notebook. Search before you add.",
    }


def answer(method: str, params: JsonObject) -> JsonObject | tuple[int, str]:
    """The result of one request, or the code and message of its error."""
    if method == "initialize":
        return _initialize(params)
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": _TOOLS}
    if method != "tools/call":
        return -32601, f"unknown method {method}"
    handler = _HANDLERS.get(str(params.get("name")))
    if handler is None:
        return -32602, f"unknown tool {params.get('name')}"
    arguments = params.get("arguments")
    text = handler(arguments if isinstance(arguments, dict) else {})
    return {"content": [{"type": "text", "text": text}], "isError": False}


def main() -> None:
    """Answer one request a line until standard input ends."""
    for line in sys.stdin:
        if not line.strip():
            continue
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        params = message.get("params")
        outcome = answer(str(message["method"]), params if isinstance(params, dict) else {})
        reply: JsonObject = {"jsonrpc": "2.0", "id": message["id"]}
        if isinstance(outcome, tuple):
            reply["error"] = {"code": outcome[0], "message": outcome[1]}
        else:
            reply["result"] = outcome
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
