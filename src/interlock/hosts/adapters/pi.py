"""pi, through pi-mcp-adapter: six files over each other field by field, and other hosts' files where they are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from interlock.hosts.adapter import Adapter, CallableNames, ChildEnv, Switch, Tolerance, Variables
from interlock.hosts.declaration import Decision, Declaration, Spot
from interlock.hosts.dialect import Dialect, launched, plain, rendered, standing, times
from interlock.hosts.entry import Approval, Entry, Transport
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Format, Place, Scope
from interlock.hosts.reading import BadEntry, Reading, refuse
from interlock.hosts.settling import groups
from interlock.hosts.shapes import seconds, table, text, texts
from interlock.hosts.tool_rules import ALLOW, DEFAULT, ToolRules, tool_rules
from interlock.hosts.writing import Json, Loss, Rendered, Wanted

_CONFIG = "nicobailon/pi-mcp-adapter config.ts"
_README = "nicobailon/pi-mcp-adapter README.md"
_FIELDS = frozenset(
    (
        "command", "args", "env", "cwd", "socket", "url", "headers", "requestHeadersCommand", "auth", "bearerToken",
        "bearerTokenEnv", "bearerTokenStore", "oauth", "lifecycle", "idleTimeout", "requestTimeoutMs", "exposeResources",
        "directTools", "toolPrefix", "includeTools", "excludeTools", "searchKeywords", "approveTools", "debug", "trace",
        "httpTransport", "protocolVersion", "disabled", "inheritEnv",
    )
)  # fmt: skip
_OF_PROGRAMS = ("command", "args", "env", "cwd", "pluginDataDir", "literalEnv")
_SIGN_IN = ("headers", "requestHeadersCommand", "auth", "bearerToken", "bearerTokenEnv", "oauth")
_OF_URLS = ("url", *_SIGN_IN, "httpTransport")


def _agent(machine: Machine, name: str) -> str:
    said = machine.environ.get("PI_CODING_AGENT_DIR")
    return machine.join(machine.expanded(said) if said else machine.user(".pi", "agent"), name)


def _signs(machine: Machine) -> list[str]:
    return [
        _agent(machine, ""),
        machine.user(".pi"),
        machine.join(machine.folder, ".pi"),
        machine.user(".config", "mcp", "mcp.json"),
    ]


def _own_files(machine: Machine) -> list[str]:
    """Every file of the adapter itself, the lowest first."""
    return [
        machine.user(".config", "mcp", "mcp.json"),
        machine.user(".agents", "mcp.json"),
        machine.user(".agents", "mcp", "mcp.json"),
        _agent(machine, "mcp.json"),
        _agent(machine, "mcp-adapter.json"),
        machine.join(machine.folder, ".mcp.json"),
        machine.join(machine.folder, ".pi", "mcp.json"),
        machine.join(machine.folder, ".pi", "mcp-adapter.json"),
    ]


def imports(machine: Machine) -> set[str]:
    """The hosts that any of its files names in `imports`."""
    found: set[str] = set()
    for file in _own_files(machine):
        said = standing(machine, file, "jsonc", ("imports",))
        found |= {str(each) for each in said} if isinstance(said, list) else set()
    return found


def _imported(name: str, find: Callable[[Machine], list[str]]) -> Callable[[Machine], list[str]]:
    return lambda machine: find(machine) if name in imports(machine) else []


def read(raw: Mapping[str, object]) -> Entry:
    command = raw.get("command")
    if isinstance(command, list):  # OpenCode's way, of an imported file
        words = texts(raw, "command")
        raw = {**raw, "command": words[0] if words else None, "args": [*words[1:]], "env": raw.get("environment")}
    socket, address = text(raw, "socket"), text(raw, "url")
    program = text(raw, "command")
    if program is None and socket is None and address is None:
        raise BadEntry("it has none of `command`, `url`, `socket`", todo="Add the command, or the URL, of the server.")
    transport: Transport = "stdio" if program is not None else "other" if address is None else "http"
    if transport == "http" and raw.get("httpTransport") == "sse":
        transport = "sse"
    token = text(raw, "bearerTokenEnv") or text(raw, "bearer_token_env_var")
    approve = raw.get("approveTools")
    approvals: dict[str, Approval] = {}
    if approve is True:
        approvals = {"*": "prompt"}
    elif isinstance(approve, list):
        approvals = dict.fromkeys(texts(raw, "approveTools"), "prompt")
    return replace(
        plain(raw, "stdio" if transport == "stdio" else "http", _FIELDS | {"type", "enabled", "environment"}),
        transport=transport,
        header_names={"Authorization": ("Bearer ", token)} if token else {},
        headers=table(raw, "headers"),
        enabled=raw.get("disabled") is not True,
        allow=texts(raw, "includeTools") or None,
        deny=texts(raw, "excludeTools"),
        approvals=approvals,
        call_seconds=seconds(raw, "requestTimeoutMs", 0.001),
    )  # fmt: skip


DIALECT = Dialect(
    form="${V}", cwd=True, off=("disabled", True), asks=False, call=("requestTimeoutMs", 1000.0), passes_all=True
)


def write(wanted: Wanted, machine: Machine) -> Rendered:
    server = wanted.server
    if server is None:
        return rendered(DIALECT, wanted, machine)
    entry, losses = launched(DIALECT, server, machine)
    limits, late = times(DIALECT, server)
    rules = tool_rules(server)
    if not server.enabled:
        entry["disabled"] = True
    if rules.allow is not None:
        names = [*rules.allow, *rules.allow_globs]
        if names:
            entry["includeTools"] = [*names]
        else:
            losses.append(Loss(ALLOW, "an empty list means all tools here", weakens=True))
    if rules.deny or rules.deny_globs:
        entry["excludeTools"] = [*rules.deny, *rules.deny_globs]
    approve, lost = _approvals(rules)
    if approve is not None:
        entry["approveTools"] = approve
    notes = ("`.mcp.json` is read by other hosts too, Claude Code among them.",) if wanted.scope == "project" else ()
    return Rendered(entry=entry | limits, losses=(*losses, *lost, *late), notes=notes)


def _approvals(rules: ToolRules) -> tuple[Json, list[Loss]]:
    """True: asks for every tool. The list names those that are asked for, so that `auto` is everything else."""
    if rules.default in ("ask", "writes"):
        why = "its list names the tools that are asked for, so it asks for every one"
        return True, [Loss(DEFAULT, why, weakens=False)] if rules.auto else []
    if rules.ask:
        return [*rules.ask], []
    return (False, []) if rules.default == "auto" else (None, [])


def _settle(reading: Reading) -> None:
    """The fields of the higher file replace the lower's one by one; a new way to reach it takes out the old one's fields."""
    for group in groups(reading).values():
        winner, losers = group[0], group[1:]
        merged: dict[str, object] = {}
        origins: dict[str, Spot] = {}
        for layer in reversed(group):
            _lay(merged, origins, layer)
        try:
            result = reading.adapter.read(merged)
        except BadEntry as error:
            for each in group:
                refuse(each, error)
            continue
        if not losers:
            winner.entry = result
            continue
        winner.merged, winner.origins = result, origins
        winner.decided_by = Decision("field-merge", winner.spot, f'{winner.scope} entry "{winner.server}"')
        for loser in losers:
            lost = {name: origins.get(name, winner.spot) for name in loser.raw}
            loser.shadowed_fields = {name: spot for name, spot in lost.items() if spot.file != loser.file}
            loser.state, loser.decided_by = "shadowed", winner.decided_by


def _lay(merged: dict[str, object], origins: dict[str, Spot], layer: Declaration) -> None:
    raw = layer.raw
    gone: tuple[str, ...] = ()
    if raw.get("command") is not None:
        gone = (*_OF_URLS, "socket")
    elif raw.get("url") is not None:
        gone = (*_OF_PROGRAMS, "socket", *(_SIGN_IN if raw["url"] != merged.get("url") else ()))
    elif raw.get("socket") is not None:
        gone = (*_OF_PROGRAMS, *_OF_URLS)
    for name in gone:
        merged.pop(name, None)
        origins.pop(name, None)
    for name, value in raw.items():
        merged[name] = value
        origins[name] = layer.spots.get(name, layer.spot)


def _place(
    scope: Scope,
    rank: int,
    shown: str,
    find: Callable[[Machine], str],
    known: Fact[bool],
    *,
    writes: bool = False,
    shared: bool = False,
) -> Place:
    return Place(
        scope=scope, find=lambda machine: [find(machine)], format="jsonc", tables=(("mcpServers",), ("mcp-servers",)),
        rank=rank, shown=shown, known=known, writes=writes, shared=shared,
    )  # fmt: skip


def _from(
    name: str, shown: str, find: Callable[[Machine], list[str]], format: Format = "jsonc", root: str = "mcpServers"
) -> Place:
    return Place(
        scope="user", find=_imported(name, find), format=format, tables=((root,),), rank=5, shown=shown,
        known=Fact(True, "S", f"Because a file of pi's has `{name}` in `imports`; it ranks below that file.", _CONFIG),
    )  # fmt: skip


_OLD = "Up to 2.27 at least; later ones read mcp-adapter.json there, and this one only on pi 0.99 and later."
_NEW = "Of versions after 2.27; which one began is unknown."

ADAPTER = Adapter(
    id="pi",
    label="pi (pi-mcp-adapter)",
    seen="source of 2.27.0, runs of 2.36.0",
    verified="2026-11-30",
    places=(
        _place("project", 80, ".pi/mcp-adapter.json", lambda machine: machine.join(machine.folder, ".pi", "mcp-adapter.json"),
               Fact(True, "S", _NEW, _CONFIG)),
        _place("project", 70, ".pi/mcp.json", lambda machine: machine.join(machine.folder, ".pi", "mcp.json"),
               Fact(True, "S", _OLD, _CONFIG)),
        _place("project", 60, ".mcp.json", lambda machine: machine.join(machine.folder, ".mcp.json"),
               Fact(True, "OS", source=_CONFIG), writes=True, shared=True),
        _place("user", 50, "~/.pi/agent/mcp-adapter.json", lambda machine: _agent(machine, "mcp-adapter.json"),
               Fact(True, "S", _NEW, _CONFIG)),
        _place("user", 40, "~/.pi/agent/mcp.json", lambda machine: _agent(machine, "mcp.json"), Fact(True, "S", _OLD, _CONFIG)),
        _place("user", 30, "~/.agents/mcp/mcp.json", lambda machine: machine.user(".agents", "mcp", "mcp.json"),
               Fact(True, "S", "From 2.13.", _CONFIG), shared=True),
        _place("user", 20, "~/.agents/mcp.json", lambda machine: machine.user(".agents", "mcp.json"),
               Fact(True, "S", "From 2.13.", _CONFIG), shared=True),
        _place("user", 10, "~/.config/mcp/mcp.json", lambda machine: machine.user(".config", "mcp", "mcp.json"),
               Fact(True, "S", "From 2.4.1.", _CONFIG), writes=True),
        _from("cursor", "~/.cursor/mcp.json", lambda machine: [machine.user(".cursor", "mcp.json")]),
        _from("claude-code", "~/.claude.json",
              lambda machine: [machine.user(".claude", "mcp.json"), machine.user(".claude.json")]),
        _from("claude-desktop", "Claude Desktop's file on macOS", lambda machine: [
            machine.user("Library", "Application Support", "Claude", "claude_desktop_config.json")]),
        _from("windsurf", "~/.windsurf/mcp.json", lambda machine: [machine.user(".windsurf", "mcp.json")]),
        _from("vscode", ".vscode/mcp.json (mcpServers)", lambda machine: [machine.join(machine.folder, ".vscode", "mcp.json")]),
        _from("codex", "~/.codex/config.toml", lambda machine: [machine.user(".codex", "config.toml")], "toml", "mcp_servers"),
        _from("opencode", "opencode.json", lambda machine: [
            machine.join(machine.folder, "opencode.json"), machine.config("opencode", "opencode.json")], root="mcp"),
    ),
    tolerance=Tolerance(
        comments=Fact(True, "S", "From 2.27; before, it was plain JSON.", "nicobailon/pi-mcp-adapter#193"),
        trailing_comma=Fact(True, "S", "From 2.27.", "nicobailon/pi-mcp-adapter#193"),
        bom=unknown("the file saved with a byte order mark"),
        duplicate_keys=Fact("last", "S", "As JSON.parse does."),
        fault=Fact("file", "S", "With a warning.", _CONFIG),
        bad_entry=unknown("an entry without command and url beside a right one"),
    ),
    merge=Fact("fields", "S", "Only the first level of fields. With a command, a URL or a socket of its own it drops the other "
               "ways' fields; with another URL, the sign-in too.", _CONFIG),
    transports=Fact(frozenset(("stdio", "http", "sse")), "S", "And `socket`.", _README),
    variables=Fact(
        Variables(forms=("${V}", "$env:V", "{env:V}"), fields=frozenset(("env", "headers", "url", "cwd")), missing="empty"), "S",
        "`!command` in env and headers is run for its output. A URL with a variable that is not set is an error.",
        "nicobailon/pi-mcp-adapter utils.ts",
    ),
    child_env=Fact(ChildEnv(kind="all"), "O", "`inheritEnv` narrows it."),
    switch=Fact(Switch(field="disabled"), "S", "Only the word true.", _README),
    names=Fact(
        CallableNames(form="{server}_{tool}"), "O",
        "Not a tool: a value of the one tool `mcp`. `toolPrefix` changes it; `directTools` makes tools of them.", _README,
    ),
    read=read,
    write=write,
    fields=_FIELDS,
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=Fact(True, "S", "In `cwd` and `socket` only.", _README),
    timeouts=Fact("A call: `requestTimeoutMs`, 60 s unless set; progress does not lengthen it.", "OS", source=_README),
    approvals=Fact("`approveTools`: true, or globs of the tools that are asked for; nothing is asked otherwise. Without a "
                   "person such a call fails.", "OD", source=_README),
    tool_lists=Fact("`includeTools`, then `excludeTools`: names or globs, with or without the server's name; an empty "
                    "include list means all.", "DS", source=_README),
    gates=Fact("Newer versions ask before a project's servers (`projectServers`).", "S", source=_CONFIG),
    output_cap=Fact("50 KiB or 2000 lines, then a file", "S", source=_README),
    reload=unknown("a change of a file while it runs"),
    closed=Fact(False, "S", source=_CONFIG),
    sources=(_CONFIG, _README, "nicobailon/pi-mcp-adapter types.ts, utils.ts"),
    unknowns=("in which version mcp-adapter.json took over", "where exactly imported servers rank between two files"),
    more={
        "imports": Fact("cursor, claude-code, claude-desktop, codex, opencode, windsurf, vscode; of several the first wins", "S",
                        source=_CONFIG),
        "core": Fact("pi itself has no MCP; the adapter is an extension", "O"),
    },
    signs=_signs,
    settle=_settle,
)  # fmt: skip
