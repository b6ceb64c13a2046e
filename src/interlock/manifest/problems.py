"""What is wrong in a manifest, said so that a person can mend it: where, which field, what, and what to write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding. `line` and `column` count from 1; both are 0 where the whole file is meant.

    `field` is a dotted path (`policy.toolTimeoutSeconds`, `capability.tools.allow[2]`) or empty. `write` is the text to
    put there, or what to do; it may be empty. `code` is stable and meant for machines. No text here holds a value that
    may be a secret.
    """

    file: Path
    line: int
    column: int
    field: str
    what: str
    write: str
    severity: Severity
    code: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}" if self.line else str(self.file)
        field_part = f"{self.field}: " if self.field else ""
        advice = f" Write: {self.write}" if self.write else ""
        return f"{where}: {self.severity}: {field_part}{self.what}{advice}"

    def as_dict(self) -> Mapping[str, str | int]:
        """For `--json`."""
        return {
            "file": str(self.file),
            "line": self.line,
            "column": self.column,
            "field": self.field,
            "what": self.what,
            "write": self.write,
            "severity": self.severity,
            "code": self.code,
        }


MOST = 100
"""Problems listed of one file; the rest are counted."""


@dataclass(slots=True)
class Report:
    """Collects the problems of one file."""

    file: Path
    problems: list[Problem] = field(default_factory=list)
    errors: int = 0

    def add(
        self,
        code: str,
        what: str,
        *,
        write: str = "",
        field: str = "",
        at: tuple[int, int] = (0, 0),
        severity: Severity = "error",
    ) -> None:
        """`at` is line and column, from 1."""
        self.errors += severity == "error"
        if len(self.problems) == MOST:
            code, what, write, field = (
                "too-many",
                f"There are more than {MOST} problems here; the rest are not listed.",
                "",
                "",
            )
        elif len(self.problems) > MOST:
            return
        self.problems.append(Problem(self.file, at[0], at[1], field, what, write, severity, code))
