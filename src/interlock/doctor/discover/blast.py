"""What one faulty entry or file takes down besides itself, and where that one stands."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import count, listed, shown
from interlock.hosts.declaration import Declaration
from interlock.model.stage import Stage

CHECK = Check("blast-radius", Stage.DISCOVER)


async def check(examination: Examination) -> list[Finding]:
    adapters = await examination.adapters()
    victims: dict[tuple[str, str], list[Declaration]] = {}
    for each in (await examination.inventory()).declarations:
        decision = each.decided_by
        if each.state != "broken" or decision.spot is None:
            continue
        # A file that cannot be parsed breaks all that stands in it; a bad entry, on some hosts, all that the host has.
        if decision.rule == "host-broken" or (decision.rule == "syntax" and each.server is not None):
            victims.setdefault((each.host, str(decision.spot)), []).append(each)
    findings = []
    for (host, spot), lost in victims.items():
        names = [each.server for each in lost if each.server is not None]
        if examination.server is not None and examination.server not in names:
            continue
        label = adapters[host].label if host in adapters else host
        reason = shown(lost[0].decided_by.by)
        findings.append(
            CHECK.found(
                "problem", f"one fault takes {count(len(names), 'server')} of {label} down: {listed(f'`{name}`' for name in names)}",
                spot, f"{label} reads nothing of what stands beside it{f': {reason}' if reason else ''}.",
                f"Correct {spot} first{f': {reason}' if reason else ''}. Nothing else has to change.", server=examination.server or "", host=host,
            )
        )  # fmt: skip
    return findings
