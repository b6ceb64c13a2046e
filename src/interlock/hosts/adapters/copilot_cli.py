"""GitHub Copilot CLI: the user's file, and in each folder of a trusted project .mcp.json or else .github/mcp.json.

An entry that is wrong is left out without a word. A switch in the entry does nothing; a list in settings.json does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from interlock.hosts.adapter import Adapter, CallableNames, ChildEnv, Oracle, Tolerance, Variables
from interlock.hosts.adapters.copilot_cli_entry import FIELDS, read, write
from interlock.hosts.adapters.copilot_cli_files import config, home, repository_settings, settings, user
from interlock.hosts.declaration import Decision, Problem, Spot
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import Reading, declare, exists

_V = "1.0.102"


def _project(machine: Machine) -> Sequence[str]:
    """One file a folder: .github/mcp.json counts only where there is no .mcp.json."""
    found = []
    for folder in machine.project_folders():
        plain, github = _both(machine, folder)
        found.append(github if not _there(machine, plain) and _there(machine, github) else plain)
    return found


def _passed_over(machine: Machine) -> Sequence[str]:
    if not exists(machine, home(machine)):
        return []
    pairs = [_both(machine, folder) for folder in machine.project_folders()]
    return [github for plain, github in pairs if _there(machine, plain)]


def _both(machine: Machine, folder: str) -> tuple[str, str]:
    return machine.join(folder, ".mcp.json"), machine.join(folder, ".github", "mcp.json")


def _there(machine: Machine, path: str) -> bool:
    return os.path.isfile(machine.real(path))


def _vscode(machine: Machine) -> Sequence[str]:
    return [machine.join(machine.folder, ".vscode", "mcp.json")]


def _stray(machine: Machine) -> Sequence[str]:
    return [
        machine.join(machine.folder, ".copilot", name) for name in ("mcp-config.json", "mcp.json")
        if machine.folder != machine.home
    ] + [home(machine, "mcp.json")]  # fmt: skip


def _stray_user(machine: Machine) -> Sequence[str]:
    return [home(machine, "config.json"), home(machine, "settings.json")]


def _admit(reading: Reading) -> None:
    _bare(reading)
    _whole(reading)
    for each in reading.declarations:
        if each.scope != "project" or each.state not in ("effective", "broken"):
            continue
        trusted, spot = _trusted(reading, _folder(reading.machine, each.file))
        if not trusted:
            each.state = "blocked"
            each.decided_by = Decision("untrusted", spot, "trusted_folders")
            each.problems = [
                Problem(
                    "folder-untrusted", "warning", "Copilot CLI does not trust this folder, so it leaves its file out.",
                    spot=spot, todo="Start `copilot` in the folder and choose to trust it.",
                    why="`copilot -p` besides wants GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP=true.",
                )
            ]  # fmt: skip


def _bare(reading: Reading) -> None:
    """A workspace's file may leave `mcpServers` out and hold the entries at its top."""
    for seen in reading.seen:
        value = seen.document.value if seen.document is not None and seen.fault is None else None
        if seen.place.scope != "project" or seen.place.known.value is False or not isinstance(value, dict):
            continue
        entries = list(value.items())
        if "mcpServers" in value or not all(
            isinstance(raw, dict) and {"command", "url"} & set(raw) for _, raw in entries
        ):
            continue
        for name, raw in entries:
            if seen.document is not None:
                declare(reading, seen.place, seen.path, seen.document, str(name), raw, (name,))


def _whole(reading: Reading) -> None:
    file = user(reading.machine)[0]
    fault = next((each.fault for each in reading.seen if each.path == file and each.fault is not None), None)
    if fault is None:
        return
    for each in reading.declarations:
        if each.state == "effective":
            each.state, each.decided_by = "broken", Decision("host-broken", fault.spot, fault.seen)


def _folder(machine: Machine, file: str) -> str:
    folder = machine.paths.dirname(file)
    return str(machine.paths.dirname(folder) if machine.paths.basename(folder) == ".github" else folder)


