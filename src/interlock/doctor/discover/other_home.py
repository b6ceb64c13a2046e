"""Whether the entry stands in the files of the other system: Windows has a home of its own beside the one of the WSL."""

from __future__ import annotations

import asyncio

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import shown
from interlock.hosts.declaration import Declaration
from interlock.hosts.machine import Machine
from interlock.hosts.platforms import home_candidates
from interlock.model.stage import Stage

CHECK = Check("other-home", Stage.DISCOVER)


async def check(examination: Examination) -> list[Finding]:
    from interlock.hosts import inventory

    others = await asyncio.to_thread(home_candidates, examination.machine)
    here = {each.server for each in (await examination.inventory()).declarations if each.state == "effective"}
    here |= {config.key for config in examination.ready()}
    hosts = None if examination.host is None else [examination.host]
    findings = []
    for machine in others[1:]:
        found = await asyncio.to_thread(inventory.take, machine, hosts)
        inventory.leave_out(found, await examination.inventory())
        for each in found.declarations:
            named = examination.server is None or each.server == examination.server
            if each.state == "effective" and each.server is not None and each.server not in here and named:
                findings.append(_of(each, machine, examination))
    return findings


def _of(each: Declaration, machine: Machine, examination: Examination) -> Finding:
    other = "Windows" if machine.platform == "windows" else machine.home
    file = machine.real(each.spot.file)
    where = f"{file}:{each.spot.line}" if each.spot.line else file
    return CHECK.found(
        "problem", f"`{shown(each.server or '', 80)}` is declared for {each.host} in the home of {other}, and not in this one",
        where, f"A host that runs here reads {examination.machine.home}; one that runs there reads the other.",
        "Declare it on the side that the host runs on, or in a manifest: `interlock generate` writes it there.",
        server=each.server or "", host=each.host,
    )  # fmt: skip
