"""Which Interlock this is: the version and a hash of the installed files, so that two builds of one version differ."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from interlock import __version__


def build() -> str:
    """`vX.Y.Z+HASH`, twelve hex digits over the names and contents of the package's files. Never raises.

    The hash is `unread` where the files cannot be read now: errors that name the build are wanted then above all.
    """
    try:
        return _build()
    except OSError:
        return f"v{__version__}+unread"


@cache
def _build() -> str:
    root = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*")):
        if file.suffix == ".pyc" or not file.is_file():
            continue
        content = file.read_bytes()
        digest.update(b"%b\0%d\0" % (file.relative_to(root).as_posix().encode(), len(content)))
        digest.update(content)
    return f"v{__version__}+{digest.hexdigest()[:12]}"
