"""Dates of answers, and how far the server's clock is from ours."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.oauth.clock import skew_of, skew_of_answer

MOMENT = 784111777.0  # the example of RFC 9110 section 5.6.7


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "  Sun, 06 Nov 1994 08:49:37 GMT ",
        "sun, 06 nov 1994 08:49:37 gmt",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ],
)
@pytest.mark.parametrize("skew", [0.0, 1800.0, -1800.0, 0.25])
def test_the_three_forms(text: str, skew: float) -> None:
    assert skew_of(text, MOMENT - skew) == pytest.approx(skew)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "784111777",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 +0100",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
        "Sun, ٠٦ Nov 1994 08:49:37 GMT",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert skew_of(text, MOMENT) is None


def test_a_leap_second_is_read() -> None:
    local = datetime(2017, 1, 1, tzinfo=UTC).timestamp()
    assert skew_of("Sat, 31 Dec 2016 23:59:60 GMT", local) == 0


@pytest.mark.parametrize(("year", "full"), [("26", 2026), ("76", 2076), ("77", 1977), ("94", 1994)])
def test_years_of_two_digits(year: str, full: int) -> None:
    local = datetime(2026, 11, 30, tzinfo=UTC).timestamp()
    expected = datetime(full, 11, 6, tzinfo=UTC).timestamp() - local
    assert skew_of(f"Sunday, 06-Nov-{year} 00:00:00 GMT", local) == expected


@given(st.datetimes(datetime(1970, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_any_date_is_read_to_the_second(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    assert skew_of(format_datetime(whole, usegmt=True), 0.0) == whole.timestamp()


@given(st.text(max_size=40), st.floats(allow_nan=False))
def test_nothing_raises(text: str, local: float) -> None:
    skew_of(text, local)
    skew_of("Sunday, 06-Nov-94 08:49:37 GMT", local)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"date": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
        ({"date": "Sun, 06 Nov 1994 08:49:37 GMT", "age": "0"}, 0.0),
        # The stored answer of a cache tells the hour when it was made.
        ({"date": "Sun, 06 Nov 1994 08:49:37 GMT", "age": "3600"}, None),
        ({}, None),
    ],
)
def test_of_an_answer(headers: dict[str, str], expected: float | None) -> None:
    assert skew_of_answer(headers, MOMENT) == expected
