"""Bytes of a host's file to text: what is no UTF-8 is named for what it is, since a wrong encoding looks like bad syntax."""

from __future__ import annotations

import re
from bisect import bisect_right

from interlock.hosts.text.document import At, Damaged

BOM = b"\xef\xbb\xbf"
_CONFLICT = re.compile(r"^(?:<{7}|>{7})(?: |\r?$)", re.MULTILINE)


def decoded(content: bytes) -> tuple[str, bool]:
    """The text without its byte order mark, line endings as they are, and whether there was a mark. Raises Damaged."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Damaged("it is UTF-16, as Windows PowerShell writes files with `>` or Out-File; save it as UTF-8", (1, 1))
    bom = content.startswith(BOM)
    body = content[len(BOM) :] if bom else content
    nul = body.find(b"\0")
    if nul >= 0:
        at = place(body[:nul].decode("utf-8", "replace"), nul)
        if not body.strip(b"\0"):
            raise Damaged(
                "it holds nothing but NUL bytes, as files do after a power failure; restore it from a backup", at
            )
        if body[1::2].count(0) * 4 > len(body) or body[0::2].count(0) * 4 > len(body):
            raise Damaged(
                "it is UTF-16 without a byte order mark, as PowerShell may write it; save it as UTF-8", (1, 1)
            )
        raise Damaged("a NUL byte stands here: the file is UTF-16 or was cut off by a crash; save it as UTF-8", at)
    try:
        return body.decode("utf-8"), bom
    except UnicodeDecodeError as error:
        before = body[: error.start].decode("utf-8", "replace")
        raise Damaged(
            "a byte stands here that is no UTF-8; save the file as UTF-8", place(before, len(before))
        ) from None


class Lines:
    """Line and column of many offsets of one text."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def at(self, offset: int) -> At:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def place(text: str, offset: int) -> At:
    """Line and column of an offset."""
    offset = min(offset, len(text))
    start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - start + 1


def conflict(text: str) -> At | None:
    """Where the first marker of a merge conflict stands."""
    found = _CONFLICT.search(text)
    return place(text, found.start()) if found is not None else None


CONFLICT = "a merge conflict is not resolved: this line is a marker that version control left"
