"""Giving memory back: after a large message the C library (glibc) keeps what was freed, for as long as the process lives."""

from __future__ import annotations

import sys


def give_back() -> None:
    """Return freed memory to the system. Takes some milliseconds at most; does nothing where the library has no such call."""
    if sys.platform != "linux":
        return
    import ctypes

    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        return
