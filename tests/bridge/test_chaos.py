"""A short run of calls while the servers are restarted, cut and slowed; the thousand calls are in `make soak`."""

from __future__ import annotations

from collections import Counter

import pytest

from interlock.lab.auth.resource_server import ServedEra

from . import bridges, chaos
from .chaos import Outcome, Report, judge


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_each_call_is_answered_in_time_and_truly(era: ServedEra) -> None:
    report = await chaos.run(bridges.Interlock(), calls=120, seed=5, era=era)
    assert report.untrue == []
    assert report.late == []
    assert (report.unanswered, report.applied_twice, report.deaths) == (0, 0, 0)
    # A run in which nothing happened, or nothing got through, shows nothing.
    assert sum(report.acts.values()) >= 5
    assert report.good >= 10


@pytest.mark.soak
@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_thousand_calls(era: ServedEra, seed: int) -> None:
    report = await chaos.run(bridges.Interlock(), calls=1000, seed=seed, era=era)
    assert report.untrue == []
    assert report.late == []
    assert report.kept


@pytest.mark.parametrize(
    ("verdict", "good", "written", "true"),
    [
        (None, True, 1, True),
        (None, True, 0, False),
        (None, True, 2, False),
        ("never_reached", False, 0, True),
        ("never_reached", False, 1, False),
        ("wait", False, 0, True),
        ("wait", False, 1, False),
        ("outcome_unknown", False, 0, True),
        ("outcome_unknown", False, 1, True),
        ("outcome_unknown", False, 2, False),
        (None, False, 0, False),
    ],
)
def test_the_judge(verdict: str | None, good: bool, written: int, true: bool) -> None:
    report = Report("any", 1, 0)
    judge(report, [Outcome("write", "key", "result", 0.1, verdict, good)], Counter({"key": written} if written else {}))
    assert (report.untrue == []) is true
    assert report.applied_twice == (written > 1)


def test_late_and_unanswered_calls_are_told_apart() -> None:
    report = Report("any", 2, 0)
    late = chaos.DEADLINE_SECONDS + chaos.SLACK_SECONDS + 0.1
    judge(
        report,
        [
            Outcome("echo", "a", "result", late, None, True),
            Outcome("echo", "b", "unanswered", None, None, False),
        ],
        Counter(),
    )
    assert (len(report.late), report.unanswered, report.kept) == (1, 1, False)
