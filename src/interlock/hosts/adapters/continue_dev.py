"""Continue: a list in config.yaml, and folders of blocks in YAML or in Claude Desktop's JSON."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from interlock.hosts.adapter import Adapter, CallableNames, Merge, Tolerance, Variables
from interlock.hosts.declaration import Declaration, Problem
from interlock.hosts.dialect import Dialect, elsewhere, kind, plain, rendered, standing, with_more
from interlock.hosts.entry import Entry, Transport
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Format, Place, Scope
from interlock.hosts.reading import BadEntry, Reading, refuse
from interlock.hosts.shapes import seconds, table
from interlock.hosts.writing import Edit, Json, Rendered, Wanted

_DOCS = "docs.continue.dev"
_SCHEMA = "continuedev/continue packages/config-yaml/src/schemas/mcp"
_FIELDS = frozenset(
    (
        "name", "serverName", "faviconUrl", "sourceFile", "connectionTimeout", "type", "command", "args", "env", "cwd", "url",
        "apiKey", "requestOptions", "headers",
    )
)  # fmt: skip
_WORDS: Mapping[str, Transport] = {"stdio": "stdio", "sse": "sse", "streamable-http": "http", "http": "http"}
_OURS = "interlock.yaml"
_LOADER = "continuedev/continue core/context/mcp/json/loadJsonMcpConfigs.ts"


def _home(machine: Machine, *parts: str) -> str:
    return machine.join(machine.environ.get("CONTINUE_GLOBAL_DIR") or machine.user(".continue"), *parts)


def _blocks(folder: Callable[[Machine], list[str]], *endings: str) -> Callable[[Machine], list[str]]:
    return lambda machine: [
        path
        for each in folder(machine)
        for path in _inside(machine, each)
        if path.endswith(endings) and path != machine.join(each, _OURS)
    ]


def _inside(machine: Machine, folder: str) -> Iterator[str]:
    """Every file of a folder, and of the folders in it."""
    for name in machine.names_in(folder):
        path = machine.join(folder, name)
        real = machine.real(path)
        if not os.path.isdir(real):
            yield path
        elif not name.startswith(".") and name != "node_modules" and not os.path.islink(real):
            yield from _inside(machine, path)


def _user_folder(machine: Machine) -> list[str]:
    return [_home(machine, "mcpServers")]


def _project_folder(machine: Machine) -> list[str]:
    return [machine.join(folder, ".continue", "mcpServers") for folder in machine.project_folders()]


def read(raw: Mapping[str, object]) -> Entry:
    transport = kind(raw, _WORDS)
    options = raw.get("requestOptions")
    if options is not None and not isinstance(options, dict):
        raise BadEntry("`requestOptions` is not a table", "requestOptions")
    return replace(
        plain(raw, transport, _FIELDS, unsure=frozenset(("disabled", "enabled", "envFile", "allowHeadless"))),
        headers={**table(raw, "headers"), **table(options or {}, "headers")},
        startup_seconds=seconds(raw, "connectionTimeout", 0.001),
    )


_TYPES: Mapping[Format, tuple[str, ...]] = {
    "yaml": ("stdio", "sse", "streamable-http"),
    "json": ("stdio", "sse", "http"),
}
"""Its words for a transport are not the same in a JSON block."""


def _admit(reading: Reading) -> None:
    for each in reading.declarations:
        said, right = each.raw.get("type"), _TYPES.get(each.place.format, ())
        if each.state == "effective" and said is not None and said not in right:
            words = ", ".join(f"`{word}`" for word in right)
            refuse(each, BadEntry("this host knows no such `type` here", "type", f"One of {words}."))


def _problems(declaration: Declaration, machine: Machine) -> Sequence[Problem]:
    if declaration.state != "effective" or declaration.place.format != "yaml" or "headers" not in declaration.raw:
        return ()
    return (
        Problem(
            "headers-ignored", "warning", "`headers` is not read in YAML: none of them is sent.", "",
            "Put them into `requestOptions`, as its `headers`.", "headers",
            declaration.spots.get("headers", declaration.spot),
        ),
    )  # fmt: skip


DIALECT = Dialect(
    types={"stdio": "stdio", "http": "streamable-http", "sse": "sse"}, form="${{ secrets.V }}",
    fills=frozenset(("env", "headers")), cwd=True, startup=("connectionTimeout", 1000.0),
)  # fmt: skip


def target(machine: Machine, wanted: Wanted) -> str:
    """The file that an entry is written to."""
    if wanted.scope == "user" or wanted.project_root is None:
        return _home(machine, "config.yaml")
    return machine.join(wanted.project_root, ".continue", "mcpServers", _OURS)


def write(wanted: Wanted, machine: Machine) -> Rendered:
    found = rendered(DIALECT, wanted, machine)
    entry: dict[str, Json] = {"name": wanted.name, **found.entry}
    headers = entry.pop("headers", None)
    if headers is not None:
        entry["requestOptions"] = {"headers": headers}
    file = target(machine, wanted)
    title = "Interlock" if file.endswith(_OURS) else "Local Assistant"
    head = {"name": title, "version": "1.0.0", "schema": "v1"}
    edits = [
        Edit((name,), word) if standing(machine, file, "yaml", (name,)) is None else None for name, word in head.items()
    ]
    notes: tuple[str, ...] = ()
    if any("secrets." in str(value) for value in (entry.get("env"), headers)):
        notes = (
            "Continue fills in its own secrets, not the variables of its environment: put them into ~/.continue/.env.",
        )
    return with_more(replace(found, entry=entry), edits=elsewhere(file, "yaml", edits, comments=True), notes=notes)


def _place(
    scope: Scope, find: Callable[[Machine], list[str]], format: Format, rank: int, shown: str, *, writes: bool = False
) -> Place:
    return Place(
        scope=scope, find=find, format=format, tables=(("mcpServers",),), rank=rank, shown=shown, listed=format == "yaml",
        alone=format == "json",
        known=Fact(True, "DS", "" if format == "yaml" else "Entries as Claude Desktop writes them, or one alone, which has the "
                   "file's name.", _SCHEMA if format == "yaml" else _LOADER), writes=writes,
    )  # fmt: skip


_MERGE: Fact[Merge] = unknown("one name with two commands in config.yaml and in a block")

ADAPTER = Adapter(
    id="continue",
    label="Continue",
    seen="source of 2026-06-18 (cn 1.5.47)",
    verified="2026-11-30",
    places=(
        _place("project", lambda machine: [machine.join(folder, _OURS) for folder in _project_folder(machine)], "yaml", 30,
               ".continue/mcpServers/interlock.yaml", writes=True),
        _place("project", _blocks(_project_folder, ".yaml", ".yml"), "yaml", 28, ".continue/mcpServers/*.yaml"),
        _place("project", _blocks(_project_folder, ".json"), "json", 26, ".continue/mcpServers/*.json"),
        _place("user", lambda machine: [_home(machine, "config.yaml")], "yaml", 20, "~/.continue/config.yaml", writes=True),
        _place("user", _blocks(_user_folder, ".yaml", ".yml"), "yaml", 12, "~/.continue/mcpServers/*.yaml"),
        _place("user", _blocks(_user_folder, ".json"), "json", 10, "~/.continue/mcpServers/*.json"),
    ),
    tolerance=Tolerance(
        comments=Fact(None, "X", "Its editors read JSON blocks with comment-json, its command line (cn) with JSON.parse.",
                      _LOADER),
        trailing_comma=unknown("a comma after the last member of a JSON block"),
        bom=unknown("a block saved with a byte order mark"),
        duplicate_keys=unknown("one key twice in a JSON block"),
        fault=unknown("a broken block beside a right config.yaml"),
        bad_entry=unknown("a list item without command and url beside a right one"),
    ),
    merge=_MERGE,
    transports=Fact(frozenset(("stdio", "http", "sse")), "S", "`streamable-http` is how it says http.", _SCHEMA),
    variables=Fact(
        Variables(forms=("${{ secrets.V }}",), fields=frozenset(("command", "args", "env", "url", "headers"))), "DS",
        "In `env` of a JSON block ${V} means the same.", _SCHEMA,
    ),
    child_env=unknown("a server that writes its environment, started from the editor and from cn"),
    switch=unknown('an item with `"disabled": true`: does the server start?'),
    no_switch="Take the item out, or switch the server off in the editor's panel.",
    names=Fact(
        CallableNames(form="{server}_{tool}", keep="a-z0-9", lower="server", tool_keep=r"\s\S"), "S",
        "The tool's name stays as it is. The server's name in front is left out where the tool's begins with it "
        "already.", "continuedev/continue",
    ),
    read=read,
    write=write,
    admit=_admit,
    entry_problems=_problems,
    fields=_FIELDS,
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=unknown("`~/server` as the command"),
    timeouts=Fact("`connectionTimeout` in milliseconds", "S", source=_SCHEMA),
    approvals=unknown("a first and a second call of a tool, in the editor and in cn"),
    tool_lists=unknown("whether a tool can be left out in a file"),
    gates=unknown("whether a project's blocks have to be trusted"),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    reload=unknown("a change of config.yaml while it runs"),
    closed=unknown("whether it writes config.yaml while it runs"),
    sources=(_DOCS, _SCHEMA),
    unknowns=("which of two entries of one name wins", "what a server inherits", "approvals", "limits", "longest tool name"),
)  # fmt: skip
