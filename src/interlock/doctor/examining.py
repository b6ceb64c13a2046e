"""All checks of one examination, one after the other, and their findings in the order of the stages, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.safely import safely
from interlock.doctor.symptoms import Step
from interlock.model.stage import Stage

_WORST_FIRST: Final[dict[Severity, int]] = {"problem": 0, "warning": 1, "unknown": 2, "note": 3, "ok": 4}
_STAGES: Final = {stage: number for number, stage in enumerate(Stage)}
PATIENCE = 120.0
"""Seconds for one check beside what the servers that it starts may take."""


async def examined(examination: Examination, steps: Sequence[Step]) -> list[Finding]:
    """Never raises. The same finding of two checks is there once."""
    found: list[Finding] = []
    patience = PATIENCE + (20 * examination.seconds if examination.start else 0.0)
    for name, stage, ask in steps:
        found += await safely(name, stage, ask(examination), patience)
    return ordered(found)


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    """By stage, and inside of a stage the worst first; else as the checks came."""
    once = dict.fromkeys(findings)
    return sorted(once, key=lambda each: (_STAGES[each.stage], _WORST_FIRST[each.severity]))


def next_step(findings: Sequence[Finding]) -> Finding | None:
    """The one thing to do first: of the worst kind that there is, the earliest on the way of a call."""
    for severity in ("problem", "warning"):
        for each in ordered(findings):
            if each.severity == severity and each.todo:
                return each
    return None
