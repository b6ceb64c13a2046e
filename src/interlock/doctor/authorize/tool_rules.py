"""Tools that the manifest keeps from hosts, and the line that does it; and rules that fit no tool."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.judged import judged
from interlock.doctor.lists import Listed, lists
from interlock.doctor.shown import count, listed, near, shown
from interlock.gates.tool_lists import matches
from interlock.manifest.config import Rule
from interlock.model.decision import Answer
from interlock.model.stage import Stage

CHECK = Check("tool-rules", Stage.AUTHORIZE)


async def check(examination: Examination) -> list[Finding]:
    findings = []
    for each in await lists(examination):
        if each.config is None:
            continue
        findings += _denied(each, examination)
        if examination.tool is None:
            findings += _useless(each, "allow", each.config.allow or ())
            findings += _useless(each, "deny", each.config.deny)
    return findings


def _denied(each: Listed, examination: Examination) -> list[Finding]:
    by_rule: dict[tuple[str, str], list[str]] = {}
    for entry, decision in judged(each, examination.host):
        named = examination.tool is None or entry.canonical.item == examination.tool
        if decision.answer is Answer.DENY and named:
            by_rule.setdefault((decision.rule or each.where, decision.reason), []).append(entry.canonical.item)
    return [
        CHECK.found(
            "problem" if examination.tool is not None else "note",
            f"the manifest keeps {listed(f'`{name}`' for name in names)} of `{each.name}` from hosts: {shown(reason)}", rule,
            f"{count(len(names), 'tool')} {'is' if len(names) == 1 else 'are'} neither listed nor callable.",
            "Change that line, if it is not what you want.", server=each.name,
        )
        for (rule, reason), names in by_rule.items()
    ]  # fmt: skip


def _useless(each: Listed, word: str, rules: tuple[Rule, ...]) -> list[Finding]:
    tools = each.snapshot.tools
    findings = []
    for rule in rules:
        if not tools or any(matches(rule.glob, name) for name in tools):
            continue
        meant = near(rule.glob, tools)
        keeps_off = "so it lets nothing through" if word == "allow" else "so it keeps nothing back"
        findings.append(
            CHECK.found(
                "problem" if word == "allow" and each.config is not None and len(each.config.allow or ()) == 1 else "warning",
                f"`{shown(rule.glob, 80)}` on the {word} list of `{each.name}` fits none of its {count(len(tools), 'tool')}, "
                f"{keeps_off}",
                rule.origin, "Names are case-sensitive, and the server's own, without its key.",
                f"Did you mean {listed(f'`{name}`' for name in meant)}?" if meant else "`interlock tools --all` shows the names.",
                server=each.name,
            )
        )  # fmt: skip
    return findings
