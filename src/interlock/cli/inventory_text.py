"""The inventory for people: by host, each entry with what becomes of it and what to do about it, within 80 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from interlock.hosts.checks.duplicates import identity
from interlock.hosts.checks.literals import covered
from interlock.hosts.neighbours import name as name_of
from interlock.hosts.ours import ours

if TYPE_CHECKING:
    from interlock.hosts.declaration import Declaration, Problem, Severity, Spot, State
    from interlock.hosts.inventory import Inventory
    from interlock.hosts.machine import Machine
    from interlock.hosts.place import Scope
    from interlock.hosts.reading import Reading

_MARKS: dict[State, tuple[str, str, str]] = {
    "effective": ("✓", "+", "32"),
    "shadowed": ("↓", "v", "2"),
    "disabled": ("○", "o", "2"),
    "blocked": ("⊘", "#", "33"),
    "broken": ("✗", "x", "31"),
    "never-read": ("?", "?", "31"),
}
_COLOURS: dict[Severity, str] = {"problem": "1;31", "warning": "33", "note": "36"}
_ORDER: dict[Severity, int] = {"problem": 0, "warning": 1, "note": 2}
_SCOPES: tuple[Scope, ...] = ("managed", "local", "project", "user", "plugin", "extension", "system")
IN_STATE = frozenset(("never-read", "wrong-table", "entry-invalid", "file-unreadable", "merge-invalid"))
"""Codes whose `seen` the line of the state says already."""

Said = tuple[str, str, "Spot | None"]
"""Of a file that several hosts read, each problem is spelled out once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    width: int = 80
    colour: bool = False
    plain: bool = False
    """Only ASCII for marks."""
    all: bool = False
    only_problems: bool = False
    named: bool = False
    """Hosts were asked for by name: one without a file is an answer too."""

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colour else text

    def mark(self, state: State) -> str:
        fancy, ascii_mark, colour = _MARKS[state]
        return self.paint(ascii_mark if self.plain else fancy, colour)


def report(inventories: Sequence[Inventory], style: Style) -> list[str]:
    lines: list[str] = []
    above: set[Said] = set()
    for inventory in inventories:
        asked = style if inventory is inventories[0] else replace(style, named=False)
        blocks = [_host(reading, inventory.machine, asked, above) for reading in inventory.readings]
        blocks += [list(_problem(problem, inventory.machine, style, None, 0)) for problem in inventory.problems]
        told = [line for block in blocks if block for line in [*block, ""]]
        if len(inventories) > 1 and (told or inventory is inventories[0]):
            machine = inventory.machine
            lines += [style.paint(f"== {name_of(machine)} ({clean(machine.home)})", "1"), ""]
        lines += told
    lines += _summary(inventories, style)
    return lines


def _host(reading: Reading, machine: Machine, style: Style, above: set[Said]) -> list[str]:
    adapter = reading.adapter
    title = f"{style.paint(adapter.label, '1')} {style.paint(f'({adapter.id})', '2')}"
    if not reading.seen and not reading.declarations:
        if not style.all and not style.named:
            return []
        looked = dict.fromkeys(place.shown for place in adapter.places if place.known.value is not False)
        return [f"{title}  no file here", *wrapped(f"looked for {', '.join(looked)}", style, 4)]
    shown = [each for each in reading.declarations if not style.only_problems or told(each.problems, style)]
    shown = in_order(shown)
    of_file = told(reading.problems, style)
    if not shown and not of_file and (style.only_problems or not (style.all or style.named)):
        return []
    lines = [title]
    spoken: set[str] = set()
    widest = max((len(clean(each.server or "-")) for each in shown), default=1)
    name_width = min(max(widest, 8), 26)
    for declaration in shown:
        lines += _entry(declaration, machine, style, name_width, above, spoken)
    if not shown and not style.only_problems:
        lines.append("    no server in its files")
    for problem in of_file:
        lines += _problem(problem, machine, style, None, 4)
    return lines


def in_order(declarations: Iterable[Declaration]) -> list[Declaration]:
    """As they win; what is in the wrong place after what is in the right one."""
    return sorted(declarations, key=lambda each: (each.state == "never-read", _SCOPES.index(each.scope)))


