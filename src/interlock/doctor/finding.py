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
    """A file (with its line where one is known), URL, address or process."""
    why: str = ""
    todo: str = ""
    """What to do, a command where there is one."""
    server: str = ""
    host: str = ""

    def as_dict(self) -> Mapping[str, str]:
        """For `--json` of `doctor bridge`."""
        return {
            "check": self.check,
            "stage": self.stage.value,
            "severity": self.severity,
            "seen": self.seen,
            "where": self.where,
            "why": self.why,
            "todo": self.todo,
        }

    def as_row(self) -> Mapping[str, str | None]:
        """For `--json` of all others: also whom it is about."""
        return {**self.as_dict(), "server": self.server or None, "host": self.host or None}


@dataclass(frozen=True, slots=True)
class Check:
    """Which question a file of checks asks, and where it belongs: what all of its findings share."""

    name: str
    """Stable: machines look for it."""
    stage: Stage

    def found(
        self,
        severity: Severity,
        seen: str,
        where: object = "",
        why: str = "",
        todo: str = "",
        *,
        server: str = "",
        host: str = "",
        code: str = "",
    ) -> Finding:
        """`code` in place of the check's name, where one check asks for several things that have names of their own."""
        return Finding(
            check=code or self.name, stage=self.stage, severity=severity, seen=seen, where=str(where), why=why,
            todo=todo, server=server, host=host,
        )  # fmt: skip
