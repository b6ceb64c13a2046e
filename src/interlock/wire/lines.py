"""stdio framing: one JSON-RPC message a line, bounded, with junk told apart from messages."""

from __future__ import annotations

from interlock.wire import bounds

HEAD_BYTES = 512
"""As much of a line that is too long is kept for diagnosis: enough to see which request it was about."""
_MAX_HEADS = 16


class LineSplitter:
    """Feed bytes, get whole lines. A carriage return before the newline and empty lines are dropped.

    `overflows` counts lines that were longer than `limit` and so were skipped; `heads` are the beginnings of the latest.
    """

    __slots__ = ("_buffer", "_skipping", "heads", "limit", "overflows")

    def __init__(self, limit: int = bounds.MAX_MESSAGE_BYTES) -> None:
        self.limit = limit
        self.overflows = 0
        self.heads: list[bytes] = []
        self._buffer = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """All lines that `data` completes."""
        if b"\n" not in data:
            self._keep(data)
            return []
        pieces = data.split(b"\n")
        tail = pieces.pop()
        if self._skipping or self._buffer:
            self._keep(pieces[0])
            # What was skipped has been counted; it leaves an empty line, which is dropped.
            pieces[0] = bytes(self._buffer)
            self._buffer = bytearray()
            self._skipping = False
        limit = self.limit
        lines: list[bytes] = []
        for piece in pieces:
            if piece.endswith(b"\r"):
                piece = piece[:-1]
            if len(piece) > limit:
                self._overflow(piece)
            elif piece:
                lines.append(piece)
        if tail:
            self._keep(tail)
        return lines

    def _keep(self, data: bytes) -> None:
        """Add to the line that has begun. One byte more than the limit may be its carriage return."""
        if self._skipping:
            return
        self._buffer += data
        if len(self._buffer) > self.limit + 1:
            self._overflow(self._buffer)
            self._buffer = bytearray()
            self._skipping = True

    def _overflow(self, line: bytes | bytearray) -> None:
        self.overflows += 1
        self.heads.append(bytes(line[:HEAD_BYTES]))
        del self.heads[:-_MAX_HEADS]


def looks_like_message(line: bytes) -> bool:
    """False for banner lines and other junk that programs print on stdout: a message starts as an object or array."""
    start = line.lstrip()[:1]
    return start in (b"{", b"[")
