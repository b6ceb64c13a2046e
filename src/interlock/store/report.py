"""How the store and the journal tell people that something is wrong while calls go on being served."""

from __future__ import annotations

import sys
from collections.abc import Callable

Report = Callable[[str], None]
"""Takes one whole sentence or more. Called from any thread, also the journal's writer; it must not raise."""


def to_stderr(message: str) -> None:
    """The default. Standard error is free in every mode: a stdio host reads only standard output."""
    stream = sys.stderr
    if stream is not None:
        print(f"interlock: {message}", file=stream, flush=True)
