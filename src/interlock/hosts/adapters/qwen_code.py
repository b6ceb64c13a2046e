"""Qwen Code: as Gemini CLI in its fields, but `url` means SSE, `type` is not read, and a broken file is put aside.

Folder trust is off unless switched on, and then takes away the project's servers only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from interlock.hosts.adapter import Adapter, CallableNames, ChildEnv, Oracle, Tolerance, Variables
from interlock.hosts.adapters.gemini_family import FIELDS, entry, lenient, sign_in, write
from interlock.hosts.declaration import Decision, Spot
from interlock.hosts.dialect import Dialect
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import Reading
from interlock.hosts.tool_rules import ToolRules
from interlock.hosts.writing import Loss, Rendered, Wanted
from interlock.manifest.config import HttpTransport

_V = "0.15.10"


def _home(machine: Machine, *parts: str) -> str:
    return machine.join(machine.environ.get("QWEN_HOME") or machine.user(".qwen"), *parts)


def _user(machine: Machine) -> Sequence[str]:
    return [_home(machine, "settings.json")]


def _project(machine: Machine) -> Sequence[str]:
    return [machine.join(machine.folder, ".qwen", "settings.json")]


def _system(machine: Machine) -> Sequence[str]:
    return [machine.environ.get("QWEN_CODE_SYSTEM_SETTINGS_PATH") or _system_folder(machine, "settings.json")]


def _defaults(machine: Machine) -> Sequence[str]:
    return [machine.environ.get("QWEN_CODE_SYSTEM_DEFAULTS_PATH") or _system_folder(machine, "system-defaults.json")]


def _system_folder(machine: Machine, name: str) -> str:
    if machine.platform == "windows":
        return machine.join("C:\\ProgramData", "qwen-code", name)
    if machine.platform == "macos":
        return machine.join("/Library/Application Support", "QwenCode", name)
    return machine.join("/etc", "qwen-code", name)


def _extensions(machine: Machine) -> Sequence[str]:
    folder = _home(machine, "extensions")
    return [machine.join(folder, name, "qwen-extension.json") for name in machine.names_in(folder)]


def _stray(machine: Machine) -> Sequence[str]:
    return [machine.join(machine.folder, ".qwen", "mcp.json"), _home(machine, "mcp.json")]


def read(raw: Mapping[str, object]) -> Entry:
    """Raises BadEntry."""
    return entry(raw, FIELDS, "sse")


_HTTP = Dialect(form="$V", url="httpUrl", transports=frozenset(("stdio", "http")), call=("timeout", 1000.0),
                oauth=sign_in, passes_all=True)  # fmt: skip
_SSE = replace(_HTTP, url="url", transports=frozenset(("sse",)))


def _write(wanted: Wanted, machine: Machine) -> Rendered:
    transport = wanted.server.transport if wanted.server is not None else None
    sse = isinstance(transport, HttpTransport) and transport.kind == "sse"
    return write(_SSE if sse else _HTTP, wanted, machine, _unsaid)


def _unsaid(rules: ToolRules) -> Sequence[Loss]:
    return lenient(rules, "this host runs a tool unasked that its server calls read-only, and no entry can forbid that")


def _admit(reading: Reading) -> None:
    """An untrusted folder's own settings do not count."""
    machine = reading.machine
    own = (*_system(machine), *_user(machine), *_defaults(machine))
    if not any(_said(reading, file, "security", "folderTrust", "enabled") is True for file in own):
        return
    file = machine.environ.get("QWEN_CODE_TRUSTED_FOLDERS_PATH") or _home(machine, "trustedFolders.json")
    document = reading.other(file)
    rules = document.value if document is not None and isinstance(document.value, dict) else {}
    paths = machine.paths
    trusted = [
        paths.dirname(path) if level == "TRUST_PARENT" else path for path, level in rules.items() if level in _TRUSTS
    ]
    above = {paths.normpath(folder) for folder in machine.upward()}
    if any(paths.normpath(folder) in above for folder in trusted):
        return
    here = paths.normpath(machine.folder)
    denied = next(
        (path for path, level in rules.items() if level == "DO_NOT_TRUST" and paths.normpath(path) == here), None
    )
    if denied is None or document is None:
        return
    spot = Spot(file, *(document.at(denied) or (0, 0)))
    for each in reading.declarations:
        if each.scope == "project" and each.state in ("effective", "broken"):
            each.state, each.decided_by = "blocked", Decision("untrusted", spot, "the folder is not trusted")


_TRUSTS = ("TRUST_FOLDER", "TRUST_PARENT")


def _judge(reading: Reading) -> None:
    """`mcp.allowed` and `mcp.excluded`: the lists of all settings files together, by exact name."""
    machine = reading.machine
    files = (*_system(machine), *_project(machine), *_user(machine), *_defaults(machine))
    lists: dict[str, tuple[list[object], Spot] | None] = {"excluded": None, "allowed": None}
    for name in lists:
        for file in files:
            value = _said(reading, file, "mcp", name)
            document = reading.other(file)
            if isinstance(value, list) and document is not None:
                before = lists[name]
                spot = before[1] if before else Spot(file, *(document.at("mcp", name) or (0, 0)))
                lists[name] = ([*(before[0] if before else []), *value], spot)
    excluded, allowed = lists["excluded"], lists["allowed"]
    for each in reading.declarations:
        if each.state != "effective" or each.server is None:
            continue
        if excluded is not None and each.server in excluded[0]:
            each.state, each.decided_by = "blocked", Decision("policy", excluded[1], "mcp.excluded")
        elif allowed is not None and each.server not in allowed[0]:
            each.state, each.decided_by = "blocked", Decision("policy", allowed[1], "mcp.allowed")


