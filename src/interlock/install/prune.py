"""Removing copies that nobody needs: all but the current one and the one before, unless a process still runs from them."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from interlock.install import record
from interlock.install.places import Places, is_copy_name, read_current

KEEP = 2
UNFINISHED = ".laying-"
_REMOVED = ".removed-"
_ABANDONED_SECONDS = 3600.0
"""A workshop this old was left by a process that was killed: laying is done under a lock and takes seconds."""


class Copy(NamedTuple):
    name: str
    laid_at: float
    """Seconds since the epoch; 0 where its record cannot be read."""


def copies(places: Places) -> list[Copy]:
    """The copies that are there, the one laid last first."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir(places.app):
            if is_copy_name(name):
                try:
                    found.append(Copy(name, record.read(places.copy(name)).laid_at))
                except record.Foreign:
                    found.append(Copy(name, 0.0))
    return sorted(found, key=lambda copy: (copy.laid_at, copy.name), reverse=True)


def prune(places: Places, keep: Iterable[str | None] = ()) -> list[str]:
    """Remove old copies; call it under the lock. Returns the removed builds. What cannot be removed stays for next time."""
    current = read_current(places)
    staying = {name for name in keep if name is not None}
    if current is not None:
        staying.add(current.name)
    for copy in copies(places):
        if len(staying) >= KEEP:
            break
        staying.add(copy.name)
    removed = [copy.name for copy in copies(places) if copy.name not in staying and _remove(places, copy.name)]
    _sweep(places)
    return removed


def set_aside(places: Places, name: str) -> None:
    """Take a copy out of the way, and remove it once nothing runs from it. Raises OSError (Windows, in use)."""
    aside = tempfile.mkdtemp(prefix=_REMOVED, dir=places.app)
    os.rename(places.copy(name), os.path.join(aside, name))
    _discard(aside)


def _discard(aside: str) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(aside):
            with _unused(os.path.join(aside, name, record.IN_USE)) as unused:
                if not unused:
                    return
        shutil.rmtree(aside, ignore_errors=True)


def _remove(places: Places, name: str) -> bool:
    with _unused(os.path.join(places.copy(name), record.IN_USE)) as unused:
        if not unused:
            return False
        aside = tempfile.mkdtemp(prefix=_REMOVED, dir=places.app)
        try:
            os.rename(places.copy(name), os.path.join(aside, name))
        except OSError:
            return False
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return True


@contextlib.contextmanager
def _unused(file: str) -> Iterator[bool]:
    """Whether no process holds the copy's lock; while the block runs, none can take it (start.py)."""
    if sys.platform == "win32":
        yield True  # renaming fails there while a file of the copy is open
        return
    import fcntl

    try:
        descriptor = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        yield True
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        yield False
        return
    try:
        yield True
    finally:
        os.close(descriptor)


def _sweep(places: Places) -> None:
    """What killed processes left behind."""
    with contextlib.suppress(OSError):
        for name in os.listdir(places.app):
            path = os.path.join(places.app, name)
            if name.startswith(_REMOVED):
                _discard(path)
            elif name.startswith(UNFINISHED) and time.time() - os.stat(path).st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
