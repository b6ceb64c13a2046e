"""A host of a few lines, whose every fact a test can choose, and a machine of files for it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from interlock.hosts.adapter import Adapter, CallableNames, ChildEnv, Switch, Tolerance, Variables
from interlock.hosts.checks import running
from interlock.hosts.checks.tool_names import ToolsOf
from interlock.hosts.declaration import Problem
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry, Reading, read
from interlock.hosts.shapes import table, text, texts
from interlock.hosts.writing import Rendered, Wanted

FIELDS = frozenset(("type", "command", "args", "env", "cwd", "url", "headers", "enabled", "env_vars"))


def entry_of(raw: Mapping[str, object]) -> Entry:
    command, url, kind = text(raw, "command"), text(raw, "url"), text(raw, "type")
    if (command is None) == (url is None):
        raise BadEntry("it needs one of `command` and `url`", "command")
    words = () if command is None else (command, *texts(raw, "args"))
    transport = "stdio" if command is not None else ("sse" if kind == "sse" else "http")
    return Entry(
        transport=transport,  # type: ignore[arg-type]
        command=words, cwd=text(raw, "cwd"), url=url, env=table(raw, "env"), headers=table(raw, "headers"),
        env_names=texts(raw, "env_vars"), enabled=raw.get("enabled") is not False,
    )  # fmt: skip


def _write(_wanted: Wanted, _machine: Machine) -> Rendered:
    return Rendered(entry={})


def place(scope: str = "user", path: str = ".tiny/mcp.json", rank: int = 1, *, known: bool = True) -> Place:
    def find(machine: Machine) -> Sequence[str]:
        return [machine.join(machine.home if scope == "user" else machine.folder, *path.split("/"))]

    return Place(
        scope=scope, find=find, format="jsonc", tables=(("mcpServers",),), rank=rank,  # type: ignore[arg-type]
        shown=f"~/{path}", known=Fact(known, "O", "" if known else "not read"), instead="~/.tiny/mcp.json",
    )  # fmt: skip


TINY = Adapter(
    id="tiny",
    label="Tiny",
    seen="1.0",
    verified="2026-11-30",
    places=(place("project", ".tiny/mcp.json", 2), place()),
    tolerance=Tolerance(
        comments=Fact(True, "O"), trailing_comma=Fact(True, "O"), bom=Fact(True, "O"), duplicate_keys=Fact("last", "O"),
        fault=Fact("file", "O"), bad_entry=Fact("entry", "O"),
    ),
    merge=Fact("entry", "O"),
    transports=Fact(frozenset(("stdio", "http", "sse")), "O"),
    variables=Fact(
        Variables(
            forms=("${V}", "${V:-d}"), fields=frozenset(("command", "args", "env", "url", "headers")), missing="literal"
        ),
        "O",
    ),
    child_env=Fact(ChildEnv(kind="all"), "O"),
    switch=Fact(Switch(field="enabled"), "O"),
    names=Fact(CallableNames(form="mcp__{server}__{tool}", limit=64, overflow="dropped", clash="first"), "O"),
    read=entry_of,
    write=_write,
    expands_home=Fact(False, "O"),
    fields=FIELDS,
)  # fmt: skip
NOTHING_KNOWN = replace(
    TINY,
    tolerance=Tolerance(
        comments=unknown(), trailing_comma=unknown(), bom=unknown(), duplicate_keys=unknown(), fault=unknown(), bad_entry=unknown()
    ),
    merge=unknown(), transports=unknown(), variables=unknown(), child_env=unknown(), switch=unknown(), names=unknown(),
    expands_home=unknown(), fields=frozenset(),
)  # fmt: skip
"""The same host of which nobody has established anything: checks have to be silent."""

LINUX_PATH = "/home/ada/.local/bin:/usr/bin:/bin"


def machine(root: Path, platform: str = "linux", environ: Mapping[str, str] | None = None, **more: str) -> Machine:
    home = {"linux": "/home/ada", "macos": "/Users/ada", "windows": "C:\\Users\\ada"}[platform]
    folder = {"windows": "C:\\Users\\ada\\shop"}.get(platform, f"{home}/shop")
    fields: dict[str, str] = {"home": home, "folder": folder, **more}
    made = Machine(platform=platform, environ={} if environ is None else environ, root=str(root), **fields)  # type: ignore[arg-type]
    os.makedirs(made.real(made.folder), exist_ok=True)
    return made


def lay(made: Machine, path: str, content: str | bytes, mode: int = 0o644) -> str:
    """A file of that machine; `~` is its home. Returns the logical path."""
    path = made.expanded(path)
    real = Path(made.real(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    real.write_bytes(content.encode() if isinstance(content, str) else content)
    real.chmod(mode)
    return path


def program(made: Machine, path: str) -> str:
    return lay(made, path, "#!/bin/sh\n", 0o755)


def servers(made: Machine, entries: Mapping[str, object], path: str = "~/.tiny/mcp.json") -> str:
    return lay(made, path, json.dumps({"mcpServers": entries}, indent=2))


def checked(
    made: Machine,
    adapter: Adapter = TINY,
    *,
    tools_of: ToolsOf | None = None,
    served: Mapping[str, Entry] | None = None,
) -> Reading:
    reading = read(adapter, made)
    running.run([reading], tools_of=tools_of, served=served)
    return reading


def problems(made: Machine, entry: Mapping[str, object], adapter: Adapter = TINY) -> list[Problem]:
    """Of one entry in the user's file."""
    servers(made, {"one": entry})
    (declaration,) = checked(made, adapter).declarations
    return declaration.problems


def codes(made: Machine, entry: Mapping[str, object], adapter: Adapter = TINY) -> set[str]:
    return {each.code for each in problems(made, entry, adapter)}
