"""Codex (command line, IDE extension, desktop): TOML in layers that are merged field by field.

A project's layer counts only where the user's own file trusts that folder. One entry that makes no sense, in any layer
that counts, and the whole configuration is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from interlock.hosts.adapter import Adapter, CallableNames, ChildEnv, Oracle, Switch, Tolerance, Variables
from interlock.hosts.adapters.codex_entry import FIELDS, read
from interlock.hosts.adapters.codex_writing import write
from interlock.hosts.declaration import Decision, Declaration, Problem, Spot
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import Reading

_V = "0.171.0"
_NAME = r"[a-zA-Z0-9_:@/.-]+"
_TABLES = (("mcp_servers",),)


def _home(machine: Machine, *parts: str) -> str:
    return machine.join(machine.environ.get("CODEX_HOME") or machine.user(".codex"), *parts)


def _user(machine: Machine) -> Sequence[str]:
    return [_home(machine, "config.toml")]


def _project(machine: Machine) -> Sequence[str]:
    own = _home(machine)
    folders = [machine.join(folder, ".codex") for folder in machine.project_folders()]
    return [machine.join(folder, "config.toml") for folder in folders if folder != own]


def _system_folder(machine: Machine, name: str) -> str:
    if machine.platform == "windows":
        return machine.join(machine.environ.get("ProgramData") or "C:\\ProgramData", "OpenAI", "Codex", name)
    return machine.join("/etc", "codex", name)


def _system(machine: Machine) -> Sequence[str]:
    return [_system_folder(machine, "config.toml")]


def _managed(machine: Machine) -> Sequence[str]:
    return [_home(machine, "managed_config.toml")] if machine.platform == "windows" else [
        _system_folder(machine, "managed_config.toml")
    ]  # fmt: skip


def _wrong_root(machine: Machine) -> Sequence[str]:
    return [*_user(machine), *_project(machine)]


def _stray(machine: Machine) -> Sequence[str]:
    return [
        _home(machine, "mcp.json"), _home(machine, "config.json"), machine.join(machine.folder, ".codex", "mcp.json"),
        machine.join(machine.folder, ".codex", "config.json"),
    ]  # fmt: skip


# Which layers count


def _admit(reading: Reading) -> None:
    trusted: dict[str, tuple[bool, Spot]] = {}
    for each in reading.declarations:
        if each.scope != "project" or each.place.known.value is False or each.state not in ("effective", "broken"):
            continue
        paths = reading.machine.paths
        folder = paths.dirname(paths.dirname(each.file))
        if folder not in trusted:
            trusted[folder] = trust(reading, folder)
        good, spot = trusted[folder]
        if good:
            continue
        each.state = "blocked"
        each.decided_by = Decision("untrusted", spot, "[projects] trust_level")
        each.problems = [
            Problem(
                "project-untrusted", "warning", "Codex does not trust this folder, so it leaves this file out.", spot=spot,
                why="Only a file in a trusted project counts, and only the user's own file can say that it is trusted.",
                todo=f'Add [projects."{folder}"] with trust_level = "trusted" to {_user(reading.machine)[0]}.',
            )
        ]  # fmt: skip


def trust(reading: Reading, folder: str) -> tuple[bool, Spot]:
    """By the folder's own key, else by that of the project's root; and where that stands."""
    file = _user(reading.machine)[0]
    document = reading.other(file, "toml")
    projects = document.value.get("projects") if document is not None and isinstance(document.value, dict) else None
    if document is None or not isinstance(projects, dict):
        return False, Spot(file)
    for key in (folder, reading.machine.repository(folder) or folder):
        rule = projects.get(key)
        level = rule.get("trust_level") if isinstance(rule, dict) else None
        if level is not None:
            spot = Spot(file, *(document.at("projects", key, "trust_level") or (0, 0)))
            return level == "trusted", spot
    return False, Spot(file)


# What the administrator and the name forbid


def _judge(reading: Reading) -> None:
    _required(reading)
    for each in reading.declarations:
        if each.state == "effective" and each.server is not None and re.fullmatch(_NAME, each.server) is None:
            each.state = "broken"
            each.decided_by = Decision("invalid-entry", each.spot, "a name that Codex does not start")
            each.problems.append(
                Problem(
                    "name-never-starts", "problem", "Codex lists a server of this name and never starts it, without a word.",
                    spot=each.spot, why="It starts names of letters, digits and `_ : @ / . -` only.",
                    todo="Give it a name without other characters.",
                )
            )  # fmt: skip


def _required(reading: Reading) -> None:
    """requirements.toml: only servers that are named there, with that command or URL."""
    file = _system_folder(reading.machine, "requirements.toml")
    document = reading.other(file, "toml")
    rules = document.value.get("mcp_servers") if document is not None and isinstance(document.value, dict) else None
    if document is None or not isinstance(rules, dict):
        return
    for each in reading.declarations:
        if each.state != "effective" or each.server is None or each.runs is None:
            continue
        rule = rules.get(each.server)
        identity = rule.get("identity") if isinstance(rule, dict) else None
        if isinstance(identity, dict) and _is(identity, each.runs):
            continue
        at = document.at("mcp_servers", each.server) or document.at("mcp_servers") or (0, 0)
        each.state = "blocked"
        each.decided_by = Decision("policy", Spot(file, *at), "requirements.toml mcp_servers")


def _is(identity: Mapping[str, object], entry: Entry) -> bool:
    for name, value in (("command", entry.command[0] if entry.command else None), ("url", entry.url)):
        rule = identity.get(name)
        if rule is not None:
            return value is not None and _matches(rule, value)
    return False


def _matches(rule: object, value: str) -> bool:
    if isinstance(rule, str):
        return rule == value
    if not isinstance(rule, dict):
        return False
    kind = (
        rule.get("match")
        or rule.get("type")
        or next((name for name in ("exact", "prefix", "regex") if name in rule), "")
    )
    wanted = rule.get("value", rule.get("pattern", rule.get(str(kind))))
    if not isinstance(wanted, str):
        return False
    if kind == "prefix":
        return value.startswith(wanted)
    if kind == "regex":
        try:
            return re.search(wanted, value) is not None
        except re.error:
            return False
    return value == wanted


def _problems(declaration: Declaration, machine: Machine) -> Sequence[Problem]:
    """`type` and `timeout` are harmless where they are not read; these are not."""
    if "headers" not in declaration.raw:
        return ()
    return (
        Problem(
            "headers-ignored", "warning", "Codex does not read `headers`: nothing of it is sent.", field="headers",
            spot=declaration.spots.get("headers", declaration.spot), why="Its words are `http_headers` and, for values in "
            "variables, `env_http_headers` and `bearer_token_env_var`.", todo="Rename it to `http_headers`.",
        ),
    )  # fmt: skip


ADAPTER = Adapter(
    id="codex",
    label="Codex",
    seen=_V,
    verified="2026-11-30",
    places=(
        Place(
            scope="managed", find=_managed, format="toml", tables=_TABLES, rank=60, shown="/etc/codex/managed_config.toml",
            known=Fact(True, "S", "legacy; a file of that name in $CODEX_HOME is not read on Linux (seen with 0.171.0)"),
        ),
        Place(
            scope="user", find=_user, format="toml", tables=_TABLES, rank=20, shown="~/.codex/config.toml",
            known=Fact(True, "ODS", f"{_V}; $CODEX_HOME moves it"), writes=True,
        ),
        Place(
            scope="project", find=_project, format="toml", tables=_TABLES, rank=30, shown=".codex/config.toml",
            known=Fact(True, "ODS", "in each folder from the project's root (a .git) to the working directory; trusted only"),
            writes=True,
        ),
        Place(
            scope="system", find=_system, format="toml", tables=_TABLES, rank=10, shown="/etc/codex/config.toml",
            known=Fact(True, "SD"),
        ),
        Place(
            scope="user", find=_wrong_root, format="toml", rank=0, shown="config.toml (other tables)",
            tables=(("mcpServers",), ("mcp_server",), ("mcp", "servers")),
            known=Fact(False, "O", f"Codex {_V} reads servers from [mcp_servers.NAME] only, and says nothing of other tables."),
            instead="Rename the table to [mcp_servers.NAME].",
        ),
        Place(
            scope="user", find=_stray, format="jsonc", tables=(("mcpServers",), ("mcp_servers",), ("servers",)), rank=0,
            shown="~/.codex/mcp.json", known=Fact(False, "O", f"Codex {_V} reads no such file."),
            instead="Write the entries as [mcp_servers.NAME] into ~/.codex/config.toml.",
        ),
    ),
    tolerance=Tolerance(
        empty=Fact(True, "S", "TOML: nothing is said"),
        comments=Fact(True, "O", _V), trailing_comma=unknown("TOML has none of JSON's"), bom=Fact(True, "O", _V),
        duplicate_keys=Fact("error", "O", _V), fault=Fact("host", "O", f"{_V}: it refuses its whole configuration"),
        bad_entry=Fact("host", "O", f"{_V}: it refuses its whole configuration"),
    ),
    merge=Fact("fields", "OS", "tables (env, http_headers, tools) are united, everything else is replaced"),
    transports=Fact(frozenset(("stdio", "http")), "OS", _V),
    variables=Fact(Variables(forms=()), "O", f"{_V}: `$HOME`, `${{X}}` and `~` stay as they are"),
    child_env=Fact(
        ChildEnv(
            kind="named",
            names=(
                "HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ", "__CF_USER_TEXT_ENCODING",
                "SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERNAME",
                "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES",
            ),
        ), "OS", "and what `env_vars` and `env` name",
    ),
    switch=Fact(Switch(field="enabled"), "O", f"{_V}; `disabled` is ignored"),
    names=Fact(
        CallableNames(form="mcp__{server}__{tool}", keep="A-Za-z0-9_", limit=128, overflow="hash", clash="hash-both"), "OS",
        "a namespace and a name in it, where `-` too becomes `_`; 64 in older versions; overflow: cut, `_` and 12 hexadecimal digits",
    ),
    read=read,
    write=write,
    expands_home=Fact(False, "O", _V),
    fields=FIELDS,
    server_names=Fact(_NAME, "OS", f"{_V}; a name with a space is listed as enabled and never starts"),
    closed=Fact(None, "X", "the desktop application is reported to rewrite the file at its start; the command line reads it",
                "openai/codex#24718"),
    output_cap=Fact(
        "12,000 to 48,000 characters by model; the middle is cut out and lost; `tool_output_token_limit` changes it", "O", _V
    ),
    timeouts=Fact(None, "X", "start: 30 s seen with 0.171.0 for a required server, 10 s in the documentation; a call: 60 s"),
    approvals=Fact(
        "`auto` asks unless the server calls its tool harmless; `writes`, `prompt` (always) and `approve` (never) by entry and "
        "by tool", "OS", "`codex exec` runs a tool on `readOnlyHint` alone",
    ),
    tool_lists=Fact("`enabled_tools`, then `disabled_tools` (exact names)", "S"),
    gates=Fact(
        'a project\'s file counts with [projects."FOLDER"] trust_level = "trusted" in the user\'s file, of the folder itself or '
        "of the project's root; requirements.toml names the servers that may run", "OS", _V,
    ),
    reload=unknown("change the file while the desktop application runs, and ask mcpServerStatus/list"),
    oracles=(
        Oracle(
            command=("codex", "mcp", "list", "--json"), live=False, evidence="O",
            gives="every entry as parsed; a program that does not exist still shows as enabled",
        ),
        Oracle(
            command=("codex", "app-server"), live=True, evidence="O",
            gives="config/read: values, origins and layers; mcpServerStatus/list: tools of each server",
        ),
    ),
    plugins=("codex",),
    sources=(
        "openai/codex codex-rs/config/src/mcp_types.rs",
        "openai/codex codex-rs/config loader, mcp_requirements.rs",
        "openai/codex codex-rs/codex-mcp/src/{tools,catalog,plugin_config}.rs",
        "learn.chatgpt.com/docs/extend/mcp, /docs/config-file/config-reference",
    ),
    unknowns=(
        "how long it waits for a server that is not required",
        "which of its surfaces read a changed file without a restart",
        "layers that come from the cloud or from macOS device management stand in no file",
    ),
    more={
        "writer": Fact("`codex mcp add` writes the user's file only, drops comments and replaces silently", "O",
                       source="openai/codex#45432"),
        "merged before judged": Fact("a wrong value that a nearer layer replaces does no harm", "O", _V),
        "untrusted": Fact("a damaged file of an untrusted project does no harm", "O", _V),
        "plugins": Fact("an entry replaces a plugin's server of its name; one that is off forbids that name", "S"),
        "profiles": Fact("`--profile NAME` adds ~/.codex/NAME.config.toml", "O", _V),
        "list changes": Fact("a server's tools/list_changed is not obeyed", "O", _V),
    },
    admit=_admit,
    judge=_judge,
    entry_problems=_problems,
)  # fmt: skip
