"""What one check found: what was seen, where, why it matters, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from interlock.model.stage import Stage

Severity = Literal["ok", "note", "warning", "problem", "unknown"]
"""`problem`: calls fail, or will. `warning`: they may. `note`: worth knowing. `unknown`: it could not be found out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report. No text holds a secret; texts of others are cut and have no control characters."""

    check: str
    stage: Stage
    severity: Severity
    seen: str
    where: str = ""
    """A file, URL, address or process."""
    why: str = ""
    todo: str = ""

    def as_dict(self) -> Mapping[str, str]:
        """For `--json`."""
        return {
            "check": self.check,
            "stage": self.stage.value,
            "severity": self.severity,
            "seen": self.seen,
            "where": self.where,
            "why": self.why,
            "todo": self.todo,
        }
