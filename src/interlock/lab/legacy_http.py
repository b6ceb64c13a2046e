"""Streamable HTTP of the legacy era (2025-03-26 to 2025-11-25): sessions, resumable streams, GET and DELETE."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from interlock.lab.http_server import Reply, Request
from interlock.lab.jsonrpc import (
    INVALID_REQUEST,
    JsonObject,
    RpcError,
    as_object,
    decode,
    encode,
    error_message,
    request_id_of,
)
from interlock.lab.legacy_engine import LEGACY_VERSIONS, LegacySession
from interlock.lab.registry import Content

RETRY_MS = 100
KEPT_EVENTS = 1000
KEPT_STREAMS = 64
SERVER_ERROR = -32000


class EventStream:
    """The events of one SSE stream, numbered and kept, whether or not a client is attached just now."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.finished = asyncio.Event()
        self._frames: dict[int, bytes] = {}
        self._next = 0
        self._delivered = -1
        self._reply: Reply | None = None
        self._detached = asyncio.Event()
        self._lock = asyncio.Lock()

    async def prime(self) -> None:
        """The first event: an id to resume from, an empty body and the time to wait before a reconnection."""
        await self._append(f"id: {self.name}.{self._next}\nretry: {RETRY_MS}\ndata: \n\n".encode())

    async def send(self, message: JsonObject) -> None:
        await self._append(
            b"id: %s.%d\nevent: message\ndata: %s\n\n" % (self.name.encode(), self._next, encode(message))
        )

    async def finish(self) -> None:
        async with self._lock:
            self.finished.set()

    async def drop(self) -> None:
        """Close the attached response in order; events from now on wait for a client that resumes."""
        async with self._lock:
            reply, self._reply = self._reply, None
            self._detached.set()
            if reply is not None:
                await reply.end()

    async def follow(self, reply: Reply, after: int | None = None) -> None:
        """Attach a client, send what came after event `after` (None: what nobody got), and stay until the end."""
        detached = asyncio.Event()
        async with self._lock:
            self._detached.set()  # one client at a time: the newest
            self._reply, self._detached = reply, detached
            first = self._delivered if after is None else after
            for number in [number for number in self._frames if number > first]:
                await reply.write(self._frames[number])
                self._delivered = max(self._delivered, number)
        ends = [asyncio.ensure_future(event.wait()) for event in (self.finished, detached, reply.closed)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            if self._reply is reply:
                self._reply = None
        await reply.end()

    async def _append(self, frame: bytes) -> None:
        async with self._lock:
            number = self._next
            self._next += 1
            self._frames[number] = frame
            if len(self._frames) > KEPT_EVENTS:
                del self._frames[next(iter(self._frames))]
            if self._reply is not None and not self._reply.closed.is_set():
                await self._reply.write(frame)
                self._delivered = number


@dataclass(slots=True)
class HttpSession:
    """A session and its streams, the standalone one first."""

    session_id: str
    streams: dict[str, EventStream] = field(default_factory=dict)
    session: LegacySession = field(init=False)

    def open_stream(self) -> EventStream:
        stream = EventStream(secrets.token_hex(4))
        self.streams[stream.name] = stream
        while len(self.streams) > KEPT_STREAMS:
            oldest = next((name for name, kept in self.streams.items() if kept.finished.is_set()), None)
            if oldest is None:
                break
            del self.streams[oldest]
        return stream

    @property
    def standalone(self) -> EventStream:
        return next(iter(self.streams.values()))

    def push(self, message: JsonObject) -> None:
        task = asyncio.ensure_future(self.standalone.send(message))
        _keep(task)


_background: set[asyncio.Task[None]] = set()


def _keep(task: asyncio.Task[None]) -> None:
    """Hold a task that nobody awaits, so that it is not collected in the middle."""
    _background.add(task)
    task.add_done_callback(_background.discard)


class JsonChannel:
    """Answers a POST with one JSON body; everything before the response goes to the standalone stream."""

    def __init__(self, http: HttpSession) -> None:
        self.response: JsonObject | None = None
        self._http = http

    async def send(self, message: JsonObject) -> None:
        if "method" in message:
            await self._http.standalone.send(message)
        else:
            self.response = message

    async def drop(self) -> None:
        return


class LegacyHttp:
    """The MCP endpoint. `sessions=False` never issues a session id; `json_only` answers POSTs without SSE."""

    def __init__(self, content: Content, *, sessions: bool = True, json_only: bool = False) -> None:
        self._content = content
        self._sessions: dict[str, HttpSession] = {}
        self._issue_ids = sessions
        self._json_only = json_only

    async def handle(self, request: Request, reply: Reply) -> None:
        try:
            if request.method == "POST":
                await self._post(request, reply)
            elif request.method == "GET":
                await self._get(request, reply)
            elif request.method == "DELETE":
                await self._delete(request, reply)
            else:
                await reply.send(405, headers={"allow": "GET, POST, DELETE"})
        except RpcError as error:
            await reply.send_json(error.status, error_message(None, error))

    def forget_sessions(self) -> None:
        """Lose every session, as a restart would; clients then get 404."""
        for http in self._sessions.values():
            http.session.close()
        self._sessions.clear()

    async def _post(self, request: Request, reply: Reply) -> None:
        accept = request.headers.get("accept", "")
        if not ("application/json" in accept and "text/event-stream" in accept) and "*/*" not in accept:
            raise RpcError(SERVER_ERROR, "Not Acceptable: JSON and SSE must both be accepted", status=406)
        if not request.headers.get("content-type", "").startswith("application/json"):
            raise RpcError(SERVER_ERROR, "Unsupported Media Type", status=415)
        body = decode(request.body)
        messages = (
            [as_object(item, "message") for item in body] if isinstance(body, list) else [as_object(body, "message")]
        )
        if not messages:
            raise RpcError(INVALID_REQUEST, "Empty batch", status=400)
        for message in messages:
            _check_message(message)
        initializing = any(message.get("method") == "initialize" for message in messages)
        http = self._open_session() if initializing else self._session_of(request.headers)
        if isinstance(body, list) and http.session.version != "2025-03-26":
            raise RpcError(INVALID_REQUEST, "Batches exist in 2025-03-26 only", status=400)
        requests = [message for message in messages if "method" in message and "id" in message]
        for message in messages:
            if message not in requests:
                http.session.accept(message)
        headers = {"mcp-session-id": http.session_id} if initializing and self._issue_ids else {}
        if not requests:
            await reply.send(202)
        elif self._json_only:
            await self._answer_json(http, requests, request, reply, headers, batch=isinstance(body, list))
        else:
            await self._answer_events(http, requests, request, reply, headers)

    async def _answer_events(
        self,
        http: HttpSession,
        requests: list[JsonObject],
        request: Request,
        reply: Reply,
        headers: Mapping[str, str],
    ) -> None:
        stream = http.open_stream()
        await reply.start_events(headers)
        if http.session.version >= "2025-11-25" and requests[0]["method"] != "initialize":
            await stream.prime()
        tasks = [http.session.start(message, stream, request.headers) for message in requests]

        async def finish() -> None:
            await asyncio.wait(tasks)
            await stream.finish()

        _keep(asyncio.ensure_future(finish()))
        await stream.follow(reply)

    async def _answer_json(
        self,
        http: HttpSession,
        requests: list[JsonObject],
        request: Request,
        reply: Reply,
        headers: Mapping[str, str],
        *,
        batch: bool,
    ) -> None:
        channels = [JsonChannel(http) for _ in requests]
        await asyncio.wait(
            [
                http.session.start(message, channel, request.headers)
                for message, channel in zip(requests, channels, strict=True)
            ]
        )
        responses = [channel.response for channel in channels if channel.response is not None]
        if not responses:
            await reply.send(202)
        else:
            await reply.send_json(200, responses if batch else responses[0], headers)

    async def _get(self, request: Request, reply: Reply) -> None:
        if "text/event-stream" not in request.headers.get("accept", ""):
            raise RpcError(SERVER_ERROR, "Not Acceptable: text/event-stream must be accepted", status=406)
        http = self._session_of(request.headers)
        last = request.headers.get("last-event-id")
        stream, after = http.standalone, None
        if last is not None:
            name, _, number = last.rpartition(".")
            if name not in http.streams or not number.isdigit():
                raise RpcError(SERVER_ERROR, "Unknown event id", status=400)
            stream, after = http.streams[name], int(number)
        await reply.start_events()
        await stream.follow(reply, after)

    async def _delete(self, request: Request, reply: Reply) -> None:
        http = self._session_of(request.headers)
        if not self._issue_ids:
            await reply.send(405)
            return
        del self._sessions[http.session_id]
        http.session.close()
        for stream in http.streams.values():
            await stream.finish()
        await reply.send(200)

    def _open_session(self) -> HttpSession:
        http = HttpSession(secrets.token_urlsafe(24) if self._issue_ids else "")
        if http.session_id in self._sessions:
            self._sessions[http.session_id].session.close()
        http.open_stream()
        http.session = LegacySession(self._content, http)
        self._sessions[http.session_id] = http
        return http

    def _session_of(self, headers: Mapping[str, str]) -> HttpSession:
        session_id = headers.get("mcp-session-id", "") if self._issue_ids else ""
        if self._issue_ids and not session_id:
            raise RpcError(SERVER_ERROR, "Bad Request: Missing session ID", status=400)
        http = self._sessions.get(session_id)
        if http is None:
            if self._issue_ids:
                raise RpcError(SERVER_ERROR, "Session not found", status=404)
            return self._open_session()
        version = headers.get("mcp-protocol-version")
        if version is not None and version not in LEGACY_VERSIONS:
            raise RpcError(SERVER_ERROR, f"Bad Request: Unsupported protocol version {version}", status=400)
        return http


def _check_message(message: JsonObject) -> None:
    if message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "jsonrpc must be 2.0", status=400)
    if "method" in message and not isinstance(message["method"], str):
        raise RpcError(INVALID_REQUEST, "method must be a string", status=400)
    if "id" in message and request_id_of(message) is None:
        raise RpcError(INVALID_REQUEST, "id must be a string or an integer", status=400)
    if "method" not in message and not {"result", "error"} & message.keys():
        raise RpcError(INVALID_REQUEST, "neither a request nor a response", status=400)
