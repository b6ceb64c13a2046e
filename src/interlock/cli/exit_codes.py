"""Exit codes, stable across releases (docs/exit-codes.md)."""

from __future__ import annotations

from typing import Final

OK: Final = 0
TOOL_ERROR: Final = 1
USAGE: Final = 2
DENIED: Final = 3
NEEDS_APPROVAL: Final = 4
NEVER_REACHED: Final = 5
WAIT: Final = 6
OUTCOME_UNKNOWN: Final = 7
CONFIGURATION: Final = 8

OF_VERDICT: Final = {"never_reached": NEVER_REACHED, "wait": WAIT, "outcome_unknown": OUTCOME_UNKNOWN}
