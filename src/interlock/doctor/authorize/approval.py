"""Which tools run without anybody being asked, and the line of the manifest that says so."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.judged import judged
from interlock.doctor.lists import lists
from interlock.doctor.shown import count, listed, shown
from interlock.model.decision import Answer
from interlock.model.stage import Stage

CHECK = Check("approval", Stage.AUTHORIZE)


async def check(examination: Examination) -> list[Finding]:
    findings = []
    seen = set()
    for each in await lists(examination):
        if each.config is None:
            continue
        seen.add(each.name)
        by_rule: dict[tuple[str, str], list[str]] = {}
        for entry, decision in judged(each, examination.host):
            named = examination.tool is None or entry.canonical.item == examination.tool
            if named and decision.answer is Answer.ALLOW:
                by_rule.setdefault((decision.rule or each.where, decision.reason), []).append(entry.canonical.item)
        for (rule, reason), names in by_rule.items():
            findings.append(_of(each.name, rule, reason, names, len(each.snapshot.tools)))
    for config in examination.ready():
        if config.key not in seen and config.policy.default_approval == "auto":
            where = str(config.policy.default_approval_origin or config.origin)
            findings.append(_of(config.key, where, "`auto` for the server", [], 0))
    return findings


def _of(server: str, rule: str, reason: str, names: list[str], all_tools: int) -> Finding:
    what = "any tool" if not names or len(names) == all_tools else f"{count(len(names), 'tool')} ({listed(names)})"
    return CHECK.found(
        "problem", f"nobody is asked before {what} of `{server}` runs: {shown(reason)}", rule,
        "The manifest decides it: the strictest of its rules allows the call.",
        "Write `prompt` (asks every time) or `writes` (asks for all but declared reads) in that line.", server=server,
    )  # fmt: skip
