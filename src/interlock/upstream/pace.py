"""How fast a child may talk, so that one that floods does not take the event loop from the other servers."""

from __future__ import annotations


class Pace:
    """An upper limit on a byte stream, checked a burst at a time. Below the limit it changes nothing."""

    __slots__ = ("_burst", "_count", "_seconds", "_since")

    def __init__(self, burst: int, rate: float) -> None:
        """`burst` bytes always pass at once; `rate` is in bytes a second."""
        self._burst = burst
        self._seconds = burst / rate
        self._count = 0
        self._since = float("-inf")

    def full(self, size: int) -> bool:
        """Count bytes. True where a burst is complete: then ask `rest`."""
        self._count += size
        return self._count >= self._burst

    def rest(self, now: float) -> float:
        """Seconds to stop reading for, after a complete burst; 0 where it did not come too fast."""
        rest = max(0.0, self._seconds * (self._count / self._burst) - (now - self._since))
        self._count = 0
        self._since = now + rest
        return rest
