"""Gemini CLI: `mcpServers` in four settings files and in extensions; the nearer file replaces the whole entry.

An untrusted folder switches off all servers, the user's own too, and folder trust is on unless the user switched it off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from interlock.hosts.adapter import Adapter, CallableNames, ChildEnv, Oracle, Tolerance, Variables
from interlock.hosts.adapters.gemini_family import FIELDS, entry, sign_in, write
from interlock.hosts.declaration import Decision, Declaration, Problem, Spot
from interlock.hosts.dialect import Dialect
from interlock.hosts.entry import Entry, Transport
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry, Reading
from interlock.hosts.shapes import text
from interlock.hosts.tool_rules import ToolRules, approvals_lost
from interlock.hosts.writing import Loss, Rendered, Wanted

_V = "0.61.0"
_TYPES: Mapping[str, Transport] = {"http": "http", "sse": "sse", "stdio": "stdio"}


def _home(machine: Machine, *parts: str) -> str:
    return machine.join(machine.environ.get("GEMINI_CLI_HOME") or machine.home, ".gemini", *parts)


def _user(machine: Machine) -> Sequence[str]:
    return [_home(machine, "settings.json")]


def _project(machine: Machine) -> Sequence[str]:
    return [machine.join(machine.folder, ".gemini", "settings.json")]


def _system(machine: Machine) -> Sequence[str]:
    return [machine.environ.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or _system_folder(machine, "settings.json")]


def _defaults(machine: Machine) -> Sequence[str]:
    return [machine.environ.get("GEMINI_CLI_SYSTEM_DEFAULTS_PATH") or _system_folder(machine, "system-defaults.json")]


def _system_folder(machine: Machine, name: str) -> str:
    if machine.platform == "windows":
        return machine.join("C:\\ProgramData", "gemini-cli", name)
    if machine.platform == "macos":
        return machine.join("/Library/Application Support", "GeminiCli", name)
    return machine.join("/etc", "gemini-cli", name)


def _extensions(machine: Machine) -> Sequence[str]:
    folder = _home(machine, "extensions")
    return [machine.join(folder, name, "gemini-extension.json") for name in machine.names_in(folder)]


def _stray(machine: Machine) -> Sequence[str]:
    names = ("mcp.json", "mcp_config.json")
    return [machine.join(machine.folder, ".gemini", name) for name in names] + [_home(machine, "mcp.json")]


def read(raw: Mapping[str, object]) -> Entry:
    """Raises BadEntry. A field or a `type` that Gemini CLI does not know only makes it complain."""
    kind = text(raw, "type")
    env = raw.get("env")
    for name, value in env.items() if isinstance(env, dict) else ():
        if not isinstance(value, str):
            raise BadEntry(
                "a variable that is no text keeps this host from starting the server", f"env.{name}", "Quote it."
            )
    found = entry(raw, _FIELDS, "sse" if kind == "sse" else "http")
    return found if kind is None or kind in _TYPES else replace(found, ignored=(*found.ignored, "type"))


_FIELDS = FIELDS | {"type"}
_DIALECT = Dialect(
    form="$V", types={"http": "http", "sse": "sse"}, transports=frozenset(("stdio", "http", "sse")), asks=True,
    call=("timeout", 1000.0), oauth=sign_in,
)  # fmt: skip


def _write(wanted: Wanted, machine: Machine) -> Rendered:
    return write(_DIALECT, wanted, machine, _unsaid)


def _unsaid(rules: ToolRules) -> Sequence[Loss]:
    return approvals_lost(rules, True)


def _judge(reading: Reading) -> None:
    _with_extensions(reading)
    _listed(reading)
    _switched(reading)
    _trusted(reading)


def _with_extensions(reading: Reading) -> None:
    """A settings entry and an extension's of one name: the tools that both forbid or allow, and the variables of both."""
    for winner in _live(reading):
        others = [
            each.entry
            for each in reading.of(winner.server or "")
            if each.scope == "extension" and each.state == "shadowed" and each.entry is not None
        ]
        if not others or winner.entry is None or winner.scope == "extension":
            continue
        made = winner.entry
        for other in others:
            allow = made.allow if other.allow is None else other.allow if made.allow is None else tuple(
                name for name in made.allow if name in other.allow
            )  # fmt: skip
            made = replace(
                made, env={**other.env, **made.env}, allow=allow, deny=tuple(dict.fromkeys((*made.deny, *other.deny)))
            )
        winner.merged = made if made != winner.entry else None


def _live(reading: Reading) -> Iterator[Declaration]:
    return (each for each in reading.declarations if each.state == "effective" and each.server is not None)


def _settings(reading: Reading, *path: str) -> list[tuple[object, Spot]]:
    """What each settings file says there, the strongest first."""
    found: list[tuple[object, Spot]] = []
    for find in (_system, _project, _user, _defaults):
        for file in find(reading.machine):
            document = reading.other(file)
            value: object = document.value if document is not None else None
            for step in path:
                value = value.get(step) if isinstance(value, dict) else None
            if document is not None and value is not None:
                found.append((value, Spot(file, *(document.at(*path) or (0, 0)))))
    return found


