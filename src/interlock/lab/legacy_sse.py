"""The HTTP+SSE transport of 2024-11-05: a GET that stays open carries everything to the client, POSTs the other way."""

from __future__ import annotations

import asyncio
import secrets

from interlock.lab.http_server import Reply, Request
from interlock.lab.jsonrpc import JsonObject, RpcError, as_object, decode, encode, error_message
from interlock.lab.legacy_engine import LegacySession
from interlock.lab.registry import Content

EVENTS_PATH = "/sse"
MESSAGES_PATH = "/messages"


class SseChannel:
    """The open GET of one client, for replies and everything else."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._outgoing: asyncio.Queue[JsonObject] = asyncio.Queue()

    async def send(self, message: JsonObject) -> None:
        self.push(message)

    async def drop(self) -> None:
        return  # 2024-11-05 cannot resume a stream

    def push(self, message: JsonObject) -> None:
        self._outgoing.put_nowait(message)

    async def pump(self) -> None:
        """Write queued messages for ever."""
        while True:
            message = await self._outgoing.get()
            await self._reply.write(b"event: message\ndata: %s\n\n" % encode(message))


class LegacySse:
    """Both endpoints of the transport; a session lives as long as its GET."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._clients: dict[str, tuple[LegacySession, SseChannel]] = {}

    async def handle(self, request: Request, reply: Reply) -> None:
        if request.path == EVENTS_PATH and request.method == "GET":
            await self._serve_events(reply)
        elif request.path == MESSAGES_PATH and request.method == "POST":
            await self._take_message(request, reply)
        else:
            await reply.send(405 if request.path in (EVENTS_PATH, MESSAGES_PATH) else 404)

    async def _serve_events(self, reply: Reply) -> None:
        client = secrets.token_urlsafe(16)
        channel = SseChannel(reply)
        session = LegacySession(self._content, channel)
        self._clients[client] = (session, channel)
        await reply.start_events()
        await reply.write(f"event: endpoint\ndata: {MESSAGES_PATH}?session_id={client}\n\n".encode())
        pump = asyncio.ensure_future(channel.pump())
        try:
            await reply.closed.wait()
        finally:
            pump.cancel()
            session.close()
            del self._clients[client]

    async def _take_message(self, request: Request, reply: Reply) -> None:
        client = self._clients.get((request.query.get("session_id") or [""])[0])
        if client is None:
            await reply.send(404)
            return
        session, channel = client
        try:
            message = as_object(decode(request.body), "message")
        except RpcError as error:
            await reply.send_json(400, error_message(None, error))
            return
        await reply.send(202, b"Accepted", "text/plain")
        if "method" in message and "id" in message:
            session.start(message, channel, request.headers)
        else:
            session.accept(message)
