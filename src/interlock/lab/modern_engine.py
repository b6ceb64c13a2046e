"""The modern era (2026-07-28): every request is judged by itself, from its `_meta` alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from interlock.lab.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
    JsonObject,
    RequestId,
    RpcError,
    as_object,
    as_text,
    notification,
)
from interlock.lab.levels import LOG_LEVELS, at_least
from interlock.lab.listing import CALL_METHODS, LIST_METHODS, completion, handler_of, list_page, server_capabilities
from interlock.lab.registry import Content, Era, Questions, text_result
from interlock.lab.seal import seal, unseal

MODERN_VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
NEEDED_CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
CACHEABLE = {*LIST_METHODS, "server/discover", "resources/read"}
LISTEN = "subscriptions/listen"
METHODS = {*LIST_METHODS, *CALL_METHODS, "server/discover", "completion/complete", LISTEN}

Emit = Callable[[JsonObject], Awaitable[None]]
"""Sends a notification on the stream of the request in hand."""


@dataclass(frozen=True, slots=True)
class Meta:
    """The protocol's own part of a request's `_meta`."""

    capabilities: JsonObject
    client_info: object
    log_level: str | None
    progress_token: object


class InputRequired(Exception):
    """Raised by `ask` to end this round: the client must come back with answers."""

    def __init__(self, questions: Questions, state: JsonObject | None) -> None:
        super().__init__("input required")
        self.questions = questions
        self.state = state


def unsupported_version(requested: object) -> RpcError:
    """The error that names what we do speak."""
    data: JsonObject = {"supported": [MODERN_VERSION], "requested": requested if isinstance(requested, str) else ""}
    return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data, status=400)


def read_meta(message: JsonObject) -> Meta:
    """Check the required `_meta` of a request; RpcError -32602 or -32022 (both HTTP 400)."""
    params = message.get("params", {})
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    version = meta.get(f"{PREFIX}protocolVersion") if isinstance(meta, dict) else None
    if version is None and message["method"] == "initialize":
        # A legacy client has no other way to learn what this server speaks than this error.
        raise unsupported_version(params.get("protocolVersion"))
    if not isinstance(meta, dict) or not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"_meta must carry {PREFIX}protocolVersion", status=400)
    if version != MODERN_VERSION:
        raise unsupported_version(version)
    capabilities = meta.get(f"{PREFIX}clientCapabilities")
    if not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"_meta must carry {PREFIX}clientCapabilities", status=400)
    level = meta.get(f"{PREFIX}logLevel")
    if level is not None and level not in LOG_LEVELS:
        raise RpcError(INVALID_PARAMS, f"Unknown log level: {level}", status=400)
    level = level if isinstance(level, str) else None
    return Meta(capabilities, meta.get(f"{PREFIX}clientInfo"), level, meta.get("progressToken"))


class ModernServer:
    """Answers requests; holds nothing between them but the content."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.stopping = asyncio.Event()

    async def answer(
        self, request_id: RequestId, message: JsonObject, emit: Emit, headers: Mapping[str, str]
    ) -> JsonObject:
        """The result of one request, complete with the members that this era adds; RpcError otherwise."""
        method = message["method"]
        meta = read_meta(message)
        if not isinstance(method, str) or method not in METHODS | self.content.methods.keys():
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}", status=404)
        params = as_object(message.get("params", {}), "params")
        try:
            result = {"resultType": "complete", **await self._result(request_id, method, params, meta, emit, headers)}
        except InputRequired as required:
            result = {"resultType": "input_required", "inputRequests": dict(required.questions)}
            if required.state is not None:
                result["requestState"] = seal(required.state, _binding(method, params))
        if method in CACHEABLE and result["resultType"] == "complete":
            result.setdefault("ttlMs", self.content.ttl_ms)
            result.setdefault("cacheScope", self.content.cache_scope)
        own_meta: JsonObject = {f"{PREFIX}serverInfo": self.content.implementation()}
        given = result.get("_meta")
        result["_meta"] = (given if isinstance(given, dict) else {}) | own_meta
        return result

    async def _result(
        self,
        request_id: RequestId,
        method: str,
        params: JsonObject,
        meta: Meta,
        emit: Emit,
        headers: Mapping[str, str],
    ) -> JsonObject:
        if method == "server/discover":
            return self._discover()
        if method in LIST_METHODS:
            return list_page(self.content, method, params)
        if method == "completion/complete":
            return completion(self.content, params)
        if method in self.content.methods:
            return self.content.methods[method](params)
        if method == LISTEN:
            return await self._listen(request_id, params, emit)
        handler = handler_of(self.content, method, params, not_found=INVALID_PARAMS)
        call = ModernCall(request_id, params, meta, emit, headers, _answers_so_far(method, params))
        try:
            return await handler(call)
        except (RpcError, InputRequired):
            raise
        except Exception as error:
            if method == "tools/call":
                return text_result(f"{type(error).__name__}: {error}", is_error=True)
            raise RpcError(INTERNAL_ERROR, str(error)) from error

    def _discover(self) -> JsonObject:
        result: JsonObject = {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": server_capabilities(self.content),
        }
        if self.content.instructions is not None:
            result["instructions"] = self.content.instructions
        return result

    async def _listen(self, request_id: RequestId, params: JsonObject, emit: Emit) -> JsonObject:
        """Acknowledge what we can honour, then forward it until the client leaves or we stop."""
        agreed = self._agreed(as_object(params.get("notifications"), "notifications"))
        wanted = {
            f"notifications/{kind}/list_changed"
            for kind in ("tools", "prompts", "resources")
            if f"{kind}ListChanged" in agreed
        }
        uris = agreed.get("resourceSubscriptions")
        subscription: JsonObject = {f"{PREFIX}subscriptionId": request_id}
        await emit(
            notification("notifications/subscriptions/acknowledged", {"_meta": subscription, "notifications": agreed})
        )
        queue: asyncio.Queue[JsonObject] = asyncio.Queue()

        def on_change(method: str, change: JsonObject) -> None:
            updated = method == "notifications/resources/updated"
            if method in wanted or (updated and isinstance(uris, list) and change.get("uri") in uris):
                queue.put_nowait(notification(method, {"_meta": subscription, **change}))

        self.content.listeners.append(on_change)
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            while not stopping.done():
                change = asyncio.ensure_future(queue.get())
                await asyncio.wait({change, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if change.done():
                    await emit(change.result())
                else:
                    change.cancel()
        finally:
            stopping.cancel()
            self.content.listeners.remove(on_change)
        return {"_meta": subscription}

    def _agreed(self, wanted: JsonObject) -> JsonObject:
        agreed: JsonObject = {}
        offered = {"tools": True, "prompts": bool(self.content.prompts)}
        offered["resources"] = bool(self.content.resources or self.content.templates)
        for kind, has_any in offered.items():
            if has_any and wanted.get(f"{kind}ListChanged") is True:
                agreed[f"{kind}ListChanged"] = True
        uris = wanted.get("resourceSubscriptions")
        if offered["resources"] and isinstance(uris, list) and uris:
            agreed["resourceSubscriptions"] = [as_text(uri, "resource subscription") for uri in uris]
        return agreed


class ModernCall:
    """One round of a call; see `registry.Call`."""

    era: Era = "modern"

    def __init__(
        self,
        request_id: RequestId,
        params: JsonObject,
        meta: Meta,
        emit: Emit,
        headers: Mapping[str, str],
        answers: dict[str, JsonObject],
    ) -> None:
        self.request_id = request_id
        self.params = params
        self.headers = headers
        self._meta = meta
        self._emit = emit
        self._answers = answers
        self._used: dict[str, JsonObject] = {}

    @property
    def capabilities(self) -> JsonObject:
        return self._meta.capabilities

    @property
    def client_info(self) -> object:
        return self._meta.client_info

    async def log(self, level: str, data: object) -> None:
        if self._meta.log_level is not None and at_least(level, self._meta.log_level):
            await self.notify("notifications/message", {"level": level, "logger": "fixture", "data": data})

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._meta.progress_token is None:
            return
        params: JsonObject = {"progressToken": self._meta.progress_token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self.notify("notifications/progress", params)

    async def notify(self, method: str, params: JsonObject) -> None:
        await self._emit(notification(method, params))

    async def ask(self, questions: Questions, *, stateful: bool = False) -> dict[str, JsonObject]:
        if all(key in self._answers for key in questions):
            given = {key: self._answers[key] for key in questions}
            self._used |= given
            return given
        missing = _missing_capabilities(questions, self.capabilities)
        if missing:
            data: JsonObject = {"requiredCapabilities": missing}
            raise RpcError(MISSING_CAPABILITY, "The client lacks a capability that this needs", data, status=400)
        # Answers of earlier rounds travel in the state: the server keeps nothing.
        state: JsonObject | None = {"answers": self._used} if stateful or self._used else None
        raise InputRequired(questions, state)

    async def drop_stream(self) -> None:
        return  # streams of this era cannot be resumed


def _binding(method: str, params: JsonObject) -> str:
    return f"{method} {params.get(CALL_METHODS[method])}"


def _answers_so_far(method: str, params: JsonObject) -> dict[str, JsonObject]:
    """Answers sealed in earlier rounds and those of this one, whose shape is checked."""
    answers: dict[str, JsonObject] = {}
    if "requestState" in params:
        state = unseal(as_text(params["requestState"], "requestState"), _binding(method, params))
        sealed = as_object(state.get("answers"), "answers")
        answers.update((key, as_object(value, key)) for key, value in sealed.items())
    if "inputResponses" in params:
        given = as_object(params["inputResponses"], "inputResponses")
        answers.update((key, as_object(value, f"inputResponses.{key}")) for key, value in given.items())
    return answers


def _missing_capabilities(questions: Questions, declared: JsonObject) -> JsonObject:
    """`data.requiredCapabilities` for what `questions` need and the client did not declare."""
    missing: JsonObject = {}
    for question in questions.values():
        name = NEEDED_CAPABILITY[str(question["method"])]
        capability = declared.get(name)
        params = question.get("params")
        mode = params.get("mode") if isinstance(params, dict) else None
        if not isinstance(capability, dict):
            missing[name] = {"url": {}} if mode == "url" else {}
        elif mode == "url" and "url" not in capability:
            missing[name] = {"url": {}}
    return missing
