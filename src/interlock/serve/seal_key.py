"""The key that requestState is sealed with: made once, kept in Interlock's home (0600), so that a restart breaks no round."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

from interlock.serve import own_home

FILE_NAME = "state.key"


def seal_key(home: Path) -> bytes:
    """The key; a fresh one for this run only where the home cannot be written."""
    file = home / FILE_NAME
    with contextlib.suppress(OSError):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for _ in range(2):
            try:
                key = _read(file, home)
                if len(key) == 32:
                    return key
                file.unlink()  # damaged, a link, or one that others know or made
            except FileNotFoundError:
                pass
            with contextlib.suppress(FileExistsError):
                # Exclusive: of two processes that start at once, one makes the key and the other reads it.
                descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as out:
                    out.write(secrets.token_bytes(32))
    return secrets.token_bytes(32)


def _read(file: Path, home: Path) -> bytes:
    """The key, or nothing where the file is not one that only we can have written. Raises FileNotFoundError."""
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno == errno.ELOOP:
            return b""
        raise
    with open(descriptor, "rb") as key:
        return key.read(64) if own_home.is_private(descriptor, home) else b""
