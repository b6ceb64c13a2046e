"""Files that hold secrets: readable by their owner only, replaced in one step, never reached through a planted link.

Nothing here knows what is in them. Whatever cannot be done ends in StoreTrouble, whose text says what to do; the file
that was there before is then still there, whole.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

LIMIT = 1024 * 1024
"""Bytes. A longer file is none of ours."""
STALE_SECONDS = 60.0
"""A temporary file that is older was left behind by a process that was killed while it wrote."""
KEPT_ASIDE = 3
"""Of one file, so many earlier ones stay that were set aside."""

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.\d+-[0-9a-f]{8}\.tmp")
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_Done = TypeVar("_Done")
_WINDOWS_TRIES = 40
_WINDOWS_PAUSE = 0.005


class StoreTrouble(OSError):
    """What is kept on disk cannot be read or written now. Its text is for people; nothing was changed."""

    def __init__(self, number: int | None, text: str, path: Path) -> None:
        super().__init__(number or 0, text, str(path))
        self.text = text

    def __str__(self) -> str:
        return self.text


class Unfit(Exception):
    """There is a file of that name, and it cannot be one of ours: a link, another user's, too long, no plain file."""


def trouble(error: OSError, folder: Path, doing: str) -> StoreTrouble:
    """The same error in words for people; `doing` completes "cannot", as in `write the grant`."""
    if isinstance(error, StoreTrouble):
        return error
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            why = "no space is left there. Free some, or set INTERLOCK_HOME to a folder on another disk, and try again"
        case errno.EROFS:
            why = "the disk is read-only. Mount it writable, or set INTERLOCK_HOME to a folder that can be written"
        case errno.EACCES | errno.EPERM:
            why = "this user may not. Make the folder and all in it yours (chown), or set INTERLOCK_HOME to another one"
        case errno.ENOSYS | errno.EOPNOTSUPP | errno.ENOLCK:
            why = "its file system cannot do that (locks?). Set INTERLOCK_HOME to a folder on a local disk"
        case errno.EMFILE | errno.ENFILE:
            why = "too many files are open. Raise the limit (ulimit -n) or end some processes"
        case _:
            why = f"{error.strerror or type(error).__name__}. Check the disk, or set INTERLOCK_HOME to another folder"
    return StoreTrouble(error.errno, f"cannot {doing} in {folder}: {why}. What was stored before is unchanged.", folder)


def present(folder: Path) -> bool:
    """Whether the folder is there; tightened to 0700 where it is ours and wider. Raises StoreTrouble where it is not ours.

    Ours: a real folder (no link) that this user owns. Root may use any user's: new files then get that user as owner.
    """
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        return False
    except NotADirectoryError as error:
        raise StoreTrouble(error.errno, f"a part of {folder} is a file. Move it away.", folder) from error
    except OSError as error:
        raise trouble(error, folder, "look for grants") from error
    if stat.S_ISLNK(status.st_mode) or not stat.S_ISDIR(status.st_mode):
        text = f"{folder} is a link or no folder, so grants are neither read from it nor written to it. Move it away."
        raise StoreTrouble(errno.ELOOP, text, folder)
    if sys.platform != "win32":
        user = os.geteuid()
        if user not in (0, status.st_uid):
            text = (
                f"{folder} belongs to user {status.st_uid}, and this process runs as user {user}: grants are neither read"
                " from it nor written to it. Make it yours (chown), or set INTERLOCK_HOME to another folder."
            )
            raise StoreTrouble(errno.EPERM, text, folder)
        if stat.S_IMODE(status.st_mode) & 0o777 != 0o700:
            _tighten(folder)
    return True


def make(folder: Path) -> None:
    """The folder, 0700 under any umask, with the folders above it. Raises StoreTrouble."""
    if not present(folder):
        create_missing(folder)
        present(folder)


def create_missing(folder: Path) -> None:
    """Whatever is missing of the folder and those above it, each 0700. What is there stays as it is. Raises StoreTrouble."""
    missing: list[Path] = []
    above = folder
    while not os.path.lexists(above):
        missing.append(above)
        above = above.parent
    try:
        for each in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(each, 0o700)
                # A umask may have taken the owner's own rights away.
                os.chmod(each, 0o700)
                _give_to_owner_of(each.parent, each)
    except OSError as error:
        raise trouble(error, folder, "make the folder") from error


