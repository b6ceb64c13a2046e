"""How many tools a host is shown, and what they cost a model's context before the first word."""

from __future__ import annotations

from interlock.catalog.cost import tokens
from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.judged import admitted
from interlock.doctor.lists import lists
from interlock.doctor.shown import count, listed
from interlock.hosts.fact import Fact
from interlock.model.stage import Stage

CHECK = Check("tool-count", Stage.DESCRIBE)
MANY_TOKENS = 40_000
"""About a fifth of the context of most models."""
CAPS = {"cursor": Fact(40, "T", "told of in 2025; the present documentation names no number")}


async def check(examination: Examination) -> list[Finding]:
    known = [each for each in await lists(examination) if each.config is not None]
    costs = {
        each.name: [tokens(entry.raw) for entry in admitted(each, examination.host)]
        for each in known
    }  # fmt: skip
    total, number = sum(map(sum, costs.values())), sum(map(len, costs.values()))
    findings = []
    for host, cap in CAPS.items():
        here = examination.host in (None, host) and host in await examination.adapters()
        if here and cap.value is not None and number > cap.value:
            findings.append(
                CHECK.found(
                    "warning", f"{count(number, 'tool')} are offered, and {host} is said to take the first {cap.value}",
                    why=f"What comes after is not shown to the model ({cap.note}).",
                    todo="Deny what is not used: `capability: {tools: {deny: [...]}}` in the manifest.", host=host,
                )
            )  # fmt: skip
    if total > MANY_TOKENS:
        most = sorted(costs, key=lambda name: -sum(costs[name]))
        findings.append(
            CHECK.found(
                "warning", f"{count(number, 'tool')} cost about {total:,} tokens of context, most of it "
                f"{listed((f'`{name}` ({sum(costs[name]):,})' for name in most), 3)}",
                why="Hosts that show all tools at once send this with every request, and models choose worse among many.",
                todo="Deny what is not used: `capability: {tools: {deny: [...]}}` in the manifest; `interlock tools` shows each "
                "one's cost.",
            )
        )  # fmt: skip
    return findings
