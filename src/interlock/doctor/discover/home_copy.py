"""Whether the copy that hosts start is there, ours alone, and as new as this one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

from interlock.build import build
from interlock.doctor.case import Machine
from interlock.doctor.finding import Finding, Severity
from interlock.install import look, origin
from interlock.install.notice import notice
from interlock.install.places import Places, off, read_current, trouble_with
from interlock.install.record import standing
from interlock.install.version import newer
from interlock.model.stage import Stage


async def check(machine: Machine) -> list[Finding]:
    return await asyncio.to_thread(lambda: list(_look(Places(machine.home), machine)))


def _look(places: Places, machine: Machine) -> Iterator[Finding]:
    current = read_current(places)
    if current is None:
        there = os.path.exists(places.current)
        yield _finding(
            "problem" if there else "note",
            "the file that names the home copy cannot be read" if there else "there is no home copy",
            places.current if there else places.home,
            "Hosts should start a path that never moves; without a home copy none exists.",
            "`interlock update --lay` lays one; `interlock setup HOST URL` also points a host to it.",
        )
        return
    trouble = standing(machine.home).trouble
    if trouble is not None:
        yield _finding(
            "problem", f"the home copy does not run: {trouble}", places.copy(current.name),
            "What another could have changed is not run as you.", "Look at it, then `interlock update --lay` lays a new one.",
        )  # fmt: skip
        return
    if trouble_with(places.launcher) is not None:
        yield _finding(
            "problem", f"the launcher is missing or not ours: {trouble_with(places.launcher)}", places.launcher,
            "Hosts start it.", "`interlock update --lay` writes it again.",
        )  # fmt: skip
    mine = build()
    if current.name == mine:
        yield _finding("ok", f"the home copy is this build ({current.name})", places.copy(current.name))
    elif newer(current.name, mine):
        yield _finding(
            "note", f"the home copy is newer ({current.name}) than this build ({mine})", places.copy(current.name),
            "Hosts run the newer one; this report comes from the older one.", f"Run {places.launcher} doctor bridge.",
        )  # fmt: skip
    elif newer(mine, current.name):
        yield _finding(
            "warning", f"the home copy is older ({current.name}) than this build ({mine})", places.copy(current.name),
            "Hosts still run the older one until it replaces itself.", "`interlock update --lay`",
        )  # fmt: skip
    else:
        yield _finding(
            "note", f"the home copy ({current.name}) is another build of the same version as this one ({mine})",
            places.copy(current.name),
        )  # fmt: skip
    behind = notice(machine.home, machine.environ)
    if behind is not None:
        yield _finding("warning", behind, places.update, "Fixes of later releases are missing.", "`interlock update`")
    stuck = look.read(machine.home).trouble if origin.here().from_index() else None
    if stuck is not None:
        yield _finding(
            "note", f"the last look for a newer release found nothing out: {_cut(stuck)}", places.update,
        )  # fmt: skip
    switch = off(machine.environ)
    if switch is not None:
        yield _finding("note", f"{switch} is set here, so Interlock neither replaces nor updates itself")


def _cut(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text[:300])


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(
        check="home-copy", stage=Stage.DISCOVER, severity=severity, seen=seen, where=where, why=why, todo=todo
    )
