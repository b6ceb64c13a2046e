"""Everything that every host on a machine is told about MCP servers, what becomes of it, and what is wrong with it.

Reads only: nothing is started and nobody is asked. Whatever one host's files do, the other hosts are complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from interlock.hosts import reading as reading_
from interlock.hosts import registry
from interlock.hosts.adapter import Adapter
from interlock.hosts.checks import duplicates, misplaced, running
from interlock.hosts.checks.codes import failed
from interlock.hosts.checks.duplicates import identity
from interlock.hosts.checks.tool_names import ToolsOf
from interlock.hosts.declaration import Declaration, Problem
from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine
from interlock.hosts.reading import Reading


@dataclass(slots=True)
class Inventory:
    machine: Machine
    readings: list[Reading] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Of hosts that could not be looked at."""

    @property
    def declarations(self) -> list[Declaration]:
        return running.declared(self.readings)

    def of(self, host: str) -> Reading | None:
        return next((each for each in self.readings if each.adapter.id == host), None)


def take(
    machine: Machine,
    hosts: Sequence[str] | None = None,
    *,
    plugins: bool = True,
    tools_of: ToolsOf | None = None,
    served: Mapping[str, Entry] | None = None,
) -> Inventory:
    """`hosts` are ids or aliases; None: all. `served`: what Interlock itself serves, to be told from direct entries."""
    inventory = Inventory(machine)
    for adapter in _adapters(hosts, inventory):
        try:
            read = reading_.read(adapter, machine)
            read.declarations.extend(misplaced.declarations(read))
        except Exception as error:
            inventory.problems.append(failed(adapter.label, error))
            continue
        inventory.readings.append(read)
    if plugins:
        _plugins(inventory)
    inventory.problems += running.run(inventory.readings, tools_of=tools_of, served=served)
    return inventory


def leave_out(inventory: Inventory, first: Inventory) -> None:
    """From a neighbour's inventory what the first has already: the project's files, where both systems are of one kind."""
    if inventory.machine.platform != first.machine.platform:
        return
    known = {first.machine.real(seen.path) for read in first.readings for seen in read.seen}

    def own(path: str) -> bool:
        return inventory.machine.real(path) not in known

    for read in inventory.readings:
        read.seen[:] = [each for each in read.seen if own(each.path)]
        read.declarations[:] = [each for each in read.declarations if own(each.file)]
        read.problems[:] = [each for each in read.problems if each.spot is None or own(each.spot.file)]


def past_interlock(
    inventory: Inventory, served: Mapping[str, Entry], tools: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Marks what hosts start directly although Interlock serves it to them; for a caller that reads the manifests later.

    `tools`: what Interlock last saw of its servers, by key. The hosts' own entries of the same servers have the same.
    """
    for read in inventory.readings:
        for declaration, problem in duplicates.direct(running.subjects_of(read), served):
            declaration.problems.append(problem)
    if not tools:
        return
    by_identity = {same: tools[key] for key, entry in served.items() if key in tools and (same := identity(entry))}

    def tools_of(declaration: Declaration) -> Sequence[str] | None:
        entry = declaration.runs
        return by_identity.get(identity(entry) or ()) if entry is not None else None

    for read in inventory.readings:
        running.names_again(read, tools_of)


def _adapters(hosts: Sequence[str] | None, inventory: Inventory) -> Iterator[Adapter]:
    for id in registry.IDS if hosts is None else hosts:
        try:
            adapter = registry.find(id)
        except Exception as error:  # as above
            inventory.problems.append(failed(id, error))
            continue
        if adapter is None:
            raise KeyError(id)
        yield adapter


def _plugins(inventory: Inventory) -> None:
    """Servers that plugins bring, ranked as each host does."""
    ids = tuple(each.adapter.id for each in inventory.readings if each.adapter.plugins)
    if not ids:
        return
    from interlock.hosts.plugins import finding, ranking

    try:
        plugins = finding.found(inventory.machine, ids)
        for read in inventory.readings:
            ranking.join(read, plugins)
    except Exception as error:
        inventory.problems.append(failed("plugins", error))
