"""Agent Plugins 1.0.0 (`plugin.json`, `mcp.json`, `skills/`), in folders that are asked for: no host-neutral place is known.

The format is closed: only `mcpServers` in mcp.json, only the transports stdio, streamable-http and sse, only the variables
`${PLUGIN_ROOT}` and `${PLUGIN_DATA}`. An entry that is wrong is left out, and the others stay.
"""

from __future__ import annotations

import re

from interlock.hosts.declaration import Problem, Spot
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import files

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?\Z")
_FIELDS = {
    "stdio": frozenset(("type", "command", "args", "env", "cwd")),
    "streamable-http": frozenset(("type", "url", "headers")),
    "sse": frozenset(("type", "url", "headers")),
}
_NEEDED = {"stdio": "command", "streamable-http": "url", "sse": "url"}
_CWD = re.compile(r"\./|\$\{PLUGIN_(?:ROOT|DATA)\}(?:/|\Z)")


def faults(machine: Machine, folder: str) -> list[Problem]:
    """What of a plugin's two files breaks the rules of the format."""
    path = machine.join(folder, "plugin.json")
    loaded, damage = files.attempt(machine, path)
    if loaded is None:
        why, at = damage or ("it is missing", None)
        return [Problem("plugin-manifest", "problem", f"plugin.json: {why}", spot=Spot(path, *(at or (0, 0))))]
    problems = []
    name = files.inner(loaded.value).get("name")
    if not isinstance(name, str) or not _NAME.match(name):
        problems.append(
            Problem("plugin-name", "problem", "`name` must be 1 to 64 of a-z, 0-9, `.` and `-`.", field="name",
                    spot=files.spot(path, loaded, "name"))
        )  # fmt: skip
    return problems + _servers(machine, machine.join(folder, "mcp.json"))


def _servers(machine: Machine, path: str) -> list[Problem]:
    loaded, damage = files.attempt(machine, path)
    if loaded is None:
        return (
            [Problem("plugin-servers", "problem", damage[0], spot=Spot(path, *(damage[1] or (0, 0))))] if damage else []
        )
    problems = []
    top = files.inner(loaded.value)
    for name in top.keys() - {"$schema", "mcpServers"}:
        problems.append(
            Problem("plugin-servers", "problem", "mcp.json has a member that the format does not know.",
                    field=name, spot=files.spot(path, loaded, name))
        )  # fmt: skip
    for server, raw in files.inner(top, "mcpServers").items():
        why = _wrong(raw)
        if why:
            spot = files.spot(path, loaded, "mcpServers", server)
            problems.append(Problem("plugin-servers", "problem", f"`{server}` is left out: {why}.", spot=spot))
    return problems


def _wrong(raw: object) -> str:
    if not isinstance(raw, dict):
        return "it is no object"
    kind = raw.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        return "`type` must be stdio, streamable-http or sse"
    unknown = sorted(str(each) for each in raw.keys() - _FIELDS[kind])
    if unknown:
        return f"`{unknown[0]}` is no field of a {kind} server"
    needed = raw.get(_NEEDED[kind])
    if not isinstance(needed, str) or not needed:
        return f"`{_NEEDED[kind]}` is missing"
    env = files.inner(raw, "env")
    if env.keys() & {"PLUGIN_ROOT", "PLUGIN_DATA"}:
        return "`env` sets a variable of the format itself"
    cwd = raw.get("cwd")
    if cwd is not None and (not isinstance(cwd, str) or not _CWD.match(cwd)):
        return "`cwd` does not begin with `./`, `${PLUGIN_ROOT}` or `${PLUGIN_DATA}`"
    return ""
