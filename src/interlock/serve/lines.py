"""Serving one client that sends a message a line: a host on stdio, or a `connect` process on the local socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from interlock.relay.client import Client
from interlock.serve.channels import LineChannel
from interlock.serve.front import Front
from interlock.serve.http1 import MAX_WRITE_BUFFER
from interlock.wire import bounds, codes, messages
from interlock.wire.lines import LineSplitter

FINISH_SECONDS = 10.0
"""How long requests that are open when the input ends may still take, so that `printf ... | interlock connect` answers.
Longer than a first list waits for servers; a host that wants us gone sooner says so with a signal."""


class LineClient:
    """Feed it what the client sent; `write` takes whole messages without the newline. `over` is done when it has left."""

    def __init__(
        self,
        front: Front,
        client: Client,
        write: Callable[[bytes], None],
        greeted: bytes = b"",
        backlog: Callable[[], int] = lambda: 0,
    ) -> None:
        self._front = front
        self._client = client
        self._splitter = LineSplitter(bounds.MAX_REQUEST_BYTES)
        self._overflows = 0
        self._write = write
        self._backlog = backlog
        self._channel = LineChannel(self._send, self._send_if_read)
        self._gone = False
        client.push = self._send_if_read
        front.pipeline.hub.registry.clients[client.id] = client
        if greeted:
            front.greeted(client, greeted)

    def _send(self, message: bytes) -> None:
        if not self._gone:
            self._write(message + b"\n")

    def _send_if_read(self, message: bytes) -> None:
        """What may be lost: a client that does not read must not fill our memory with notifications."""
        if self._backlog() < MAX_WRITE_BUFFER:
            self._send(message)

    def feed(self, data: bytes) -> None:
        """Bytes from the client. Never raises."""
        for line in self._splitter.feed(data):
            self._front.line(self._client, line, self._channel)
        if self._splitter.overflows != self._overflows:
            self._overflows = self._splitter.overflows
            text = f"the message is longer than {bounds.MAX_REQUEST_BYTES} bytes"
            for head in self._splitter.heads:
                id, response_id = messages.guess_ids(head)
                if response_id is None:
                    self._send(messages.error(id, messages.error_body(codes.INVALID_REQUEST, text)))
                else:
                    error = messages.WireError(codes.INVALID_REQUEST, text, None, response_id)
                    self._front.answered_badly(self._client, error)
            self._splitter.heads.clear()

    async def end(self) -> None:
        """The input is over: let short requests finish, then leave."""
        tasks = [
            exchange.task
            for exchange in self._client.open.values()
            if exchange.task is not None and exchange.method != "subscriptions/listen"
        ]
        if tasks:
            await asyncio.wait(tasks, timeout=FINISH_SECONDS)
        self.leave()

    def leave(self) -> None:
        if not self._gone:
            self._gone = True
            self._front.client_gone(self._client)
