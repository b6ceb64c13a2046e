"""What holds for every server: this build, the home copy that hosts start, bridges of others that hold no connection."""

from __future__ import annotations

from pathlib import Path

from interlock.doctor import bridge
from interlock.doctor.case import Machine
from interlock.doctor.examination import Examination
from interlock.doctor.finding import Finding

SECONDS = 10.0


async def check(examination: Examination) -> list[Finding]:
    machine = examination.machine
    here = Machine(examination.home, Path(machine.home), Path(machine.folder), examination.environ)
    return await bridge.of_machine(here, SECONDS)
