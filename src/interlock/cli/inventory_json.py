"""The inventory for machines: one object for each declared entry, one for each file without a readable one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from interlock.hosts.checks.literals import MASK, covered, masked, masked_url
from interlock.hosts.neighbours import name as name_of

if TYPE_CHECKING:
    from interlock.hosts.declaration import Declaration, Problem, Spot
    from interlock.hosts.inventory import Inventory
    from interlock.hosts.reading import Reading

Object = dict[str, object]


def objects(inventory: Inventory) -> Iterator[Object]:
    for each in _objects(inventory):
        yield {name: without_secrets(value) for name, value in each.items()}


def without_secrets(value: object) -> object:
    """A secret may stand in a key, a name or a path as well, so all text goes through here."""
    if isinstance(value, str):
        return covered(value)
    if isinstance(value, dict):
        return {covered(str(name)): without_secrets(inner) for name, inner in value.items()}
    return [without_secrets(inner) for inner in value] if isinstance(value, list) else value


def _names(names: Iterable[str]) -> list[str]:
    """`NAME=value` and `Name: value` as a name are a mistake, with a value in it."""
    return sorted({re.sub(r"(?s)(?<=[=:\s]).+", MASK, name) for name in names})


def _objects(inventory: Inventory) -> Iterator[Object]:
    machine = name_of(inventory.machine)
    for reading in inventory.readings:
        of_file: dict[str, list[Problem]] = {}
        for problem in reading.problems:
            of_file.setdefault(problem.spot.file if problem.spot else "", []).append(problem)
        told = set()
        for declaration in reading.declarations:
            told.add(declaration.file)
            yield _entry(reading, declaration, of_file.get(declaration.file, []), machine)
        for file, problems in of_file.items():
            if file not in told:
                yield _file(reading, file, problems, machine)
    for problem in inventory.problems:
        yield _bare({"machine": machine}, [problem])


def _entry(reading: Reading, declaration: Declaration, of_file: list[Problem], machine: str) -> Object:
    entry, runs = declaration.entry, declaration.runs
    shown = runs or entry
    decided = declaration.decided_by
    problems = [*declaration.problems, *of_file]
    return {
        "host": declaration.host,
        "scope": declaration.scope,
        "file": declaration.file,
        "line": declaration.spot.line or None,
        "column": declaration.spot.column or None,
        "server": declaration.server,
        "state": declaration.state,
        "decided_by": {
            "rule": decided.rule,
            "file": decided.spot.file if decided.spot else None,
            "line": (decided.spot.line or None) if decided.spot else None,
            "by": decided.by,
        },
        "problems": list(dict.fromkeys(each.code for each in problems)),
        "findings": [finding(each) for each in problems],
        "transport": shown.transport if shown else None,
        "command": list(masked(shown.command)) if shown and shown.command else None,
        "url": masked_url(shown.url) if shown and shown.url is not None else None,
        "env": _names({*shown.env, *shown.env_names}) if shown else [],
        "headers": _names({*shown.headers, *shown.header_names}) if shown else [],
        "enabled": shown.enabled if shown else None,
        "stages": stages(reading, declaration),
        "tools": None if declaration.tools is None else list(declaration.tools),
        "shadowedFields": _places(declaration.shadowed_fields),
        "origins": _places(declaration.origins),
        "source": declaration.source or None,
        "machine": machine,
    }


def _file(reading: Reading, file: str, problems: list[Problem], machine: str) -> Object:
    """A file in which nothing is declared, and which something is to be said about."""
    scope = next((each.place.scope for each in reading.seen if each.path == file), None)
    return _bare({"host": reading.adapter.id, "scope": scope, "file": file or None, "machine": machine}, problems)


def _bare(known: Object, problems: list[Problem]) -> Object:
    empty: Object = dict.fromkeys(
        ("host", "scope", "file", "line", "column", "server", "state", "decided_by", "transport", "command", "url", "enabled",
         "tools", "source", "machine")
    )  # fmt: skip
    return {
        **empty,
        "stages": dict.fromkeys(("configured", "parsed", "allowed", "trusted", "connected", "toolsVisible")),
        "env": [], "headers": [], "shadowedFields": {}, "origins": {},
        "problems": list(dict.fromkeys(each.code for each in problems)),
        "findings": [finding(each) for each in problems],
        **known,
    }  # fmt: skip


def finding(problem: Problem) -> Object:
    spot = problem.spot
    return {
        "code": problem.code,
        "severity": problem.severity,
        "seen": problem.seen,
        "why": problem.why,
        "todo": problem.todo,
        "field": problem.field or None,
        "file": spot.file if spot else None,
        "line": (spot.line or None) if spot else None,
        "column": (spot.column or None) if spot else None,
    }


def stages(reading: Reading, declaration: Declaration) -> Mapping[str, bool | None]:
    """Each by itself, because one proves nothing about the next. None: not known from the files."""
    state, rule = declaration.state, declaration.decided_by.rule
    parsed = declaration.runs is not None and state not in ("broken", "never-read")
    allowed: bool | None = None
    trusted: bool | None = None
    if parsed:
        judged = reading.adapter.admit is not None or reading.adapter.judge is not None
        if state == "blocked":
            allowed = False if rule == "policy" else None
            trusted = False if rule in ("untrusted", "not-approved") else None
        elif judged and state == "effective":
            allowed, trusted = True, True
        elif state == "effective" and reading.adapter.gates.known is False:
            allowed, trusted = None, None
    visible = None if declaration.tools is None else bool(declaration.tools)
    return {
        "configured": True,
        "parsed": parsed,
        "allowed": allowed,
        "trusted": trusted,
        "connected": declaration.connected,
        "toolsVisible": visible,
    }


def _places(spots: Mapping[str, Spot]) -> Mapping[str, str]:
    return {name: str(spot) for name, spot in spots.items()}