def _trusted(reading: Reading, folder: str) -> tuple[bool, Spot | None]:
    """Whether the folder that a file is of lies in a trusted one: that the working directory does is not enough."""
    machine = reading.machine
    if machine.environ.get("COPILOT_ALLOW_ALL", "").lower() == "true":
        return True, None
    file = config(machine)
    document = reading.other(file)
    value = document.value if document is not None and isinstance(document.value, dict) else {}
    above = set(machine.upward(folder))
    for key in ("trusted_folders", "trustedFolders"):
        folders = value.get(key)
        for index, good in enumerate(folders if isinstance(folders, list) else ()):
            if isinstance(good, str) and machine.paths.normpath(good) in above:
                at = document.at(key, index) if document is not None else None
                return True, Spot(file, *(at or (0, 0)))
    return False, Spot(file)


def _judge(reading: Reading) -> None:
    machine = reading.machine
    off: dict[str, Spot] = {}
    trusted, _spot = _trusted(reading, machine.folder)
    for file in (settings(machine), *(repository_settings(machine) if trusted else ())):
        document = reading.other(file)
        value: Mapping[str, object] = document.value if document and isinstance(document.value, dict) else {}
        names = value.get("disabledMcpServers")
        for index, name in enumerate(names if isinstance(names, list) else ()):
            at = document.at("disabledMcpServers", index) if document is not None else None
            off.setdefault(str(name), Spot(file, *(at or (0, 0))))
    for each in reading.declarations:
        if each.state == "effective" and each.server in off:
            each.state, each.decided_by = "disabled", Decision("list-off", off[each.server], "disabledMcpServers")


