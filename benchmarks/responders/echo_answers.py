"""What both fast responders answer: one `echo` tool, in the modern era (2026-07-28) and the legacy one.

The responders exist so that a gateway under test is the slowest part of the chain. They therefore decode each
request once into the typed shape below and join prepared byte strings; they are not a model of a good MCP server.
"""

from __future__ import annotations

import msgspec

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
LEGACY_REVISIONS = (LEGACY, "2025-06-18", "2025-03-26", "2024-11-05")

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


class Arguments(msgspec.Struct):
    """Arguments of the `echo` tool."""

    text: str = ""


class Meta(msgspec.Struct):
    """The one field of `params._meta` that the responders look at."""

    protocol_version: str = msgspec.field(name="io.modelcontextprotocol/protocolVersion", default="")


class Params(msgspec.Struct):
    """Every parameter that any of the answered methods needs."""

    name: str = ""
    arguments: Arguments = msgspec.field(default_factory=Arguments)
    protocol_version: str = msgspec.field(name="protocolVersion", default="")
    meta: Meta | None = msgspec.field(name="_meta", default=None)


class Request(msgspec.Struct):
    """A JSON-RPC message; `id` stays the bytes that came, and is empty for a notification."""

    method: str = ""
    id: msgspec.Raw = msgspec.Raw()
    params: Params | None = None


decode = msgspec.json.Decoder(Request).decode
_quote = msgspec.json.Encoder().encode

_SERVER_INFO = {"name": "fast-echo", "version": "1.0.0"}
_TOOL = {
    "name": "echo",
    "description": "Answers with the text that it is given.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": True},
}
_MODERN_META = {"io.modelcontextprotocol/serverInfo": _SERVER_INFO}

_DISCOVER = _quote(
    {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}},
        "_meta": _MODERN_META,
        "ttlMs": 3_600_000,
        "cacheScope": "public",
    }
)
_LIST_MODERN = _quote(
    {
        "resultType": "complete",
        "tools": [_TOOL],
        "ttlMs": 3_600_000,
        "cacheScope": "public",
        "_meta": _MODERN_META,
    }
)
_LIST_LEGACY = _quote({"tools": [_TOOL]})

_HEAD = b'{"jsonrpc":"2.0","id":'
_CALL_MODERN = b',"result":{"resultType":"complete","content":[{"type":"text","text":'
_CALL_LEGACY = b',"result":{"content":[{"type":"text","text":'
_CALL_TAIL = b'}],"isError":false}}'
_RESULT = b',"result":'
_END = b"}"


def answer(request: Request) -> bytes:
    """The JSON-RPC answer to a request with an id, with no trailing newline."""
    params = request.params
    identity = bytes(request.id)
    modern = params is not None and params.meta is not None and params.meta.protocol_version == MODERN
    method = request.method
    if method == "tools/call":
        if params is None or params.name != "echo":
            return _error(identity, INVALID_PARAMS, "unknown tool")
        middle = _CALL_MODERN if modern else _CALL_LEGACY
        return b"".join((_HEAD, identity, middle, _quote(params.arguments.text), _CALL_TAIL))
    if method == "tools/list":
        return b"".join((_HEAD, identity, _RESULT, _LIST_MODERN if modern else _LIST_LEGACY, _END))
    if method == "server/discover":
        return b"".join((_HEAD, identity, _RESULT, _DISCOVER, _END))
    if method == "initialize":
        return b"".join((_HEAD, identity, _RESULT, _initialize(params), _END))
    if method == "ping":
        return b"".join((_HEAD, identity, _RESULT, b"{}", _END))
    return _error(identity, METHOD_NOT_FOUND, "method not found")


def _initialize(params: Params | None) -> bytes:
    asked = params.protocol_version if params is not None else ""
    return _quote(
        {
            "protocolVersion": asked if asked in LEGACY_REVISIONS else LEGACY,
            "capabilities": {"tools": {}},
            "serverInfo": _SERVER_INFO,
        }
    )


def _error(identity: bytes, code: int, message: str) -> bytes:
    return b"".join((_HEAD, identity, b',"error":', _quote({"code": code, "message": message}), _END))
