"""Ids of calls: fifteen characters that sort by time, differ between processes, and cost no system randomness a call.

Eight characters of milliseconds since 2025 (good until 2059), two that count within one, five drawn once a process; the
alphabet is Crockford's base 32 in lower case, which has no letters that are taken for digits.
"""

from __future__ import annotations

import os
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_EPOCH_MS = 1_735_689_600_000
"""2025-01-01T00:00:00Z."""


def _base32(value: int, length: int) -> str:
    text = ""
    while len(text) < length:
        text = _PAIRS[value & 1023] + text
        value >>= 10
    return text[-length:]


class _Mint:
    """The state of one process."""

    __slots__ = ("count", "lock", "ms", "prefix", "process")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process = _base32(int.from_bytes(os.urandom(4), "big"), 5)
        self.ms = -1
        self.count = 0
        self.prefix = ""


_mint = _Mint()


def _after_fork() -> None:
    global _mint
    _mint = _Mint()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def new_trace_id() -> str:
    """A new id. Within one process each sorts after the one before, also when the clock is set back."""
    mint = _mint
    with mint.lock:
        ms = time.time_ns() // 1_000_000 - _EPOCH_MS
        if ms > mint.ms:
            mint.ms, mint.count = ms, 0
            mint.prefix = _base32(ms, 8)
        else:
            mint.count += 1
            if mint.count == len(_PAIRS):
                # More than a thousand in a millisecond, or a clock set far back: borrow from the next millisecond.
                mint.ms, mint.count = mint.ms + 1, 0
                mint.prefix = _base32(mint.ms, 8)
        return mint.prefix + _PAIRS[mint.count] + mint.process
