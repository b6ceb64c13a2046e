"""Fields that stand in an entry and do nothing; worst of them a switch that was to keep the server from starting."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.hosts.checks.codes import found
from interlock.hosts.checks.subject import Subject
from interlock.hosts.declaration import Problem

_SAY_OFF: tuple[tuple[str, object], ...] = (("disabled", True), ("enabled", False))
_HARMLESS = frozenset(("$schema", "type", "name", "description", "_comment", "comment", "//", "disabled", "enabled"))
"""Said for people, or without effect where it is missing too."""

_SURE = "Remove the entry, or let Interlock stand there and say `enabled: false` in its manifest."
"""Keeps a server from starting on every host."""
_NO_FIELD = "an entry has no such field"
"""What an adapter notes where that is established; any other note is a question that is still open."""
_OF_REMOTE = frozenset(("url", "headers", "oauth", "auth"))


def check(subject: Subject) -> Iterator[Problem]:
    declaration, adapter = subject.declaration, subject.adapter
    if declaration.entry is None or declaration.state in ("broken", "never-read"):
        return
    raw, read = declaration.raw, adapter.fields
    switch = adapter.switch.value
    for field, off in _SAY_OFF:
        if raw.get(field) is not off or (switch is not None and switch.field == field) or field in read:
            continue
        if not read and switch is None and not adapter.no_switch and field not in declaration.entry.ignored:
            continue  # not known well enough to say so
        how = adapter.no_switch.replace("NAME", declaration.server or "NAME")
        if switch is not None:
            how = f"Write `{switch.field}` = {'true' if switch.field == 'disabled' else 'false'} instead."
        runs = subject.runs is not None
        if switch is None and runs and adapter.switch.note not in ("", _NO_FIELD):
            yield found(
                "switch-ignored",
                f"`{field}: {str(off).lower()}` is no field that {adapter.label} documents: the server may STILL START.",
                why="Nobody has established whether it is obeyed.", todo=f"{_SURE} {how}".rstrip(), field=field, spot=subject.at(field),
                severity="warning",
            )  # fmt: skip
            continue
        yield found(
            "switch-ignored",
            f"`{field}: {str(off).lower()}` is ignored: "
            + ("the server STILL STARTS." if runs else "it is not what keeps the server from starting."),
            why=f"{adapter.label} has no such field.",
            todo=how or _SURE, field=field, spot=subject.at(field), severity=None if runs else "note",
        )  # fmt: skip
    told = {field for field, off in _SAY_OFF if raw.get(field) is off}
    speaks = adapter.transports.value
    if speaks is not None and declaration.entry.transport not in speaks:
        told |= _OF_REMOTE  # the transport is what is to be told
    ignored = list(dict.fromkeys([*declaration.entry.ignored, *(name for name in raw if read and name not in read)]))
    if declaration.place is not None and declaration.place.shared:
        return  # what this host passes over may be what the file's own host needs
    for name in ignored:
        if name in told or name in _HARMLESS or name.startswith(("_", "//", "x-")):
            continue
        yield found(
            "field-ignored", f"{adapter.label} does not read `{name}`.", field=name, spot=subject.at(name)
        )  # fmt: skip
