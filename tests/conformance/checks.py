"""Reads what the suite found, and compares a run through Interlock with the run without it, check by check.

The suite's exit code hides what matters here: checks that were not reached, and warnings.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

_STAMP = re.compile(r"-\d{4}-\d{2}-\d{2}T[\d-]+Z$")

Kind = Literal["lost", "FAILURE", "WARNING", "SKIPPED"]
FAULTS: tuple[Kind, ...] = ("FAILURE", "WARNING", "SKIPPED")


@dataclass(frozen=True, slots=True, order=True)
class CheckId:
    """A check of the suite; one scenario may report the same check several times."""

    scenario: str
    check: str


@dataclass(slots=True)
class Outcome:
    """All checks of one run. `INFO` records are left out: they log, and their number depends on timing."""

    counts: Counter[tuple[CheckId, str]] = field(default_factory=Counter)
    messages: dict[tuple[CheckId, str], str] = field(default_factory=dict)
    scenarios: set[str] = field(default_factory=set)

    def add(self, check: CheckId, status: str, message: str = "") -> None:
        self.scenarios.add(check.scenario)
        if status != "INFO":
            self.counts[check, status] += 1
            self.messages.setdefault((check, status), message)

    def total(self, status: str) -> int:
        return sum(count for (_, found), count in self.counts.items() if found == status)

    def merge(self, other: Outcome) -> None:
        self.counts += other.counts
        self.messages |= other.messages
        self.scenarios |= other.scenarios


@dataclass(frozen=True, slots=True)
class Difference:
    """A check that the run through Interlock lost (fewer successes) or reports worse (more of another status)."""

    check: CheckId
    kind: Kind
    count: int
    message: str


def read_outcome(folder: Path, prefix: str = "") -> Outcome:
    """Every `checks.json` below `folder`; its parent is named PREFIX, then the scenario, then the time."""
    outcome = Outcome()
    for file in sorted(folder.glob("**/checks.json")):
        scenario = _STAMP.sub("", file.parent.name).removeprefix(prefix)
        outcome.scenarios.add(scenario)
        for record in json.loads(file.read_text(encoding="utf-8")):
            outcome.add(CheckId(scenario, record["id"]), record["status"], record.get("errorMessage") or "")
    return outcome


def compare(direct: Outcome, through: Outcome) -> list[Difference]:
    """What got worse, in order. More successes than in the direct run are no difference."""
    differences = []
    for check in sorted({check for check, _ in [*direct.counts, *through.counts]}):
        missing = direct.counts[check, "SUCCESS"] - through.counts[check, "SUCCESS"]
        worse = {kind: through.counts[check, kind] - direct.counts[check, kind] for kind in FAULTS}
        if missing > 0:
            differences.append(Difference(check, "lost", missing, ""))
        differences += [
            Difference(check, kind, worse[kind], through.messages.get((check, kind), ""))
            for kind in FAULTS
            if worse[kind] > 0
        ]
    return differences


def faults_of(outcome: Outcome, expected: Iterable[str]) -> list[str]:
    """Why a direct run cannot serve as a baseline: scenarios that did not run, and checks that failed without us."""
    missing = [f"{scenario} did not run" for scenario in sorted(set(expected) - outcome.scenarios)]
    failed = [
        f"{check.scenario}: {check.check} {status} {outcome.messages.get((check, status), '')}".strip()
        for (check, status), _ in sorted(outcome.counts.items())
        if status in ("FAILURE", "WARNING")
    ]
    return missing + failed
