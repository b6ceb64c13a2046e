"""What a child wrote to its standard error: the last part of it, bounded, and made safe to show to a person."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

MAX_BYTES = 64 * 1024
"""Bytes kept. Memory used is at most twice this, whatever the child writes."""
MAX_LINES = 200
MAX_LINE_CHARS = 2000
"""Longer lines are cut when shown."""

Redactor = Callable[[str], str]
"""Takes text and gives it back without secrets."""

# Escape sequences of terminals (ECMA-48): CSI with its final byte, OSC up to BEL or ST, and the two-character ones.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])")
# C0 but tab, DEL, C1, zero-width and direction marks, line and paragraph separators, byte order mark: what could make
# text look like something it is not.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def unchanged(text: str) -> str:
    """The redactor for text that cannot hold a secret."""
    return text


def neutralise(line: str) -> str:
    """One line without anything that a terminal or a reader could be fooled by.

    Terminal sequences (colours, cursor moves) are dropped; of a line redrawn with carriage returns the last drawing
    stays; every other control character is written as its escape, such as `\\x07`.
    """
    line = _ESCAPE.sub("", line)
    if "\r" in line:
        drawings = [part for part in line.split("\r") if part.strip()]
        line = drawings[-1] if drawings else ""
    return _CONTROL.sub(_written_out, line)


def _written_out(match: re.Match[str]) -> str:
    point = ord(match.group())
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}"


class StderrRing:
    """The last 64 KiB of a byte stream. Taking bytes in costs next to nothing; the work is done when someone looks."""

    __slots__ = ("_chunks", "_dropped", "_held", "_redact", "total")

    def __init__(self, redact: Redactor = unchanged) -> None:
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._dropped = False
        self._redact = redact
        self.total = 0
        """Bytes seen since the start, kept or not."""

    def feed(self, data: bytes) -> None:
        """Take what the child wrote, as it came."""
        self.total += len(data)
        if len(data) >= MAX_BYTES:
            self._dropped = self._dropped or bool(self._chunks) or len(data) > MAX_BYTES
            self._chunks.clear()
            self._chunks.append(bytes(data[-MAX_BYTES:]))
            self._held = MAX_BYTES
            return
        chunks = self._chunks
        if chunks and len(chunks[-1]) + len(data) <= 512:
            # A child that writes byte by byte must not cost an object a byte.
            chunks[-1] += data
        else:
            chunks.append(bytes(data))
        self._held += len(data)
        while self._held - len(chunks[0]) >= MAX_BYTES:
            self._held -= len(chunks.popleft())
            self._dropped = True

    def lines(self, count: int = MAX_LINES) -> list[str]:
        """The last `count` lines (at most 200) that are not empty, oldest first: redacted, neutralised, cut."""
        data = b"".join(self._chunks)
        dropped = self._dropped
        if len(data) > MAX_BYTES:
            data = data[-MAX_BYTES:]
            dropped = True
        text = data.decode("utf-8", "replace")
        if dropped:
            # The first line is incomplete. Half a secret is not recognised by a redactor, so that line is not shown.
            start = text.find("\n")
            text = text[start + 1 :] if start >= 0 else f"(a line of more than {MAX_BYTES // 1024} KiB, not shown)"
        shown: list[str] = []
        # Before neutralising, because a secret may span lines; and after, because a colour may stand inside of one.
        for raw in reversed(self._redact(text.replace("\r\n", "\n")).split("\n")):
            line = neutralise(raw).rstrip()
            if line:
                shown.append(line)
            if len(shown) >= min(count, MAX_LINES):
                break
        shown.reverse()
        clean = self._redact("\n".join(shown)).split("\n") if shown else []
        return [line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}…" for line in clean]

    def tail(self, count: int = 20) -> str:
        """The last `count` lines as one text, without a final newline. Empty where the child wrote nothing."""
        return "\n".join(self.lines(count))
