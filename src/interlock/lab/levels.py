"""Log levels of `notifications/message`, least severe first (RFC 5424, section 6.2.1)."""

from __future__ import annotations

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def at_least(level: str, threshold: str) -> bool:
    """Whether a message of `level` passes `threshold`; unknown levels pass."""
    if level not in LOG_LEVELS or threshold not in LOG_LEVELS:
        return True
    return LOG_LEVELS.index(level) >= LOG_LEVELS.index(threshold)
