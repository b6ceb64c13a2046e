"""Moments and spans of time as people read them."""

from __future__ import annotations

import pytest

from interlock.doctor.times import span, until


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s"), (0, "0 s"), (59.6, "60 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (5400, "2 h"),
     (86400, "24 h"), (172800, "2 days"), (1e6, "12 days")],
)  # fmt: skip
def test_spans(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_until() -> None:
    assert until(3600, 0) == "in 60 min (1970-01-01 01:00:00 UTC)"
    assert until(0, 3600) == "60 min ago (1970-01-01 00:00:00 UTC)"
    assert until(1e30, 0).endswith("(an unreadable time)")
