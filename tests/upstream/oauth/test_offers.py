"""A login that was offered and not finished is not offered by the next call."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.upstream.oauth import offers
from interlock.upstream.oauth.flow_note import Snooze, write_snooze
from interlock.upstream.oauth.timing import Timing

ID = "0" * 32
TIMING = Timing(login_seconds=600, snooze_seconds=300)


@pytest.mark.parametrize(
    ("now", "state", "until"),
    [
        (1000.0, "running", 1600.0),
        (1599.9, "running", 1600.0),
        (1600.0, "snoozed", 1900.0),
        (1899.9, "snoozed", 1900.0),
        (1900.0, "fresh", 1900.0),
        (996.0, "running", 1600.0),
        (900.0, "fresh", 900.0),  # the clock was set back: nobody knows how long ago it was
    ],
)
def test_after_an_offer(tmp_path: Path, now: float, state: str, until: float) -> None:
    assert offers.offered(tmp_path, ID, TIMING, 1000.0) == 1600.0
    assert offers.standing(tmp_path, ID, TIMING, now) == offers.Standing(state, until)  # type: ignore[arg-type]


def test_without_an_offer_and_after_a_finished_one_a_login_may_be_offered(tmp_path: Path) -> None:
    assert offers.standing(tmp_path, ID, TIMING, 1000.0).state == "fresh"
    offers.offered(tmp_path, ID, TIMING, 1000.0)
    offers.finished(tmp_path, ID)
    assert offers.standing(tmp_path, ID, TIMING, 1001.0).state == "fresh"


def test_a_login_that_ended_early_begins_the_pause_then(tmp_path: Path) -> None:
    offers.offered(tmp_path, ID, TIMING, 1000.0)
    offers.given_up(tmp_path, ID, TIMING, 1100.0)
    assert offers.standing(tmp_path, ID, TIMING, 1100.0) == offers.Standing("snoozed", 1400.0)
    assert offers.standing(tmp_path, ID, TIMING, 1400.0).state == "fresh"


def test_the_pause_is_of_one_grant_alone(tmp_path: Path) -> None:
    offers.given_up(tmp_path, ID, TIMING, 1000.0)
    assert offers.standing(tmp_path, "1" * 32, TIMING, 1001.0).state == "fresh"


def test_a_damaged_memory_is_none(tmp_path: Path) -> None:
    write_snooze(tmp_path, ID, Snooze(offered_at=1000.0, unfinished_until=9000.0))
    (tmp_path / f"{ID}.snooze.json").write_text("{", encoding="ascii")
    assert offers.standing(tmp_path, ID, TIMING, 1001.0).state == "fresh"