ADAPTER = Adapter(
    id="copilot-cli",
    label="GitHub Copilot CLI",
    seen=_V,
    verified="2026-11-30",
    places=(
        Place(
            scope="project", find=_project, format="jsonc", tables=(("mcpServers",),), rank=30, shown=".mcp.json",
            shared=True,
            known=Fact(True, "OD", f"{_V}; in each folder up to the repository's root, the nearest wins"), writes=True,
        ),
        Place(
            scope="user", find=user, format="jsonc", tables=(("mcpServers",),), rank=20, shown="~/.copilot/mcp-config.json",
            known=Fact(True, "OD", f"{_V}; $COPILOT_HOME moves it"), writes=True,
        ),
        Place(
            scope="project", find=_passed_over, format="jsonc", tables=(("mcpServers",),), rank=0, shown=".github/mcp.json",
            known=Fact(False, "O", "Copilot CLI leaves .github/mcp.json out where the same folder has a .mcp.json."),
            instead="Move the entries to the .mcp.json beside it.",
        ),
        Place(
            scope="project", find=_vscode, format="jsonc", tables=(("servers",), ("mcpServers",)), rank=0,
            shared=True, shown=".vscode/mcp.json", known=Fact(False, "OD", "Copilot CLI does not read VS Code's .vscode/mcp.json."),
            instead="Copy the entries to `mcpServers` in .mcp.json.",
        ),
        Place(
            scope="project", find=_stray, format="jsonc", tables=(("mcpServers",),), rank=0,
            shown=".copilot/mcp-config.json", known=Fact(False, "O", f"Copilot CLI {_V} reads no such file."),
            instead="Move the entries to .mcp.json, or to ~/.copilot/mcp-config.json.",
        ),
        Place(
            scope="user", find=_stray_user, format="jsonc", tables=(("mcpServers",),), rank=0,
            shown="~/.copilot/settings.json", known=Fact(False, "O", "Copilot CLI reads no servers from its settings."),
            instead="Move the entries to ~/.copilot/mcp-config.json.",
        ),
        Place(
            scope="user", find=lambda machine: [*user(machine), *_project(machine)], format="jsonc", rank=0,
            tables=(("servers",), ("mcp_servers",)), shown="mcp-config.json (other keys)",
            known=Fact(False, "OT", "Copilot CLI reads servers from the key `mcpServers` only.", "github/copilot-cli#3083"),
            instead="Rename the key to `mcpServers`.",
        ),
    ),
    tolerance=Tolerance(
        empty=Fact(False, "O", f"{_V}: with an empty user's file its list fails"),
        comments=Fact(True, "O", _V), trailing_comma=Fact(True, "O", _V), bom=Fact(True, "O", _V),
        duplicate_keys=unknown("one name twice with different arguments, and `copilot mcp get`"),
        fault=Fact("file", "O", f"{_V}: a workspace's file is skipped with a warning; with a broken user's file its list fails"),
        bad_entry=Fact("entry", "O", f"{_V}: left out without a word"),
    ),
    merge=Fact("entry", "OD", _V),
    transports=Fact(frozenset(("stdio", "http", "sse")), "OD", "a URL without a type is http"),
    variables=Fact(
        Variables(
            forms=("${V}", "$V", "${V:-d}"),
            missing="literal",
            fields=frozenset(("command", "args", "env", "url", "headers")),
        ),
        "O",
        f"{_V}; `copilot mcp list` shows them unfilled",
    ),
    child_env=Fact(ChildEnv(kind="all"), "OX", f"all seen with {_V} in -p mode; the documentation says PATH only"),
    switch=unknown("an entry has no such field"),
    no_switch_evidence="DO",
    no_switch="Write `NAME` into `disabledMcpServers` in ~/.copilot/settings.json, or in the repository's "
    ".github/copilot/settings.json.",
    names=Fact(
        CallableNames(
            form="{server}-{tool}", keep="A-Za-z0-9_-", replacement="-", limit=64, overflow="cut-number", clash="one-lost",
        ), "O", f"{_V}; letters outside of ASCII become an xn-- word",
    ),
    read=read,
    write=write,
    expands_home=Fact(False, "O", _V),
    fields=FIELDS,
    server_names=Fact(r".+", "O", f"{_V}; spaces and dots start too"),
    closed=unknown("change the file while a session runs, then a setting in that session, and look what is left"),
    output_cap=Fact("20,480 characters; beyond: about 500 and a file", "O", _V),
    timeouts=unknown("a server that answers after two minutes; 75 s for one call is no trouble, a silent start costs 64 s"),
    approvals=Fact("asks, except for tools whose server says `readOnlyHint`: those run", "O", f"{_V} in -p mode"),
    tool_lists=Fact("`tools`: `[\"*\"]`, names, or none; --allow-tool and --deny-tool stand in no file", "DO"),
    gates=Fact(
        "`trusted_folders` in ~/.copilot/config.json, of the folder or one above it, or COPILOT_ALLOW_ALL=true; `-p` wants "
        "GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP=true besides", "O", _V,
    ),
    reload=unknown("change the file while a session runs, and look whether `/mcp show` has it"),
    oracles=(
        Oracle(command=("copilot", "mcp", "list", "--json"), gives="parsed entries with their source", live=False,
               evidence="O"),
        Oracle(command=("copilot", "mcp", "get"), gives="one entry and its file", live=False, evidence="O"),
    ),
    plugins=("copilot",),
    sources=("docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers", "@github/copilot 1.0.102"),
    unknowns=(
        "how long it waits for a start and for a call by default",
        "what a session makes of a broken ~/.copilot/mcp-config.json",
    ),
    more={
        "writer": Fact("`copilot mcp add` drops comments; it locks with .mcp-writer.lock", "O", _V),
        "bare": Fact("a workspace's file may hold the entries at its top, without `mcpServers`; the user's may not", "O", _V),
        "names": Fact("names that differ in letter case are two servers", "T", source="github/copilot-cli#4478"),
    },
    signs=lambda machine: [home(machine)],
    admit=_admit,
    judge=_judge,
)  # fmt: skip