def _listed(reading: Reading) -> None:
    allowed = [(_names(value), spot) for value, spot in _settings(reading, "mcp", "allowed")]
    excluded = [(_names(value), spot) for value, spot in _settings(reading, "mcp", "excluded")]
    for each in _live(reading):
        name = (each.server or "").lower()
        for names, spot in excluded:
            if name in names and each.state == "effective":
                each.state, each.decided_by = "blocked", Decision("policy", spot, "mcp.excluded")
        for names, spot in allowed:
            if name not in names and each.state == "effective":
                each.state, each.decided_by = "blocked", Decision("policy", spot, "mcp.allowed")


def _names(value: object) -> frozenset[str]:
    return frozenset(str(each).lower() for each in value) if isinstance(value, list) else frozenset()


def _switched(reading: Reading) -> None:
    file = _home(reading.machine, "mcp-server-enablement.json")
    document = reading.other(file)
    if document is None or not isinstance(document.value, dict):
        return
    off = {
        str(name).lower(): Spot(file, *(document.at(name) or (0, 0)))
        for name, state in document.value.items()
        if isinstance(state, dict) and state.get("enabled") is False
    }
    for each in _live(reading):
        spot = off.get((each.server or "").lower())
        if spot is not None:
            each.state, each.decided_by = "disabled", Decision("list-off", spot, "gemini mcp disable")


def _trusted(reading: Reading) -> None:
    said, spot = trusts(reading)
    if said:
        return
    for each in _live(reading):
        each.state = "blocked"
        each.decided_by = Decision("untrusted", spot, "the folder is not trusted")
        each.problems.append(
            Problem(
                "folder-untrusted", "warning", "Gemini CLI does not trust this folder, so it starts no server at all.",
                why="In an untrusted folder the user's own servers are switched off too.", spot=spot,
                todo="Start `gemini` in the folder and choose to trust it.",
            )
        )  # fmt: skip


def trusts(reading: Reading) -> tuple[bool, Spot | None]:
    """Whether the working directory is trusted, and where that stands. The longest path that holds it decides."""
    machine = reading.machine
    if machine.environ.get("GEMINI_RESTRICTED_MODE") == "true":
        return False, None
    forced = machine.environ.get("GEMINI_CLI_TRUST_WORKSPACE")
    if forced in ("true", "false"):
        return forced == "true", None
    own = {file for find in (_system, _user, _defaults) for file in find(machine)}
    for value, spot in _settings(reading, "security", "folderTrust", "enabled"):
        if spot.file in own:  # a project cannot declare itself trusted
            if value is False:
                return True, spot
            break
    file = machine.environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or _home(machine, "trustedFolders.json")
    document = reading.other(file)
    best, answer, where = -1, False, Spot(file)
    for path, level in document.value.items() if document and isinstance(document.value, dict) else ():
        folder = machine.paths.dirname(path) if level == "TRUST_PARENT" else path
        if len(path) > best and _inside(machine, machine.folder, folder):
            best, answer = len(path), level in ("TRUST_FOLDER", "TRUST_PARENT")
            where = Spot(file, *(document.at(path) if document else None) or (0, 0))
    return answer, where


def _inside(machine: Machine, path: str, folder: str) -> bool:
    paths = machine.paths
    inner, outer = paths.normcase(paths.normpath(path)), paths.normcase(paths.normpath(folder))
    return bool(inner == outer or inner.startswith(outer.rstrip(paths.sep) + paths.sep))


