"""The inventory at a glance: what is worst first, then a line for each entry and one for each thing that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interlock.cli.inventory_text import (
    IN_STATE,
    Said,
    Style,
    clean,
    counts,
    findings,
    in_order,
    next_line,
    reason,
    several,
    short,
    short_path,
    told,
    wrapped,
)
from interlock.hosts.neighbours import name as name_of

if TYPE_CHECKING:
    from interlock.hosts.declaration import Declaration, Problem, Severity, Spot
    from interlock.hosts.inventory import Inventory
    from interlock.hosts.machine import Machine
    from interlock.hosts.reading import Reading

_WORST = (
    "host-refuses", "host-broken", "file-unreadable", "merge-invalid", "file-writable-by-others", "literal-secret",
    "switch-ignored", "entry-invalid", "command-not-found",
)  # fmt: skip
"""What a person should know before all else; other codes follow in the order in which they are found."""
_MARKS: dict[Severity, tuple[str, str]] = {"problem": ("!", "1;31"), "warning": ("-", "33"), "note": ("-", "36")}
_WAITS = ("not-approved", "project-untrusted", "folder-untrusted")
"""Codes whose line says more than the state."""
_NAME, _PLACE = 20, 34
"""Columns, at most."""


@dataclass(slots=True)
class _Glance:
    style: Style
    above: set[Said] = field(default_factory=set)
    """What is said already: several hosts may read one file."""


def report(inventories: Sequence[Inventory], style: Style) -> list[str]:
    if not any(each.declarations for each in inventories):
        from interlock.cli.inventory_text import report as full

        return full(inventories, style)
    lines = [*counts(inventories, style), *_worst(inventories, style), ""]
    glance = _Glance(style)
    for inventory in inventories:
        machine = inventory.machine
        blocks = [_host(glance, reading, machine) for reading in inventory.readings]
        blocks += [[_line(glance, problem, machine, 2)] for problem in told(inventory.problems, style)]
        shown = [line for block in blocks if block for line in [*block, ""]]
        if len(inventories) > 1 and (shown or inventory is inventories[0]):
            lines += [style.paint(f"== {name_of(machine)} ({clean(machine.home)})", "1"), ""]
        lines += shown
    lines += several(inventories, style)
    lines += wrapped("`!` is a problem, `-` a warning.", style, 0)
    one = _example(inventories)
    lines += wrapped(
        f"Why, and what to do: `interlock inventory {one}` for one host, `--all` for every host. "
        "What to mend first: `interlock doctor`.",
        style, 0,
    )  # fmt: skip
    return lines + next_line(inventories, style)


def _worst(inventories: Sequence[Inventory], style: Style) -> list[str]:
    """The two kinds of problem that matter most, each with its first place."""
    kinds: dict[str, list[tuple[Inventory, Problem, str]]] = {}
    for inventory, problem, host in findings(inventories):
        if problem.severity == "problem":
            kinds.setdefault(problem.code, []).append((inventory, problem, host))
    codes = sorted(kinds, key=lambda code: _WORST.index(code) if code in _WORST else len(_WORST))
    lines = []
    for code in codes[:2]:
        inventory, problem, host = kinds[code][0]
        where = f", {short(problem.spot, inventory.machine)}" if problem.spot is not None else ""
        more = f" (and {len(kinds[code]) - 1} more)" if len(kinds[code]) > 1 else ""
        head = f"{code}{more}"
        said = wrapped(f"! {head}: {host}{where}: {clean(problem.seen)}", style, 2)
        lines += [said[0].replace(code, style.paint(code, "1;31"), 1), *said[1:]]
    return ["Worst:", *lines] if lines else []


def _example(inventories: Sequence[Inventory]) -> str:
    """The host with the most to say."""
    hosts = [each for inventory in inventories for each in inventory.readings if each.declarations]
    return max(hosts, key=lambda each: sum(len(one.problems) for one in each.declarations)).adapter.id


def _host(glance: _Glance, reading: Reading, machine: Machine) -> list[str]:
    style, adapter = glance.style, reading.adapter
    shown, of_file = in_order(reading.declarations), told(reading.problems, style)
    if not shown and not of_file:
        return []
    lines = [f"{style.paint(adapter.label, '1')} {style.paint(f'({adapter.id})', '2')}"]
    names = [_cut(clean(each.server or "-"), _NAME, style) for each in shown]
    places = [_short_place(each.spot, machine) for each in shown]
    widths = max(map(len, names), default=1), max(map(len, places), default=1)
    for declaration, name, place in zip(shown, names, places, strict=True):
        own = told(declaration.problems, style)
        fresh = [each for each in own if (each.code, each.seen, each.spot) not in glance.above]
        glance.above |= {(each.code, each.seen, each.spot) for each in fresh}
        head = f"{name:<{widths[0]}}  {declaration.scope:<8} {place:<{widths[1]}}"
        why = _state(declaration, machine, own)
        if len(fresh) < len(own):
            why = f"{why}; as above" if why else "as above"
        room = style.width - len(head) - 6
        line = f"  {style.mark(declaration.state)} {head}"
        lines.append(f"{line}  {style.paint(_cut(why, room, style), '2')}" if why else line.rstrip())
        lines += _of_entry(glance, fresh, declaration, machine)
    return lines + [_line(glance, problem, machine, 4) for problem in of_file]


def _state(declaration: Declaration, machine: Machine, problems: Iterable[Problem]) -> str:
    """As the full report has it, but a place in the entry's own file by its line, and without what a line below says."""
    decided = declaration.decided_by
    text = reason(declaration, machine)
    by = clean(decided.by)
    if any(each.code in _WAITS or (by and each.code in IN_STATE and clean(each.seen) in by) for each in problems):
        return declaration.state.replace("-", " ") if declaration.state != "blocked" else text.partition(":")[0]
    if decided.spot is not None and decided.spot.file == declaration.file and decided.spot.line:
        text = text.replace(f" {short(decided.spot, machine)}", f" in line {decided.spot.line}")
    return text


