"""Cline: one file, moved out of VS Code's folder, two ways to write an entry, and a URL without a type is SSE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from interlock.hosts.adapter import Adapter, CallableNames, Switch, Tolerance
from interlock.hosts.dialect import Dialect, kind, plain, rendered
from interlock.hosts.entry import Approval, Entry, Transport
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry, exists
from interlock.hosts.shapes import address, flag, seconds, texts
from interlock.hosts.writing import Rendered, Wanted

_LOADER = "cline/cline sdk/packages/core/src/extensions/mcp/config-loader.ts"
_SCHEMA = "cline/cline src/services/mcp/schemas.ts"
_NAME = "cline_mcp_settings.json"
_FIELDS = frozenset(
    (
        "type", "transportType", "transport", "command", "args", "env", "cwd", "url", "headers", "autoApprove", "disabled",
        "timeout", "oauth", "metadata", "remoteConfigured",
    )
)  # fmt: skip
_WORDS: Mapping[str, Transport] = {"stdio": "stdio", "sse": "sse", "streamableHttp": "http"}


def settings_file(machine: Machine) -> str:
    environ = machine.environ
    if environ.get("CLINE_MCP_SETTINGS_PATH"):
        return environ["CLINE_MCP_SETTINGS_PATH"]
    data = environ.get("CLINE_DATA_DIR") or machine.join(environ.get("CLINE_DIR") or machine.user(".cline"), "data")
    return machine.join(data, "settings", _NAME)


def _old(machine: Machine, *, dead: bool) -> list[str]:
    """Where the VS Code extension kept it; moved, and read no more, once the new file is there."""
    if exists(machine, settings_file(machine)) is not dead:
        return []
    return [
        machine.application(product, "User", "globalStorage", "saoudrizwan.claude-dev", "settings", _NAME)
        for product in ("Code", "Code - Insiders")
    ]


def read(raw: Mapping[str, object]) -> Entry:
    body = raw
    if raw.get("transport") is not None:
        nested = raw["transport"]
        if not isinstance(nested, dict) or nested.get("type") not in _WORDS:
            raise BadEntry("`transport` needs a `type`", "transport", "One of `stdio`, `sse`, `streamableHttp`.")
        body = nested
    elif raw.get("type") is None and raw.get("transportType") == "http":
        body = {**raw, "type": "streamableHttp"}
    elif raw.get("type") is None and raw.get("transportType") is not None:
        body = {**raw, "type": raw["transportType"]}
    address(body)
    transport = kind(body, _WORDS, untyped="sse", both="stdio", strict=True)
    auto: dict[str, Approval] = dict.fromkeys(texts(raw, "autoApprove"), "auto")
    return replace(
        plain(body, transport),
        ignored=tuple(name for name in raw if name not in _FIELDS),
        enabled=not flag(raw, "disabled", False),
        approvals=auto,
        call_seconds=seconds(raw, "timeout"),
    )


DIALECT = Dialect(
    types={"http": "streamableHttp", "sse": "sse"}, unsure=True, cwd=True, off=("disabled", True), always_on=True, auto="autoApprove",
    asks=True, call=("timeout", 1.0),
)  # fmt: skip


def write(wanted: Wanted, machine: Machine) -> Rendered:
    return rendered(DIALECT, wanted, machine)


ADAPTER = Adapter(
    id="cline",
    label="Cline",
    seen="source of 2026-08-22",
    verified="2026-11-30",
    places=(
        Place(
            scope="user", find=lambda machine: [settings_file(machine)], format="json", tables=(("mcpServers",),), rank=20,
            shown="~/.cline/data/settings/cline_mcp_settings.json",
            known=Fact(True, "S", "CLINE_MCP_SETTINGS_PATH, CLINE_DATA_DIR and CLINE_DIR move it.", _LOADER), writes=True,
        ),
        Place(
            scope="user", find=lambda machine: _old(machine, dead=False), format="json", tables=(("mcpServers",),), rank=10,
            shown="Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            known=Fact(True, "S", "By old versions; new ones move it.", _SCHEMA),
        ),
        Place(
            scope="user", find=lambda machine: _old(machine, dead=True), format="json", tables=(("mcpServers",),), rank=0,
            shown="Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json (moved)",
            instead="Move the entry to ~/.cline/data/settings/cline_mcp_settings.json.",
            known=Fact(False, "S", "Cline has moved its file, and no longer reads this one.", _LOADER),
        ),
    ),
    tolerance=Tolerance(
        comments=Fact(False, "S", "It is read with JSON.parse.", "cline/cline src/services/mcp/McpHub.ts"),
        trailing_comma=Fact(False, "S", "It is read with JSON.parse.", "cline/cline src/services/mcp/McpHub.ts"),
        bom=unknown("the file saved with a byte order mark"),
        duplicate_keys=Fact("last", "S", "As JSON.parse does."),
        fault=Fact("file", "S", "It says so, and has no servers.", "cline/cline src/services/mcp/McpHub.ts"),
        bad_entry=Fact("file", "S", "The file is checked as a whole: one wrong entry, and there are no servers.", _SCHEMA),
    ),
    merge=Fact("single", "S", "One file.", _LOADER),
    transports=Fact(frozenset(("stdio", "http", "sse")), "S", "`streamableHttp` is how it says http.", _SCHEMA),
    variables=unknown("`${env:HOME}` and `${HOME}` in env and in args"),
    child_env=unknown("a server that writes its environment, started from VS Code and from the command line"),
    switch=Fact(Switch(field="disabled"), "S", source=_SCHEMA),
    names=Fact(
        CallableNames(form="{server}__{tool}", limit=64, overflow="hash", hash_digits=8), "S",
        "Too long a name ends in 8 hex digits of its SHA-1.", "cline/cline",
    ),
    read=read,
    write=write,
    fields=_FIELDS,
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=unknown("`~/server` as the command"),
    timeouts=Fact("`timeout` in SECONDS, 60 unless set, 1 at least", "S", source=_SCHEMA),
    approvals=Fact("`autoApprove`: names of tools that run unasked", "S", source=_SCHEMA),
    tool_lists=Fact("None: a tool cannot be forbidden in the file.", "S", source=_SCHEMA),
    gates=Fact("Servers that a company sends have `remoteConfigured`.", "S"),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    reload=Fact("When the file is saved.", "S", source="cline/cline src/services/mcp/McpHub.ts"),
    closed=Fact(False, "S", "It locks the file with a folder beside it and replaces it whole.", _LOADER),
    gui=True,
    sources=(_LOADER, _SCHEMA, "cline/cline src/services/mcp/McpHub.ts"),
    unknowns=("what a server inherits", "variables", "limits of results", "which of two tools of one name is kept"),
    more={"lock": Fact("a folder cline_mcp_settings.json.lock is its lock", "S", source=_LOADER)},
)  # fmt: skip
