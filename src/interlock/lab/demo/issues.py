"""A small issue tracker in memory: a modern MCP server (2026-07-28) over stdio, with the standard library only.

Run it as `python issues.py`. It knows no `initialize`: every request carries its protocol version,
and `server/discover` says what the server speaks (MCP 2026-07-28, basic/versioning).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

JsonObject = dict[str, object]
Outcome = JsonObject | tuple[int, str, object]

_VERSION = "2026-07-28"
_META = "io.modelcontextprotocol/"
_ISSUES = {
    7: "Gateway drops a server when one tool schema is malformed",
    12: "Search returns nothing for names with a dot",
    31: "A cancelled call leaves its progress bar behind",
}


def _schema(name: str, kind: str, description: str) -> JsonObject:
    return {"type": "object", "properties": {name: {"type": kind, "description": description}}, "required": [name]}


_TOOLS: list[JsonObject] = [
    {
        "name": "search",
        "description": "Find issues whose title contains a word.",
        "inputSchema": _schema("query", "string", "the word to look for"),
        "outputSchema": {
            "type": "object",
            "properties": {"issues": {"type": "array", "items": {"type": "object"}}},
            "required": ["issues"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "close",
        "description": "Close an issue.",
        "inputSchema": _schema("number", "integer", "the issue's number"),
    },
    {
        "name": "delete",
        "description": "Remove an issue for good.",
        "inputSchema": _schema("number", "integer", "the issue's number"),
        "annotations": {"destructiveHint": True},
    },
]


def _search(arguments: JsonObject) -> JsonObject:
    query = str(arguments.get("query", "")).lower()
    found = [{"number": number, "title": title} for number, title in _ISSUES.items() if query in title.lower()]
    text = json.dumps({"issues": found})
    return {"content": [{"type": "text", "text": text}], "structuredContent": {"issues": found}, "isError": False}


def _remove(arguments: JsonObject) -> JsonObject:
    number = arguments.get("number")
    title = _ISSUES.pop(number, None) if isinstance(number, int) else None
    text = f"done: {title}" if title else f"no issue {number}"
    return {"content": [{"type": "text", "text": text}], "isError": title is None}


_HANDLERS: dict[str, Callable[[JsonObject], JsonObject]] = {"search": _search, "close": _remove, "delete": _remove}


def _refusal(params: JsonObject) -> Outcome | None:
    """What is wrong with a request's per-request fields, if anything."""
    meta = params.get("_meta")
    version = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
    if version is None:
        return -32602, f"_meta must name {_META}protocolVersion", None
    if version != _VERSION:
        return -32022, "Unsupported protocol version", {"supported": [_VERSION], "requested": version}
    return None


def _call(params: JsonObject) -> Outcome:
    handler = _HANDLERS.get(str(params.get("name")))
    if handler is None:
        return -32602, f"unknown tool {params.get('name')}", None
    arguments = params.get("arguments")
    return handler(arguments if isinstance(arguments, dict) else {})


def answer(method: str, params: JsonObject) -> Outcome:
    """The result of one request, or the code, message and data of its error."""
    if method == "initialize":
        requested = params.get("protocolVersion")
        return -32022, "Unsupported protocol version", {"supported": [_VERSION], "requested": requested}
    refusal = _refusal(params)
    if refusal is not None:
        return refusal
    if method == "server/discover":
        return {
            "supportedVersions": [_VERSION],
            "capabilities": {"tools": {}},
            "instructions": "An issue tracker. Search first; close what is done.",
            "ttlMs": 60_000,
            "cacheScope": "public",
        }
    if method == "tools/list":
        return {"tools": _TOOLS, "ttlMs": 60_000, "cacheScope": "public"}
    if method == "tools/call":
        return _call(params)
    return -32601, f"unknown method {method}", None


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
            code, text, data = outcome
            reply["error"] = {"code": code, "message": text} | ({"data": data} if data is not None else {})
        else:
            server = {f"{_META}serverInfo": {"name": "issues", "version": "1.0.0"}}
            reply["result"] = {"resultType": "complete", **outcome, "_meta": server}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
