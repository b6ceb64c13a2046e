"""What is wrong about an entry's own name on its host."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.hosts.checks.codes import found
from interlock.hosts.checks.subject import Subject
from interlock.hosts.declaration import Problem

_PORTABLE = re.compile(r"[a-z][a-z0-9-]*\Z")


def check(subject: Subject) -> Iterator[Problem]:
    name = subject.declaration.server
    if name is None or subject.runs is None:
        return
    spot, label = subject.declaration.spot, subject.adapter.label
    starts = subject.adapter.server_names.value
    if name in subject.adapter.reserved:
        yield found("name-reserved", f"{label} keeps the name `{name}` for itself.", spot=spot)
    elif starts is not None and not re.fullmatch(starts, name):
        bad = sorted({letter for letter in name if not re.fullmatch(starts, letter)})
        which = ", ".join("a space" if letter == " " else f"`{letter}`" for letter in bad) or "its form"
        yield found("name-never-starts", f"{label} never starts a server of this name, because of {which}.", spot=spot)
    elif not _PORTABLE.match(name):
        yield found("name-not-portable", f"`{name}` is not taken alike by all hosts.", spot=spot)
