"""Interlock's home is the user's own: what others could write there would decide what runs and who may call."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path


def take(home: Path) -> None:
    """Make the home where it is missing (0700), and take write access from others where they have it.

    Raises PermissionError where it belongs to another user. Root may use the home of whoever called it.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sys.platform == "win32":
        return
    status = os.stat(home)
    if status.st_uid != os.geteuid() and os.geteuid() != 0:
        raise PermissionError(
            errno.EPERM,
            f"this folder belongs to another user (uid {status.st_uid}); name your own with --home",
            str(home),
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.chmod(home, stat.S_IMODE(status.st_mode) & 0o700)
        sys.stderr.write(f"interlock: others could write {home}; they no longer can\n")


def is_private(descriptor: int, home: Path) -> bool:
    """True for a regular file that only its owner may open, who is this user or the home's owner."""
    status = os.fstat(descriptor)
    if sys.platform == "win32":
        return stat.S_ISREG(status.st_mode)
    owners = {os.geteuid(), os.stat(home).st_uid}
    return stat.S_ISREG(status.st_mode) and status.st_uid in owners and not status.st_mode & 0o077
