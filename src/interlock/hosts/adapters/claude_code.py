"""Claude Code: strict JSON, one bad entry harms only itself, and the nearer scope replaces the whole entry.

It has no field that switches a server off: one with `disabled: true` starts all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.hosts.adapter import Adapter, CallableNames, ChildEnv, Oracle, Tolerance, Variables
from interlock.hosts.adapters.claude_code_entry import FIELDS, read
from interlock.hosts.adapters.claude_code_files import home, main, project, system
from interlock.hosts.adapters.claude_code_gates import RESERVED, admit, judge
from interlock.hosts.adapters.claude_code_writing import write
from interlock.hosts.declaration import Declaration, Problem
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import PROJECT, Place

_V = "2.1.332"


def _managed(machine: Machine) -> Sequence[str]:
    return [system(machine, "managed-mcp.json")]


def _beside_home(machine: Machine) -> Sequence[str]:
    """~/.mcp.json is read only by who works below the home directory."""
    file = machine.user(".mcp.json")
    return [] if file in project(machine) else [file]


def _stray(machine: Machine) -> Sequence[str]:
    folder, name = machine.folder, machine.join
    return [
        name(folder, ".claude", ".mcp.json"), name(folder, ".claude", "mcp.json"), name(folder, ".claude.json"),
    ] if folder != machine.home else []  # fmt: skip


def _stray_user(machine: Machine) -> Sequence[str]:
    return [home(machine, name) for name in (".mcp.json", "mcp.json", "mcp_servers.json")]


def _settings(machine: Machine) -> Sequence[str]:
    return [home(machine, "settings.json")]


def _project_settings(machine: Machine) -> Sequence[str]:
    own = [machine.join(machine.folder, ".claude", name) for name in ("settings.json", "settings.local.json")]
    return [each for each in own if each != home(machine, "settings.json")]


def _problems(declaration: Declaration, machine: Machine) -> Sequence[Problem]:
    """Below the home directory the user's ~/.mcp.json is a project's file, with what that brings."""
    if declaration.scope != "project" or declaration.file != machine.user(".mcp.json"):
        return ()
    return (
        Problem(
            "home-as-project", "note", "~/.mcp.json counts only below your home directory, and as a project's file.",
            spot=declaration.spot, why="Elsewhere Claude Code does not see it, and it has to be approved.",
            todo="Move the entry to `mcpServers` in ~/.claude.json: claude mcp add -s user.",
        ),
    )  # fmt: skip


_WRONG = "Claude Code does not read this file for servers."

ADAPTER = Adapter(
    id="claude-code",
    label="Claude Code",
    seen=_V,
    verified="2026-11-30",
    places=(
        Place(
            scope="managed", find=_managed, format="json", tables=(("mcpServers",),), rank=60, exclusive=True,
            shown="/etc/claude-code/managed-mcp.json", known=Fact(True, "D", "where it exists only its servers count"),
        ),
        Place(
            scope="local", find=main, format="json", tables=(("projects", PROJECT, "mcpServers"),), rank=40,
            shown='~/.claude.json projects["FOLDER"]',
            known=Fact(True, "OD", f"{_V}; keyed by the root of the repository, else by the folder itself"), writes=True,
        ),
        Place(
            scope="project", find=project, format="json", tables=(("mcpServers",),), rank=30, shown=".mcp.json",
            known=Fact(True, "OD", f"{_V}; in every folder up to the file system's root, past the repository's"), writes=True,
        ),
        Place(
            scope="user", find=main, format="json", tables=(("mcpServers",),), rank=20, shown="~/.claude.json",
            known=Fact(True, "OD", f"{_V}; $CLAUDE_CONFIG_DIR moves it"), writes=True,
        ),
        Place(
            scope="user", find=_beside_home, format="json", tables=(("mcpServers",),), rank=0, shown="~/.mcp.json",
            known=Fact(False, "O", "~/.mcp.json is no user's file: Claude Code reads it only below your home directory."),
            instead="claude mcp add -s user, or `mcpServers` in ~/.claude.json.",
        ),
        Place(
            scope="project", find=_stray, format="json", tables=(("mcpServers",),), rank=0, shown=".claude/.mcp.json",
            known=Fact(False, "O", _WRONG, "anthropics/claude-code#5037"), instead="Move it to .mcp.json in the project's root.",
        ),
        Place(
            scope="user", find=_stray_user, format="json", tables=(("mcpServers",),), rank=0, shown="~/.claude/.mcp.json",
            known=Fact(False, "O", _WRONG), instead="claude mcp add -s user, or `mcpServers` in ~/.claude.json.",
        ),
        Place(
            scope="user", find=_settings, format="jsonc", tables=(("mcpServers",), ("mcp_servers",)), rank=0,
            shown="settings.json",
            known=Fact(False, "O", "Claude Code reads no servers from a settings file."),
            instead="Move them to ~/.claude.json (yours) or .mcp.json (the project's).",
        ),
        Place(
            scope="project", find=_project_settings, format="jsonc", tables=(("mcpServers",), ("mcp_servers",)), rank=0,
            shown=".claude/settings.json",
            known=Fact(False, "O", "Claude Code reads no servers from a settings file."),
            instead="Move them to .mcp.json in the project's root.",
        ),
        Place(
            scope="user", find=lambda machine: [*main(machine), *project(machine)], format="json", rank=0,
            tables=(("servers",), ("mcp_servers",)), shown=".mcp.json (other keys)",
            known=Fact(False, "O", "Claude Code reads servers from the key `mcpServers` only."),
            instead="Rename the key to `mcpServers`.",
        ),
    ),
    tolerance=Tolerance(
        empty=Fact(True, "O", f"{_V}: a project's; an empty ~/.claude.json ends the program"),
        comments=Fact(False, "O", _V), trailing_comma=Fact(False, "O", _V), bom=Fact(True, "O", _V),
        duplicate_keys=Fact("last", "O"),
        fault=Fact("file", "OD", f"{_V}; a fault in ~/.claude.json ends the whole program"), bad_entry=Fact("entry", "OD", _V),
    ),
    merge=Fact("entry", "OD", f"{_V}: local, then project, then user; of several .mcp.json the nearest"),
    transports=Fact(frozenset(("stdio", "http", "sse", "ws")), "OD", _V),
    variables=Fact(
        Variables(
            forms=("${V}", "${V:-d}"), missing="literal", fields=frozenset(("command", "args", "env", "url", "headers"))
        ), "OD", f"{_V}; `$V` stays as it is",
    ),
    child_env=Fact(ChildEnv(kind="all"), "O", f"{_V}: its own API key included; CLAUDE_CODE_MCP_ALLOWLIST_ENV=1 narrows it"),
    switch=unknown("an entry has no such field"),
    no_switch_evidence="OD",
    no_switch="Write `NAME` into `disabledMcpServers` of the project in ~/.claude.json (an entry of .mcp.json: into "
    "`disabledMcpjsonServers` in .claude/settings.local.json), or remove it: `claude mcp remove NAME`.",
    names=Fact(
        CallableNames(form="mcp__{server}__{tool}", limit=128, overflow="dropped", clash="first"), "O",
        f"{_V}; 2.1.197 cut and dropped nothing",
    ),
    read=read,
    write=write,
    expands_home=Fact(False, "O", _V, "anthropics/claude-code#37580"),
    fields=FIELDS,
    server_names=Fact(r"(?!(?:workspace|claude-in-chrome|computer-use|Claude Preview|Claude Browser)$).+", "OD", _V),
    reserved=RESERVED,
    output_cap=Fact("50,000 characters, 25,000 tokens; beyond: a preview of 2 KB and a file", "OD", _V),
    timeouts=Fact("start 30 s (MCP_TIMEOUT), a call about 28 h (MCP_TOOL_TIMEOUT), an HTTP request 60 s", "D"),
    approvals=Fact("asks before each tool, unless a permission rule allows it", "OD", _V),
    tool_lists=Fact("permission rules `mcp__server`, `mcp__server__tool` in settings: deny, then ask, then allow", "D"),
    gates=Fact(
        "servers of .mcp.json need approval (`enabledMcpjsonServers`, `enableAllProjectMcpServers`; in a project's own settings "
        "it counts in a trusted folder only); `allowedMcpServers` and `deniedMcpServers` of all settings; `claude -p` waits for "
        "no approval", "OD", _V,
    ),
    reload=Fact("servers are read at the start; `/mcp` reconnects", "D"),
    closed=unknown("~/.claude.json is also the program's own notebook: change it while a session runs, and look who wins"),
    oracles=(
        Oracle(
            command=("claude", "mcp", "list"), live=True, evidence="O",
            gives="health of each server, and what is wrong with its files (no ws servers in older versions)",
        ),
        Oracle(command=("claude", "mcp", "get"), live=True, evidence="O", gives="scope and state of one server"),
    ),
    plugins=("claude-code",),
    sources=(
        "code.claude.com/docs/en/mcp, managed-mcp, settings, permissions, env-vars",
        "anthropics/claude-code issues",
    ),
    unknowns=(
        "what becomes of ~/.claude.json when several sessions write it",
        "which of two names that clean to the same is kept is observed and not documented",
        "servers that come from an account (claude.ai connectors) stand in no file",
    ),
    more={
        "denied": Fact("a denied server is missing from every list, without a message", "O", _V),
        "plugins": Fact("a plugin's server is left out where a manual entry has the same command or URL", "D"),
        "desktop": Fact("in the desktop's Code tab claude_desktop_config.json wins, and a user's stdio server wins over "
                        ".mcp.json", "D"),
        "project settings": Fact(
            "of the folder that `claude` was started in, and settings.local.json of the repository's root; approvals in "
            "~/.claude.json are moved there",
            "O",
            _V,
        ),
        "writer": Fact("`claude mcp add` keeps unknown keys and indents anew; ~/.claude/backups has five copies", "O", _V),
    },
    admit=admit,
    judge=judge,
    entry_problems=_problems,
)  # fmt: skip