def _said(reading: Reading, file: str, *path: str) -> object:
    document = reading.other(file)
    value: object = document.value if document is not None else None
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


ADAPTER = Adapter(
    id="qwen-code",
    label="Qwen Code",
    seen=_V,
    verified="2026-11-30",
    places=(
        Place(
            scope="system", find=_system, format="jsonc", tables=(("mcpServers",),), rank=40,
            shown="/etc/qwen-code/settings.json", known=Fact(True, "OS", f"{_V}, by $QWEN_CODE_SYSTEM_SETTINGS_PATH"),
        ),
        Place(
            scope="user", find=_user, format="jsonc", tables=(("mcpServers",),), rank=20,
            shown="~/.qwen/settings.json", known=Fact(True, "O", f"{_V}; $QWEN_HOME moves it"), writes=True,
        ),
        Place(
            scope="project", find=_project, format="jsonc", tables=(("mcpServers",),), rank=30,
            shown=".qwen/settings.json", known=Fact(True, "O", f"{_V}; of the working directory only"), writes=True,
        ),
        Place(
            scope="system", find=_defaults, format="jsonc", tables=(("mcpServers",),), rank=10,
            shown="/etc/qwen-code/system-defaults.json",
            known=Fact(True, "OS", f"{_V}, by $QWEN_CODE_SYSTEM_DEFAULTS_PATH"),
        ),
        Place(
            scope="extension", find=_extensions, format="jsonc", tables=(("mcpServers",),), rank=5,
            shown="~/.qwen/extensions/*/qwen-extension.json", known=Fact(True, "O", _V),
        ),
        Place(
            scope="project", find=_stray, format="jsonc", tables=(("mcpServers",), ("servers",)), rank=0,
            shown=".qwen/mcp.json", known=Fact(False, "O", f"Qwen Code {_V} reads no such file."),
            instead="Move the entries to `mcpServers` in .qwen/settings.json.",
        ),
        Place(
            scope="user", find=lambda machine: [*_user(machine), *_project(machine)], format="jsonc", rank=0,
            tables=(("mcp_servers",), ("servers",)), shown="settings.json (other keys)",
            known=Fact(False, "O", f"Qwen Code {_V} reads servers from the key `mcpServers` only."),
            instead="Rename the key to `mcpServers`.",
        ),
    ),
    tolerance=Tolerance(
        empty=Fact(True, "O", _V),
        comments=Fact(True, "O", _V), trailing_comma=Fact(False, "O", _V), bom=Fact(True, "O", _V),
        duplicate_keys=Fact("last", "O", _V),
        fault=Fact("file", "O", f"{_V}: it renames the file to settings.json.corrupted.* and goes on without it, silently"),
        bad_entry=Fact("entry", "O", f"{_V}; a null entry or a text for `args` ends `qwen mcp list`"),
    ),
    merge=Fact("entry", "O", _V),
    transports=Fact(frozenset(("stdio", "http", "sse", "ws")), "OS", "`httpUrl` is http, `url` is SSE whatever `type` says"),
    variables=Fact(
        Variables(
            forms=("$V", "${V}"), missing="literal", fields=frozenset(("command", "args", "env", "url", "headers", "cwd")),
        ), "O", _V,
    ),
    child_env=Fact(ChildEnv(kind="all"), "O", f"{_V}: everything, its own API key included"),
    switch=unknown("an entry has no such field"),
    no_switch_evidence="O",
    no_switch="Write `NAME` into `mcp.excluded`, or use `/mcp` in a session; `disabled` in an entry is ignored.",
    names=Fact(
        CallableNames(
            form="mcp__{server}__{tool}", keep="A-Za-z0-9_.-", limit=63, overflow="middle", clash="last", filler="___", head=28,
        ),
        "OS",
        f"{_V}: 63 characters with `___` in the middle, 28 before it and 32 behind it; a server that names a tool twice is "
        "lost whole",
    ),
    read=read,
    write=_write,
    expands_home=unknown("a server with `~` in `cwd`"),
    fields=FIELDS,
    server_names=Fact(r".+", "O", f"{_V}; spaces and dots start too"),
    closed=unknown("change the file while a session runs, then a setting in that session, and look what is left"),
    output_cap=Fact("25,000 characters; beyond: head, tail and a file with all", "O", _V),
    timeouts=Fact("600 s a request; a silent server holds the start for 60 s", "O", _V),
    approvals=Fact("asks, except for tools whose server says `readOnlyHint`: those run", "O", f"{_V}; `trust: true` ends it"),
    tool_lists=Fact(
        "`includeTools`, then `excludeTools` (exact names); `mcp.allowed` and `mcp.excluded` for servers, which `qwen mcp list` "
        "does not show",
        "OS",
        _V,
    ),
    gates=Fact("folder trust, off by default; an untrusted folder's own settings do not count", "O", _V),
    reload=unknown("change the file while a session runs, and look whether `/mcp` shows it"),
    oracles=(Oracle(command=("qwen", "mcp", "list"), gives="Connected or Disconnected for each server", live=True, evidence="O"),),
    plugins=("qwen-extension",),
    sources=("@qwen-code/qwen-code 0.15.10", "QwenLM/qwen-code docs"),
    unknowns=(
        "whether an untrusted folder's `mcp.allowed` counts",
        "whether a changed settings file is read again during a session",
    ),
    admit=_admit,
    judge=_judge,
)  # fmt: skip
