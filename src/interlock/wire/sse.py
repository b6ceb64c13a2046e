"""Server-Sent Events, both directions, bounded (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.wire import bounds


@dataclass(slots=True)
class Event:
    """One dispatched event. `id` is the last event id that the stream has set, or None."""

    data: bytes
    event: str = "message"
    id: str | None = None


class EventTooLarge(Exception):
    """An event grew past the limit; the stream cannot be trusted any further."""


class SseDecoder:
    """Feed bytes, get events. Handles CR, LF and CRLF, comments, a byte order mark, `retry` and `id`.

    `retry_ms` holds the last reconnection time that the server named; `last_id` the last event id.
    An event with an id and no data (a priming event, MCP 2025-11-25) sets `last_id` and is not returned.
    """

    __slots__ = ("_buffer", "_data", "_event", "_size", "_started", "last_id", "limit", "retry_ms")

    def __init__(self, limit: int = bounds.MAX_MESSAGE_BYTES) -> None:
        self.limit = limit
        self.last_id: str | None = None
        self.retry_ms: int | None = None
        self._buffer = bytearray()
        self._data: list[bytes] = []
        self._event = ""
        self._size = 0
        self._started = False

    def feed(self, chunk: bytes) -> list[Event]:
        """All events that `chunk` completes. Raises EventTooLarge."""
        buffer = self._buffer
        start = len(buffer)
        buffer += chunk
        events: list[Event] = []
        if not self._started:
            if len(buffer) < 3 and b"\xef\xbb\xbf".startswith(bytes(buffer)):
                return events
            if buffer.startswith(b"\xef\xbb\xbf"):
                del buffer[:3]
                start = 0
            self._started = True
        position = 0
        # A lone CR at the end of what was fed before may be half of a CRLF: look at it again.
        search = max(0, start - 1)
        size = len(buffer)
        while True:
            lf = buffer.find(b"\n", search)
            cr = buffer.find(b"\r", search, lf if lf != -1 else size)
            if cr != -1:
                if cr + 1 == size:
                    break
                end, search = cr, cr + (2 if buffer[cr + 1] == 0x0A else 1)
            elif lf != -1:
                end, search = lf, lf + 1
            else:
                break
            self._line(bytes(buffer[position:end]), events)
            position = search
        if position:
            del buffer[:position]
        if len(buffer) + self._size > self.limit:
            raise EventTooLarge(f"an event is larger than {self.limit} bytes")
        return events

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            if self._data:
                events.append(Event(b"\n".join(self._data), self._event or "message", self.last_id))
            self._data = []
            self._event = ""
            self._size = 0
            return
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            self._size += len(value) + 1
            if self._size > self.limit:
                raise EventTooLarge(f"an event is larger than {self.limit} bytes")
            self._data.append(value)
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id":
            if b"\0" not in value:
                self.last_id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)


def encode_event(data: bytes, *, id: str | None = None, event: str | None = None, retry_ms: int | None = None) -> bytes:
    """One event. `data` may hold newlines; JSON written by us never does."""
    parts: list[bytes] = []
    if id is not None:
        parts.append(b"id: " + id.encode() + b"\n")
    if event is not None:
        parts.append(b"event: " + event.encode() + b"\n")
    if retry_ms is not None:
        parts.append(b"retry: %d\n" % retry_ms)
    if b"\n" in data or b"\r" in data:
        for line in data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
            parts.append(b"data: " + line + b"\n")
    else:
        parts.append(b"data: " + data + b"\n")
    parts.append(b"\n")
    return b"".join(parts)


KEEP_ALIVE = b": keep-alive\n\n"
"""A comment line: keeps idle streams open through proxies."""
