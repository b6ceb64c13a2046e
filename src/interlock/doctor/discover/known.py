"""Whether the server that was asked for is declared anywhere at all, and if not, what may have been meant."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import listed, near, shown
from interlock.model.stage import Stage

CHECK = Check("declared", Stage.DISCOVER)


async def check(examination: Examination) -> list[Finding]:
    name = examination.server
    if name is None:
        return []
    if examination.configs() or await examination.declarations():
        return []
    inventory = await examination.inventory()
    names = [*examination.loaded.gateway.servers, *(each.server for each in inventory.declarations if each.server)]
    files = [*map(str, examination.loaded.gateway.files), *(each.file for each in inventory.declarations)]
    meant = near(name, names)
    where = listed(dict.fromkeys(files), 2) or "no manifest and no host's file is here"
    of_host = f" of {examination.host}" if examination.host is not None else " of a host"
    return [
        CHECK.found(
            "problem", f"no manifest and no file{of_host} declares `{shown(name)}`", where, "Nothing can start it.",
            f"Did you mean {listed(f'`{each}`' for each in meant)}?" if meant
            else "Declare it in a manifest (docs/manifest.md); `interlock inventory` shows what is declared.",
            server=name,
        )
    ]  # fmt: skip
