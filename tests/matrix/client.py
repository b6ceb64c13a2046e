"""A small MCP client: both eras, over HTTP and stdio, without any SDK. It keeps every message that came, in order.

A test speaks to `Client` and does not care about the era: a server's question reaches the same answerer as a request of
its own (legacy) or inside an `input_required` result (modern), and `watch` means a subscription in either.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from .raw_http import Broken, exchange

Era = Literal["legacy", "modern"]
Message = dict[str, Any]
SECONDS = 20.0
"""How long anything may take before the test fails."""
PREFIX = "io.modelcontextprotocol/"
VERSIONS: dict[Era, str] = {"legacy": "2025-11-25", "modern": "2026-07-28"}
CAPABILITIES: Message = {
    "elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}, "xClient": {"z": 1, "a": 2},
}  # fmt: skip
CLIENT_INFO: Message = {"name": "matrix-client", "version": "1.2.3"}
LIST_MEMBERS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answerer's way to say no with a JSON-RPC error (legacy only)."""

    code: int
    message: str


Answerer = Callable[[str, Message], Message | Refusal | None]
"""Method and params of a question to its result; None leaves it unanswered."""


def accept(method: str, params: Message) -> Message:
    """The usual person, model and project: says yes, and answers each form with its own question."""
    if method == "roots/list":
        return {"roots": [{"uri": "file:///project", "name": "project", "xRoot": 1}]}
    if method == "sampling/createMessage":
        asked = params["messages"][0]["content"]["text"]
        content = {"type": "text", "text": f"sampled: {asked}", "xItem": 2}
        return {"role": "assistant", "content": content, "model": "test-model", "stopReason": "endTurn", "xAnswer": 1}
    if params.get("mode") == "url":
        return {"action": "accept"}
    fields = params["requestedSchema"]["properties"]
    content = {name: True if kind["type"] == "boolean" else params["message"] for name, kind in fields.items()}
    return {"action": "accept", "content": content, "xAnswer": {"deep": [1, 2.5]}}


