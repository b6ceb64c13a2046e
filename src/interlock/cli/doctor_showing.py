"""How findings of `interlock doctor` are shown to people."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from interlock.doctor.finding import Finding, Severity
    from interlock.hosts.machine import Machine

_MARKS: dict[Severity, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "note": ("note", "cyan"),
    "warning": ("warning", "yellow"),
    "problem": ("problem", "bold red"),
    "unknown": ("unknown", "magenta"),
}

_FEW = 12
"""Findings, at most, that are told with the reason why they matter, unless everything is asked for."""


def line(console: Console, each: Finding) -> None:
    """Of `doctor bridge`: what was seen and where; why it matters and what to do, below it."""
    from rich.text import Text

    word, colour = _MARKS[each.severity]
    where = f"  [{each.where}]" if each.where else ""
    console.print(Text.assemble("  ", (f"{word:<8}", colour), f"{each.check}: {each.seen}", (where, "dim")))
    for label, text in (("why", each.why), ("to do", each.todo)):
        if text and each.severity != "ok":
            console.print(Text.assemble(" " * 10, (f"{label}: ", "dim"), text))


def summary(findings: Sequence[Finding]) -> str:
    counts = {word: sum(each.severity == word for each in findings) for word in _MARKS}
    listed = [f"{count} {word}{'s' * (count != 1)}" for word in ("problem", "warning") if (count := counts[word])]
    return f"{', '.join(listed) or 'Nothing is wrong'}. Nothing was changed."


def show(
    title: str, findings: Sequence[Finding], machine: Machine, *, started: int, everything: bool, quiet: bool
) -> None:
    """By stage. Without `everything` only what is wrong, and what could not be found out where nothing else explains it."""
    from rich.text import Text

    from interlock.cli import output
    from interlock.cli.doctor_groups import groups, next_lines, without_repeats
    from interlock.doctor.examining import next_step

    width = 80
    if sys.stdout.isatty():
        width = max(60, min(shutil.get_terminal_size((80, 24)).columns, 120))
    console = output.console(width=width, soft_wrap=True)
    wanted: set[str] = {"problem"} if quiet else {"problem", "warning"}
    if everything:
        wanted = set(_MARKS)
    elif not quiet and not any(each.severity == "problem" for each in findings):
        wanted.add("unknown")
    findings = without_repeats(findings)
    console.print(Text(title, "bold"))
    shown = [each for each in findings if each.severity in wanted]
    reasons = everything or len(shown) <= _FEW
    for stage, of_stage in groupby(shown, key=lambda each: each.stage):
        console.print(Text(stage.upper(), "bold dim"))
        for group in groups(list(of_stage)):
            word, colour = _MARKS[group.severity]
            first, *rest = group.lines(machine, width, why=reasons)
            console.print(Text.assemble("  ", (f"{word:<8}", colour), first))
            for each in rest:
                console.print(Text(each))
    if shown:
        console.print()
    servers = f" {started} server{'s' * (started != 1)} started once and ended again." if started else ""
    console.print(summary(findings) + servers)
    hidden = sum(each.severity in ("note", "unknown") for each in findings) - sum(
        each.severity in ("note", "unknown") for each in shown
    )
    if hidden:
        console.print(f"{hidden} more to know: --all shows {'it' if hidden == 1 else 'them'}.")
    if not reasons:
        console.print("Why each of them matters: --all, or a question about one host or server.")
    step = next_step(findings)
    if step is not None:
        first, *rest = next_lines(step, machine, width)
        console.print(Text.assemble(("Next: ", "bold"), first))
        for each in rest:
            console.print(Text(each))


def list_symptoms(*, json: bool) -> None:
    from interlock.cli import output
    from interlock.doctor.symptoms import SYMPTOMS

    if json:
        output.print_json([{"symptom": each.slug, "words": each.words, "starts": each.starts} for each in SYMPTOMS])
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("symptom", "what it looks like"):
        table.add_column(column, overflow="fold")
    for each in SYMPTOMS:
        table.add_row(each.slug, each.words)
    output.console().print(table)
