"""The database as a file: made for its owner alone, recognised again, and set aside when damaged, never deleted."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_COMPANIONS = ("-wal", "-shm")
"""Files that SQLite keeps beside the database. They are found by name, so they are renamed with it, and before it."""

_PATIENCE_SECONDS = 5.0

Identity = tuple[int, int]
"""Device and inode: the same path may lead to another file after a rename or a delete."""


def identity(path: Path) -> Identity | None:
    """Which file the path leads to now, or None where there is none."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (found.st_dev, found.st_ino)


def create_private(path: Path) -> None:
    """Make sure that folder (0700 where we make it) and file (0600) exist. SQLite gives its companions the file's mode.

    An existing database is never opened and closed here: on POSIX, closing any descriptor of a file drops the locks
    that SQLite holds on it elsewhere in this process (sqlite.org/howtocorrupt.html, section 2.2).
    """
    _refuse_foreign_link(path)
    if not path.parent.is_dir():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if os.name == "posix":
            mode = path.stat().st_mode
            if path.is_file() and mode & 0o077:
                with contextlib.suppress(PermissionError):
                    path.chmod(mode & 0o700)


def _refuse_foreign_link(path: Path) -> None:
    """A link that somebody else has planted would have our records written into a file of theirs. Raises OSError."""
    if os.name != "posix":
        return
    try:
        status = os.lstat(path)
    except OSError:
        return
    if stat.S_ISLNK(status.st_mode) and status.st_uid not in (os.geteuid(), 0):
        raise OSError(errno.ELOOP, "this is a link that another user made; remove it", str(path))


@contextlib.contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """Hold the lock file beside the database while it is opened or replaced: two processes never do both at once.

    Opening takes milliseconds and the kernel frees the lock when its holder dies, so that a long wait means a stopped
    process: TimeoutError after `_PATIENCE_SECONDS`.
    """
    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while not _try_lock(descriptor):
            if time.monotonic() >= give_up:
                raise TimeoutError(f"another process has been opening {path} for {_PATIENCE_SECONDS:.0f} s")
            time.sleep(0.005)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    if sys.platform == "win32":
        import msvcrt

        attempt = functools.partial(msvcrt.locking, descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        attempt = functools.partial(fcntl.flock, descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        attempt()
    except (BlockingIOError, PermissionError):
        # The second is how Windows says that another process holds it.
        return False
    return True


def set_aside(path: Path, seen: Identity | None) -> Path | None:
    """Rename the damaged file and its companions to `NAME.corrupt-TIME`; call it under `exclusively`.

    Returns the new path, or None where the path no longer leads to `seen`: another process has replaced it already.
    """
    if seen is None or identity(path) != seen:
        return None
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    target = path.with_name(f"{path.name}.corrupt-{stamp}")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.corrupt-{stamp}-{number}")
    # Companions first: a new database must never find the old one's log under its name.
    for suffix in _COMPANIONS:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    path.rename(target)
    return target
