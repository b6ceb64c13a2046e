"""The modern era on standard input and output."""

from __future__ import annotations

import asyncio

from interlock.lab.jsonrpc import (
    INVALID_REQUEST,
    JsonObject,
    RequestId,
    RpcError,
    as_object,
    decode,
    encode,
    error_message,
    request_id_of,
    result_message,
)
from interlock.lab.modern_engine import ModernServer
from interlock.lab.stdio import StdioPipe


async def serve_modern_stdio(server: ModernServer, pipe: StdioPipe) -> None:
    """Serve until the client closes our input."""
    tasks: dict[RequestId, asyncio.Task[None]] = {}
    log = server.content.log

    async def emit(event: JsonObject) -> None:
        pipe.write(encode(event))

    async def work(request_id: RequestId, message: JsonObject) -> None:
        try:
            answer = result_message(request_id, await server.answer(request_id, message, emit, {}))
        except RpcError as error:
            answer = error_message(request_id, error)
        log.finished.append(request_id)
        await emit(answer)

    async for line in pipe.lines():
        try:
            message = as_object(decode(line), "message")
            if message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
                raise RpcError(INVALID_REQUEST, "not a JSON-RPC request or notification")
        except RpcError as error:
            pipe.write(encode(error_message(None, error)))
            continue
        request_id = request_id_of(message)
        if "id" not in message:
            if message["method"] == "notifications/cancelled":
                _cancel(server, tasks, message)
        elif request_id is None:
            pipe.write(encode(error_message(None, RpcError(INVALID_REQUEST, "id must be a string or an integer"))))
        else:
            log.started.append(request_id)
            task = asyncio.ensure_future(work(request_id, message))
            tasks[request_id] = task
            task.add_done_callback(lambda _, key=request_id: tasks.pop(key, None))  # type: ignore[misc]
    server.stopping.set()
    if tasks:
        await asyncio.wait(list(tasks.values()), timeout=1)
    pipe.close()


def _cancel(server: ModernServer, tasks: dict[RequestId, asyncio.Task[None]], message: JsonObject) -> None:
    params = message.get("params")
    target = params.get("requestId") if isinstance(params, dict) else None
    task = tasks.get(target) if isinstance(target, (str, int)) and not isinstance(target, bool) else None
    if task is None or not isinstance(target, (str, int)):
        server.content.log.stray.append(target)
        return
    server.content.log.cancelled.append(target)
    task.cancel()
