"""Streamable HTTP of 2026-07-28: one POST a request, answered by JSON or by a stream that belongs to it."""

from __future__ import annotations

import asyncio
import contextlib

from interlock.lab.http_server import Reply, Request, run_until_closed
from interlock.lab.jsonrpc import (
    INVALID_REQUEST,
    JsonObject,
    RpcError,
    as_object,
    decode,
    encode,
    error_message,
    request_id_of,
    result_message,
)
from interlock.lab.modern_engine import ModernServer
from interlock.lab.modern_headers import check_headers


class ModernHttp:
    """The MCP endpoint. `always_stream` answers every request with SSE, not only those that send notifications."""

    def __init__(self, server: ModernServer, *, always_stream: bool = False) -> None:
        self._server = server
        self._always_stream = always_stream

    async def handle(self, request: Request, reply: Reply) -> None:
        if request.method != "POST":
            await reply.send(405, headers={"allow": "POST"})
            return
        request_id = None
        try:
            message = as_object(decode(request.body), "message")
            request_id = request_id_of(message)
            if message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
                raise RpcError(INVALID_REQUEST, "not a JSON-RPC request", status=400)
            if "id" not in message:
                await reply.send(202)
                return
            if request_id is None:
                raise RpcError(INVALID_REQUEST, "id must be a string or an integer", status=400)
            check_headers(message, request.headers, self._server.content)
        except RpcError as error:
            await reply.send_json(error.status, error_message(request_id, error))
            return
        await self._answer(request_id, message, request, reply)

    async def _answer(self, request_id: str | int, message: JsonObject, request: Request, reply: Reply) -> None:
        log = self._server.content.log
        log.started.append(request_id)

        async def emit(event: JsonObject) -> None:
            if not reply.started:
                await reply.start_events()
            await reply.write(b"event: message\ndata: %s\n\n" % encode(event))

        async def work() -> None:
            if self._always_stream:
                await reply.start_events()
            status = 200
            try:
                answer = result_message(
                    request_id, await self._server.answer(request_id, message, emit, request.headers)
                )
            except RpcError as error:
                status, answer = error.status, error_message(request_id, error)
            if reply.started:
                await emit(answer)
                await reply.end()
            else:
                await reply.send_json(status, answer)

        task = asyncio.ensure_future(work())
        if await run_until_closed(task, reply):
            log.finished.append(request_id)
            task.result()
            return
        # The client closed the stream: that is how this binding cancels.
        log.cancelled.append(request_id)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
