"""stdio framing: one JSON-RPC message a line, bounded, with junk told apart from messages."""

from __future__ import annotations

from interlock.wire import bounds


class LineSplitter:
    """Feed bytes, get whole lines. Carriage returns before the newline and empty lines are dropped.

    `overflows` counts lines that were longer than `limit` and so were skipped.
    """

    __slots__ = ("_parts", "_size", "_skipping", "limit", "overflows")

    def __init__(self, limit: int = bounds.MAX_MESSAGE_BYTES) -> None:
        self.limit = limit
        self.overflows = 0
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """All lines that `data` completes."""
        if b"\n" not in data:
            self._keep(data)
            return []
        pieces = data.split(b"\n")
        first = pieces[0]
        if self._skipping:
            self._skipping = False
            pieces[0] = b""
        elif self._parts:
            self._keep(first)
            if self._skipping:
                self._skipping = False
                pieces[0] = b""
            else:
                pieces[0] = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        tail = pieces.pop()
        if tail:
            self._keep(tail)
        limit = self.limit
        lines: list[bytes] = []
        for piece in pieces:
            if piece.endswith(b"\r"):
                piece = piece[:-1]
            if len(piece) > limit:
                self.overflows += 1
            elif piece:
                lines.append(piece)
        return lines

    def _keep(self, data: bytes) -> None:
        if self._skipping:
            return
        self._size += len(data)
        if self._size > self.limit:
            self._parts.clear()
            self._size = 0
            self._skipping = True
            self.overflows += 1
        else:
            self._parts.append(data)


def looks_like_message(line: bytes) -> bool:
    """False for banner lines and other junk that programs print on stdout: a message starts as an object or array."""
    start = line.lstrip()[:1]
    return start in (b"{", b"[")
