"""What the inventory finds wrong with an entry that its host does start, by the inventory's own codes. Of others, secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import shown
from interlock.hosts.declaration import Declaration, Problem
from interlock.model.stage import Stage

CHECK = Check("entry-problems", Stage.DISCOVER)
STAGES = {"name-collision": Stage.DESCRIBE, "name-too-long": Stage.DESCRIBE, "also-direct": Stage.AUTHORIZE}
"""Where a code does not belong to DISCOVER."""
_TOLD = frozenset(("entry-invalid", "file-unreadable", "never-read"))
"""`host-entry` says these."""

_WHEREVER = frozenset(("literal-secret",))
"""A secret is readable whether or not its entry runs."""


def only(codes: Container[str]) -> Callable[[Examination], Awaitable[list[Finding]]]:
    """The check for these codes alone."""

    async def check_some(examination: Examination) -> list[Finding]:
        return [each for each in await check(examination) if each.check in codes]

    return check_some


async def check(examination: Examination) -> list[Finding]:
    findings = [
        _of(problem, declaration)
        for declaration in await examination.declarations()
        for problem in declaration.problems
        if (declaration.state == "effective" and problem.code not in _TOLD) or problem.code in _WHEREVER
    ]
    if examination.server is None:
        inventory = await examination.inventory()
        findings += [_of(problem, None) for problem in inventory.problems if problem.code not in _TOLD]
    return findings


def _of(problem: Problem, declaration: Declaration | None) -> Finding:
    spot = problem.spot or (declaration.spot if declaration is not None else "")
    stage = STAGES.get(problem.code, CHECK.stage)
    return Check(CHECK.name, stage).found(
        problem.severity, shown(problem.seen, 400), spot, shown(problem.why, 400), shown(problem.todo, 400),
        server=(declaration.server or "") if declaration is not None else "",
        host=declaration.host if declaration is not None else "", code=problem.code,
    )  # fmt: skip
