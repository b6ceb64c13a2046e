"""Hosts that show a tool by its own name alone: two servers with one name, and one of them gets another."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.lists import lists
from interlock.doctor.shown import listed, shown
from interlock.hosts.ours import ours
from interlock.model.stage import Stage

CHECK = Check("bare-names", Stage.SELECT)


async def check(examination: Examination) -> list[Finding]:
    adapters = await examination.adapters()
    bare = {host for host, each in adapters.items() if each.names.value is not None and each.names.value.bare}
    findings = []
    for host in sorted(bare):
        running = [each for each in await examination.running() if each.host == host and each.runs is not None]
        native = [each for each in running if each.runs is not None and ours(each.runs) is None]
        if len(running) < 2 or not native:
            continue
        owners: dict[str, list[str]] = {}
        for each in await lists(examination):
            if each.host == host:
                for tool in each.snapshot.tools:
                    owners.setdefault(tool, []).append(each.name)
        same = {tool: names for tool, names in owners.items() if len(names) > 1}
        label = adapters[host].label
        if same:
            tool, names = next(iter(same.items()))
            findings.append(
                CHECK.found(
                    "problem", f"{label} shows tools by their bare names, and `{shown(tool, 80)}` is a tool of {listed(names)}",
                    str(native[0].spot), "What it is called changes with which server is there; what was learned of it does not hold.",
                    "Put both behind one `interlock connect`, which prefixes every tool with its server's key.", host=host,
                )
            )  # fmt: skip
        else:
            findings.append(
                CHECK.found(
                    "note", f"{label} shows tools by their bare names until two meet, and has {len(running)} servers",
                    str(native[0].spot), "Nothing in a name then tells a model whose tool it is.",
                    "Put them behind one `interlock connect`, which prefixes every tool with its server's key.", host=host,
                )
            )  # fmt: skip
    return findings
