"""SQLite's and the system's errors as `StoreError`: the kind of trouble, and words that name the file and the cause."""

from __future__ import annotations

import errno

from interlock.store.interface import StoreError, Trouble

# Primary result codes, sqlite.org/rescode.html.
_BY_CODE: dict[int, Trouble] = {
    3: "unwritable",  # PERM
    5: "busy",  # BUSY
    6: "busy",  # LOCKED
    8: "unwritable",  # READONLY
    11: "damaged",  # CORRUPT
    13: "full",  # FULL
    14: "unwritable",  # CANTOPEN
    15: "busy",  # PROTOCOL
    26: "damaged",  # NOTADB
}
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SAYING: dict[Trouble, str] = {
    "full": "the disk is full",
    "unwritable": "it cannot be opened or written",
    "busy": "another process keeps it locked",
    "damaged": "the file is damaged",
}


def explained(error: Exception, where: str) -> StoreError:
    """`error` is a sqlite3.Error or an OSError. A StoreError comes back as it is."""
    if isinstance(error, StoreError):
        return error
    trouble: Trouble = "failed"
    cause = str(error)
    if isinstance(error, TimeoutError):
        trouble = "busy"
    elif isinstance(error, OSError):
        trouble = "full" if error.errno in _FULL else "unwritable"
        cause = error.strerror or cause
    else:
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(code, int):
            # The extended code's low byte is the primary one.
            trouble = _BY_CODE.get(code & 0xFF, "failed")
    saying = _SAYING.get(trouble)
    return StoreError(trouble, f"{where}: {saying} ({cause})" if saying else f"{where}: {cause}")