def decline(method: str, params: Message) -> Message:
    """A person who always says no."""
    del method, params
    return {"action": "decline"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. `raw` are its bytes; `status` is the HTTP status, None on stdio."""

    message: Message
    raw: bytes
    status: int | None = None

    @property
    def result(self) -> Message:
        assert "result" in self.message, self.message
        found: Message = self.message["result"]
        return found

    @property
    def error(self) -> Message:
        assert "error" in self.message, str(self.message)[:2000]
        found: Message = self.message["error"]
        return found

    @property
    def text(self) -> str:
        return str(self.result["content"][0]["text"])

    @property
    def structured(self) -> Message:
        found: Message = self.result["structuredContent"]
        return found


class NoAnswer(Exception):
    """The response ended, and no answer to the request was in it."""


@dataclass(slots=True)
class Pending:
    """A request on its way."""

    client: Client
    id: int | str
    method: str
    future: asyncio.Future[Answer]
    task: asyncio.Task[None] | None = None

    async def answer(self, seconds: float = SECONDS) -> Answer:
        """Raises NoAnswer where the response ended without one, TimeoutError where nothing comes."""
        async with asyncio.timeout(seconds):
            return await asyncio.shield(self.future)

    async def cancel(self) -> None:
        """Give the request up, as the era and the transport do it."""
        await self.client._cancel(self)


@dataclass(slots=True)
class Watch:
    """An open interest in list changes and resources."""

    client: Client
    listen: Pending | None
    uris: Sequence[str]

    async def close(self) -> None:
        if self.listen is not None:
            await self.listen.cancel()
        for uri in self.uris if self.listen is None else ():
            await self.client.request("resources/unsubscribe", {"uri": uri})


@dataclass(slots=True)
class Client:
    """Use `http_client` or `stdio_client`. `hello` is the result of `initialize` or `server/discover`."""

    era: Era
    capabilities: Message = field(default_factory=lambda: dict(CAPABILITIES))
    version: str = ""
    hello: Message = field(default_factory=dict)
    answerer: Answerer = accept
    inbox: list[Message] = field(default_factory=list)
    """All messages, in the order in which they came; of answers only the ids."""
    asked: list[tuple[str, Message]] = field(default_factory=list)
    """All questions, method and params."""
    _pending: dict[int | str, Pending] = field(default_factory=dict)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def open(self) -> None:
        """The handshake of a legacy client, the look-up of a modern one."""
        self.version = self.version or VERSIONS[self.era]
        if self.era == "modern":
            self.hello = (await self.request("server/discover")).result
            return
        params = {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": CLIENT_INFO}
        self.hello = (await self.request("initialize", params)).result
        await self.notify("notifications/initialized")

    # -- requests ------------------------------------------------------------------------------------------------------

    def start(
        self, method: str, params: Message | None = None, *, meta: Message | None = None, id: int | str | None = None
    ) -> Pending:
        """Send a request without waiting for its answer."""
        request_id = next(self._ids) if id is None else id
        meta = {**(self.modern_meta() if self.era == "modern" else {}), **(meta or {})}
        params = {**(params or {}), **({"_meta": meta} if meta else {})}
        message: Message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if params or self.era == "modern":
            message["params"] = params
        pending = Pending(self, request_id, method, asyncio.get_running_loop().create_future())
        self._pending[request_id] = pending
        self._send_request(pending, message)
        return pending

    async def request(self, method: str, params: Message | None = None, **options: Any) -> Answer:
        """One request, one answer; a modern `input_required` is an answer."""
        return await self.start(method, params, **options).answer()

    async def ask(self, method: str, params: Message, **options: Any) -> Answer:
        """A request whose questions, if any, are answered until the server is satisfied."""
        given = params
        while True:
            answer = await self.request(method, given, **options)
            if answer.message.get("result", {}).get("resultType", "complete") != "input_required":
                return answer
            given = self.answered(params, answer.result)

    def answered(self, params: Message, required: Message) -> Message:
        """The params of the retry that answers an `input_required` result."""
        given = dict(params)
        if "inputRequests" in required:
            given["inputResponses"] = {}
        for key, question in required.get("inputRequests", {}).items():
            asked = question.get("params", {})
            self.asked.append((question["method"], asked))
            given["inputResponses"][key] = self.answerer(question["method"], asked)
        if "requestState" in required:
            given["requestState"] = required["requestState"]
        return given

    async def list_all(self, method: str) -> list[Message]:
        """Every entry of every page."""
        entries: list[Message] = []
        params: Message = {}
        while True:
            result = (await self.request(method, params)).result
            entries += result[LIST_MEMBERS[method]]
            if "nextCursor" not in result:
                return entries
            params = {"cursor": result["nextCursor"]}

    @asynccontextmanager
    async def watch(self, kinds: Sequence[str] = (), uris: Sequence[str] = ()) -> AsyncIterator[Watch]:
        """Hear of changes of the lists `kinds` and of the resources `uris` until the block ends."""
        listen = None
        if self.era == "modern":
            wanted: Message = {f"{kind}ListChanged": True for kind in kinds}
            if uris:
                wanted["resourceSubscriptions"] = list(uris)
            mark = self.mark()
            listen = self.start("subscriptions/listen", {"notifications": wanted})
            agreed = await self.until("notifications/subscriptions/acknowledged", since=mark)
            assert agreed["notifications"] == wanted
        else:
            for uri in uris:
                assert (await self.request("resources/subscribe", {"uri": uri})).result == {}
        watch = Watch(self, listen, uris)
        try:
            yield watch
        finally:
            await watch.close()

    def modern_meta(self) -> Message:
        return {
            f"{PREFIX}protocolVersion": self.version,
            f"{PREFIX}clientInfo": CLIENT_INFO,
            f"{PREFIX}clientCapabilities": self.capabilities,
        }

    # -- what came -----------------------------------------------------------------------------------------------------

    def mark(self) -> int:
        """A place in `inbox`: nothing before it counts for a test that begins now."""
        return len(self.inbox)

    def since(self, mark: int, method: str) -> list[Message]:
        """The params of all notifications `method` after a mark."""
        return [each.get("params", {}) for each in self.inbox[mark:] if each.get("method") == method]

    async def until(self, method: str, where: Callable[[Message], bool] = lambda _: True, *, since: int) -> Message:
        """The params of the first notification `method` after a mark for which `where` holds."""
        found = await self.until_message(lambda m: m.get("method") == method and where(m.get("params", {})), since)
        params: Message = found.get("params", {})
        return params

    async def until_message(self, where: Callable[[Message], bool], since: int) -> Message:
        """The first message after a mark for which `where` holds. Raises TimeoutError."""
        async with asyncio.timeout(SECONDS):
            while True:
                self._news.clear()
                for message in self.inbox[since:]:
                    if where(message):
                        return message
                await self._news.wait()

    def _received(self, raw: bytes, status: int | None = None) -> None:
        message: Message = json.loads(raw)
        # Of an answer only its place: a client that lives through hundreds of tests must not keep what it was told.
        self.inbox.append(message if "method" in message else {"id": message.get("id")})
        self._news.set()
        if "method" not in message:
            pending = self._pending.pop(message.get("id", 0), None)
            if pending is not None and not pending.future.done():
                pending.future.set_result(Answer(message, raw, status))
        elif "id" in message:
            self._spawn(self._answer_question(message))

    async def _answer_question(self, message: Message) -> None:
        method, params = message["method"], message.get("params", {})
        self.asked.append((method, params))
        given = self.answerer(method, params)
        if given is None:
            return
        if isinstance(given, Refusal):
            body: Message = {"error": {"code": given.code, "message": given.message}}
        else:
            body = {"result": given}
        await self._send({"jsonrpc": "2.0", "id": message["id"], **body})

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def notify(self, method: str, params: Message | None = None) -> None:
        await self._send({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})})

    async def _cancel(self, pending: Pending) -> None:
        await self.notify("notifications/cancelled", {"requestId": pending.id, "reason": "test"})

    # -- what the transports do ----------------------------------------------------------------------------------------

    def _send_request(self, pending: Pending, message: Message) -> None:
        raise NotImplementedError

    async def _send(self, message: Message) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


@dataclass(slots=True)
class HttpClient(Client):
    """Streamable HTTP; each message has a connection of its own. A legacy one also holds the GET stream."""

    port: int = 0
    token: str | None = None
    session_id: str | None = None

    async def open(self) -> None:
        await Client.open(self)
        if self.era == "legacy":
            reply = await exchange(self.port, "GET", "/mcp", {**self._headers(), "accept": "text/event-stream"})
            assert reply.status == 200, reply.status
            self._spawn(self._hear(reply))

    async def _hear(self, reply: Any) -> None:
        with contextlib.suppress(Broken):
            async for event in reply.events():
                self._received(event)

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        if self.era == "modern" or self.session_id is not None:
            headers["mcp-protocol-version"] = self.version
        if self.session_id is not None:
            headers["mcp-session-id"] = self.session_id
        return headers

    def _send_request(self, pending: Pending, message: Message) -> None:
        headers = self._headers()
        if self.era == "modern":
            headers["mcp-method"] = message["method"]
            params = message["params"]
            name = params.get("uri") if message["method"] == "resources/read" else params.get("name")
            if name is not None and message["method"] in ("tools/call", "prompts/get", "resources/read"):
                headers["mcp-name"] = name
        pending.task = self._spawn(self._fly(pending, headers, json.dumps(message).encode()))

    async def _fly(self, pending: Pending, headers: dict[str, str], body: bytes) -> None:
        reply = None
        try:
            reply = await exchange(self.port, "POST", "/mcp", headers, body)
            if pending.method == "initialize":
                self.session_id = reply.headers.get("mcp-session-id")
            if reply.is_stream:
                async for event in reply.events():
                    self._received(event, reply.status)
            else:
                whole = await reply.whole()
                if whole:
                    self._received(whole, reply.status)
            self._pending.pop(pending.id, None)
            if not pending.future.done():
                pending.future.set_exception(NoAnswer(f"HTTP {reply.status} without an answer"))
        except (Broken, ConnectionError) as error:
            if not pending.future.done():
                pending.future.set_exception(NoAnswer(str(error)))
        finally:
            if pending.future.done() and not pending.future.cancelled():
                pending.future.exception()
            if reply is not None:
                reply.close()

    async def _send(self, message: Message) -> None:
        reply = await exchange(self.port, "POST", "/mcp", self._headers(), json.dumps(message).encode())
        reply.close()
        assert reply.status == 202, reply.status

    async def _cancel(self, pending: Pending) -> None:
        if self.era == "legacy":
            await Client._cancel(self, pending)
        elif pending.task is not None:
            pending.task.cancel()  # closing the stream is how this era cancels over HTTP

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self.session_id is not None:
            with contextlib.suppress(Broken, ConnectionError):
                (await exchange(self.port, "DELETE", "/mcp", self._headers())).close()


@dataclass(slots=True)
class StdioClient(Client):
    """The standard input and output of a running `interlock connect`."""

    process: asyncio.subprocess.Process | None = None

    async def open(self) -> None:
        self._spawn(self._read())
        await Client.open(self)

    async def _read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self._received(line)
        for pending in self._pending.values():
            if not pending.future.done():
                pending.future.set_exception(NoAnswer("the gateway closed its output"))
                pending.future.exception()

    def _send_request(self, pending: Pending, message: Message) -> None:
        self._write(message)

    def _write(self, message: Message) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def _send(self, message: Message) -> None:
        self._write(message)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
