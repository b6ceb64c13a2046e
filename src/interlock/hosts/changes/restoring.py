"""A run undone: the original bytes where the file still is what was written, else only what the run itself had changed.

Undoing is a run of its own, recorded before it begins. One that dies in the middle is simply done again: a file that is
back already is found to be so.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from interlock.hosts import generated
from interlock.hosts.changes import recording
from interlock.hosts.changes.applying import real_path
from interlock.hosts.changes.committing import ChangedMeanwhile, Target, commit, read_bytes, remove_folders, sweep
from interlock.hosts.changes.locking import locked
from interlock.hosts.changes.recording import FileRecord, Run, Touched, digest
from interlock.hosts.changes.recording import history as history
from interlock.hosts.changes.refused import Refused
from interlock.hosts.machine import Machine
from interlock.hosts.text.document import Damaged
from interlock.hosts.text.editing import edited, parsed
from interlock.hosts.text.steps import ABSENT, member
from interlock.hosts.writing import REMOVE, Edit, FileEdits, Json

How = Literal["original", "removed", "undone", "already", "left"]
"""`undone`: the file was changed since, and only our members were put back. `left`: that was not possible, `why` says it."""
_TRIES = 5


class NothingToRestore(Exception):
    """No run is left to be undone, or none has this id; the text says which."""


@dataclass(frozen=True, slots=True)
class Returned:
    file: str
    how: How
    why: str = ""


@dataclass(frozen=True, slots=True)
class Restored:
    id: str
    """Of the run that was undone."""
    command: str
    files: tuple[Returned, ...]

    @property
    def complete(self) -> bool:
        return all(each.how != "left" for each in self.files)


@dataclass(frozen=True, slots=True)
class _Decided:
    returned: Returned
    target: Target | None = None


def restore(home: Path, machine: Machine, id: str | None, *, force: bool) -> Restored:
    """Undo the named run, else the newest that is not undone. `force`: the original bytes, whoever has changed a file since.

    Raises NothingToRestore or Refused; then nothing was changed.
    """
    run = chosen(home, id)
    reals = {real_path(machine, each.path) for each in run.files}
    with locked(home, sorted(reals)):
        for _ in range(_TRIES):
            decided = _decide(home, machine, run, force=force)
            targets = [each.target for each in decided if each.target is not None]
            try:
                if targets:
                    commit(home, recording.RESTORE, targets, of=run.id)
            except ChangedMeanwhile:
                continue
            result = Restored(run.id, run.command, tuple(each.returned for each in decided))
            _tidy(machine, run)
            if result.complete:
                recording.mark(home, run)
                if run.of is not None:
                    recording.unmark(home, run.of)
            return result
    raise Refused(
        ", ".join(each.path for each in run.files), "another program keeps writing there; close it and try again"
    )


def _tidy(machine: Machine, run: Run) -> None:
    """What a run that died had left: new content that never got its name, folders for a file that never came."""
    for file in run.files:
        real = real_path(machine, file.path)
        sweep(real)
        if file.before is None and not os.path.lexists(real):
            remove_folders(file.folders)


def foreseen(home: Path, machine: Machine, id: str | None, *, force: bool) -> Restored:
    """What `restore` would do. Reads only."""
    run = chosen(home, id)
    decided = _decide(home, machine, run, force=force)
    return Restored(run.id, run.command, tuple(each.returned for each in decided))


def chosen(home: Path, id: str | None) -> Run:
    """The run of this id or of its beginning; without one the newest that is not undone. Raises NothingToRestore."""
    runs = history(home)
    if id is None:
        for run in runs:
            if not run.restored and run.command != recording.RESTORE:
                return run
        raise NothingToRestore(
            "There is nothing to undo: Interlock has changed no file, or every change is undone already."
        )
    found = [run for run in runs if run.id == id] or [run for run in runs if run.id.startswith(id)]
    if len(found) != 1:
        raise NothingToRestore(f"{'No run has' if not found else 'More than one run begins with'} the id {id}.")
    return found[0]


def _decide(home: Path, machine: Machine, run: Run, *, force: bool) -> list[_Decided]:
    undone = [
        each
        for each in history(home)
        if each.restored_at is not None and each.id < run.id < each.restored_at and each.id != run.of
    ]
    decided = [_decide_file(home, machine, run, file, undone, force=force) for file in run.files]
    if any(each.returned.how == "left" for each in decided):
        # What is left there is still Interlock's, and its own list has to say so.
        ledger = os.path.join(home, generated.FILE_NAME)
        decided = [_kept(each) if each.target and each.target.file == ledger else each for each in decided]
    return decided


def _kept(ledger: _Decided) -> _Decided:
    return _Decided(Returned(ledger.returned.file, "left", "it says what of Interlock's is left"))


def _decide_file(
    home: Path, machine: Machine, run: Run, file: FileRecord, undone: Sequence[Run], *, force: bool
) -> _Decided:
    real = real_path(machine, file.path)
    try:
        now = read_bytes(real)
        base = _base(home, run, file, undone)
    except OSError as error:
        return _left(file, f"it or its copy cannot be read: {error.strerror or type(error).__name__}")
    except ValueError:
        return _left(file, f"the copy in {recording.folder_of(home, run.id)} is damaged")
    if now == base:
        return _Decided(Returned(file.path, "already"))
    target = Target(
        file=file.path, real=real, before=now, after=base, edits=file.edits, whole=file.whole, folders=file.folders
    )
    if force or digest(now) == file.after:
        return _Decided(Returned(file.path, "original" if base is not None else "removed"), target)
    if now is None:
        return _left(file, "it has been removed since; --force puts the original back")
    if digest(now) == file.before:
        return _Decided(Returned(file.path, "already"))  # that run never came to this file
    if file.whole or not file.edits:
        return _left(file, "it was changed since and was written as a whole; --force puts the original back")
    try:
        after = _without_ours(now, base or b"", file.edits)
    except Damaged as error:
        place = f" (line {error.at[0]}, column {error.at[1]})" if error.at is not None else ""
        return _left(file, f"it was changed since, and cannot be changed safely: {error.why}{place}")
    if after == now:
        return _Decided(Returned(file.path, "already", "it was changed since, and nothing of ours is left in it"))
    why = "it was changed since: only what Interlock had changed was put back"
    return _Decided(
        Returned(file.path, "undone", why),
        Target(file=file.path, real=real, before=now, after=after, edits=file.edits),
    )


def _left(file: FileRecord, why: str) -> _Decided:
    return _Decided(Returned(file.path, "left", why))


def _base(home: Path, run: Run, file: FileRecord, undone: Sequence[Run]) -> bytes | None:
    """What was there before the run. What an older run had put there does not count where that one was undone since."""
    base = recording.copy_of(home, run, file)
    for older in undone:  # the newest first
        for each in older.files:
            if each.path == file.path and each.after == digest(base):
                base = recording.copy_of(home, older, each)
    return base


def _without_ours(now: bytes, base: bytes, touched: Sequence[Touched]) -> bytes:
    """The present content with our members as they are in `base`. Raises Damaged."""
    for group in reversed(touched):
        empty = FileEdits(file="", format=group.format, comments=group.comments, edits=(), list_key=group.list_key)
        old = parsed(base, empty).value
        edits: list[Edit] = []
        for path in reversed(group.paths):
            before = member(old, path, group.list_key)
            edits.append(Edit(path, REMOVE if before is ABSENT else cast("Json", before)))
        now = edited(now, _with(empty, edits))
        for path in group.paths:
            # Objects that were made on the way to our member go when nothing else has come into them.
            for depth in range(len(path) - 1, 0, -1):
                here = member(parsed(now, empty).value, path[:depth], group.list_key)
                if here not in ({}, [], None) or member(old, path[:depth], group.list_key) is not ABSENT:
                    break
                now = edited(now, _with(empty, [Edit(path[:depth], REMOVE)]))
    return now


def _with(empty: FileEdits, edits: Sequence[Edit]) -> FileEdits:
    return FileEdits(file="", format=empty.format, comments=empty.comments, edits=tuple(edits), list_key=empty.list_key)
