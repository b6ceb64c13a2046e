"""Server-Sent Events, both directions, bounded (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from interlock.wire import bounds

_BOM: Final = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Event:
    """One dispatched event. `id` is the last event id that the stream has set, or None."""

    data: bytes
    event: str = "message"
    id: str | None = None


class EventTooLarge(Exception):
    """An event grew past the limit; the stream cannot be trusted any further. `events` came whole before it."""

    def __init__(self, limit: int, events: list[Event]) -> None:
        super().__init__(f"an event is larger than {limit} bytes")
        self.events = events


class SseDecoder:
    """Feed bytes, get events. Handles CR, LF and CRLF, comments, a byte order mark, `retry` and `id`.

    `retry_ms` holds the last reconnection time that the server named; `last_id` the last event id.
    An event with an id and no data (a priming event, MCP 2025-11-25) sets `last_id` and is not returned.
    No line and no event's data may be longer than `limit`.
    """

    __slots__ = (
        "_after_cr",
        "_buffer",
        "_data",
        "_event",
        "_has_data",
        "_id",
        "_started",
        "last_id",
        "limit",
        "retry_ms",
    )

    def __init__(self, limit: int = bounds.MAX_MESSAGE_BYTES) -> None:
        self.limit = limit
        self.last_id: str | None = None
        self.retry_ms: int | None = None
        self._buffer = bytearray()
        self._data = bytearray()
        self._has_data = False
        self._event = ""
        self._id: str | None = None
        self._started = False
        self._after_cr = False
        """True where the last line ended with a CR, so that an LF which follows belongs to that end."""

    def feed(self, chunk: bytes) -> list[Event]:
        """All events that `chunk` completes. Raises EventTooLarge."""
        events: list[Event] = []
        if not self._started:
            chunk = self._first(chunk)
        if not chunk:
            return events
        if self._after_cr and chunk[0] == 0x0A:
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        buffer = self._buffer
        for line in lines:
            if buffer:
                buffer += line
                line = bytes(buffer)
                buffer.clear()
            if len(line) > self.limit or not self._line(line, events):
                raise EventTooLarge(self.limit, events)
        buffer += rest
        if len(buffer) > self.limit:
            raise EventTooLarge(self.limit, events)
        return events

    def _first(self, chunk: bytes) -> bytes:
        """Leave out a byte order mark, which may come in pieces."""
        start = bytes(self._buffer) + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._buffer[:] = start
            return b""
        self._buffer.clear()
        self._started = True
        return start.removeprefix(_BOM)

    def _line(self, line: bytes, events: list[Event]) -> bool:
        """False where the event has become too large."""
        if not line:
            if self._id is not None:
                # Not before: the id of an event that was cut off must not count as received (dispatch the event, step 1).
                self.last_id = self._id or None
                self._id = None
            if self._has_data:
                events.append(Event(bytes(self._data[:-1]), self._event or "message", self.last_id))
                self._data = bytearray()
                self._has_data = False
            self._event = ""
            return True
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            self._data += value
            self._data += b"\n"
            self._has_data = True
            return len(self._data) <= self.limit + 1
        if field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"id":
            # An id that is too long to be sent back is none of which a stream could be picked up again.
            if b"\0" not in value and len(value) <= bounds.MAX_EVENT_ID_BYTES:
                self._id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_ms = int(value)
        return True


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
