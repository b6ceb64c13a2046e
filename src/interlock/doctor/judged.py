"""What the manifest's gates say of each tool that is known: the same function that lists and calls ask."""

from __future__ import annotations

from interlock.catalog.snapshot import Entry
from interlock.doctor.lists import Listed
from interlock.gates.static import judge
from interlock.gates.subject import Subject
from interlock.model.decision import Answer, Decision


def judged(each: Listed, host: str | None) -> list[tuple[Entry, Decision]]:
    """In the order of the server's own list. Empty for a server that no manifest declares."""
    if each.config is None:
        return []
    return [
        (
            entry,
            judge(Subject(each.config, "tools", entry.canonical.item, host, entry.read_hint, entry.destructive_hint)),
        )
        for entry in each.snapshot.tools.values()
    ]


def admitted(each: Listed, host: str | None) -> list[Entry]:
    """The tools that hosts are shown."""
    return [entry for entry, decision in judged(each, host) if decision.answer is not Answer.DENY]
