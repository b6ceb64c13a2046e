"""How deep a message is nested and how many values it holds, found without decoding it, at the speed of byte searches.

Readers give up at different depths (some hosts at 128 levels), and each value costs tens of bytes once taken apart: a
few megabytes of brackets or commas would become gigabytes.
"""

from __future__ import annotations

import re
from typing import Final

from interlock.wire import bounds

ALWAYS_FLAT: Final = 2 * bounds.MAX_DEPTH
"""A message of this many bytes cannot be too deep: each level costs two brackets."""

_STRUCTURE: Final = b'"{}[],'
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in _STRUCTURE)
_ONE_KIND: Final = bytes.maketrans(b"[]", b"{}")
_RUNS: Final = re.compile(rb"\{+|\}+")


def too_deep(data: bytes, limit: int = bounds.MAX_DEPTH) -> bool:
    """True where arrays and objects of `data`, which must be valid JSON, nest deeper than `limit`."""
    if data.count(b"{") + data.count(b"[") <= limit:
        return False
    shape = _outline(data).translate(_ONE_KIND, b",")
    levels = 0
    while shape:
        # The innermost pairs go with each round: a byte search does most of the work for flat and bushy shapes.
        rest = shape.replace(b"{}", b"")
        if len(shape) - len(rest) < len(shape) >> 4:
            break  # few and long spines: walk along them instead, a step a spine
        levels += 1
        if levels > limit:
            return True
        shape = rest
    depth = deepest = 0
    for run in _RUNS.finditer(shape):
        start, end = run.span()
        if shape[start] == 0x7B:
            depth += end - start
            if depth > deepest:
                deepest = depth
                if levels + deepest > limit:
                    return True
        else:
            depth -= end - start
    return False


def too_many(data: bytes, limit: int = bounds.MAX_VALUES) -> bool:
    """True where valid JSON has more than `limit` commas between values, at all levels together."""
    return data.count(b",") > limit and _outline(data).count(b",") > limit


def _outline(data: bytes) -> bytes:
    """The brackets and commas of valid JSON that are not inside strings."""
    if b"\\" in data:
        # Backslashes occur in strings only. Pairs first, so that what is left before a quote escapes it.
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(data.translate(None, _OTHERS).split(b'"')[::2])
