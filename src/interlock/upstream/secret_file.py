"""A file that holds one secret: read only where nobody but the user can read it."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections import deque
from pathlib import Path

MAX_BYTES = 64 * 1024
_OLD = 4
"""So many values of one file stay known, to be masked: an answer that is late may still quote the one before."""
_given: dict[Path, deque[str]] = {}


class Unreadable(Exception):
    """`why` is for people and holds nothing of the file."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def looked_at(path: Path) -> os.stat_result:
    """Raises Unreadable where this is no file of the user's own that is closed to others. Opens nothing."""
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise Unreadable(f"it cannot be read ({_reason(error)})") from None
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("it is no plain file")  # a pipe could block everything
    if sys.platform != "win32":
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Unreadable(f"others may read it; run `chmod 600 {path}`")
        if status.st_uid != os.geteuid() and os.geteuid() != 0:
            raise Unreadable("it belongs to another user")
    return status


def content(path: Path) -> str:
    """The text without a byte order mark, which some editors put in front. Raises Unreadable."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return file.read(MAX_BYTES)
    except (OSError, ValueError) as error:
        raise Unreadable(f"it cannot be read ({_reason(error)})") from None


def value(path: Path) -> str:
    """The secret: all of the file but the line break at its end. Raises Unreadable."""
    looked_at(path)
    text = content(path)
    text = text.removesuffix("\n").removesuffix("\r")
    if not text.strip():
        raise Unreadable("it is empty")
    given = _given.setdefault(path, deque(maxlen=_OLD))
    if text not in given:
        given.append(text)
    return text


def known(path: Path) -> tuple[str, ...]:
    """Every value of this file that has been given out lately, and the one that stands there now."""
    with contextlib.suppress(Unreadable):
        value(path)
    return tuple(_given.get(path, ()))


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "it is not text"
