"""Processes that left the session of what started them, found by a mark in their environment (Linux; elsewhere none).

A server in use may start something that is to outlive it. What is started only to be looked at may not: whoever starts it so
puts a mark of his own into its environment, and ends here what still carries it.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from contextlib import suppress

NAME = "INTERLOCK_STARTED"
"""The variable that carries the mark."""
_TERM_SECONDS = 1.0
_POLL_SECONDS = 0.02


def new_mark() -> str:
    return secrets.token_hex(8)


def find(mark: str) -> set[int]:
    """Living processes that carry the mark, by their number."""
    if sys.platform != "linux":
        return set()
    wanted = f"{NAME}={mark}".encode()
    return {int(entry) for entry in os.listdir("/proc") if entry.isdigit() and wanted in _environment(entry)}


def _environment(pid: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:  # another user's, or gone
        return []


def end(mark: str) -> None:
    """Tells them to end, waits a moment, and makes them. Blocks."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = find(mark)
        for pid in left:
            with suppress(OSError):
                os.kill(pid, number)
        deadline = time.monotonic() + _TERM_SECONDS
        while left and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            left = find(mark)
        if not left:
            return
