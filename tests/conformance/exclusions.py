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


_NO_STREAM = (
    "the check waits for the server to close the HTTP stream of a call that goes on, and {what} has no such stream to "
    "close; the priming event and the retry time, which are Interlock's own, are sent and checked"
)
_KEY = (
    "the suite insists on the key `user_name` in `inputRequests`; a legacy server's elicitation/create has no key, so "
    "none that a bridge could know"
)
_NO_ROUND = (
    "the suite sends answers with its first request, under a key that the server never gave and without the "
    "`requestState` of an open question; a legacy server takes answers only to questions that it asked"
)

EXCLUSIONS: tuple[Exclusion, ...] = (
    *(
        Exclusion(leg, "server-sse-polling", "server-sse-disconnect-resume", _NO_STREAM.format(what=what))
        for leg, what in (
            ("*-stdio*@2025-11-25", "a server on stdio"),
            ("legacy-sse@2025-11-25", "HTTP+SSE of 2024-11-05"),
            ("modern-http@2025-11-25", "a server of 2026-07-28, whose streams cannot be resumed,"),
        )
    ),
    *(
        Exclusion(
            "legacy-*@2026-07-28", "input-required-result-basic-elicitation", f"sep-2322-elicitation-{part}", _KEY
        )
        for part in ("incomplete", "complete")
    ),
    Exclusion(
        "legacy-*@2026-07-28",
        "input-required-result-ignore-extra-params",
        "sep-2322-ignore-unexpected-params",
        _NO_ROUND,
    ),
)


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
