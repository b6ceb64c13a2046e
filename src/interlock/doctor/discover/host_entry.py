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
_RULES = frozenset(("project-untrusted", "folder-untrusted", "not-approved"))
"""What the host itself says of its gates: better than the words below, which fit every host."""
_MENDS = {
    "untrusted": "If you trust this folder, say so in {host}.",
    "not-approved": "Approve {server} when {host} asks for it.",
    "policy": "Ask whoever sets the policy that decided ({at}).",
    "entry-off": "Switch {server} on for {host}: {by} at {at}.",
    "list-off": "Take {server} out of {by} at {at}.",
    "higher-scope": "Change the entry of {server} that wins ({at}), or give one of the two another name.",
    "nearer-file": "Change the entry of {server} that wins ({at}), or give one of the two another name.",
    "field-merge": "Change the entry of {server} that wins ({at}), or give one of the two another name.",
    "host-broken": "Correct {at}: it takes {server} with it.",
    "syntax": "Correct {at}: {by}.",
    "invalid-entry": "Correct {server} at {at}: {by}.",
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
    todo = _todo(each, label)
    what = f"`{shown(each.server, 80)}`" if each.server is not None else "the file"
    return CHECK.found(
        _severity(each, elsewhere, named), f"{label} {_WORDS[each.state].format(what)}{by}{line}", each.spot,
        "It runs from another entry." if elsewhere else f"{label} shows nothing of it.",
        todo or ("" if elsewhere else f"Correct {what} at {each.spot}."),
        server=each.server or "", host=each.host,
    )  # fmt: skip


def _todo(each: Declaration, label: str) -> str:
    """Understood by itself, whatever stands before it; empty where nothing is known."""
    decision = each.decided_by
    own = next((one.todo for one in each.problems if one.todo and (one.code in _RULES or _explains(one, each))), "")
    form = _MENDS.get(decision.rule, "")
    if decision.rule == "syntax" and own:
        return shown(f"In {decision.spot or each.spot}: {own}", 400)
    if decision.rule == "not-approved" or not own:
        by = shown(decision.by) or "what is wrong there"
        if decision.rule == "entry-off":
            by = f"`{by}` is {'missing or ' if by == 'enabled' else ''}wrong there"
        return form.format(
            server=f"`{shown(each.server, 80)}`" if each.server is not None else "that entry",
            host=label, at=decision.spot or each.spot, by=by,
        )  # fmt: skip
    return shown(own, 400)


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
