"""Roo Code, whose last version is 3.54: a project's entry wins, unless it is switched off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from interlock.hosts.adapter import Adapter, CallableNames, Switch, Tolerance, Variables
from interlock.hosts.dialect import SDK_ENV, Dialect, kind, plain, rendered
from interlock.hosts.entry import Approval, Entry, Transport
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry, Reading
from interlock.hosts.settling import groups, whole
from interlock.hosts.shapes import address, flag, seconds, texts
from interlock.hosts.writing import Rendered, Wanted

_HUB = "RooCodeInc/Roo-Code src/services/mcp/McpHub.ts"
_FIELDS = frozenset(
    (
        "type", "command", "args", "env", "cwd", "url", "headers", "disabled", "timeout", "alwaysAllow", "disabledTools",
        "watchPaths",
    )
)  # fmt: skip
_WORDS: Mapping[str, Transport] = {"stdio": "stdio", "sse": "sse", "streamable-http": "http"}


def _user(machine: Machine) -> list[str]:
    return [
        machine.application(
            product, "User", "globalStorage", "rooveterinaryinc.roo-cline", "settings", "mcp_settings.json"
        )
        for product in ("Code", "Code - Insiders")
    ]


def read(raw: Mapping[str, object]) -> Entry:
    if raw.get("command") is not None and raw.get("url") is not None:
        raise BadEntry("it has a command and a URL", "url", "Keep one of the two.")
    if raw.get("url") is not None and raw.get("type") is None:
        raise BadEntry("a URL needs a `type` here", "url", 'Add `"type": "streamable-http"` or `"type": "sse"`.')
    auto: dict[str, Approval] = dict.fromkeys(texts(raw, "alwaysAllow"), "auto")
    address(raw)
    limit = seconds(raw, "timeout")
    if limit is not None and not 1 <= limit <= 3600:
        raise BadEntry("`timeout` is in seconds here, from 1 to 3600", "timeout")
    return replace(
        plain(raw, kind(raw, _WORDS, strict=True), _FIELDS),
        enabled=not flag(raw, "disabled", False),
        deny=texts(raw, "disabledTools"),
        approvals=auto,
        call_seconds=limit,
    )


DIALECT = Dialect(
    types={"http": "streamable-http", "sse": "sse"}, form="${env:V}", fills=frozenset(("env", "headers")), cwd=True,
    off=("disabled", True), deny="disabledTools", auto="alwaysAllow", asks=True, call=("timeout", 1.0),
)  # fmt: skip


def write(wanted: Wanted, machine: Machine) -> Rendered:
    return rendered(DIALECT, wanted, machine)


def _settle(reading: Reading) -> None:
    """What is switched off does not take part: the user's entry then runs. Installations do not touch each other."""
    for group in groups(reading).values():
        running = [each for each in group if each.entry is not None and each.entry.enabled]
        projects = [each for each in running if each.scope == "project"]
        if projects:
            whole(projects)
            whole([projects[0], *(each for each in running if each.scope != "project")])


ADAPTER = Adapter(
    id="roo-code",
    label="Roo Code",
    aliases=("roo",),
    seen="source of 2026-04-14, before its last version 3.54.0",
    verified="2026-11-30",
    places=(
        Place(
            scope="project", find=lambda machine: [machine.join(folder, ".roo", "mcp.json")
                                                   for folder in machine.project_folders()],
            format="json", tables=(("mcpServers",),), rank=20, shown=".roo/mcp.json", known=Fact(True, "S", source=_HUB),
            writes=True,
        ),
        Place(
            scope="user", find=_user, format="json", tables=(("mcpServers",),), rank=10,
            shown="Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
            known=Fact(True, "S", source=_HUB), writes=True,
        ),
    ),
    tolerance=Tolerance(
        comments=Fact(False, "S", "It is read with JSON.parse.", _HUB),
        trailing_comma=Fact(False, "S", "It is read with JSON.parse.", _HUB),
        bom=unknown("the file saved with a byte order mark"),
        duplicate_keys=Fact("last", "S", "As JSON.parse does."),
        fault=Fact("file", "S", "It says so, and has none of the file's servers.", _HUB),
        bad_entry=Fact("entry", "S", "In the user's file. In a project's file, and when a file is changed while it runs, "
                       "one wrong entry takes down the file.", _HUB),
    ),
    merge=Fact("entry", "S", "Among the entries that are switched on: a project's that is off leaves the user's running.", _HUB),
    transports=Fact(frozenset(("stdio", "http", "sse")), "S", "A URL needs `type`: streamable-http or sse.", _HUB),
    variables=Fact(
        Variables(
            forms=("${env:V}",), fields=frozenset(("command", "args", "env", "url", "headers", "cwd")), missing="literal",
        ),
        "S", "Also ${workspaceFolder}. Backslashes in a value become slashes. A URL has to be one before it is filled in.",
        "RooCodeInc/Roo-Code src/utils/config.ts",
    ),
    child_env=Fact(SDK_ENV, "S", "And what `env` names.", _HUB),
    switch=Fact(Switch(field="disabled"), "S", source=_HUB),
    names=Fact(CallableNames(form="mcp--{server}--{tool}", limit=64, overflow="cut"), "S", source="RooCodeInc/Roo-Code"),
    read=read,
    write=write,
    fields=_FIELDS,
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=Fact(False, "S", "It fills in ${...} only.", "RooCodeInc/Roo-Code src/utils/config.ts"),
    timeouts=Fact("`timeout` in seconds, 60 unless set, 1 to 3600", "S", source=_HUB),
    approvals=Fact("`alwaysAllow`: names of tools that run unasked", "S", source=_HUB),
    tool_lists=Fact("`disabledTools`: names of tools that are not offered", "S", source=_HUB),
    gates=Fact("MCP may be switched off as a whole; that is kept in VS Code's storage.", "S", source=_HUB),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    reload=Fact("When a file is saved.", "S", source=_HUB),
    closed=Fact(False, "S", source=_HUB),
    gui=True,
    sources=(_HUB, "RooCodeInc/Roo-Code src/utils/config.ts"),
    unknowns=("limits of results", "which of two tools of one name is kept", "what its successors keep of this"),
    more={
        "ended": Fact("3.54.0 of 2026-05-15 is its last version; others continue it", "T"),
        "windows": Fact("it starts every command through cmd.exe /c on Windows", "S", source=_HUB),
    },
    settle=_settle,
)  # fmt: skip
