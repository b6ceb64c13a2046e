"""What each run did, in Interlock's home: one folder a run, with the original bytes of every file that it changed.

It is on the disk before the first file is replaced: whatever dies afterwards, `restore` knows what was there. The record
has paths and hashes only; the copies beside it hold what the files held, so nobody else can read them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

from interlock.hosts.changes.locking import private_folder
from interlock.hosts.place import Format

FORMAT = 1
NAME = "record.json"
RESTORED = "restored"
"""File in a run's folder once it has been undone; it holds when, written like an id."""
_DEAD_SECONDS = 24 * 3600
KEPT = 50
KEPT_SECONDS = 90 * 24 * 3600
"""So many of the newest runs are kept, and everything that is younger than this; what is neither is no longer undone."""
_ID = re.compile(r"\d{8}T\d{6}\.")
RESTORE = "restore"
"""The command of runs that undo another; they are not undone by themselves, only when named."""


@dataclass(frozen=True, slots=True)
class Touched:
    """Members that one set of edits named, without their values."""

    format: Format
    comments: bool
    list_key: str | None
    paths: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    path: str
    """Logical."""
    before: str | None
    """SHA-256; None: there was no such file."""
    after: str | None
    """None: the file is removed."""
    copy: str | None = None
    """Name of the file with the bytes of before."""
    edits: tuple[Touched, ...] = ()
    whole: bool = False
    """Written as a whole: there are no members that could be undone alone."""
    folders: tuple[str, ...] = ()
    """Real paths of folders that had to be made, the outermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    id: str
    command: str
    at: str
    """UTC, ISO 8601."""
    files: tuple[FileRecord, ...]
    of: str | None = None
    """The run that this one undoes."""
    restored_at: str | None = field(default=None, compare=False)
    """Compares with ids. None: it is not undone."""

    @property
    def restored(self) -> bool:
        return self.restored_at is not None


def digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


def new_id() -> str:
    """Sorts by time; two runs of one moment differ."""
    now = time.time_ns()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 1_000_000_000))
    return f"{stamp}.{now // 1000 % 1_000_000:06d}Z-{secrets.token_hex(3)}"


def write(home: Path, run: Run, copies: Sequence[tuple[str, bytes]]) -> None:
    """Durable when it returns. Raises OSError or Refused."""
    folder = folder_of(home, run.id)
    private_folder(home / "changes")
    _sweep(home)
    _prune(home)
    os.mkdir(folder, 0o700)
    for name, content in copies:
        write_file(folder / name, content)
    rewrite(home, run)
    sync_folder(folder.parent)


def rewrite(home: Path, run: Run) -> None:
    """The record alone, in one step: of a run that knows only afterwards what came of it."""
    folder = folder_of(home, run.id)
    value = {"format": FORMAT, **asdict(run)}
    del value["restored_at"]
    partial = folder / f"{NAME}.partial"
    write_file(partial, json.dumps(value, indent=2).encode())
    os.replace(partial, folder / NAME)
    sync_folder(folder)


def _sweep(home: Path) -> None:
    """Folders of runs that died before they had a record, and so before they changed anything."""
    for folder in (home / "changes").iterdir():
        with suppress(OSError):
            if not (folder / NAME).exists() and folder.stat().st_mtime < time.time() - _DEAD_SECONDS:
                for each in folder.iterdir():
                    each.unlink()
                folder.rmdir()


def _prune(home: Path) -> None:
    """Old runs go: their copies hold what the files held, secrets too, and would be kept for ever."""
    limit = time.strftime("%Y%m%dT%H%M%S", time.gmtime(time.time() - KEPT_SECONDS))
    ids = sorted((folder.name for folder in (home / "changes").iterdir() if (folder / NAME).exists()), reverse=True)
    for id in ids[KEPT:]:
        if id >= limit or not _ID.match(id):
            continue
        folder = folder_of(home, id)
        with suppress(OSError):
            (folder / NAME).unlink()  # first: a folder without it is swept, whatever else is left there
            for each in folder.iterdir():
                each.unlink()
            folder.rmdir()


def folder_of(home: Path, id: str) -> Path:
    return home / "changes" / id


def copy_of(home: Path, run: Run, file: FileRecord) -> bytes | None:
    """The bytes that were there before; None where there was no file. Raises OSError, or ValueError where they are not they."""
    if file.copy is None:
        return None
    content = _read(folder_of(home, run.id) / file.copy)
    if digest(content) != file.before:
        raise ValueError("the copy is damaged")
    return content


def _read(path: Path) -> bytes:
    """Raises OSError, also for a pipe, which would be waited for without end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("it is no regular file")
    return path.read_bytes()


def damaged(home: Path) -> list[Path]:
    """Folders of runs whose record is there and cannot be read: the copies in them may still be good."""
    try:
        folders = sorted((home / "changes").iterdir())
    except OSError:
        return []
    return [each for each in folders if os.path.lexists(each / NAME) and read(home, each.name) is None]


def forget(home: Path, run: Run) -> None:
    """A run that changed nothing in the end."""
    folder = folder_of(home, run.id)
    with suppress(OSError):
        (folder / NAME).unlink()  # first: without it there is no run
        for name in os.listdir(folder):
            (folder / name).unlink()
        folder.rmdir()


def mark(home: Path, run: Run) -> None:
    """It has been undone."""
    write_file(folder_of(home, run.id) / RESTORED, new_id().encode())
    sync_folder(folder_of(home, run.id))


def unmark(home: Path, id: str) -> None:
    """Its undoing has been undone."""
    (folder_of(home, id) / RESTORED).unlink(missing_ok=True)


def history(home: Path) -> list[Run]:
    """All runs, the newest first. What is no whole record (a run that died before it changed anything) is left out."""
    try:
        names = sorted(os.listdir(home / "changes"), reverse=True)
    except OSError:
        return []
    return [run for name in names if (run := read(home, name)) is not None]


def read(home: Path, id: str) -> Run | None:
    folder = folder_of(home, id)
    try:
        value = json.loads(_read(folder / NAME))
        if value["format"] != FORMAT or value["id"] != id:
            return None
        return Run(
            id=id, command=_text(value["command"]), at=_text(value["at"]),
            files=tuple(_file(each) for each in value["files"]),
            of=None if value["of"] is None else _text(value["of"]),
            restored_at=_restored_at(folder),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _restored_at(folder: Path) -> str | None:
    try:
        return (folder / RESTORED).read_text("ascii", "replace")
    except FileNotFoundError:
        return None


def _file(value: dict[str, object]) -> FileRecord:
    edits = cast("list[dict[str, object]]", value["edits"])
    return FileRecord(
        path=_text(value["path"]), before=_optional(value["before"]), after=_optional(value["after"]),
        copy=_copy_name(value["copy"]), whole=value["whole"] is True,
        edits=tuple(
            Touched(
                cast("Format", _text(each["format"])), each["comments"] is True, _optional(each["list_key"]),
                tuple(tuple(_text(step) for step in path) for path in cast("list[list[object]]", each["paths"])),
            )
            for each in edits
        ),
        folders=tuple(_text(each) for each in cast("list[object]", value["folders"])),
    )  # fmt: skip


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _optional(value: object) -> str | None:
    return None if value is None else _text(value)


def _copy_name(value: object) -> str | None:
    name = _optional(value)
    if name is not None and os.path.basename(name) != name:
        raise ValueError
    return name


def write_file(path: Path, content: bytes) -> None:
    """New and for its owner alone, on the disk when it returns. One that is there is written over."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: str | Path) -> None:
    """So that a name in it survives a power failure, where the system knows such a thing."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
