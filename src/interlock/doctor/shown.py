"""Texts of others in a finding: cut, on one line, nothing in it that a terminal would obey, no secret of a known shape."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from interlock.journal.printable import printable
from interlock.journal.redact import redact


def shown(text: str, most: int = 200) -> str:
    clean = printable(" ".join(redact(text).split()))
    return clean if len(clean) <= most else f"{clean[: most - 1]}…"


def without_limits(text: str) -> str:
    """An error's words without the sentence that names a limit: where time went is told first, and who may have more of it last."""
    return " ".join(part for part in re.split(r"(?<=[.!?])\s+", text) if "TimeoutSeconds" not in part)


def listed(names: Iterable[str], most: int = 5) -> str:
    """The first few, and how many more there are."""
    every = [shown(name, 80) for name in names]
    more = len(every) - most
    return ", ".join(every[:most]) + (f" and {more} more" if more > 0 else "")


def near(word: str, names: Iterable[str], most: int = 3) -> list[str]:
    """Names that may have been meant, the likeliest first."""
    every = list(dict.fromkeys(names))
    folded = {name.lower(): name for name in reversed(every)}
    found = difflib.get_close_matches(word.lower(), folded, most, 0.6)
    found += [name for name in folded if name not in found and len(word) > 2 and word.lower() in name]
    return [folded[name] for name in found[:most]]


def count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
