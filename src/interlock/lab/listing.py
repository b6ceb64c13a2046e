"""The requests that both eras answer alike: lists with pages, reads, prompts, calls, completion."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from interlock.lab.jsonrpc import INVALID_PARAMS, JsonObject, RpcError, as_object, as_text
from interlock.lab.registry import Content, Handler

LIST_METHODS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""List method to the member that holds the items."""
CALL_METHODS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods that run a handler, to the parameter that selects it (and that `Mcp-Name` mirrors)."""


def list_page(content: Content, method: str, params: JsonObject) -> JsonObject:
    """One page of a list, with `nextCursor` where more follows; RpcError -32602 for a cursor that is not ours."""
    items: Sequence[JsonObject] = {
        "tools/list": [*(tool.definition for tool in content.tools.values()), *content.raw_tools],
        "prompts/list": [prompt.definition for prompt in content.prompts.values()],
        "resources/list": [resource.definition for resource in content.resources.values() if resource.listed],
        "resources/templates/list": [template.definition for template in content.templates],
    }[method]
    start = _offset(params.get("cursor"), method)
    size = content.page_size or len(items) or 1
    if start > len(items):
        raise RpcError(INVALID_PARAMS, "Invalid cursor", status=400)
    page: JsonObject = {LIST_METHODS[method]: list(items[start : start + size])}
    if start + size < len(items):
        page["nextCursor"] = base64.urlsafe_b64encode(f"{method}:{start + size}".encode()).decode()
    if content.extra_meta:
        page["_meta"] = dict(content.extra_meta)
    return page


def handler_of(content: Content, method: str, params: JsonObject, *, not_found: int) -> Handler:
    """The handler of a call, prompt or resource; RpcError where there is none (`not_found` for a resource)."""
    if method == "tools/call":
        name = as_text(params.get("name"), "name")
        if name in content.tools:
            return content.tools[name].run
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")
    if method == "prompts/get":
        name = as_text(params.get("name"), "name")
        if name in content.prompts:
            return content.prompts[name].run
        raise RpcError(INVALID_PARAMS, f"Unknown prompt: {name}")
    uri = as_text(params.get("uri"), "uri")
    reader = content.reader_of(uri)
    if reader is None:
        raise RpcError(not_found, "Resource not found", {"uri": uri})
    return reader


def completion(content: Content, params: JsonObject) -> JsonObject:
    """The result of `completion/complete`."""
    as_object(params.get("ref"), "ref")
    as_object(params.get("argument"), "argument")
    if content.complete is None:
        return {"completion": {"values": [], "total": 0, "hasMore": False}}
    return {"completion": content.complete(params)}


def server_capabilities(content: Content) -> JsonObject:
    """What both engines declare: only what the content holds, and what it adds itself."""
    capabilities: JsonObject = {"tools": {"listChanged": True}, "logging": {}}
    if content.prompts:
        capabilities["prompts"] = {"listChanged": True}
    if content.resources or content.templates:
        capabilities["resources"] = {"listChanged": True, "subscribe": True}
    if content.complete is not None:
        capabilities["completions"] = {}
    return capabilities | content.capabilities


def _offset(cursor: object, method: str) -> int:
    if cursor is None:
        return 0
    try:
        kind, _, number = base64.urlsafe_b64decode(as_text(cursor, "cursor")).decode().rpartition(":")
        if kind == method and number.isdigit():
            return int(number)
    except (binascii.Error, UnicodeDecodeError, ValueError):
        pass
    raise RpcError(INVALID_PARAMS, "Invalid cursor", status=400)
