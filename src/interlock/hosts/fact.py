"""A fact about a host, with how it is known. What nobody has established is None: never a guess, never `no`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

EVIDENCE = {
    "D": "the host's documentation",
    "S": "the host's source code",
    "O": "observed by running the host",
    "T": "told by a third party",
    "X": "sources conflict",
    "U": "unknown",
}


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """`evidence` is made of the letters of EVIDENCE, the strongest first, as in `OS`."""

    value: T | None
    evidence: str
    note: str = ""
    """What else is known: the version, the exception, the other reading."""
    source: str = ""
    """Where it stands: a page, a file of the source, an issue. Empty: one of the adapter's `sources`."""

    def __post_init__(self) -> None:
        if not self.evidence or set(self.evidence) - set(EVIDENCE):
            raise ValueError(f"evidence {self.evidence!r}")
        if self.value is None and not set(self.evidence) & {"U", "X"}:
            raise ValueError("a fact without a value is unknown (U), or its sources conflict (X)")

    @property
    def known(self) -> bool:
        return self.value is not None


def unknown(note: str = "", source: str = "") -> Fact[T]:
    """Nobody has established it. `note` names the test that would tell."""
    return Fact(None, "U", note, source)
