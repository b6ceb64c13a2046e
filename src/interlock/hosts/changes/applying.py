"""Edits made in hosts' files: foreseen (`planned`), or done under a lock, with a record to undo them by (`apply`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interlock.hosts.changes.committing import ChangedMeanwhile, Target, commit, may_write, read_bytes
from interlock.hosts.changes.locking import locked
from interlock.hosts.changes.recording import Touched
from interlock.hosts.changes.refused import Refused
from interlock.hosts.machine import Machine
from interlock.hosts.reading import MAX_BYTES
from interlock.hosts.text.document import Damaged
from interlock.hosts.text.editing import edited
from interlock.hosts.writing import FileEdits

_TRIES = 5
"""So often another program may write a file in the moment in which we do."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What a file would be. Files that stay as they are have none."""

    file: str
    before: bytes | None
    after: bytes


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file that is written whole: a manifest, a plugin's files."""

    file: str
    """Logical."""
    content: bytes


@dataclass(frozen=True, slots=True)
class Written:
    file: str
    how: Literal["made", "changed"]


@dataclass(frozen=True, slots=True)
class Applied:
    """`id` is empty where there was nothing to do."""

    id: str
    files: tuple[Written, ...]


def planned(machine: Machine, edits: Sequence[FileEdits], extra: Sequence[WholeFile] = ()) -> list[Planned]:
    """Reads, and writes nothing. Raises Refused where a file cannot be changed safely."""
    targets = _targets(machine, edits, extra)
    for each in targets:
        may_write(each)
    return [Planned(each.file, each.before, each.after) for each in targets if each.after is not None]


def apply(
    home: Path,
    machine: Machine,
    edits: Sequence[FileEdits],
    *,
    command: str,
    extra: Sequence[WholeFile] = (),
) -> Applied:
    """The edits, on the files as they are at this moment. All of them, or Refused and none."""
    files = [*(each.file for each in edits), *(each.file for each in extra)]
    reals = {real_path(machine, file) for file in files}
    if not reals:
        return Applied("", ())
    if all(each.before == each.after for each in _every_target(machine, edits, extra)):
        return Applied("", ())  # without a lock and without a home: nothing is written anywhere
    with locked(home, sorted(reals)):
        for _ in range(_TRIES):
            targets = _targets(machine, edits, extra)
            if not {each.real for each in targets} <= reals:
                continue  # a symbolic link was turned to another file, which is not locked
            if not targets:
                return Applied("", ())
            try:
                run = commit(home, command, targets)
            except ChangedMeanwhile:
                continue
            how = tuple(Written(each.file, "made" if each.before is None else "changed") for each in targets)
            return Applied(run.id, how)
    raise Refused(", ".join(dict.fromkeys(files)), "another program keeps writing there; close it and run this again")


def real_path(machine: Machine, file: str) -> str:
    return os.path.realpath(machine.real(file))


def foretold(machine: Machine, edits: FileEdits) -> Target:
    """The file as it is now and as these edits would make it. Raises Refused."""
    return _every_target(machine, (edits,), ())[0]


def _targets(machine: Machine, edits: Sequence[FileEdits], extra: Sequence[WholeFile]) -> list[Target]:
    """Only files that change."""
    return [each for each in _every_target(machine, edits, extra) if each.before != each.after]


def _every_target(machine: Machine, edits: Sequence[FileEdits], extra: Sequence[WholeFile]) -> list[Target]:
    """One a file, though several edits (or two names for it) lead there. Raises Refused."""
    found: dict[str, Target] = {}
    for each in edits:
        real = real_path(machine, each.file)
        old = found.get(real) or _now(each.file, real)
        try:
            after = edited(old.after or b"", each)
        except Damaged as error:
            raise Refused(each.file, f"it is left as it is: {error.why}", error.at) from None
        found[real] = Target(
            file=old.file, real=real, before=old.before, after=None if old.before is None and not after else after,
            edits=(*old.edits, _touched(each)),
        )  # fmt: skip
    for whole in extra:
        real = real_path(machine, whole.file)
        old = found.get(real) or _now(whole.file, real)
        found[real] = Target(file=old.file, real=real, before=old.before, after=whole.content, whole=True)
    return list(found.values())


def _now(file: str, real: str) -> Target:
    try:
        content = read_bytes(real)
    except OSError as error:
        raise Refused(file, f"it cannot be read: {error.strerror or error}") from None
    if content is not None and len(content) > MAX_BYTES:
        raise Refused(file, "it is larger than any configuration should be")
    return Target(file=file, real=real, before=content, after=content)


def _touched(edits: FileEdits) -> Touched:
    """Where only members of an object are set, they alone are ours to undo."""
    paths: dict[tuple[str, ...], None] = {}
    for edit in edits.edits:
        if edit.keep and isinstance(edit.value, dict):
            paths.update(dict.fromkeys((*edit.path, name) for name in edit.value))
        else:
            paths[edit.path] = None
    return Touched(edits.format, edits.comments, edits.list_key, tuple(paths))
