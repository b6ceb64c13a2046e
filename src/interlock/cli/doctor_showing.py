"""How findings of `interlock doctor` are shown to people."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from interlock.doctor.finding import Finding, Severity

_MARKS: dict[Severity, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "note": ("note", "cyan"),
    "warning": ("warning", "yellow"),
    "problem": ("problem", "bold red"),
    "unknown": ("unknown", "magenta"),
}


def line(console: Console, each: Finding, whose: Sequence[str] = ()) -> None:
    """What was seen and where; why it matters and what to do, below it. `whose`: entries that it is about."""
    from rich.text import Text

    word, colour = _MARKS[each.severity]
    where = f"  [{each.where}]" if each.where else ""
    if whose:
        where = f"  ({', '.join(whose)}){where}"
    console.print(Text.assemble("  ", (f"{word:<8}", colour), f"{each.check}: {each.seen}", (where, "dim")))
    for label, text in (("why", each.why), ("to do", each.todo)):
        if text and each.severity != "ok":
            console.print(Text.assemble(" " * 10, (f"{label}: ", "dim"), text))


def _told_once(findings: Sequence[Finding]) -> dict[Finding, list[str]]:
    """What is the same for several entries, such as one of a file that two hosts read, with all that it is about."""
    once: dict[tuple[str, ...], Finding] = {}
    whose: dict[Finding, list[str]] = {}
    for each in findings:
        key = (each.check, each.severity, each.seen, each.where, each.why, each.todo)
        entries = whose.setdefault(once.setdefault(key, each), [])
        # Many findings name their server already.
        named = not each.server or not each.host or f"`{each.server}`" in each.seen or each.server == each.where
        if not named and (entry := f"{each.host}: {each.server}") not in entries:
            entries.append(entry)
    return whose


def summary(findings: Sequence[Finding]) -> str:
    counts = {word: sum(each.severity == word for each in findings) for word in _MARKS}
    listed = [f"{count} {word}{'s' * (count != 1)}" for word in ("problem", "warning") if (count := counts[word])]
    return f"{', '.join(listed) or 'Nothing is wrong'}. Nothing was changed."


def show(title: str, findings: Sequence[Finding], *, started: int, everything: bool, quiet: bool) -> None:
    """By stage. Without `everything` only what is wrong, and what could not be found out where nothing else explains it."""
    from rich.text import Text

    from interlock.cli import output
    from interlock.doctor.examining import next_step

    console = output.console(width=160, soft_wrap=True)
    wanted: set[str] = {"problem"} if quiet else {"problem", "warning"}
    if everything:
        wanted = set(_MARKS)
    elif not quiet and not any(each.severity == "problem" for each in findings):
        wanted.add("unknown")
    console.print(Text(title, "bold"))
    whose = _told_once(findings)
    findings = list(whose)
    shown = [each for each in findings if each.severity in wanted]
    for stage, group in groupby(shown, key=lambda each: each.stage):
        console.print(Text(stage.upper(), "bold dim"))
        for each in group:
            line(console, each, whose[each])
    if shown:
        console.print()
    servers = f" {started} server{'s' * (started != 1)} started once and ended again." if started else ""
    console.print(summary(findings) + servers)
    hidden = sum(each.severity in ("note", "unknown") for each in findings) - sum(
        each.severity in ("note", "unknown") for each in shown
    )
    if hidden:
        console.print(f"{hidden} more to know: --all shows {'it' if hidden == 1 else 'them'}.")
    step = next_step(findings)
    if step is not None:
        where = f"  [{step.where}]" if step.where and step.where not in step.todo else ""
        console.print(Text.assemble(("Next: ", "bold"), step.todo, (f"{_about(step)}{where}", "dim")))


def _about(step: Finding) -> str:
    """Whose step it is, where its own words do not say so."""
    server = f"`{step.server}`" if step.server and step.server not in step.todo else ""
    return f"  ({server}{f' in {step.host}' if step.host else ''})" if server else ""


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
