"""Whether the HTTP headers of a 2026-07-28 request say the same as its body."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping

from interlock.lab.jsonrpc import HEADER_MISMATCH, JsonObject, RpcError
from interlock.lab.listing import CALL_METHODS
from interlock.lab.modern_engine import PREFIX, unsupported_version
from interlock.lab.registry import Content

SENTINEL, END = "=?base64?", "?="


def check_headers(message: JsonObject, headers: Mapping[str, str], content: Content) -> None:
    """RpcError -32020 (HTTP 400) where a header is missing, malformed or differs from the body."""
    method = str(message["method"])
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    version = meta.get(f"{PREFIX}protocolVersion") if isinstance(meta, dict) else None
    if version is None and method == "initialize" and "mcp-method" not in headers:
        raise unsupported_version(params.get("protocolVersion"))
    _compare("MCP-Protocol-Version", headers.get("mcp-protocol-version"), version)
    _compare("Mcp-Method", headers.get("mcp-method"), method)
    if method in CALL_METHODS:
        _compare("Mcp-Name", decoded("Mcp-Name", headers.get("mcp-name")), params.get(CALL_METHODS[method]))
    if method == "tools/call":
        _check_parameters(params, headers, content)


def decoded(name: str, value: str | None) -> str | None:
    """A header value, out of its Base64 sentinel where it has one."""
    if value is None:
        return None
    if any(not (" " <= character <= "~" or character == "\t") for character in value):
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} holds invalid characters", status=400)
    if not (value.startswith(SENTINEL) and value.endswith(END) and len(value) >= len(SENTINEL) + len(END)):
        return value
    try:
        return base64.b64decode(value[len(SENTINEL) : -len(END)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is no valid Base64", status=400) from error


def mirrored_parameters(schema: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each `x-mcp-header` name with the path of its property, along `properties` only."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return
    for name, child in properties.items():
        if isinstance(child, dict):
            header = child.get("x-mcp-header")
            if isinstance(header, str):
                yield header, (*path, name)
            yield from mirrored_parameters(child, (*path, name))


def _check_parameters(params: JsonObject, headers: Mapping[str, str], content: Content) -> None:
    tool = content.tools.get(str(params.get("name")))
    if tool is None:
        return
    for header, path in mirrored_parameters(tool.definition.get("inputSchema")):
        value: object = params.get("arguments")
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        name = f"Mcp-Param-{header}"
        sent = decoded(name, headers.get(name.lower()))
        if value is None:
            if sent is not None:
                raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} has no value in the body", status=400)
        elif isinstance(value, bool):
            _compare(name, sent, str(value).lower())
        elif isinstance(value, int):
            if sent is None or not _same_number(sent, value):
                raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is {sent!r}, body says {value}", status=400)
        else:
            _compare(name, sent, value)


def _same_number(text: str, number: int) -> bool:
    """Numeric comparison, as the specification advises: `42.0` equals 42."""
    try:
        return int(text) == number
    except ValueError:
        try:
            return float(text) == number
        except ValueError:
            return False


def _compare(name: str, header: str | None, body: object) -> None:
    if header is None:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is missing", status=400)
    if body is not None and header != body:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is {header!r}, body says {body!r}", status=400)
