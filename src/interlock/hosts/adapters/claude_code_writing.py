"""A server of the manifest for Claude Code: its entry, and the rules for its tools in a settings file."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.hosts.adapters.claude_code_files import home, main, safe
from interlock.hosts.dialect import Dialect, elsewhere, launched, rendered, times, united, with_more
from interlock.hosts.machine import Machine
from interlock.hosts.tool_rules import ToolRules, lists_lost, tool_rules
from interlock.hosts.writing import Edit, FileEdits, Json, Loss, Path, Rendered, Wanted
from interlock.manifest.config import OAuth


def _oauth(oauth: OAuth) -> tuple[Mapping[str, Json], frozenset[str]]:
    said: dict[str, Json] = {}
    if oauth.client_id is not None:
        said["clientId"] = oauth.client_id
    if oauth.callback_port is not None:
        said["callbackPort"] = oauth.callback_port
    if oauth.scopes:
        said["scopes"] = " ".join(oauth.scopes)
    return ({"oauth": said} if said else {}), frozenset(("clientId", "callbackPort", "scopes"))


DIALECT = Dialect(
    types={"stdio": "stdio", "http": "http", "sse": "sse"}, form="${V}", asks=True, call=("timeout", 1000.0),
    passes_all=True, oauth=_oauth,
)  # fmt: skip


def write(wanted: Wanted, machine: Machine) -> Rendered:
    notes: tuple[str, ...] = ()
    if wanted.scope == "project":
        notes = ("Claude Code asks everybody who opens the project to approve the server before it starts it.",)
    if wanted.server is None:
        return with_more(rendered(DIALECT, wanted, machine), notes=notes)
    server = wanted.server
    entry, losses = launched(DIALECT, server, machine)
    limits, late = times(DIALECT, server)
    rules = tool_rules(server)
    losses += [*lists_lost(rules, deny=False), *late]
    edits = _permissions(wanted, machine, rules)
    if server.required:
        losses.append(Loss("required", "this host goes on without the server", weakens=False))
    if not server.enabled:
        switched, lost = _off(wanted, machine)
        edits, losses = edits + switched, [*losses, *lost]
    return Rendered(entry=entry | limits, edits=edits, losses=tuple(losses), notes=notes)


def settings_file(wanted: Wanted, machine: Machine) -> str:
    if wanted.scope == "user":
        return home(machine, "settings.json")
    name = "settings.json" if wanted.scope == "project" else "settings.local.json"
    return machine.join(wanted.project_root or machine.folder, ".claude", name)


def _permissions(wanted: Wanted, machine: Machine, rules: ToolRules) -> tuple[FileEdits, ...]:
    """Deny is stronger than ask, and ask than allow; for a tool that no rule names Claude Code asks anyway."""
    prefix = f"mcp__{safe(wanted.name)}"
    ask = [f"{prefix}__{safe(name)}" for name in rules.ask]
    allow = [f"{prefix}__{safe(name)}" for name in rules.auto]
    deny = [
        f"{prefix}__{'*'.join(safe(part) for part in name.split('*'))}" for name in (*rules.deny, *rules.deny_globs)
    ]
    if rules.default == "auto":
        allow = [prefix]
    elif rules.default is not None and not allow:
        ask = [prefix]
    file = settings_file(wanted, machine)
    words = {"deny": deny, "ask": ask, "allow": allow}
    edits: list[Edit | None] = [
        united(machine, file, "json", ("permissions", name), listed) for name, listed in words.items() if listed
    ]
    return elsewhere(file, "json", edits, comments=False)


def _off(wanted: Wanted, machine: Machine) -> tuple[tuple[FileEdits, ...], list[Loss]]:
    """No field of an entry does it; two lists of names do, for one project each."""
    path: Path = ("disabledMcpjsonServers",)
    file = settings_file(wanted, machine)
    if wanted.scope == "user":
        why = "it has no switch for a server in all projects, only a list of names for each project"
        return (), [Loss("enabled", why, weakens=True)]
    if wanted.scope == "local":
        file = main(machine)[0]
        path = ("projects", wanted.project_root or machine.repository() or machine.folder, "disabledMcpServers")
    return elsewhere(file, "json", [united(machine, file, "json", path, [wanted.name])], comments=False), []
