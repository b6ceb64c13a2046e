"""What one faulty entry or file takes down besides itself, and where that one stands."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import count, listed, shown
from interlock.hosts.declaration import Declaration
from interlock.hosts.inventory import Inventory
from interlock.model.stage import Stage

CHECK = Check("blast-radius", Stage.DISCOVER)
_FAULTS = frozenset(("file-unreadable", "entry-invalid", "merge-invalid"))


async def check(examination: Examination) -> list[Finding]:
    adapters = await examination.adapters()
    victims: dict[tuple[str, str], list[Declaration]] = {}
    for each in (await examination.inventory()).declarations:
        decision = each.decided_by
        if each.state != "broken" or decision.spot is None:
            continue
        # A file that cannot be parsed breaks all that stands in it; a bad entry, on some hosts, all that the host has.
        if decision.rule in ("host-broken", "syntax"):
            victims.setdefault((each.host, str(decision.spot)), []).append(each)
    findings = []
    mends = _mends(await examination.inventory())
    for (host, spot), lost in victims.items():
        names = [each.server for each in lost if each.server is not None]
        # Where nothing in the file can be read, nobody knows whether the server that is asked for stands there.
        if examination.server is not None and names and examination.server not in names:
            continue
        label = adapters[host].label if host in adapters else host
        reason = shown(lost[0].decided_by.by)
        because = f": {reason}" if reason else ""
        todo = mends.get((host, spot)) or f"Correct {spot} first{because}. Nothing else has to change."
        findings.append(
            CHECK.found(
                "problem", f"one fault takes {_what(names, label)}", spot,
                f"{label} reads nothing of what stands beside it{because}.", todo,
                server=examination.server or "", host=host,
            )
        )  # fmt: skip
    return findings


def _what(names: list[str], label: str) -> str:
    if not names:
        return f"a whole file of {label} down"
    return f"{count(len(names), 'server')} of {label} down: {listed(f'`{name}`' for name in names)}"


def _sentence(text: str) -> str:
    return f"{shown(text).rstrip('.')}."


def _mends(inventory: Inventory) -> dict[tuple[str, str], str]:
    """What to do about each fault, by host and place."""
    return {
        (
            each.host,
            str(problem.spot),
        ): f"Correct {problem.spot}: {_sentence(problem.seen)} {shown(problem.todo, 400)} Nothing else has to change."
        for each in inventory.declarations
        if each.state == "broken"
        for problem in each.problems
        if problem.spot is not None and problem.code in _FAULTS and problem.todo
    }
