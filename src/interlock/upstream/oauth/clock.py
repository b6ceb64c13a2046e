"""The server's clock: how far it is from this machine's, read from the `Date` of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})"
# RFC 9110 section 5.6.7: IMF-fixdate, and the two obsolete forms that a recipient has to take too.
_FIXDATE = re.compile(rf"[A-Za-z]{{3}}, ([0-9]{{2}}) ([A-Za-z]{{3}}) ([0-9]{{4}}) {_TIME} GMT", re.IGNORECASE)
_RFC850 = re.compile(rf"[A-Za-z]{{6,9}}, ([0-9]{{2}})-([A-Za-z]{{3}})-([0-9]{{2}}) {_TIME} GMT", re.IGNORECASE)
_ASCTIME = re.compile(rf"[A-Za-z]{{3}} ([A-Za-z]{{3}}) ([0-9 ][0-9]) {_TIME} ([0-9]{{4}})")


def skew_of(date_header: str, local: float) -> float | None:
    """Seconds to add to `local` (this machine's clock, since the epoch) to get the server's; None where it is unreadable.

    A date is whole seconds, so the result is up to one second too low.
    """
    server = _read(date_header.strip(), local)
    return None if server is None else server - local


def skew_of_answer(headers: Mapping[str, str], local: float) -> float | None:
    """As `skew_of`, from the headers (lower-case names) of an answer that came at `local`.

    None for an answer that a cache had stored: its `Date` is that of the first request for it (RFC 9111 section 4.2.3).
    """
    age = headers.get("age", "").strip()
    if age and age.strip("0"):
        return None
    return skew_of(headers.get("date", ""), local)


def _read(text: str, local: float) -> float | None:
    if match := _FIXDATE.fullmatch(text):
        day, month, year, *time = match.groups()
    elif match := _RFC850.fullmatch(text):
        day, month, year, *time = match.groups()
        year = str(_full_year(int(year), local))
    elif match := _ASCTIME.fullmatch(text):
        month, day, *time, year = match.groups()
    else:
        return None
    hour, minute, second = (int(each) for each in time)
    try:
        # A leap second is written as 60; datetime knows none.
        moment = datetime(int(year), _MONTHS[month.lower()], int(day), hour, minute, min(second, 59), tzinfo=UTC)
    except (ValueError, KeyError):
        return None
    return moment.timestamp() + (1 if second == 60 else 0) if second <= 60 else None


def _full_year(two_digits: int, local: float) -> int:
    """Of a year in two digits: one that seems more than 50 years ahead is of the century before (RFC 9110 section 5.6.7)."""
    try:
        this_year = datetime.fromtimestamp(local, UTC).year
    except (ValueError, OverflowError, OSError):
        this_year = 2000
    year = this_year - this_year % 100 + two_digits
    return year - 100 if year > this_year + 50 else year
