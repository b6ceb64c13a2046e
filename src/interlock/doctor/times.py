"""Moments and spans for people."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(seconds: float) -> str:
    """`2026-11-30 14:00:00 UTC`, from seconds since the epoch."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "an unreadable time"


def span(seconds: float) -> str:
    """A length of time, rounded: `12 s`, `5 min`, `3 h`, `14 days`."""
    for size, name in ((86400 * 2, "days"), (5400, "h"), (90, "min")):
        if seconds >= size:
            return f"{seconds / {'days': 86400, 'h': 3600, 'min': 60}[name]:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"


def until(end: float, now: float) -> str:
    """`in 5 min (2026-...)`, or `5 min ago (2026-...)`. Both on one clock."""
    distance = end - now
    return f"{'in ' if distance > 0 else ''}{span(abs(distance))}{' ago' if distance <= 0 else ''} ({moment(end)})"
