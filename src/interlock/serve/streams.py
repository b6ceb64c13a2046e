"""Event streams of legacy sessions that a client may pick up again after a break (2025-11-25, transports: Resumability)."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from interlock.serve.http1 import MAX_WRITE_BUFFER, Responder
from interlock.wire.sse import encode_event

RETRY_MS: Final = 500
"""When a client should come back after a break."""
MAX_STREAMS: Final = 64
MAX_STREAM_BYTES: Final = 8 * 1024 * 1024
"""What one stream keeps for a client that comes back; the newest event is always kept, however large."""
MAX_SESSION_BYTES: Final = 16 * 1024 * 1024
"""What all streams of a session keep together; those that have ended are forgotten first."""


class Stream:
    """One stream: what was sent on it, kept for a while, and the response that it goes out on now, if any."""

    __slots__ = ("_count", "_events", "_streams", "delivered", "ended", "name", "responder", "size")

    def __init__(self, name: str, streams: Streams) -> None:
        self.name = name
        self.responder: Responder | None = None
        self.ended = False
        self.delivered = 0
        """Number of the last event that was handed to a response."""
        self.size = 0
        self._streams = streams
        self._events: deque[tuple[int, bytes]] = deque()
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
        self.size += len(event)
        self._streams.grew(len(event))
        while self.size > MAX_STREAM_BYTES and len(self._events) > 1:
            self._drop_oldest()
        responder = self.responder
        if responder is None or responder.gone:
            return
        if responder.backlog >= MAX_WRITE_BUFFER:
            # It reads too slowly. Leaving one event out would hide it for good behind the ids of later ones; after a
            # break the client asks for everything that it has not got.
            self.interrupt()
            return
        responder.write(event)
        self.delivered = self._count

    def _drop_oldest(self) -> None:
        size = len(self._events.popleft()[1])
        self.size -= size
        self._streams.grew(-size)

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
        self._size = 0

    def new(self) -> Stream:
        self._next += 1
        stream = Stream(f"{self._next:x}", self)
        self._streams[stream.name] = stream
        if len(self._streams) > MAX_STREAMS:
            self._forget_one()
        return stream

    def grew(self, by: int) -> None:
        """A stream keeps so many bytes more."""
        self._size += by
        while self._size > MAX_SESSION_BYTES and self._forget_one():
            pass

    def _forget_one(self) -> bool:
        """Forget the oldest stream that has ended. False where none has."""
        for name, each in self._streams.items():
            if each.ended:
                del self._streams[name]
                self._size -= each.size
                return True
        return False

    def find(self, event_id: str) -> tuple[Stream, int] | None:
        """The stream that an event id belongs to, and its number there."""
        name, _, number = event_id.partition(".")
        stream = self._streams.get(name)
        if stream is None or not (number.isascii() and number.isdecimal() and len(number) < 12):
            return None
        return stream, int(number)
