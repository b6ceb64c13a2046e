"""What commands print: tables and colour for people where a terminal is there, JSON for machines."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def console(*, stderr: bool = False) -> Console:
    """A rich console; wide where the output goes to a pipe, so that nothing is cut."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else 200, highlight=False, soft_wrap=False)


def print_json(value: object) -> None:
    """One JSON value on standard output, indented, not escaped beyond need."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def complain(text: str) -> None:
    """A line for people on standard error."""
    sys.stderr.write(f"interlock: {text}\n")
