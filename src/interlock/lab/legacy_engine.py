"""Legacy sessions (`initialize`, up to 2025-11-25): what happens to each message, on whatever carries it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Protocol

from interlock.lab.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LEGACY_RESOURCE_NOT_FOUND,
    METHOD_NOT_FOUND,
    JsonObject,
    RequestId,
    RpcError,
    as_object,
    as_text,
    error_message,
    notification,
    request_id_of,
    result_message,
)
from interlock.lab.levels import LOG_LEVELS, at_least
from interlock.lab.listing import CALL_METHODS, LIST_METHODS, completion, handler_of, list_page, server_capabilities
from interlock.lab.registry import Content, Era, Questions, text_result

LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NEEDED_CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


class Channel(Protocol):
    """What carries the messages that belong to one request back to the client."""

    async def send(self, message: JsonObject) -> None: ...

    async def drop(self) -> None:
        """Close the stream without ending the request; a channel that cannot does nothing."""
        ...


class Unsolicited(Protocol):
    """What carries messages that belong to no request."""

    def push(self, message: JsonObject) -> None: ...


class LegacySession:
    """One client, from `initialize` to the end of its connection or session."""

    def __init__(self, content: Content, unsolicited: Unsolicited) -> None:
        self.content = content
        self.version = LEGACY_VERSIONS[0]
        self.capabilities: JsonObject = {}
        self.client_info: object = None
        self._level = content.log_level
        self._unsolicited = unsolicited
        self._subscribed: set[str] = set()
        self._open: dict[RequestId, asyncio.Task[None]] = {}
        self._asked: dict[RequestId, asyncio.Future[JsonObject]] = {}
        # Plain integers from 1, which clients use too: ids of the two directions must never be mixed up.
        self._ask_ids = itertools.count(1)
        content.listeners.append(self._on_change)

    def close(self) -> None:
        """End the session: open calls stop and nothing more is sent."""
        if self._on_change in self.content.listeners:
            self.content.listeners.remove(self._on_change)
        for task in self._open.values():
            task.cancel()
        for future in self._asked.values():
            future.cancel()

    def accept(self, message: JsonObject) -> None:
        """Take a notification or a response."""
        if "method" not in message:
            self._answered(message)
        elif message["method"] == "notifications/cancelled":
            self._cancelled(message)

    def start(self, message: JsonObject, channel: Channel, headers: Mapping[str, str]) -> asyncio.Task[None]:
        """Begin a request; the task ends when its response is sent, or silently when it is cancelled."""
        request_id = request_id_of(message)
        assert request_id is not None
        task = asyncio.ensure_future(self._serve(request_id, message, channel, headers))
        self._open[request_id] = task
        self.content.log.started.append(request_id)
        task.add_done_callback(lambda _: self._open.pop(request_id, None))
        return task

    async def _serve(
        self, request_id: RequestId, message: JsonObject, channel: Channel, headers: Mapping[str, str]
    ) -> None:
        try:
            result = await self._dispatch(request_id, message, channel, headers)
            answer = result_message(request_id, result)
        except asyncio.CancelledError:
            return
        except RpcError as error:
            answer = error_message(request_id, error)
        self.content.log.finished.append(request_id)
        await channel.send(answer)

    async def _dispatch(
        self, request_id: RequestId, message: JsonObject, channel: Channel, headers: Mapping[str, str]
    ) -> JsonObject:
        method = message["method"]
        params = as_object(message.get("params", {}), "params")
        if method == "initialize":
            return self._initialize(params)
        if method == "ping":
            return {}
        if isinstance(method, str) and method in LIST_METHODS:
            return list_page(self.content, method, params)
        if isinstance(method, str) and method in CALL_METHODS:
            handler = handler_of(self.content, method, params, not_found=LEGACY_RESOURCE_NOT_FOUND)
            call = LegacyCall(self, request_id, params, channel, headers)
            try:
                return await handler(call)
            except RpcError:
                raise
            except Exception as error:
                if method == "tools/call":
                    return text_result(f"{type(error).__name__}: {error}", is_error=True)
                raise RpcError(INTERNAL_ERROR, str(error)) from error
        if method == "completion/complete":
            return completion(self.content, params)
        if method == "logging/setLevel":
            level = as_text(params.get("level"), "level")
            if level not in LOG_LEVELS:
                raise RpcError(INVALID_PARAMS, f"Unknown log level: {level}")
            self._level = level
            return {}
        if method == "resources/subscribe":
            self._subscribed.add(as_text(params.get("uri"), "uri"))
            return {}
        if method == "resources/unsubscribe":
            self._subscribed.discard(as_text(params.get("uri"), "uri"))
            return {}
        if isinstance(method, str) and method in self.content.methods:
            return self.content.methods[method](params)
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")

    def _initialize(self, params: JsonObject) -> JsonObject:
        requested = as_text(params.get("protocolVersion"), "protocolVersion")
        self.version = requested if requested in LEGACY_VERSIONS else LEGACY_VERSIONS[0]
        self.capabilities = as_object(params.get("capabilities", {}), "capabilities")
        self.client_info = params.get("clientInfo")
        result: JsonObject = {
            "protocolVersion": self.version,
            "capabilities": server_capabilities(self.content),
            "serverInfo": self.content.implementation(),
        }
        if self.content.instructions is not None:
            result["instructions"] = self.content.instructions
        return result

    def wants_log(self, level: str) -> bool:
        return at_least(level, self._level)

    def _on_change(self, method: str, params: JsonObject) -> None:
        if method == "notifications/resources/updated" and params.get("uri") not in self._subscribed:
            return
        if method == "notifications/message" and not self.wants_log(str(params.get("level"))):
            return
        self._unsolicited.push(notification(method, params or None))

    def _cancelled(self, message: JsonObject) -> None:
        params = message.get("params")
        target = params.get("requestId") if isinstance(params, dict) else None
        task = self._open.get(target) if isinstance(target, (str, int)) else None
        if task is None or isinstance(target, bool):
            self.content.log.stray.append(target)
            return
        assert isinstance(target, (str, int))
        self.content.log.cancelled.append(target)
        task.cancel()

    def _answered(self, message: JsonObject) -> None:
        request_id = request_id_of(message)
        future = self._asked.get(request_id) if request_id is not None else None
        if future is not None and not future.done():
            future.set_result(message)

    async def ask_one(self, question: JsonObject, channel: Channel) -> JsonObject:
        """Send one request to the client and wait for its result; an error from the client is raised."""
        method = str(question["method"])
        self._check_capability(method, question)
        request_id = next(self._ask_ids)
        future: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = future
        try:
            await channel.send({"jsonrpc": "2.0", "id": request_id, **question})
            answer = await future
        except asyncio.CancelledError:
            await channel.send(notification("notifications/cancelled", {"requestId": request_id}))
            raise
        finally:
            self._asked.pop(request_id, None)
        if "error" in answer:
            error = answer["error"]
            raise ClientRefused(f"{method}: {error.get('message') if isinstance(error, dict) else error}")
        return as_object(answer.get("result"), "result")

    def _check_capability(self, method: str, question: JsonObject) -> None:
        name = NEEDED_CAPABILITY[method]
        declared = self.capabilities.get(name)
        if not isinstance(declared, dict):
            raise ClientRefused(f"the client did not declare the {name} capability")
        params = question.get("params")
        if isinstance(params, dict) and params.get("mode") == "url" and "url" not in declared:
            raise ClientRefused("the client did not declare the elicitation.url capability")


class ClientRefused(Exception):
    """The client cannot or will not answer a question."""


class LegacyCall:
    """One call of a legacy session; see `registry.Call`."""

    era: Era = "legacy"

    def __init__(
        self,
        session: LegacySession,
        request_id: RequestId,
        params: JsonObject,
        channel: Channel,
        headers: Mapping[str, str],
    ) -> None:
        self.request_id = request_id
        self.params = params
        self.headers = headers
        self._session = session
        self._channel = channel

    @property
    def capabilities(self) -> JsonObject:
        return self._session.capabilities

    @property
    def client_info(self) -> object:
        return self._session.client_info

    async def log(self, level: str, data: object) -> None:
        if self._session.wants_log(level):
            await self.notify("notifications/message", {"level": level, "logger": "fixture", "data": data})

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        meta = self.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is None:
            return
        params: JsonObject = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self.notify("notifications/progress", params)

    async def notify(self, method: str, params: JsonObject) -> None:
        await self._channel.send(notification(method, params))

    async def ask(self, questions: Questions, *, stateful: bool = False) -> dict[str, JsonObject]:
        del stateful  # the call itself is the state
        answers = await asyncio.gather(
            *(self._session.ask_one(question, self._channel) for question in questions.values())
        )
        return dict(zip(questions, answers, strict=True))

    async def drop_stream(self) -> None:
        await self._channel.drop()
