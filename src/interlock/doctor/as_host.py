"""A host's own entry as that host would start it: its variables filled in, its part of the environment, its PATH.

What is not known of the host is assumed in the server's favour, and said.
"""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Literal

from interlock.doctor.starting import Target
from interlock.hosts.adapter import Adapter
from interlock.hosts.checks.commands import GUI_PATH, MAYBE
from interlock.hosts.declaration import Declaration
from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine
from interlock.hosts.references import found
from interlock.manifest.config import EnvValue, HeaderValue, HttpTransport, StdioTransport


def target_of(declaration: Declaration, adapter: Adapter, machine: Machine) -> Target | None:
    """None where the entry says neither a program nor an address that anything could be done with."""
    entry = declaration.runs
    if entry is None or declaration.server is None:
        return None
    environ = environment(entry, adapter, machine)
    doubts = []
    if adapter.child_env.value is None:
        doubts.append(
            f"how much of its environment {adapter.label} passes on is unknown: it was started with all of it"
        )
    transport: StdioTransport | HttpTransport
    if entry.command:
        # The server gets exactly this environment: what stands in `env` is laid over what every child gets.
        values = tuple(EnvValue(name, literal=value) for name, value in environ.items())
        folder = _filled(entry.cwd, "cwd", adapter, machine) if entry.cwd else machine.folder
        words = tuple(
            _filled(word, "args" if number else "command", adapter, machine)
            for number, word in enumerate(entry.command)
        )
        transport = StdioTransport(words, Path(machine.real(machine.join(machine.folder, folder))), values)
    elif entry.url is not None:
        headers = [
            HeaderValue(name, literal=_filled(value, "headers", adapter, machine))
            for name, value in entry.headers.items()
        ]
        headers += [
            HeaderValue(name, literal=prefix + machine.environ.get(variable, ""))
            for name, (prefix, variable) in entry.header_names.items()
        ]
        kind: Literal["http", "sse"] = "sse" if entry.transport == "sse" else "http"
        transport = HttpTransport(kind, _filled(entry.url, "url", adapter, machine), headers=tuple(headers))
    else:
        return None
    secrets = (*entry.env.values(), *entry.headers.values(), *(environ.get(name, "") for name in entry.env_names))
    return Target(
        declaration.server, str(declaration.spot), transport, environ, host=declaration.host, doubts=tuple(doubts),
        secrets=tuple(_filled(value, "env", adapter, machine) for value in secrets),
    )  # fmt: skip


def environment(entry: Entry, adapter: Adapter, machine: Machine) -> dict[str, str]:
    """Everything that a server started by this host for this entry finds in its environment."""
    mine = dict(machine.environ)
    if adapter.gui and machine.platform != "windows":
        mine["PATH"] = ":".join((*MAYBE, *GUI_PATH))  # that of a desktop, not of this terminal
    passes = adapter.child_env.value
    if passes is not None and passes.kind == "redacted":
        mine = {name: value for name, value in mine.items() if not _any(name, passes.names)}
    elif passes is not None and passes.kind == "named":
        mine = {name: value for name, value in mine.items() if _any(name, (*passes.names, *entry.env_names))}
    elif entry.env_names:
        mine |= {name: machine.environ[name] for name in entry.env_names if name in machine.environ}
    return mine | {name: _filled(value, "env", adapter, machine) for name, value in entry.env.items()}


def _any(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)


def _filled(text: str, field: str, adapter: Adapter, machine: Machine) -> str:
    """With the variables filled in that this host fills in there, as it does."""
    knows = adapter.variables.value
    if text.startswith("~") and adapter.expands_home.value is True:
        text = machine.expanded(text)
    if knows is None or field not in knows.fields:
        return text

    made, done = "", 0
    for each in found(text, knows.forms):
        default = each.default if "${V:-d}" in knows.forms else None
        value = machine.environ.get(each.name, default) if each.kind == "env" else None
        if value is None:
            value = "" if knows.missing == "empty" and each.kind == "env" else text[each.start : each.end]
        made += text[done : each.start] + value
        done = each.end
    return made + text[done:]
