"""One lock a target file, so that processes that change the same file at once come one after another.

The locks are files in Interlock's home and not beside the target: a host may watch its folder. They stay there for good;
who removed one would let the next process lock another file of the same name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from interlock.hosts.changes.refused import Refused

SECONDS = 120.0
"""Longer than a long queue of processes needs; a process that dies lets its locks go at once."""
_POLL_SECONDS = 0.01


@contextmanager
def locked(home: Path, targets: Sequence[str]) -> Iterator[None]:
    """Hold the locks of these real paths, taken in one order by everybody so that nobody waits in a circle. Raises Refused."""
    from filelock import FileLock, Timeout

    folder = home / "locks"
    private_folder(home)
    private_folder(folder)
    names = {hashlib.sha256(os.path.normcase(target).encode("utf-8", "surrogateescape")).hexdigest()[:32]: target
             for target in targets}  # fmt: skip
    with ExitStack() as held:
        for name in sorted(names):
            # One object each time: the kernel then tells two threads of one process apart as it does processes.
            lock = FileLock(
                folder / f"{name}.lock", mode=0o600, thread_local=False, fallback_to_soft=False, preserve_lock_file=True
            )
            try:
                held.enter_context(lock.acquire(timeout=SECONDS, poll_interval=_POLL_SECONDS))
            except Timeout:
                raise Refused(names[name], f"another Interlock has been changing it for {SECONDS:g} seconds") from None
            except OSError as error:
                raise Refused(names[name], f"it cannot be locked in {folder}: {error.strerror or error}") from None
        yield


def private_folder(path: Path) -> None:
    """Make it, for its owner alone. Raises Refused."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise Refused(str(path), f"the folder cannot be made: {error.strerror or error}") from None
