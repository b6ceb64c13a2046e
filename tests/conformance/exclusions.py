"""Differences that no bridge could avoid, each with its reason. Anything else that differs is a failure, and so is an
exclusion that no longer occurs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .checks import CheckId, Difference


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Names one check, or several by glob, of one scenario in the runs that match `leg`."""

    leg: str
    scenario: str
    check: str
    reason: str

    def covers(self, leg: str, check: CheckId) -> bool:
        return (
            fnmatchcase(leg, self.leg)
            and fnmatchcase(check.scenario, self.scenario)
            and fnmatchcase(check.check, self.check)
        )


EXCLUSIONS: tuple[Exclusion, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The differences of one run, sorted."""

    excused: list[tuple[Difference, Exclusion]]
    unexplained: list[Difference]
    stale: list[Exclusion]


def judge(leg: str, differences: Iterable[Difference], exclusions: Iterable[Exclusion] = EXCLUSIONS) -> Verdict:
    """Sort the differences of one run into excused and unexplained, and name exclusions that were not needed."""
    candidates = [exclusion for exclusion in exclusions if fnmatchcase(leg, exclusion.leg)]
    excused: list[tuple[Difference, Exclusion]] = []
    unexplained: list[Difference] = []
    for difference in differences:
        covering = next((one for one in candidates if one.covers(leg, difference.check)), None)
        if covering is None:
            unexplained.append(difference)
        else:
            excused.append((difference, covering))
    used = {exclusion for _, exclusion in excused}
    return Verdict(excused, unexplained, [exclusion for exclusion in candidates if exclusion not in used])
