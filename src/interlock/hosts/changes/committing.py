"""Several files replaced or removed, each in one step, all or none. The caller holds their locks.

The order is what makes a crash harmless: first the record with the originals, then the new content beside each file, then
the replacements. Whatever was replaced when something fails is put back at once.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from interlock.hosts.changes import recording
from interlock.hosts.changes.recording import FileRecord, Run, Touched, digest
from interlock.hosts.changes.refused import Refused

_TEMPORARY = ".interlock-tmp"
_PATIENCE_SECONDS = 2.0
"""On Windows a file that another program has open just now cannot be replaced."""


class ChangedMeanwhile(Exception):
    """Another program wrote the file after it was read. Nothing is changed; reading again may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    file: str
    """Logical."""
    real: str
    """Resolved: a symbolic link to it stays one."""
    before: bytes | None
    after: bytes | None
    """None: remove it."""
    edits: tuple[Touched, ...] = ()
    whole: bool = False
    folders: tuple[str, ...] = ()
    """Folders that an earlier run made for a file that now goes: removed if they are empty."""


def read_bytes(real: str) -> bytes | None:
    """None where there is no such file. Raises OSError."""
    try:
        if not stat.S_ISREG(os.stat(real).st_mode):
            raise OSError("it is no regular file")  # a pipe would be waited for without end
        with open(real, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def commit(home: Path, command: str, targets: Sequence[Target], *, of: str | None = None) -> Run:
    """Raises ChangedMeanwhile, or Refused; then all files are as they were."""
    for target in targets:
        may_write(target)
    made = {target.real: missing_folders(target) for target in targets}
    run = Run(
        id=recording.new_id(),
        command=command,
        at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        files=tuple(_record(number, target, made[target.real]) for number, target in enumerate(targets)),
        of=of,
    )
    copies = [(f"{number}.before", target.before) for number, target in enumerate(targets) if target.before is not None]
    try:
        recording.write(home, run, copies)
    except OSError as error:
        raise Refused(
            str(home), f"what is there now cannot be recorded, so nothing is changed: {_said(error)}"
        ) from None
    _replace_all(home, run, targets, made)
    return run


def _record(number: int, target: Target, made: tuple[str, ...]) -> FileRecord:
    return FileRecord(
        path=target.file,
        before=digest(target.before),
        after=digest(target.after),
        copy=None if target.before is None else f"{number}.before",
        edits=target.edits,
        whole=target.whole,
        folders=made,
    )


def _replace_all(home: Path, run: Run, targets: Sequence[Target], made: dict[str, tuple[str, ...]]) -> None:
    temporaries: dict[str, str] = {}
    done: list[Target] = []
    current = targets[0]
    try:
        for current in targets:
            _make_folders(made[current.real])
            sweep(current.real)
            if current.after is not None:
                temporaries[current.real] = _beside(current.real, current.after)
        for current in targets:
            if read_bytes(current.real) != current.before:
                raise ChangedMeanwhile
            done.append(current)
            if current.after is None:
                os.unlink(current.real)
                remove_folders(current.folders)
            else:
                _swap(temporaries.pop(current.real), current.real)
            if os.path.isdir(os.path.dirname(current.real)):
                recording.sync_folder(os.path.dirname(current.real))
    except BaseException as error:
        for temporary in temporaries.values():
            with suppress(OSError):
                os.unlink(temporary)
        if _put_back(done, made):
            recording.forget(home, run)
        if isinstance(error, OSError):
            raise Refused(current.file, f"it cannot be written, so nothing is changed: {_said(error)}") from None
        raise


def _put_back(done: Sequence[Target], made: dict[str, tuple[str, ...]]) -> bool:
    """Those that were replaced already, where they still are what was written. False: one could not be; `restore` can."""
    complete = True
    for target in reversed(done):
        try:
            now = read_bytes(target.real)
            if now == target.before or now != target.after:
                continue
            if target.before is None:
                os.unlink(target.real)
            else:
                _make_folders(missing_folders(target))
                _swap(_beside(target.real, target.before), target.real)
        except OSError:
            complete = False
    for folders in made.values():
        remove_folders(folders)
    return complete


def may_write(target: Target) -> None:
    """A file that its owner made read-only is not to be written, though a rename would do it. Raises Refused."""
    try:
        status = os.stat(target.real)
    except FileNotFoundError:
        status = None
    except OSError as error:
        raise Refused(target.file, f"it cannot be read: {_said(error)}") from None
    if status is not None:
        if not stat.S_ISREG(status.st_mode):
            raise Refused(target.file, "it is no file")
        if not status.st_mode & 0o222 or not os.access(target.real, os.W_OK):
            raise Refused(target.file, "it is read-only; make it writable first if Interlock is to change it")
    folder = os.path.dirname(target.real)
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    try:
        writable = bool(os.stat(folder).st_mode & 0o222) and os.access(folder, os.W_OK | os.X_OK)
    except OSError as error:
        raise Refused(target.file, f"{folder} cannot be read: {_said(error)}") from None
    if not os.path.isdir(folder):
        raise Refused(target.file, f"{folder} is no folder")
    if not writable:
        raise Refused(target.file, f"the folder {folder} is read-only")


def missing_folders(target: Target) -> tuple[str, ...]:
    """The outermost first."""
    if target.after is None and target.before is None:
        return ()
    found: list[str] = []
    folder = os.path.dirname(target.real)
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        found.append(folder)
        folder = os.path.dirname(folder)
    return tuple(reversed(found))


def _make_folders(folders: Sequence[str]) -> None:
    for folder in folders:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
            recording.sync_folder(os.path.dirname(folder))


def remove_folders(folders: Sequence[str]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):
            os.rmdir(folder)


def sweep(real: str) -> None:
    """What a process that died left beside the file. Nobody else is at it: the caller holds the lock."""
    folder, name = os.path.split(real)
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for each in names:
        if each.startswith(f".{name}.") and each.endswith(_TEMPORARY):
            with suppress(OSError):
                os.unlink(os.path.join(folder, each))


def _beside(real: str, content: bytes) -> str:
    """The new content in the same folder, on the disk, with the modes and the owner of the file that it will replace."""
    folder, name = os.path.split(real)
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}{_TEMPORARY}")
    try:
        status = os.stat(real)
    except FileNotFoundError:
        status = None
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if status is not None:
            if sys.platform != "win32" and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(OSError):
                    os.chown(temporary, status.st_uid, status.st_gid)
            os.chmod(temporary, stat.S_IMODE(status.st_mode))
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    return temporary


def _swap(temporary: str, real: str) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            os.replace(temporary, real)
            return
        except OSError as error:
            if sys.platform != "win32" or not isinstance(error, PermissionError) or time.monotonic() > end:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
            time.sleep(0.02)


def _said(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__
