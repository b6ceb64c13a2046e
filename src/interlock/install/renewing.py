"""What becomes of an entry of ours that is there already: what stays of it, whether it changes, and what a person is told."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

Entry = Mapping[str, object]


def differences(old: Entry, new: Entry) -> list[str]:
    """What the new entry says differently, for people: `-` before what goes, `+` before what comes.

    Of variables only the names, and whatever looks like a secret masked: a person may have written one there.
    """
    from interlock.journal.redact import redact

    lines: list[str] = []
    for key in new:
        before, after = old.get(key), merged(old, new)[key]
        if (before or None) == (after or None):
            continue
        for mark, value in (("-", before), ("+", after)):
            if value is not None:
                lines.append(f"{mark} {key}: {redact(_in_words(value))}")
    return lines


def _in_words(value: object) -> str:
    if isinstance(value, list):
        return shlex.join(str(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(str(name) for name in value) or "none"
    return str(value)


def changed(old: Entry, entry: Entry) -> bool:
    """An empty member and a missing one are the same to every host."""
    return any((old.get(key) or None) != (part or None) for key, part in merged(old, entry).items())


def merged(old: Entry | None, entry: Entry) -> dict[str, object]:
    """What a person added to our entry (a timeout, approvals, a variable) stays."""
    if old is None:
        return dict(entry)
    kept = {**old, **entry}
    for name, new in entry.items():
        before = old.get(name)
        if isinstance(before, dict) and isinstance(new, dict):
            kept[name] = {**before, **new}
    return kept
