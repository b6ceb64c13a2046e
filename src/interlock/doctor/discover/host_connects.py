"""Whether a host reaches the manifests' servers at all: through `interlock connect`, over HTTP, or by an entry of its own."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding, Severity
from interlock.doctor.shown import listed
from interlock.doctor.ways import leads_to_us
from interlock.hosts.declaration import Declaration
from interlock.model.stage import Stage

CHECK = Check("host-connects", Stage.DISCOVER)


async def check(examination: Examination) -> list[Finding]:
    ready = examination.ready()
    if not ready:
        return []
    inventory = await examination.inventory()
    entries = [each for each in inventory.declarations if each.state == "effective" and each.runs is not None]
    through = {each.host for each in entries if leads_to_us(each)}
    here = [each.adapter.id for each in inventory.readings if each.seen]
    names = sorted(config.key for config in ready)
    if examination.host is not None:
        here = [examination.host]
    without = [host for host in here if host not in through and not set(names) <= _own(entries, host)]
    if not here:
        return [
            CHECK.found(
                "note", "no file of an AI host that is known here was found",
                why=f"So nothing starts the manifests' servers ({listed(names)}).",
            )
        ]  # fmt: skip
    # Whoever has put Interlock before some of his hosts and not before others may want it so.
    severity: Severity = "problem" if examination.host is not None or len(without) == len(here) else "note"
    return [
        CHECK.found(
            severity, f"no entry of {host} starts `interlock connect`",
            why=f"It sees nothing of the manifests' servers ({listed(names)}).",
            todo=f"`interlock generate {host} --write` makes the entry.", host=host,
        )
        for host in without
    ]  # fmt: skip


def _own(entries: list[Declaration], host: str) -> set[str]:
    return {each.server for each in entries if each.host == host and each.server is not None}
