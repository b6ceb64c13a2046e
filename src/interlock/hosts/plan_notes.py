"""What a person should know of an adoption besides which entries go: rules left behind, variables, and who asks before a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from interlock.hosts import registry, wanting
from interlock.hosts.adapter import Adapter
from interlock.hosts.declaration import Declaration
from interlock.hosts.machine import Machine
from interlock.manifest.config import ServerConfig

if TYPE_CHECKING:
    from interlock.hosts.plan import Goes, Plan


def of_host(adapter: Adapter, goes: Sequence[Goes], machine: Machine, configs: Sequence[ServerConfig]) -> Iterable[str]:
    local = [each.key for each in goes if each.declaration.scope == "local"]
    if local:
        project = machine.repository() or machine.folder
        yield f"{', '.join(local)} was only for the project {project}; from now on it is there everywhere."
    ruled = [each.key for each in goes if _has_rules_elsewhere(each.declaration)]
    if ruled:
        yield (
            f"{adapter.label}'s own rules for tools of {', '.join(ruled)} speak of their old names. They are in the manifest "
            f"now; {adapter.label} asks as for a new server."
        )
    used = {name for config in configs if config.enabled for name in wanting.variables(config)}
    unset = sorted(used - set(machine.environ))
    if unset:
        yield (
            f"Not set here: {', '.join(unset)}. {adapter.label} must be started with it, or the servers that need it do "
            "not start."
        )
    elif used and adapter.gui:
        yield (
            f"{adapter.label} is started from a desktop and may not have the variables of a terminal "
            f"({', '.join(sorted(used))}): set them for the whole session, or move the secrets (`--move-secrets`)."
        )


def _has_rules_elsewhere(each: Declaration) -> bool:
    """Rules of another file than the entry's."""
    entry, runs = each.entry, each.runs
    return entry is not None and runs is not None and (entry.approvals, entry.deny) != (runs.approvals, runs.deny)


def approvals(plan: Plan, asking: frozenset[str]) -> Mapping[str, str]:
    """What is asked before a call of each adopted server, where that is not what its entry said, by key."""
    told: dict[str, str] = {}
    for server in plan.imported.servers:
        said = server.merged.taken.approvals
        if "*" in said:
            continue
        hosts = list(dict.fromkeys(source.declaration.host for source in server.sources))
        known = [registry.label(host) for host in hosts if host in asking]
        others = [registry.label(host) for host in hosts if host not in asking]
        if known and not others:
            told[server.key] = (
                f"{', '.join(known)} goes on asking itself; through any other host Interlock asks before each call"
            )
        elif known:
            told[server.key] = (
                f"{', '.join(known)} goes on asking itself; through {', '.join(others)} and any other Interlock asks before "
                "each call, because nothing is known of their own asking"
            )
        else:
            told[server.key] = (
                "Interlock asks before each call: its entries say nothing, and it is not known whether the host asks"
            )
    return told