def read(path: Path) -> bytes | None:
    """The content; None where there is no such file. Tightens modes that are wider than 0600.

    Raises Unfit where it cannot be ours, and StoreTrouble where it cannot be read now.
    """
    if not hasattr(os, "O_NOFOLLOW") and os.path.islink(path):
        raise Unfit("a link")
    try:
        descriptor = _patiently(lambda: os.open(path, _READ))
    except FileNotFoundError:
        return None
    except OSError as error:
        # O_NOFOLLOW says ELOOP, and EMLINK on FreeBSD.
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise Unfit("a link") from error
        if isinstance(error, PermissionError):
            return _read_refused(path, error)
        raise trouble(error, path.parent, f"read {path.name}") from error
    try:
        _check(os.fstat(descriptor), path, descriptor)
        content = bytearray()
        while chunk := os.read(descriptor, 64 * 1024):
            content += chunk
            if len(content) > LIMIT:
                raise Unfit("longer than any file of ours")
        return bytes(content)
    except OSError as error:
        raise trouble(error, path.parent, f"read {path.name}") from error
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes, reserved: Reserved | None = None) -> None:
    """Replace the file in one step: whoever reads sees the old content or the new, also after a crash. Raises StoreTrouble.

    Its time of change always differs from the one before. The folder has to be there (`make`).
    """
    temporary = reserved or Reserved(path, 0)
    try:
        temporary.fill(content)
        _patiently(lambda: os.replace(temporary.path, path))
    except OSError as error:
        raise trouble(error, path.parent, f"write {path.name}") from error
    finally:
        temporary.give_up()
    _sync(path.parent)


class Reserved:
    """A temporary file with room for `size` bytes: space that is taken before the step that must not be lost."""

    def __init__(self, path: Path, size: int) -> None:
        self.target = path
        self.path = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            self._descriptor: int | None = os.open(self.path, _CREATE, 0o600)
            try:
                _own(self._descriptor, path.parent)
                if size:
                    _write_all(self._descriptor, b"\0" * size)
                    os.fsync(self._descriptor)
            except BaseException:
                self.give_up()
                raise
        except OSError as error:
            raise trouble(error, path.parent, f"write {path.name}") from error

    def fill(self, content: bytes) -> None:
        """Put the content in, on the disk and not only on its way there. Raises OSError. Once only."""
        if self._descriptor is None:
            raise ValueError("already used")
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        _write_all(self._descriptor, content)
        os.ftruncate(self._descriptor, len(content))
        os.fsync(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None
        now = time.time_ns()
        with contextlib.suppress(FileNotFoundError):
            # Two changes within one tick of the file system's clock would look like none.
            now = max(now, os.lstat(self.target).st_mtime_ns + 1000)
        with contextlib.suppress(OSError):
            os.utime(self.path, ns=(now, now))

    def give_up(self) -> None:
        """Remove it where it was not put in place. Never raises."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
        with contextlib.suppress(OSError):
            os.unlink(self.path)


def remove(path: Path) -> bool:
    """Whether there was such a file (or link), which is gone now. Raises StoreTrouble."""
    try:
        _patiently(lambda: os.unlink(path))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise trouble(error, path.parent, f"remove {path.name}") from error
    _sync(path.parent)
    return True


def set_aside(path: Path, word: str) -> Path | None:
    """Rename the file (a link itself, not what it points to), so that nothing is lost; None where it cannot be. Never raises.

    The newest three of one word stay.
    """
    when = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"{path.name}.{word}-{when}-{secrets.token_hex(2)}")
    try:
        os.rename(path, aside)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        earlier = sorted(name for name in os.listdir(path.parent) if name.startswith(f"{path.name}.{word}-"))
        for name in earlier[:-KEPT_ASIDE]:
            os.unlink(path.with_name(name))
    return aside


def sweep(folder: Path, held: str | None = None) -> None:
    """Remove temporary files that killed processes left behind. Never raises.

    `held`: the file that only the caller may write now (it holds the lock), whose temporary files are stale at any age.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _TEMPORARY.fullmatch(entry.name)
            if found is None:
                continue
            with contextlib.suppress(OSError):
                age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                # A file from the future was made before the clock was set back.
                if found["name"] == held or not -STALE_SECONDS < age < STALE_SECONDS:
                    os.unlink(entry.path)


def owned_file(path: Path) -> None:
    """See that an empty file of that name is there, 0600, ours. Never replaces one. Raises StoreTrouble, also for a link."""
    try:
        descriptor = os.open(path, _CREATE, 0o600)
    except FileExistsError:
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise trouble(error, path.parent, f"use {path.name}") from error
        if not stat.S_ISREG(status.st_mode):
            raise StoreTrouble(errno.ELOOP, f"{path} is a link or no plain file. Remove it.", path) from None
        if sys.platform != "win32" and status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) != 0o600:
            with contextlib.suppress(OSError):
                os.chmod(path, 0o600)
    except OSError as error:
        raise trouble(error, path.parent, f"make {path.name}") from error
    else:
        try:
            _own(descriptor, path.parent)
        finally:
            os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _own(descriptor: int, folder: Path) -> None:
    """0600 whatever the umask; for root in another user's folder: that user's."""
    if sys.platform != "win32":
        os.fchmod(descriptor, 0o600)
        if os.geteuid() == 0:
            owner = os.stat(folder)
            if owner.st_uid != 0:
                os.fchown(descriptor, owner.st_uid, owner.st_gid)


