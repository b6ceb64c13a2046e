"""What may have become of a call that did not return an answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal


class Verdict(StrEnum):
    """Three words, and the advice that goes with each (docs/errors.md, Verdicts)."""

    NEVER_REACHED = "never_reached"
    WAIT = "wait"
    OUTCOME_UNKNOWN = "outcome_unknown"


Retry = Literal["safe", "never", "later", "check-first"]

_SEVERITY = {Verdict.NEVER_REACHED: 0, Verdict.WAIT: 1, Verdict.OUTCOME_UNKNOWN: 2}


def worst(first: Verdict, second: Verdict) -> Verdict:
    """The verdict that stands after a retry: the worse of the two."""
    return first if _SEVERITY[first] >= _SEVERITY[second] else second