def _of_entry(glance: _Glance, problems: Sequence[Problem], declaration: Declaration, machine: Machine) -> list[str]:
    """One line for each code; more of the same are counted."""
    kinds: dict[tuple[str, Severity], list[Problem]] = {}
    for each in problems:
        kinds.setdefault((each.code, each.severity), []).append(each)
    return [_line(glance, each[0], machine, 6, declaration.spot, len(each) - 1) for each in kinds.values()]


def _line(
    glance: _Glance, problem: Problem, machine: Machine, indent: int, entry: Spot | None = None, more: int = 0
) -> str:
    """`entry`: where the entry stands whose line is right above."""
    mark, colour = _MARKS[problem.severity]
    spot, where = problem.spot, ""
    if spot is not None and spot != entry and (spot.line or entry is None):
        same = entry is not None and spot.file == entry.file
        where = f" (line {spot.line})" if same else f" ({short(spot, machine)})"
    head = f"{problem.code}{where}{f' +{more}' if more else ''}"
    text = _cut(f"{head}: {clean(problem.seen)}", glance.style.width - indent - 2, glance.style)
    return " " * indent + glance.style.paint(mark, colour) + " " + text


def _short_place(spot: Spot, machine: Machine) -> str:
    """Of a long path the end alone: which file of several it is shows there."""
    path, line = short_path(spot.file, machine), f":{spot.line}" if spot.line else ""
    separator = machine.paths.sep
    pieces = path.split(separator)
    while len(path) > _PLACE - 4 and len(pieces) > 2:
        del pieces[1]
        path = separator.join([pieces[0], "...", *pieces[1:]])
    return path + line


def _cut(text: str, width: int, style: Style) -> str:
    end = "..." if style.plain else "\u2026"
    return text if len(text) <= width else f"{text[: max(width - len(end), 1)].rstrip()}{end}"
