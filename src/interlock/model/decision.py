"""What a gate answers, and how answers combine: the strictest wins, and no gate can loosen another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Answer(IntEnum):
    """Ordered by strictness, so that `max` is the combination rule."""

    ALLOW = 0
    ASK = 1
    DENY = 2

    @property
    def word(self) -> str:
        return _WORDS[self]


_WORDS = ("allow", "ask", "deny")


@dataclass(frozen=True, slots=True)
class Decision:
    """One gate's answer. `rule` is the deciding line as `file:line`, or None where a default decided."""

    answer: Answer
    gate: str
    reason: str
    rule: str | None = None
    always: bool = False
    """True where the manifest says `always`: only a person at hand may answer, never a `--yes`."""


def strictest(decisions: Iterable[Decision]) -> Decision:
    """The strictest decision: of several denials the first, of several that allow the last, which is the most particular.

    No decision at all counts as `ask` (docs/manifest.md, Policy).
    """
    best: Decision | None = None
    for decision in decisions:
        if best is None or decision.answer > best.answer or _more_particular(decision, best):
            best = decision
    return best or Decision(Answer.ASK, "none", "no gate answered, which counts as ask")


def _more_particular(decision: Decision, than: Decision) -> bool:
    """True where it says the same and more: the later of two that allow, or `always` where the other only asks."""
    if decision.answer != than.answer:
        return False
    return decision.answer is Answer.ALLOW or (decision.always and not than.always)
