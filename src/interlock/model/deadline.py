"""A point on the monotonic clock by which something must have answered."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """`at` is in seconds of `time.monotonic()`; the event loop's clock is the same one."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(time.monotonic() + seconds)

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    def sooner(self, seconds: float) -> Deadline:
        """This deadline, or the one `seconds` from now where that comes first."""
        return Deadline(min(self.at, time.monotonic() + seconds))