def _entry(
    declaration: Declaration, machine: Machine, style: Style, name_width: int, above: set[Said], spoken: set[str]
) -> list[str]:
    name = clean(declaration.server) if declaration.server is not None else "-"
    place = short(declaration.spot, machine)
    head = f"{name:<{name_width}}  {declaration.scope:<8} {place}"
    why = reason(declaration, machine)
    lines = [f"  {style.mark(declaration.state)} {head}"]
    if why:
        if len(head) + len(why) + 6 <= style.width:
            lines[0] += f"  {style.paint(why, '2')}"
        else:
            lines += [style.paint(line, "2") for line in wrapped(why, style, 6)]
    if declaration.source:
        lines += wrapped(f"brought by {clean(declaration.source)}", style, 6)
    again: list[str] = []
    for problem in told(declaration.problems, style):
        said = (problem.code, problem.seen, problem.spot)
        if said in above:
            again.append(problem.code)
            continue
        above.add(said)
        lines += _problem(problem, machine, style, declaration, 6, spoken)
    if again:
        lines += wrapped(f"as above: {', '.join(dict.fromkeys(again))}", style, 6)
    return lines


def reason(declaration: Declaration, machine: Machine) -> str:
    """The state in words, with what settled it."""
    decided = declaration.decided_by
    where = f" {short(decided.spot, machine)}" if decided.spot is not None else ""
    by = clean(decided.by)
    if declaration.state == "effective":
        if declaration.connected is False:
            return "the host could not connect to it"
        if declaration.merged is not None:
            files = dict.fromkeys(short_path(spot.file, machine) for spot in declaration.origins.values())
            return f"merged from {' and '.join(files)}" if len(files) > 1 else ""
        return ""
    if declaration.state == "shadowed":
        fields = ""
        if decided.rule == "field-merge":
            fields = f" in {', '.join(sorted(clean(name) for name in declaration.shadowed_fields)[:4])}"
        by = re.sub(r' entry ".*"', "", by)
        return f"shadowed{fields} by {by}{where}" if by else f"shadowed by{where}"
    if declaration.state == "disabled":
        return f"off by {by}{where}" if by else f"off by{where}"
    if declaration.state == "blocked":
        word = {"untrusted": "not trusted", "not-approved": "not approved"}.get(decided.rule, "blocked")
        return f"{word}: {by}{where}" if by else f"{word}{':' if where else ''}{where}"
    if declaration.state == "broken":
        if decided.rule == "host-broken":
            return f"taken down by{where}: {by}" if by else f"taken down by{where}"
        return f"broken{where}: {by}" if by else f"broken{where}"
    return f"never read: {by}" if by else "never read"


def told(problems: Iterable[Problem], style: Style) -> list[Problem]:
    kept = [each for each in problems if style.all or each.severity != "note"]
    return sorted(kept, key=lambda each: _ORDER[each.severity])


def _problem(
    problem: Problem,
    machine: Machine,
    style: Style,
    declaration: Declaration | None,
    indent: int,
    spoken: set[str] | None = None,
) -> Iterator[str]:
    """`spoken`: reasons and remedies of this host that stand further up already."""
    spoken = set() if spoken is None or style.all else spoken
    told = declaration is not None and problem.code in IN_STATE and clean(problem.seen) in reason(declaration, machine)
    where = short(problem.spot, machine) if problem.spot is not None and problem.spot.line else ""
    if declaration is not None and (problem.spot == declaration.spot or told):
        where = ""
    head = f"{problem.severity} {problem.code}"
    first = f"{head}{f' {where}' if where else ''}"
    if not told:
        lines = wrapped(f"{first}: {clean(problem.seen)}", style, indent)
        painted = style.paint(head, _COLOURS[problem.severity])
        yield lines[0].replace(head, painted, 1)
        yield from lines[1:]
    else:
        yield " " * indent + style.paint(head, _COLOURS[problem.severity])
    if problem.why and not told and (style.all or problem.severity == "problem") and problem.why not in spoken:
        yield from wrapped(clean(problem.why), style, indent + 2)
    if problem.todo and f"{problem.code} {problem.todo}" not in spoken:
        yield from wrapped(f"> {clean(problem.todo)}", style, indent + 2)
    spoken |= {problem.why, f"{problem.code} {problem.todo}"}


def _summary(inventories: Sequence[Inventory], style: Style) -> list[str]:
    if not any(inventory.declarations for inventory in inventories):
        return [
            "No host's file on this machine declares an MCP server.",
            "`interlock hosts` lists the hosts that are looked for.",
        ]
    return [*counts(inventories, style), *several(inventories, style), *next_line(inventories, style)]


