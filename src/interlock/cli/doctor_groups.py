"""Findings of `interlock doctor` that have one remedy as one: what was seen, the places of each, and the remedy once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlock.cli.inventory_text import short_path

if TYPE_CHECKING:
    from interlock.doctor.finding import Finding, Severity
    from interlock.hosts.machine import Machine

_HEAD, _INDENT = 10, 6
_MANY = 6
"""Places of one remedy that are named; more are counted."""


@dataclass(frozen=True, slots=True)
class Group:
    """Of one check, one severity and one remedy."""

    findings: tuple[Finding, ...]

    @property
    def severity(self) -> Severity:
        return self.findings[0].severity

    def lines(self, machine: Machine, width: int, *, why: bool) -> list[str]:
        """The first without its indent: the word for the severity goes there."""
        seen: dict[str, list[Finding]] = {}
        for each in self.findings:
            seen.setdefault(each.seen, []).append(each)
        first = self.findings[0]
        told = [f"{_short(text, machine)}{_places(each, machine)}" for text, each in seen.items()]
        if len(told) == 1:
            lines = textwrap.wrap(
                f"{first.check}: {told[0]}", width - 1, initial_indent=" " * _HEAD, subsequent_indent=" " * _INDENT,
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
        else:
            lines = [f"{' ' * _HEAD}{first.check}:"]
            for text in told:
                lines += _wrapped(f"- {text}", width)
        if self.severity != "ok":
            reasons = list(dict.fromkeys(each.why for each in self.findings if each.why)) if why else []
            for reason in reasons:
                lines += _wrapped(f"why: {_short(reason, machine)}", width)
            if first.todo:
                lines += _wrapped(f"fix: {_short(first.todo, machine)}", width)
        lines[0] = lines[0][_HEAD:]
        return lines


def groups(findings: Sequence[Finding]) -> list[Group]:
    """In the order of the first of each."""
    found: dict[tuple[str, ...], list[Finding]] = {}
    for number, each in enumerate(findings):
        alone = "" if each.todo and each.severity != "ok" else str(number)
        found.setdefault((each.check, each.severity, each.todo, alone), []).append(each)
    return [Group(tuple(each)) for each in found.values()]


def without_repeats(findings: Sequence[Finding]) -> list[Finding]:
    """Without the entries that one fault takes down, where the fault itself is told with their names; and of a file that
    several hosts read each finding once for each host."""
    faults = {(each.host, each.where) for each in findings if each.check == "blast-radius"}

    def by_fault(each: Finding) -> bool:
        return each.check == "host-entry" and any(
            each.host == host and (each.where == where or f"({where})" in each.seen) for host, where in faults
        )

    return [each for each in findings if not by_fault(each)]


def next_lines(step: Finding, machine: Machine, width: int) -> list[str]:
    """Where, what is wrong there, and what to do: the first line goes behind a word of six letters."""
    where = ", ".join(filter(None, (step.host, f"`{step.server}`" if step.server else "", _short(step.where, machine))))
    seen = _short(step.seen, machine).rstrip(".")
    return _joined([f"{where}: {seen}." if where else f"{seen}.", _short(step.todo, machine)], width)


def _joined(parts: Sequence[str], width: int) -> list[str]:
    lines = textwrap.wrap(
        "Next: " + " ".join(parts), width - 1, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    lines[0] = lines[0].removeprefix("Next: ")
    return lines


def _places(findings: Sequence[Finding], machine: Machine) -> str:
    """Where; and whose entry it is, where the text does not say so and there is one place."""
    whose: dict[str, list[str]] = {}
    for each in findings:
        names = whose.setdefault(_short(each.where, machine), [])
        who = ": ".join(filter(None, (each.host, each.server)))
        if who and who not in names and f"`{each.server}`" not in each.seen:
            names.append(who)
    listed = [place for place in whose if place]
    if len(whose) == 1:
        ((place, names),) = whose.items()
        listed = [", ".join(names), place]
    if len(listed) > _MANY:
        listed = [*listed[:_MANY], f"and {len(listed) - _MANY} more"]
    inside = ", ".join(filter(None, listed))
    return f"  [{inside}]" if inside else ""


def _short(text: str, machine: Machine) -> str:
    """Paths as the inventory shows them, also inside of a sentence; not where they are quoted, to be typed or written."""

    def shorter(found: re.Match[str]) -> str:
        return short_path(found[0], machine)

    roots = "|".join(
        re.escape(folder.rstrip("/\\")) for folder in (machine.folder, machine.home) if folder.strip("/\\")
    )
    if not roots:
        return text
    return re.sub(rf"""(?<![\w.~/\\`"'=-])(?:{roots})[/\\][^\s`"'(),;\[\]]+""", shorter, text)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width - 1, initial_indent=" " * _INDENT, subsequent_indent=" " * (_INDENT + 2), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
