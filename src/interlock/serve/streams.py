"""Event streams of legacy sessions that a client may pick up again after a break (2025-11-25, transports: Resumability)."""

from __future__ import annotations

from collections import OrderedDict

from interlock.serve.http1 import MAX_WRITE_BUFFER, Responder
from interlock.wire.sse import encode_event

RETRY_MS = 500
"""When a client should come back after a break."""
MAX_STREAMS = 64
MAX_STREAM_BYTES = 8 * 1024 * 1024


class Stream:
    """One stream: what was sent on it, kept for a while, and the response that it goes out on now, if any."""

    __slots__ = ("_count", "_events", "_size", "delivered", "ended", "name", "responder")

    def __init__(self, name: str) -> None:
        self.name = name
        self.responder: Responder | None = None
        self.ended = False
        self.delivered = 0
        """Number of the last event that was handed to a response."""
        self._events: list[tuple[int, bytes]] = []
        self._size = 0
        self._count = 0

    def attach(self, responder: Responder, after: int | None) -> None:
        """Send on this response from now on; `after` is the last event that the client has, None for a new stream."""
        old = self.responder
        if old is not None and old is not responder:
            old.end_stream()
        self.responder = responder
        if after is None:
            self._count += 1
            responder.write(encode_event(b"", id=f"{self.name}.{self._count}", retry_ms=RETRY_MS))
            self.delivered = self._count
        else:
            for number, event in self._events:
                if number > after:
                    responder.write(event)
                    self.delivered = number
        if self.ended:
            responder.end_stream()

    def send(self, message: bytes) -> None:
        self._count += 1
        event = encode_event(message, id=f"{self.name}.{self._count}")
        self._events.append((self._count, event))
        self._size += len(event)
        while self._size > MAX_STREAM_BYTES and len(self._events) > 1:
            self._size -= len(self._events.pop(0)[1])
        responder = self.responder
        if responder is not None and not responder.gone and responder.backlog < MAX_WRITE_BUFFER:
            responder.write(event)
            self.delivered = self._count

    def interrupt(self) -> None:
        """End the response but not the stream: the client comes back for the rest."""
        if self.responder is not None:
            self.responder.end_stream()
            self.responder = None

    def end(self) -> None:
        self.ended = True
        if self.responder is not None:
            self.responder.end_stream()
            self.responder = None


class Streams:
    """The streams of one session. Old finished ones are dropped first."""

    def __init__(self) -> None:
        self._streams: OrderedDict[str, Stream] = OrderedDict()
        self._next = 0

    def new(self) -> Stream:
        self._next += 1
        stream = Stream(f"{self._next:x}")
        self._streams[stream.name] = stream
        if len(self._streams) > MAX_STREAMS:
            for name, each in self._streams.items():
                if each.ended:
                    del self._streams[name]
                    break
        return stream

    def find(self, event_id: str) -> tuple[Stream, int] | None:
        """The stream that an event id belongs to, and its number there."""
        name, _, number = event_id.partition(".")
        stream = self._streams.get(name)
        return (stream, int(number)) if stream is not None and number.isdecimal() and len(number) < 12 else None
