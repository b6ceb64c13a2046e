"""What commands print: tables and colour for people where a terminal is there, JSON for machines."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def console(*, stderr: bool = False, width: int = 200, soft_wrap: bool = False) -> Console:
    """A rich console; `width` columns where the output goes to a pipe, so that nothing is cut."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end with exit code 1; `main` knows better

    stream = sys.stderr if stderr else sys.stdout
    return Piped(stderr=stderr, width=None if stream.isatty() else width, highlight=False, soft_wrap=soft_wrap)


def print_json(value: object) -> None:
    """One JSON value on standard output, indented, not escaped beyond need."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def safe(stream: TextIO, text: str) -> str:
    """Text of others: on a terminal nothing in it may move the cursor or hide what is around it; a pipe gets it as it is."""
    if not stream.isatty():
        return text
    from interlock.journal.printable import printable

    return "".join(char if char in "\n\t" else printable(char) for char in text)


def complain(text: str) -> None:
    """A line for people on standard error."""
    sys.stderr.write(f"interlock: {text}\n")
