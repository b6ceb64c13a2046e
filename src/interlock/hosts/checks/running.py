"""All checks over all that was read: each problem goes to its entry, those of a file to the host's reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from interlock.hosts.checks import (
    addresses,
    commands,
    duplicates,
    files,
    keys,
    literals,
    packages,
    switches,
    tool_names,
    variables,
)
from interlock.hosts.checks.codes import completed, failed
from interlock.hosts.checks.subject import Subject
from interlock.hosts.checks.tool_names import ToolsOf
from interlock.hosts.declaration import Declaration, Problem
from interlock.hosts.entry import Entry
from interlock.hosts.reading import Reading

EACH = (literals.check, switches.check, keys.check, commands.check, variables.check, packages.check, addresses.check)
"""Checks of one entry."""


def subjects_of(reading: Reading) -> list[Subject]:
    """Every entry with its host; those that only lend fields to another of their name are marked."""
    winners = {each.server for each in reading.declarations if each.merged is not None}
    return [
        Subject(
            reading.adapter, reading.machine, each,
            contributes=each.server in winners and each.merged is None and each.state == "effective",
        )
        for each in reading.declarations
    ]  # fmt: skip


def run(
    readings: Sequence[Reading], *, tools_of: ToolsOf | None = None, served: Mapping[str, Entry] | None = None
) -> list[Problem]:
    """Adds to what is there; run once. The readings are those of one machine. Returns the checks that failed themselves."""
    failures: dict[str, Problem] = {}
    everything: list[Subject] = []

    def told(label: str, problems: Callable[[], Iterable[Problem]]) -> list[Problem]:
        try:
            return list(problems())
        except Exception as error:  # a check's surprise must not hide what the others say
            failure = failed(label, error)
            failures.setdefault(failure.seen, failure)
            return []

    for reading in readings:
        label = reading.adapter.label
        subjects = subjects_of(reading)
        everything += subjects
        reading.problems.extend(told(label, partial(files.check, reading)))
        for subject in subjects:
            _each(subject, partial(told, label))
        for check in (partial(tool_names.check, subjects, tools_of), partial(duplicates.within, subjects),
                      partial(duplicates.direct, subjects, served or {})):  # fmt: skip
            told(label, partial(_added, check))
    told("duplicates", partial(_added, partial(duplicates.across, everything)))
    for reading in readings:
        for problems in (reading.problems, *(each.problems for each in reading.declarations)):
            problems[:] = [completed(each) for each in problems]
    return list(failures.values())


def _each(subject: Subject, told: Callable[[Callable[[], Iterable[Problem]]], list[Problem]]) -> None:
    """The host's own words first: what it says of a field is not said again in general ones."""
    declaration, own = subject.declaration, subject.adapter.entry_problems
    if own is not None and declaration.entry is not None:
        declaration.problems.extend(told(partial(own, declaration, subject.machine)))
    known = {(each.code, each.field) for each in declaration.problems}
    fields = {each.field for each in declaration.problems if each.field}
    for check in EACH:
        for each in told(partial(check, subject)):
            if (each.code, each.field) not in known and not (each.code == "field-ignored" and each.field in fields):
                declaration.problems.append(each)


def _added(check: Callable[[], duplicates.Told]) -> list[Problem]:
    for declaration, problem in check():
        declaration.problems.append(problem)
    return []


def names_again(reading: Reading, tools_of: ToolsOf | None = None) -> None:
    """Once tools are known that were not before, collisions and lengths of names can be told exactly."""
    for each in reading.declarations:
        each.problems[:] = [problem for problem in each.problems if problem.code not in tool_names.CODES]
    for declaration, problem in tool_names.check(subjects_of(reading), tools_of):
        declaration.problems.append(problem)


def declared(readings: Sequence[Reading]) -> list[Declaration]:
    return [each for reading in readings for each in reading.declarations]
