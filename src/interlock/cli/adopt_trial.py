"""After an adoption: each host's entry is read back and started as that host would, and every server has to show its tools."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.trying_hosts import attempt

if TYPE_CHECKING:
    from interlock.hosts.entry import Entry
    from interlock.hosts.plan import HostPlan, Plan

FIRST_SECONDS = 6.0
REASON_SECONDS = 120.0
AGAIN_SECONDS = 30.0


@dataclass(slots=True)
class Outcome:
    host: str
    label: str
    tools: Mapping[str, int] = field(default_factory=dict)
    """Of each adopted server that is not switched off."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a server shows none."""
    before: Mapping[str, str] = field(default_factory=dict)
    """What a server that does not answer was in the host's file, for people."""
    worked: Mapping[str, bool | None] = field(default_factory=dict)
    """Of a server that does not answer: whether its old entry, started by itself, does."""
    unset: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Variables that a server takes and that are not set here."""
    trouble: str | None = None

    @property
    def regressions(self) -> list[str]:
        """What worked before and does not any more."""
        return [server for server, worked in self.worked.items() if worked]

    @property
    def good(self) -> bool:
        """Nothing is worse than it was."""
        return self.trouble is None and not self.regressions

    def lines(self) -> Iterator[str]:
        if self.trouble is not None:
            yield f"  {self.label}: {self.trouble}"
        for server, count in self.tools.items():
            if count:
                yield f"  {server}: {count} tool{'s' * (count != 1)}"
            else:
                yield f"  {server} does not answer: {self.reasons.get(server, 'it shows no tool')}"
                if server in self.before:
                    yield f"    before: {self.before[server]}; {_SAID[self.worked.get(server)]}"
                names = ", ".join(self.unset.get(server, ()))
                if names:
                    yield f"    not set here: {names}. Set it where {self.label} is started, and start {self.label} again."

    def as_dict(self) -> dict[str, object]:
        return {
            "host": self.host, "good": self.good, "tools": dict(self.tools), "reasons": dict(self.reasons),
            "worked_before": dict(self.worked), "regressions": self.regressions, "trouble": self.trouble,
        }  # fmt: skip


_SAID: Mapping[bool | None, str] = {
    True: "started by itself, as it was, it still answers: this got worse",
    False: "started by itself, as it was, it does not answer either",
    None: "it cannot be told from here whether it answered",
}


def tried(plan: Plan, host: HostPlan, home: Path) -> Outcome:
    """Never raises."""
    from interlock.hosts.child_environment import of_entry

    adapter = host.adapter
    off = {server.key for server in plan.imported.servers if not server.merged.taken.enabled}
    off |= {each.key for each in plan.imported.present if each.existing is not None and not each.existing.enabled}
    servers = list(dict.fromkeys(each.key for each in host.goes if each.key not in off))
    outcome = Outcome(adapter.id, adapter.label, before=_before(host))
    entry = read_back(plan, host)
    if entry is None:
        outcome.trouble = f"Interlock's entry cannot be found in {host.file} as it was written"
        return outcome
    still = _still_there(plan, host)
    if still:
        outcome.trouble = f"still in its file: {', '.join(still)}"
        return outcome
    environ = of_entry(adapter, entry, plan.machine.environ)
    folder = plan.machine.folder
    result = attempt(entry.command, environ, folder, adapter.id, servers, FIRST_SECONDS)
    if result.trouble is not None:  # a first start on a slow disk takes longer than any later one
        result = attempt(entry.command, environ, folder, adapter.id, servers, AGAIN_SECONDS)
    missing = [server for server in servers if not result.tools.get(server)]
    if missing and result.trouble is None:
        # This waits until each has answered or failed, however long its first start takes.
        answers, outcome.reasons = _asked(entry, environ, folder, missing)
        if answers:
            result = attempt(entry.command, environ, folder, adapter.id, [*result.tools, *answers], AGAIN_SECONDS)
    outcome.tools = {server: result.tools.get(server, 0) for server in servers}
    silent = [server for server in servers if not outcome.tools[server]]
    outcome.worked = {server: _worked(plan, host, server) for server in silent}
    outcome.unset = {server: _unset(plan, server) for server in silent}
    outcome.trouble = None if result.trouble is None else f"{result.trouble} {_shown(result.said)}".strip()
    return outcome


def _worked(plan: Plan, host: HostPlan, server: str) -> bool | None:
    from interlock.cli.adopt_before import worked

    said = [worked(each.declaration, host.adapter, plan.machine) for each in host.goes if each.key == server]
    return True if True in said else None if None in said else False


def _unset(plan: Plan, server: str) -> list[str]:
    for each in plan.imported.servers:
        if each.key == server:
            values = [*each.merged.taken.values.values(), each.merged.taken.endpoint]
            names = [value.source for value in values if value is not None and value.source is not None]
            return [name for name in names if name not in plan.machine.environ]
    return []


def read_back(plan: Plan, host: HostPlan) -> Entry | None:
    """Interlock's entry as the host reads it now."""
    from interlock.hosts import reading
    from interlock.hosts.importing import elsewhere
    from interlock.hosts.ours import ours

    for each in reading.read(host.adapter, plan.machine).declarations:
        entry = each.runs
        runs = each.state == "effective" or elsewhere(each)
        if each.file == host.file and entry is not None and runs and ours(entry) == "connect":
            return entry
    return None


def _still_there(plan: Plan, host: HostPlan) -> list[str]:
    from interlock.hosts import reading

    gone = {(each.declaration.file, each.declaration.server, each.declaration.scope) for each in host.goes}
    return [
        each.server
        for each in reading.read(host.adapter, plan.machine).declarations
        if each.server is not None and (each.file, each.server, each.scope) in gone
    ]


def _before(host: HostPlan) -> dict[str, str]:
    """The program or the address that the host started, by server."""
    found: dict[str, str] = {}
    for each in host.goes:
        entry = each.declaration.runs
        if entry is not None:
            what = os.path.basename(entry.command[0]) if entry.command else "its URL"
            found.setdefault(each.key, f"{what}, from {each.declaration.spot}")
    return found


def _asked(
    entry: Entry, environ: Mapping[str, str], folder: str, servers: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """Those that answer after all, and what Interlock says of the others, in the same environment."""
    place = entry.command.index("connect")
    command = [*entry.command[:place], "tools", *entry.command[place + 1 :], "--json"]
    try:
        told = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=REASON_SECONDS, env=dict(environ), cwd=folder,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return [], {}
    try:
        rows = json.loads(told.stdout)
    except ValueError:
        rows = []
    answering = {row.get("server") for row in rows if isinstance(row, dict)}
    lines = [line.removeprefix("interlock: ") for line in told.stderr.decode("utf-8", "replace").splitlines()]
    found: dict[str, str] = {}
    for server in servers:
        line = next((line for line in lines if line.startswith((f"{server}: ", f"Server '{server}' "))), None)
        if line is not None:
            found[server] = line.removeprefix(f"{server}: ")
    return [server for server in servers if server in answering], found


def _shown(said: str) -> str:
    return said.splitlines()[-1] if said else ""