def counts(inventories: Sequence[Inventory], style: Style) -> list[str]:
    """How many entries, in which states, and how much is wrong."""
    declarations = [each for inventory in inventories for each in inventory.declarations]
    entries = [each for each in declarations if each.server is not None]
    hosts = len({(id(inventory), each.host) for inventory in inventories for each in inventory.declarations})
    states = {state: sum(each.state == state for each in entries) for state in _MARKS}
    words = ", ".join(f"{count} {state}" for state, count in states.items() if count)
    problems = [problem for _, problem, _ in findings(inventories)]
    counted = [
        f"{count} {severity}{'s' * (count != 1)}"
        for severity in _ORDER
        if (count := sum(each.severity == severity for each in problems)) and (severity != "note" or style.all)
    ]
    notes = sum(each.severity == "note" for each in problems)
    lines = wrapped(
        f"{_count(len(entries), 'entry', 'entries')} in {_count(hosts, 'host', 'hosts')}: {words or 'none can be read'}.",
        style,
        0,
    )
    said = ", ".join(counted) or "Nothing is wrong"
    if notes and not style.all:
        said += f"; {_count(notes, 'note', 'notes')} with --all"
    return lines + wrapped(f"{said}. Nothing was changed.", style, 0)


def findings(inventories: Sequence[Inventory]) -> list[tuple[Inventory, Problem, str]]:
    """Everything that is wrong, as it is spelled out: of a file that several hosts read, once. With the host's name."""
    found: dict[Said, tuple[Inventory, Problem, str]] = {}
    for inventory in inventories:
        labels = {each.adapter.id: each.adapter.label for each in inventory.readings}
        every = [
            (problem, labels.get(each.host, each.host)) for each in inventory.declarations for problem in each.problems
        ]
        every += [(problem, each.adapter.label) for each in inventory.readings for problem in each.problems]
        every += [(problem, "") for problem in inventory.problems]
        for problem, host in every:
            found.setdefault((problem.code, problem.seen, problem.spot), (inventory, problem, host))
    return list(found.values())


def next_line(inventories: Sequence[Inventory], style: Style) -> list[str]:
    entries = [each for inventory in inventories for each in inventory.declarations if each.server is not None]
    if any(each.state == "effective" and (runs := each.runs) is not None and ours(runs) is None for each in entries):
        return wrapped(
            "Next: `interlock adopt --dry-run` shows how one entry in each host would serve them all.", style, 0
        )
    return []


def several(inventories: Sequence[Inventory], style: Style) -> list[str]:
    """Servers that stand in several hosts, the most copied first, under the name that most give it."""
    groups: dict[object, list[Declaration]] = {}
    for inventory in inventories:
        for each in inventory.declarations:
            if any(problem.code == "duplicate-server" for problem in each.problems) and each.runs is not None:
                groups.setdefault((id(inventory), identity(each.runs)), []).append(each)
    copied = [group for group in groups.values() if len({each.host for each in group}) > 1]
    if not copied:
        return []
    listed = []
    for group in sorted(copied, key=lambda group: -len({each.host for each in group})):
        names = [clean(each.server or "") for each in group]
        name = max(names, key=names.count)
        readers: dict[object, list[str]] = {}
        for each, called in zip(group, names, strict=True):
            who_reads = each.host if called == name else f"{each.host} as {called}"
            readers.setdefault((each.file, each.spot.line, each.server), []).append(who_reads)
        named: set[str] = set()
        who = []
        for hosts in readers.values():
            if not named.issuperset(hosts):
                who.append(" + ".join(dict.fromkeys(hosts)))
            named |= {*hosts}
        listed.append(f"{name} ({', '.join(dict.fromkeys(who))})")
    most = len(listed) if style.all else 6
    more = f", and {len(listed) - most} more" if len(listed) > most else ""
    return wrapped(f"In several hosts: {', '.join(listed[:most])}{more}.", style, 0)


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def short(spot: Spot, machine: Machine) -> str:
    path = short_path(spot.file, machine)
    return f"{path}:{spot.line}" if spot.line else path


def short_path(path: str, machine: Machine) -> str:
    """From the working directory where it is below it, else with `~` for the home."""
    separator = machine.paths.sep
    for folder, mark in ((machine.folder, ""), (machine.home, "~" + separator)):
        if path.startswith(folder.rstrip(separator) + separator) and (mark or folder != machine.home):
            return clean(mark + path[len(folder.rstrip(separator)) + 1 :])
    return clean(path)


def clean(text: str) -> str:
    """Nothing from a file may move the cursor, hide a part of the line, or be a secret, wherever it stood."""
    text = covered(text)
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def wrapped(text: str, style: Style, indent: int) -> list[str]:
    """Lines that fit; all but the first a little further in."""
    lines = textwrap.wrap(text, style.width - indent - 2, break_long_words=False, break_on_hyphens=False)
    return [" " * indent + line if number == 0 else " " * (indent + 2) + line for number, line in enumerate(lines)]
