"""Hosts that do not hear of tools which came later: they list once, at their start."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.hosts.fact import Fact
from interlock.model.stage import Stage

CHECK = Check("list-changes", Stage.DESCRIBE)
IGNORE = Fact(
    frozenset(("codex", "qwen-code")), "O", "a list change is not followed by another list in the same session"
)


async def check(examination: Examination) -> list[Finding]:
    adapters = await examination.adapters()
    return [
        CHECK.found(
            "note", f"{adapters[host].label} lists tools at its start and does not hear of changes",
            why="What a server offers only later (after a sign-in, a slow start) is not seen before the next session.",
            todo="Start a new session of the host.", host=host,
        )
        for host in sorted(IGNORE.value or ())
        if host in adapters
    ]  # fmt: skip
