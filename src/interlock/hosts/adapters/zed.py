"""Zed: servers among all other settings, tools under their bare names, `enabled` obeyed and `disabled` not."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.hosts.adapter import Adapter, CallableNames, Switch, Tolerance
from interlock.hosts.adapters import file_rules
from interlock.hosts.dialect import Dialect, elsewhere, plain, rendered, standing, with_more
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry
from interlock.hosts.shapes import flag, seconds, text
from interlock.hosts.tool_rules import DENY, ToolRules, globs_lost, other_losses, tool_rules
from interlock.hosts.writing import Edit, Json, Loss, Rendered, Wanted
from interlock.manifest.config import OAuth

_DOCS = "zed.dev/docs/ai/mcp"
_RULES = "zed.dev/docs/ai/tool-permissions"
_SOURCE = "zed-industries/zed crates/settings_content/src/project.rs"
_FIELDS = frozenset(
    ("command", "args", "env", "timeout", "url", "headers", "oauth", "settings", "enabled", "remote", "source")
)
"""`source` is not read any more. Older versions asked for it and wrote it, so that it is no mistake."""


def _user(machine: Machine) -> list[str]:
    if machine.platform == "windows":
        return [machine.application("Zed", "settings.json")]
    return [machine.config("zed", "settings.json")]


def _mac(machine: Machine) -> list[str]:
    return [machine.application("Zed", "settings.json")] if machine.platform == "macos" else []


def read(raw: Mapping[str, object]) -> Entry:
    """A command first, then a URL; everything else is taken as the settings of an extension."""
    command = raw.get("command")
    enabled = flag(raw, "enabled", True)
    call = seconds(raw, "timeout")
    if isinstance(command, dict):  # before June 2025; Zed rewrites it when it reads the file
        if text(command, "path") is None:
            raise BadEntry("`command` has no `path`", "command")
        found = plain({**command, "command": command["path"]}, "stdio")
    elif command is not None:
        found = plain(raw, "stdio")
    elif raw.get("url") is not None:
        found = plain(raw, "http")
    else:
        return Entry(transport="other", enabled=enabled, ignored=_ignored(raw))
    return Entry(
        transport=found.transport, command=found.command, url=found.url, env=found.env, headers=found.headers,
        enabled=enabled, call_seconds=call, ignored=_ignored(raw),
    )  # fmt: skip


def _ignored(raw: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(name for name in raw if name not in _FIELDS)


def _oauth(oauth: OAuth) -> tuple[Mapping[str, Json], frozenset[str]]:
    if oauth.client_id is None:
        return {}, frozenset()
    return {"oauth": {"client_id": oauth.client_id}}, frozenset(("clientId",))


DIALECT = Dialect(
    transports=frozenset(("stdio", "http")),
    unsure=True,
    off=("enabled", False),
    asks=True,
    call=("timeout", 1.0),
    oauth=_oauth,
)


def write(wanted: Wanted, machine: Machine) -> Rendered:
    found = rendered(DIALECT, wanted, machine)
    if wanted.server is None:
        return found
    rules = tool_rules(wanted.server)
    file = _user(machine)[0]
    where = ("agent", "tool_permissions")
    words = dict.fromkeys(rules.deny, "deny") | dict.fromkeys(rules.auto, "allow") | dict.fromkeys(rules.ask, "confirm")
    edits: list[Edit | None] = []
    for tool, word in words.items():
        path = (*where, "tools", f"mcp:{wanted.name}:{tool}", "default")
        edits.append(None if standing(machine, file, "jsonc", path) == word else Edit(path, word))
    losses = [loss for loss in other_losses(found.losses) if loss.field != DENY]
    losses += globs_lost(rules, allow=False, deny=True)
    losses += _defaults_lost(rules, standing(machine, file, "jsonc", (*where, "default")))
    return with_more(
        Rendered(entry=found.entry, losses=tuple(losses), notes=found.notes),
        edits=elsewhere(file, "jsonc", edits, comments=True),
    )


def _defaults_lost(rules: ToolRules, said: object) -> list[Loss]:
    """Zed has rules for single tools and one for all tools of all servers, which is not this server's to change."""
    if rules.default == "auto" and said != "allow":
        return [Loss("policy.defaultApproval", "Zed asks for every tool that is not named", weakens=False)]
    if rules.default in ("ask", "writes") and said == "allow":
        why = "`agent.tool_permissions.default` is `allow`: what is not named runs unasked"
        return [Loss("policy.defaultApproval", why, weakens=True)]
    return []


