"""A change that a host's own command makes, recorded as Interlock's own are, so that `restore` undoes it too."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from interlock.hosts.changes import recording
from interlock.hosts.changes.applying import foretold, real_path
from interlock.hosts.changes.committing import missing_folders, read_bytes
from interlock.hosts.changes.locking import locked
from interlock.hosts.changes.recording import FileRecord, Run, digest
from interlock.hosts.changes.refused import Refused
from interlock.hosts.machine import Machine
from interlock.hosts.writing import FileEdits


def witness(home: Path, machine: Machine, edits: FileEdits, act: Callable[[], None], *, command: str) -> str:
    """Let `act` change the file, and return the id of the record; empty where it changed nothing. Raises Refused before.

    `edits` is what it is to bring about. The original is on the disk before it begins; if this process dies in the middle,
    `restore` takes the members that `edits` names out again.
    """
    with locked(home, [real_path(machine, edits.file)]):
        target = foretold(machine, edits)
        before = digest(target.before)
        file = FileRecord(
            path=target.file, before=before, after=digest(target.after), edits=target.edits,
            copy=None if target.before is None else "0.before", folders=missing_folders(target),
        )  # fmt: skip
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        run = Run(id=recording.new_id(), command=command, at=at, files=(file,))
        try:
            recording.write(home, run, [] if target.before is None else [("0.before", target.before)])
        except OSError as error:
            why = f"what is there now cannot be recorded, so nothing is changed: {error.strerror or error}"
            raise Refused(str(home), why) from None
        try:
            act()
        finally:
            after = digest(read_bytes(target.real))
            if after == before:
                recording.forget(home, run)
            else:
                with suppress(OSError):
                    recording.rewrite(home, replace(run, files=(replace(file, after=after),)))
        return "" if after == before else run.id
