"""Room for connections and processes: each costs descriptors, and the usual soft limits (256 to 1,024) are soon used up."""

from __future__ import annotations

import sys
from typing import Final

WANTED: Final = 8192
"""Enough for every connection, session and process that Interlock itself allows."""


def make_room(wanted: int = WANTED) -> None:
    """Raise this process's soft limit of open files as far as the system lets it, and never lower it."""
    if sys.platform == "win32":
        return  # no such limit
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return  # a sandbox forbids it: what is there has to do
