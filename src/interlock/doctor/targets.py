"""Which servers an examination may start: those of the manifests as Interlock would, those of hosts' files as the host would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.doctor.as_host import target_of
from interlock.doctor.starting import Target
from interlock.doctor.ways import leads_to_us
from interlock.hosts.ours import ours

if TYPE_CHECKING:
    from interlock.doctor.examination import Examination

MOST = 20


async def targets(examination: Examination) -> list[Target]:
    """At most MOST. One that a manifest and a host have both is there twice: each starts it in its own way."""
    adapters = await examination.adapters()
    everything = [each for each in (await examination.inventory()).declarations if each.state == "effective"]
    found = []
    if examination.host is None or any(leads_to_us(each) for each in everything):
        found = [
            Target(config.key, str(config.origin), config.transport, examination.environ, config)
            for config in examination.ready()
        ]
    for declaration in await examination.running():
        entry = declaration.runs
        adapter = adapters.get(declaration.host)
        if entry is None or adapter is None or ours(entry) is not None:
            continue  # Interlock's own entry would start every server behind it
        target = target_of(declaration, adapter, examination.machine)
        if target is not None:
            found.append(target)
    return found[:MOST]
