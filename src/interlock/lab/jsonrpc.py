"""JSON-RPC messages as plain dictionaries: encoding, checked access to untrusted members, and errors.

Deliberately independent of `interlock.wire`: the fixtures must not share its faults.
"""

from __future__ import annotations

import json
from typing import cast

JsonObject = dict[str, object]
RequestId = str | int

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
LEGACY_RESOURCE_NOT_FOUND = -32002
"""Resource not found, up to 2025-11-25; 2026-07-28 uses -32602 instead."""
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022


class RpcError(Exception):
    """An error to be answered as a JSON-RPC error response.

    `status` is the HTTP status that 2026-07-28 asks for; other bindings ignore it. `extra` holds members put beside
    `code` and `message` that no specification knows, for fidelity tests.
    """

    def __init__(
        self, code: int, message: str, data: object = None, *, status: int = 200, extra: JsonObject | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = status
        self.extra = extra or {}

    def body(self) -> JsonObject:
        """The `error` member."""
        error: JsonObject = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error | self.extra


def encode(message: object) -> bytes:
    """One message as compact UTF-8 JSON without a newline."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def decode(raw: bytes) -> object:
    """Parse one message; RpcError -32700 (HTTP 400) where it is not JSON."""
    try:
        return cast("object", json.loads(raw))
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"Parse error: {error}", status=400) from error


def result_message(request_id: RequestId, result: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_message(request_id: RequestId | None, error: RpcError) -> JsonObject:
    message: JsonObject = {"jsonrpc": "2.0"}
    if request_id is not None:
        message["id"] = request_id
    message["error"] = error.body()
    return message


def notification(method: str, params: JsonObject | None = None) -> JsonObject:
    message: JsonObject = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def as_object(value: object, what: str) -> JsonObject:
    """`value` as an object, or RpcError -32602 naming `what`."""
    if not isinstance(value, dict):
        raise RpcError(INVALID_PARAMS, f"{what} must be an object", status=400)
    return cast("JsonObject", value)


def as_text(value: object, what: str) -> str:
    """`value` as a string, or RpcError -32602 naming `what`."""
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{what} must be a string", status=400)
    return value


def request_id_of(message: JsonObject) -> RequestId | None:
    """The message's id where it is a valid one: a string or an integer, never null or a boolean."""
    value = message.get("id")
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return value
    return None
