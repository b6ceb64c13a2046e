"""The tables of docs/hosts.md and docs/inventory.md, made from the code. `python -m tests.docs.hosts_page` writes them anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from interlock.hosts.adapter import Adapter
from interlock.hosts.checks.codes import CODES
from interlock.hosts.fact import Fact
from interlock.hosts.registry import every

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "hosts.md"
PAGES = (PAGE, DOCS / "inventory.md")
_TABLE = re.compile(r"(<!-- table: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def _cell(fact: Fact[object], words: Callable[[object], str] = str) -> str:
    """A fact in words, with its evidence letters."""
    text = "unknown" if fact.value is None else words(fact.value)
    return f"{text} [{fact.evidence}]".replace("|", "\\|").replace("\n", " ")


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _code(values: Iterable[str]) -> str:
    return ", ".join(f"`{value}`" for value in values)


def _files(adapter: Adapter) -> list[list[str]]:
    rows = []
    for place in sorted(adapter.places, key=lambda place: -place.rank):
        read = {True: "yes", False: "**no**", None: "unknown"}[place.known.value]
        written = "yes" if place.writes else ""
        rows.append([adapter.label, place.scope, f"`{place.shown}`", f"{read} [{place.known.evidence}]", written])
    return rows


def _parsing(adapter: Adapter) -> list[list[str]]:
    takes = adapter.tolerance
    cells = [_cell(fact, _yes) for fact in (takes.comments, takes.trailing_comma, takes.bom)]
    faults = [_cell(fact) for fact in (takes.duplicate_keys, takes.fault, takes.bad_entry)]
    return [[adapter.label, *cells, *faults]]


def _merging(adapter: Adapter) -> list[list[str]]:
    switch = _cell(adapter.switch, lambda value: f"`{getattr(value, 'field', value)}`")
    if adapter.switch.value is None and adapter.no_switch:
        letters = adapter.no_switch_evidence or adapter.switch.evidence
        switch = f"no field; {adapter.no_switch.removeprefix('Or ')} [{letters}]".replace("|", "\\|")
    variables = _cell(adapter.variables, lambda value: _code(getattr(value, "forms", ())) or "none")
    env = _cell(adapter.child_env, lambda value: str(getattr(value, "kind", value)))
    return [[adapter.label, _cell(adapter.merge), switch, variables, _cell(adapter.expands_home, _yes), env]]


def _naming(adapter: Adapter) -> list[list[str]]:
    names = adapter.names.value
    if names is None:
        return [[adapter.label, f"unknown [{adapter.names.evidence}]", "", "", ""]]
    limit = str(names.limit) if names.limit is not None else "none known"
    overflow, clash = names.overflow or "unknown", names.clash or "unknown"
    return [[adapter.label, f"`{names.form}` [{adapter.names.evidence}]", limit, overflow, clash]]


def _rules(adapter: Adapter) -> list[list[str]]:
    transports = _cell(
        adapter.transports, lambda value: ", ".join(sorted(value)) if isinstance(value, frozenset) else ""
    )
    lists, approvals = _cell(adapter.tool_lists), _cell(adapter.approvals)
    return [[adapter.label, transports, lists, approvals, _cell(adapter.gates)]]


def _proof(adapter: Adapter) -> list[list[str]]:
    asked = "; ".join(
        f"`{' '.join(oracle.command)}`{'' if oracle.live else ' (reads only)'} [{oracle.evidence}]"
        for oracle in adapter.oracles
    )
    seen = f"{adapter.seen} ({adapter.verified})"
    return [[adapter.label, seen, asked or "none known", _cell(adapter.output_cap), _cell(adapter.reload)]]


_TABLES: dict[str, tuple[list[str], Callable[[Adapter], list[list[str]]]]] = {
    "files": (["host", "scope", "file", "read", "written by `generate`"], _files),
    "parsing": (["host", "comments", "trailing comma", "BOM", "key twice", "a fault takes down", "a bad entry takes down"], _parsing),
    "merging": (["host", "same name twice", "switched off by", "variables", "`~` filled in", "environment passed on"], _merging),
    "naming": (["host", "what the model sees", "limit", "longer names", "names that meet"], _naming),
    "rules": (["host", "transports", "tool lists", "approvals", "what else holds a right entry back"], _rules),
    "proof": (["host", "seen", "what the host itself tells", "output cap", "takes up a change"], _proof),
}  # fmt: skip


def _unknowns() -> str:
    return "\n".join(
        f"- **{adapter.label}**: {'; '.join(adapter.unknowns)}." for adapter in every() if adapter.unknowns
    )


def _codes() -> str:
    lines = ["| code | severity | meaning | what to do |", "| --- | --- | --- | --- |"]
    lines += [f"| `{name}` | {code.severity} | {code.means} | {code.todo} |" for name, code in CODES.items()]
    return "\n".join(lines)


def _table(name: str) -> str:
    if name == "codes":
        return _codes()
    if name == "unknowns":
        return _unknowns()
    heads, rows = _TABLES[name]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    lines += [f"| {' | '.join(row)} |" for adapter in every() for row in rows(adapter)]
    return "\n".join(lines)


def rendered(page: str) -> str:
    """The page with its tables made anew."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{_table(found['name'])}\n\n{found[3]}", page)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")
