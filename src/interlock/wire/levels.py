"""Levels of `notifications/message`, the least severe first (RFC 5424, section 6.2.1)."""

from __future__ import annotations

from typing import Final

LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def at_least(level: str | None, threshold: str | None) -> bool:
    """True where a message of `level` passes `threshold`; unknown levels pass, and all where there is no threshold."""
    if level not in LEVELS or threshold not in LEVELS:
        return True
    return LEVELS.index(level) >= LEVELS.index(threshold)