ADAPTER = Adapter(
    id="zed",
    label="Zed",
    seen="source of autumn 2026; 1.15 by third parties",
    verified="2026-11-30",
    places=(
        Place(
            scope="project", find=lambda machine: [machine.join(folder, ".zed", "settings.json")
                                                   for folder in machine.project_folders()],
            format="jsonc", tables=(("context_servers",),), rank=20, shown=".zed/settings.json",
            known=Fact(True, "DS", "In a trusted folder.", _SOURCE), writes=True,
        ),
        Place(
            scope="user", find=_user, format="jsonc", tables=(("context_servers",),), rank=10,
            shown="~/.config/zed/settings.json, %APPDATA%\\Zed\\settings.json", known=Fact(True, "DT", source=_DOCS),
            writes=True,
        ),
        Place(
            scope="user", find=_mac, format="jsonc", tables=(("context_servers",),), rank=5,
            shown="~/Library/Application Support/Zed/settings.json",
            known=Fact(None, "X", "One tool writes here on macOS; the documentation and two others name ~/.config/zed.",
                       "neondatabase/add-mcp"),
        ),
    ),
    tolerance=Tolerance(
        comments=Fact(True, "DS"),
        trailing_comma=Fact(True, "S", "Its parser is serde_json_lenient.", _SOURCE),
        bom=unknown("the file saved with a byte order mark"),
        duplicate_keys=unknown("one name twice in `context_servers`"),
        fault=unknown("a broken project file beside a right user file"),
        bad_entry=Fact("entry", "S", "Any object is an entry: what has neither a command nor a URL is an extension's.", _SOURCE),
    ),
    merge=Fact("entry", "S", "A project's entry replaces the user's as a whole: the kinds of entry are an enum, and an "
               "enum is replaced.", "zed-industries/zed crates/settings_macros/src/settings_macros.rs"),
    transports=Fact(frozenset(("stdio", "http")), "DS", source=_SOURCE),
    variables=unknown("`$HOME` and `${HOME}` in args and in a header"),
    child_env=unknown("a server that writes its environment, started from the desktop and from a terminal"),
    switch=Fact(Switch(field="enabled"), "S", "`disabled` is ignored: the server starts.", _SOURCE),
    names=Fact(
        CallableNames(form="{tool}", limit=64, overflow="cut", clash="prefix", bare=True), "S",
        "Only where two servers have a tool of one name it is SERVER_TOOL, the server's name cut to fit; with less than "
        "two characters of room the last one wins.", "zed-industries/zed crates/agent thread.rs enabled_tools",
    ),
    read=read,
    write=write,
    judge=lambda reading: file_rules.zed(reading, _user(reading.machine)[0]),
    fields=_FIELDS,
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=unknown("`~/server` as the command"),
    timeouts=Fact("A call: `timeout`, else `context_server_timeout`, else 60 s.", "S", source=_SOURCE),
    approvals=Fact("agent.tool_permissions.tools.\"mcp:SERVER:TOOL\".default: allow, confirm, deny; `default` for all of "
                   "them, confirm unless set. Before 0.224 `agent.always_allow_tool_actions`.", "D", source=_RULES),
    tool_lists=Fact("A tool is forbidden by agent.tool_permissions; agent.profiles.PROFILE.context_servers.SERVER.tools "
                    "chooses them for one profile.", "D", source=_RULES),
    gates=Fact("A project's servers start once its folder is trusted.", "DS"),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    reload=Fact("When the file is saved.", "D"),
    closed=Fact(False, "T", "It does not write over a file that was changed by hand."),
    gui=True,
    sources=(_DOCS, _RULES, _SOURCE, "zed-industries/zed crates/migrator/src/migrations/m_2025_06_27/settings.rs"),
    unknowns=("variables", "limits of results", "where its own switch in the panel is kept",
              "which folders are trusted: it stands in no settings file"),
    more={
        "agents": Fact("Agents that it runs over ACP are given these servers.", "T"),
        "source": Fact("`source` may hold anything, even what is wrong (1.15).", "T"),
        "oracle": Fact("None: neither a command nor its log says which servers it has read.", "T"),
    },
)  # fmt: skip