ADAPTER = Adapter(
    id="gemini-cli",
    label="Gemini CLI",
    seen=_V,
    verified="2026-11-30",
    places=(
        Place(
            scope="system", find=_system, format="jsonc", tables=(("mcpServers",),), rank=40,
            shown="/etc/gemini-cli/settings.json",
            known=Fact(True, "DS", "or $GEMINI_CLI_SYSTEM_SETTINGS_PATH; skipped where others may write its folder"),
        ),
        Place(
            scope="user", find=_user, format="jsonc", tables=(("mcpServers",),), rank=20,
            shown="~/.gemini/settings.json", known=Fact(True, "ODS", f"{_V}; $GEMINI_CLI_HOME moves it"), writes=True,
        ),
        Place(
            scope="project", find=_project, format="jsonc", tables=(("mcpServers",),), rank=30,
            shown=".gemini/settings.json",
            known=Fact(True, "ODS", f"{_V}; of the working directory only, not of the folders above it"), writes=True,
        ),
        Place(
            scope="system", find=_defaults, format="jsonc", tables=(("mcpServers",),), rank=10,
            shown="/etc/gemini-cli/system-defaults.json", known=Fact(True, "DS", "or $GEMINI_CLI_SYSTEM_DEFAULTS_PATH"),
        ),
        Place(
            scope="extension", find=_extensions, format="jsonc", tables=(("mcpServers",),), rank=5,
            shown="~/.gemini/extensions/*/gemini-extension.json", known=Fact(True, "ODS", _V),
        ),
        Place(
            scope="project", find=_stray, format="jsonc", tables=(("mcpServers",), ("servers",)), rank=0,
            shown=".gemini/mcp.json", known=Fact(False, "O", f"Gemini CLI {_V} reads no such file."),
            instead="Move the entries to `mcpServers` in .gemini/settings.json.",
        ),
        Place(
            scope="user", find=lambda machine: [*_user(machine), *_project(machine)], format="jsonc", rank=0,
            tables=(("mcp_servers",), ("servers",), ("mcp", "servers")), shown="settings.json (other keys)",
            known=Fact(False, "O", f"Gemini CLI {_V} reads servers from the key `mcpServers` only."),
            instead="Rename the key to `mcpServers`.",
        ),
    ),
    tolerance=Tolerance(
        comments=Fact(True, "O", _V), trailing_comma=Fact(False, "O", _V), bom=Fact(False, "O", _V),
        empty=Fact(False, "O", _V), duplicate_keys=Fact("last", "O", _V), fault=Fact("host", "O", f"{_V}: it does not start"),
        bad_entry=Fact("entry", "O", f"{_V}: it complains and goes on; a null entry ends it"),
    ),
    merge=Fact("entry", "OS", _V),
    transports=Fact(frozenset(("stdio", "http", "sse", "ws")), "ODS", "a `url` without a type, or with one other than sse, is http"),
    variables=Fact(
        Variables(
            forms=("$V", "${V}", "${V:-d}", "%V%"), missing="empty",
            fields=frozenset(("command", "args", "env", "url", "headers", "cwd")),
        ), "ODS", "in every text of a settings file; %V% on Windows",
    ),
    child_env=Fact(
        ChildEnv(
            kind="redacted",
            names=(
                "*TOKEN*", "*SECRET*", "*PASSWORD*", "*PASSWD*", "*KEY*", "*AUTH*", "*CREDENTIAL*", "*CREDS*", "*PRIVATE*",
                "*CERT*",
            ),
        ), "OS", "those that the entry's own `env` names get through",
    ),
    switch=unknown("an entry has no such field"),
    no_switch_evidence="O",
    no_switch="Run `gemini mcp disable NAME`, or write the name into `mcp.excluded`; `disabled` in an entry is complained of and "
    "ignored.",
    names=Fact(
        CallableNames(form="mcp_{server}_{tool}", keep="A-Za-z0-9_.:-", limit=63, overflow="middle", clash="last"),
        "OS", "63 characters: the first 30, `...`, the last 30",
    ),
    read=read,
    write=_write,
    expands_home=Fact(False, "T", source="google-gemini/gemini-cli#11778"),
    fields=_FIELDS,
    server_names=Fact(r".+", "O", "spaces and dots start too; a `_` misleads its policy rules, which split at the first one"),
    closed=unknown("change the file while a session runs, then a setting in that session, and look what is left"),
    output_cap=Fact("40,000 characters; beyond: the first 8,000, the last 32,000, and a file with all", "O", _V),
    timeouts=Fact("600 s a request; a server that never answers held the start for 150 s and more", "DO", _V),
    approvals=Fact(
        "asks before each tool; `trust: true` in an entry ends that; in -p mode tools that would be asked for are not offered",
        "DO",
    ),
    tool_lists=Fact("`includeTools`, then `excludeTools` (exact names); `mcp.allowed`, `mcp.excluded` for servers", "DS"),
    gates=Fact(
        "folder trust (~/.gemini/trustedFolders.json), on by default: an untrusted folder has no servers, the user's "
        "included; `mcp.allowed` of several files: only names that are in all of them",
        "O", _V,
    ),
    reload=unknown("change the file while a session runs, and look whether `/mcp` shows it"),
    oracles=(
        Oracle(
            command=("gemini", "mcp", "list"), gives="Connected, Disconnected, Disabled or Blocked for each server", live=True,
            evidence="O",
        ),
    ),
    plugins=("gemini-extension",),
    sources=(
        "google-gemini/gemini-cli docs/tools/mcp-server.md",
        "google-gemini/gemini-cli docs/reference/configuration.md",
        "google-gemini/gemini-cli packages/core, packages/cli/src/config",
    ),
    unknowns=(
        "whether a changed settings file is read again during a session",
        "admin.mcp comes from the administrator's account and stands in no file",
    ),
    more={
        "type": Fact("a `type` that it does not know is complained of and ignored; a url is then taken as http", "O", _V),
        "env": Fact("a number or true/false in `env` keeps the server from starting", "O", _V),
        "writer": Fact("`gemini mcp add` keeps comments", "X", "reported to write nothing in 0.55.1"),
        "service": Fact("the service for personal accounts ended on 2026-06-18", "D"),
        "two servers": Fact("an extension's entry and a settings entry of one name: the settings' with both lists", "S"),
    },
    judge=_judge,
)  # fmt: skip
