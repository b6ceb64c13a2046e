"""How long a server takes to list its tools, once it runs."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import count
from interlock.model.stage import Stage

CHECK = Check("list-time", Stage.DESCRIBE)
SLOW = 2.0


async def check(examination: Examination) -> list[Finding]:
    findings = []
    for started in await examination.all_started():
        target = started.target
        if started.listing is None or started.snapshot is None:
            continue
        tools = count(len(started.snapshot.tools), "tool")
        if started.listing < SLOW:
            findings.append(
                CHECK.found(
                    "ok",
                    f"`{target.name}` lists {tools} in {started.listing:.1f} s",
                    target.where,
                    server=target.name,
                    host=target.host,
                )
            )
            continue
        findings.append(
            CHECK.found(
                "problem", f"`{target.name}` starts fast enough and takes {started.listing:.1f} s to list {tools}; the time goes "
                "in DESCRIBE",
                target.where,
                "Hosts ask for the list before the first call. Interlock keeps the last one and answers from it at once, so only "
                "hosts that reach the server directly wait, and the first start.",
                "Let the server list its tools without asking others for them.", server=target.name, host=target.host,
            )
        )  # fmt: skip
    return findings
