"""What each host makes of its entries: which it does not start, and the line that decided it."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding, Severity
from interlock.doctor.shown import shown
from interlock.hosts.declaration import Declaration, Problem
from interlock.model.stage import Stage

CHECK = Check("host-entry", Stage.DISCOVER)
_WORDS = {
    "shadowed": "does not use this entry of {0}",
    "disabled": "has {0} switched off",
    "blocked": "does not let {0} run",
    "broken": "cannot use {0}",
    "never-read": "does not read {0} in this file",
}
_REASONS = frozenset(("entry-invalid", "file-unreadable", "never-read", "wrong-table", "merge-invalid"))
_TODO = {
    "untrusted": "Trust the folder in the host, if you do.",
    "not-approved": "Approve it in the host.",
    "policy": "Ask whoever sets the policy that decided.",
    "entry-off": "Switch it on in that line.",
    "list-off": "Take it out of that list.",
    "higher-scope": "Change the entry that wins, or give one of the two another name.",
    "nearer-file": "Change the entry that wins, or give one of the two another name.",
    "field-merge": "Change the entry that wins, or give one of the two another name.",
    "host-broken": "Correct the entry that the line names: it takes this one with it.",
}


async def check(examination: Examination) -> list[Finding]:
    declarations = await examination.declarations()
    adapters = await examination.adapters()
    seen = {(each.host, each.server) for each in declarations if each.state == "effective"}
    findings = []
    for each in declarations:
        if each.state == "effective" or (each.server is None and each.state != "broken"):
            continue
        elsewhere = (each.host, each.server) in seen
        label = adapters[each.host].label if each.host in adapters else each.host
        findings.append(_finding(each, label, elsewhere, named=examination.server is not None))
    return findings


def _finding(each: Declaration, label: str, elsewhere: bool, *, named: bool) -> Finding:
    decision = each.decided_by
    by = f": {shown(decision.by)}" if decision.by else ""
    line = f" ({decision.spot})" if decision.spot is not None and str(decision.spot) != str(each.spot) else ""
    todo = next((one.todo for one in each.problems if one.todo and _explains(one, each)), "")
    what = f"`{shown(each.server, 80)}`" if each.server is not None else "the file"
    return CHECK.found(
        _severity(each, elsewhere, named), f"{label} {_WORDS[each.state].format(what)}{by}{line}", each.spot,
        "It runs from another entry." if elsewhere else f"{label} shows nothing of it.",
        shown(todo, 400) or _TODO.get(decision.rule, "" if elsewhere else "Correct the entry."),
        server=each.server or "", host=each.host,
    )  # fmt: skip


def _explains(problem: Problem, each: Declaration) -> bool:
    """It says why the entry is as it is; others are about what stands in it besides."""
    return problem.code in _REASONS or (each.state == "broken" and problem.severity == "problem")


def _severity(each: Declaration, elsewhere: bool, named: bool) -> Severity:
    """What a person has switched off or put above another on purpose is no fault, until he asks where it is."""
    if elsewhere and each.state != "broken":
        return "note"
    if each.state in ("broken", "never-read"):
        # Another host's file beside this one's is as it should be.
        return "note" if each.state == "never-read" and each.place.shared and not named else "problem"
    if named:
        return "problem"
    return "warning" if each.state == "blocked" else "note"
