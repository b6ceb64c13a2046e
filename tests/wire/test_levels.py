"""Severities of log messages (RFC 5424, 6.2.1; 2026-07-28 and 2025-11-25, server/utilities/logging)."""

from __future__ import annotations

import itertools

import pytest

from interlock.wire.levels import LEVELS, at_least

ORDER = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


def test_the_levels_of_the_specification() -> None:
    assert list(LEVELS) == ORDER


@pytest.mark.parametrize(("level", "threshold"), itertools.product(ORDER, ORDER))
def test_what_passes(level: str, threshold: str) -> None:
    assert at_least(level, threshold) is (ORDER.index(level) >= ORDER.index(threshold))


@pytest.mark.parametrize(
    ("level", "threshold"), [(None, "error"), ("loud", "error"), ("debug", None), ("debug", "loud"), (None, None)]
)
def test_what_is_not_known_passes(level: str | None, threshold: str | None) -> None:
    assert at_least(level, threshold) is True
