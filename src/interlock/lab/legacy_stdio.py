"""The legacy era on standard input and output."""

from __future__ import annotations

from typing import Literal

from interlock.lab.jsonrpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonObject,
    RpcError,
    as_object,
    decode,
    encode,
    error_message,
    request_id_of,
)
from interlock.lab.legacy_engine import LegacySession
from interlock.lab.registry import Content
from interlock.lab.stdio import StdioPipe

BeforeInitialize = Literal["error", "silent"]
"""What becomes of a request that comes before `initialize`; both are seen in the wild."""


class StdioChannel:
    """The one channel that stdio has."""

    def __init__(self, pipe: StdioPipe) -> None:
        self._pipe = pipe

    async def send(self, message: JsonObject) -> None:
        self._pipe.write(encode(message))

    async def drop(self) -> None:
        return

    def push(self, message: JsonObject) -> None:
        self._pipe.write(encode(message))


async def serve_legacy_stdio(content: Content, pipe: StdioPipe, *, before: BeforeInitialize = "error") -> None:
    """Serve one client until it closes our input."""
    channel = StdioChannel(pipe)
    session = LegacySession(content, channel)
    initialized = False
    async for line in pipe.lines():
        try:
            message = as_object(decode(line), "message")
            if "method" not in message or "id" not in message:
                session.accept(message)
                continue
            request_id = request_id_of(message)
            if request_id is None:
                raise RpcError(INVALID_REQUEST, "id must be a string or an integer")
        except RpcError as error:
            await channel.send(error_message(None, error))
            continue
        initialized = initialized or message["method"] == "initialize"
        if initialized or message["method"] == "ping":
            session.start(message, channel, {})
        elif before == "error":
            refusal = RpcError(METHOD_NOT_FOUND, f"Method not found before initialize: {message['method']}")
            await channel.send(error_message(request_id, refusal))
    session.close()
    pipe.close()
