"""The kernel's lock on a file, tried without ever blocking the event loop. It ends with its process, however that ends.

Only `filelock.FileLock`, without its fallback: a lock that is a mere file has to be stolen by its age after a crash, and
two thieves make two holders.
"""

from __future__ import annotations

import asyncio
import errno
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.upstream.oauth import private_files
from interlock.upstream.oauth.private_files import StoreTrouble

if TYPE_CHECKING:
    from filelock import FileLock

POLL_SECONDS = 0.015
_SHORT_POLL_SECONDS = 0.002
_JUST_MADE_SECONDS = 1.0
"""For so long, a lock file that may not be opened may be one that another process is just giving its modes."""


class Busy(Exception):
    """The lock is held by somebody else for longer than the caller wanted to wait. Nothing was changed."""


@asynccontextmanager
async def locked(path: Path, seconds: float) -> AsyncIterator[None]:
    """Hold the lock file, against other processes and other tasks of this one. Raises Busy after `seconds`, StoreTrouble.

    Not re-entrant: a task that holds it and asks again waits for itself and gets Busy.
    """
    lock = _lock(path)
    started = time.monotonic()
    while not _taken(lock, path, time.monotonic() - started):
        left = started + seconds - time.monotonic()
        if left <= 0:
            raise Busy(_busy(path, seconds))
        # Not in step with each other, so that no process is always the later one.
        await asyncio.sleep(min(left, POLL_SECONDS * random.uniform(0.5, 1.5)))
    try:
        yield
    finally:
        _release(lock)


@contextmanager
def locked_now(path: Path, seconds: float) -> Iterator[None]:
    """The same for code that runs in no event loop. With 0 seconds: one try."""
    lock = _lock(path)
    started = time.monotonic()
    while not _taken(lock, path, time.monotonic() - started):
        left = started + seconds - time.monotonic()
        if left <= 0:
            raise Busy(_busy(path, seconds))
        time.sleep(min(left, _SHORT_POLL_SECONDS * random.uniform(0.5, 1.5)))
    try:
        yield
    finally:
        _release(lock)


def _busy(path: Path, seconds: float) -> str:
    return f"another process holds {path} for more than {seconds:g} seconds"


def _lock(path: Path) -> FileLock:
    from filelock import FileLock

    private_files.owned_file(path)
    # One object each time: the kernel then tells tasks of one process apart as it does processes. The file stays there
    # for good; who removed it would let the next one lock another file of the same name.
    return FileLock(path, mode=0o600, thread_local=False, fallback_to_soft=False, preserve_lock_file=True)


def _taken(lock: FileLock, path: Path, waited: float) -> bool:
    from filelock import Timeout

    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    except PermissionError as error:
        if waited < _JUST_MADE_SECONDS and error.errno in (errno.EACCES, None):
            return False
        raise private_files.trouble(error, path.parent, f"lock {path.name}") from error
    except StoreTrouble:
        raise
    except OSError as error:
        raise private_files.trouble(error, path.parent, f"lock {path.name}") from error
    return True


def _release(lock: FileLock) -> None:
    # A close that fails has let the lock go all the same.
    with suppress(OSError):
        lock.release(force=True)
