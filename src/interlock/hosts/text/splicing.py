"""Cutting into a text: its line endings, its indentation, and the white space that comes and goes with a member."""

from __future__ import annotations

import re
from typing import NamedTuple

_NEWLINE = re.compile(r"\r?\n")


class Splice(NamedTuple):
    """`text` stands in place of what was between `start` and `end`."""

    start: int
    end: int
    text: str


def spliced(text: str, splices: list[Splice]) -> str:
    """All at once; their places are those of the text before. They do not overlap."""
    for splice in sorted(splices, key=lambda each: (each.start, each.end), reverse=True):
        text = text[: splice.start] + splice.text + text[splice.end :]
    return text


def newline_at(text: str, offset: int) -> str:
    """The line ending that is used near an offset: its own line's, else the one before, else the usual."""
    found = _NEWLINE.search(text, offset)
    if found is not None:
        return found[0]
    before = text.rfind("\n", 0, offset)
    return "\r\n" if before > 0 and text[before - 1] == "\r" else "\n"


def line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def line_break(text: str, offset: int) -> int:
    """Where the line's ending begins (the end of the text where it has none)."""
    end = text.find("\n", offset)
    if end < 0:
        return len(text)
    return end - 1 if end > offset and text[end - 1] == "\r" else end


def line_end(text: str, offset: int) -> int:
    """Past the line's ending."""
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


def comma_after(text: str, start: int, end: int) -> int | None:
    """The comma behind a value in TOML's or YAML's own lists, past comments with `#`."""
    offset = start
    while offset < end:
        if text[offset] == "#":
            offset = line_end(text, offset)
        elif text[offset] == ",":
            return offset
        else:
            offset += 1
    return None


def indent_at(text: str, offset: int) -> str:
    """The white space that the line begins with, as far as it goes before the offset."""
    line = text[line_start(text, offset) : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def begins_line(text: str, offset: int) -> bool:
    """Only white space stands before it on its line."""
    return not text[line_start(text, offset) : offset].strip(" \t")


def before_break(text: str, offset: int) -> int:
    """The offset of the line ending that is before the line of `offset` (0 in the first line)."""
    start = line_start(text, offset)
    if start == 0:
        return 0
    return start - 2 if text[start - 2 : start] == "\r\n" else start - 1