def _give_to_owner_of(folder: Path, path: Path) -> None:
    if sys.platform != "win32" and os.geteuid() == 0:
        owner = os.stat(folder)
        if owner.st_uid != 0 and not owner.st_mode & stat.S_ISVTX:
            os.chown(path, owner.st_uid, owner.st_gid)


def _tighten(folder: Path) -> None:
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)
    if stat.S_IMODE(os.lstat(folder).st_mode) & 0o077:
        text = (
            f"{folder} is open to other users, and its file system keeps no stricter mode: no grant is read from it or"
            " written to it. Set INTERLOCK_HOME to a folder on a file system with permissions."
        )
        raise StoreTrouble(errno.EPERM, text, folder)


def _check(status: os.stat_result, path: Path, descriptor: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unfit("no plain file")
    if status.st_size > LIMIT:
        raise Unfit("longer than any file of ours")
    if sys.platform != "win32":
        user = os.geteuid()
        if status.st_uid != user and not (user == 0 and status.st_uid == os.stat(path.parent).st_uid):
            raise Unfit(f"user {status.st_uid} owns it")
        if stat.S_IMODE(status.st_mode) & 0o077:
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, 0o600)


def _read_refused(path: Path, error: PermissionError) -> bytes | None:
    """Our own file without its modes (a hostile umask, a copy) is repaired once; another user's is unfit."""
    try:
        status = os.lstat(path)
        if sys.platform == "win32":
            raise trouble(error, path.parent, f"read {path.name}") from error
        if stat.S_ISLNK(status.st_mode):
            raise Unfit("a link") from error
        if status.st_uid != os.geteuid():
            raise Unfit(f"user {status.st_uid} owns it") from error
        if stat.S_IMODE(status.st_mode) & 0o400:
            raise trouble(error, path.parent, f"read {path.name}") from error
        os.chmod(path, 0o600)
    except FileNotFoundError:
        return None
    except OSError as again:
        raise trouble(again, path.parent, f"read {path.name}") from again
    return read(path)


def _patiently(step: Callable[[], _Done]) -> _Done:
    """On Windows, a file that another process replaces or reads this moment refuses; elsewhere nothing is tried twice."""
    for _ in range(_WINDOWS_TRIES if sys.platform == "win32" else 0):
        try:
            return step()
        except PermissionError:
            time.sleep(_WINDOWS_PAUSE)
    return step()


def _sync(folder: Path) -> None:
    """The rename itself survives a power cut. Not every file system can, and the change is made already."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def newest(folder: Path, prefix: str, suffix: str) -> list[tuple[int, str]]:
    """(time of change in nanoseconds, name) of the files named so, newest first. Never raises."""
    found: list[tuple[int, str]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(suffix):
                with contextlib.suppress(OSError):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
    return sorted(found, reverse=True)
