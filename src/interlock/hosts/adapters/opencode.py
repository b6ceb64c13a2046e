"""OpenCode: JSONC in many places, merged field by field, and one bad entry in any of them stops the program.

Folders with an .opencode count the other way round than plain files: the outermost wins, and ~/.opencode over all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from interlock.hosts.adapter import Adapter, CallableNames, ChildEnv, Oracle, Switch, Tolerance, Variables
from interlock.hosts.adapters.opencode_entry import FIELDS, check, read
from interlock.hosts.adapters.opencode_rules import applied, edits
from interlock.hosts.adapters.opencode_rules import wanted as wanted_rules
from interlock.hosts.declaration import Decision, Declaration
from interlock.hosts.dialect import Dialect, elsewhere, launched, rendered, times
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry, Reading, refuse
from interlock.hosts.tool_rules import tool_rules
from interlock.hosts.writing import Json, Loss, Rendered, Wanted
from interlock.manifest.config import OAuth

_V = "1.18.33"
_TABLES = (("mcp",), ("mcp", "servers"))
_NAMES = ("opencode.jsonc", "opencode.json")


def _user(machine: Machine) -> Sequence[str]:
    return [machine.config("opencode", name) for name in (*_NAMES, "config.json")]


def _folders(machine: Machine) -> list[str]:
    """Up to the repository's root; outside of one, all the way up."""
    return machine.project_folders() if machine.repository() else list(machine.upward())


def _project(machine: Machine) -> Sequence[str]:
    return [machine.join(folder, name) for folder in _folders(machine) for name in _NAMES]


def _dotted(machine: Machine) -> Sequence[str]:
    folders = [folder for folder in reversed(_folders(machine)) if folder != machine.home]
    return [machine.join(folder, ".opencode", name) for folder in folders for name in _NAMES]


def _home(machine: Machine) -> Sequence[str]:
    return [machine.user(".opencode", name) for name in _NAMES]


def _named(machine: Machine) -> Sequence[str]:
    file = machine.environ.get("OPENCODE_CONFIG")
    return [machine.expanded(file)] if file else []


def _folder(machine: Machine) -> Sequence[str]:
    folder = machine.environ.get("OPENCODE_CONFIG_DIR")
    return [machine.join(machine.expanded(folder), name) for name in _NAMES] if folder else []


def _managed(machine: Machine) -> Sequence[str]:
    folder = {
        "linux": "/etc/opencode", "macos": "/Library/Application Support/opencode",
        "windows": machine.join(machine.environ.get("ProgramData") or "C:\\ProgramData", "opencode"),
    }[machine.platform]  # fmt: skip
    return [machine.join(folder, name) for name in _NAMES]


def _every(machine: Machine) -> Sequence[str]:
    return [*_user(machine), *_project(machine), *_dotted(machine)]


def _stray(machine: Machine) -> Sequence[str]:
    return [machine.join(machine.folder, ".opencode", "mcp.json"), machine.config("opencode", "mcp.json")]


def _admit(reading: Reading) -> None:
    """`mcp.servers` is no server's name, and each layer has to make sense by itself."""
    kept = []
    for each in reading.declarations:
        if each.server == "servers" and each.place.known.value is True and not {"type", "enabled"} & set(each.raw):
            continue
        kept.append(each)
        if each.state == "effective" and each.server is not None:
            try:
                check(each.raw)
            except BadEntry as error:
                refuse(each, error)
            else:
                _switched(each)
    reading.declarations = kept


def _switched(declaration: Declaration) -> None:
    """Before it merges, OpenCode turns `disabled` into `enabled`, where that does not stand beside it, and says `enabled` for
    every entry of the newer form."""
    raw, spots = declaration.raw, declaration.spots
    newer = tuple(declaration.path[:2]) == ("mcp", "servers")
    if "disabled" in raw:
        rest = {name: value for name, value in raw.items() if name != "disabled"}
        declaration.raw = {"enabled": raw["disabled"] is not True} | rest
        declaration.spots = {"enabled": spots.get("disabled", declaration.spot)} | {**spots}
    elif newer and raw.get("enabled") is None:
        declaration.raw = {**raw, "enabled": True}
        declaration.spots = {**spots, "enabled": declaration.spot}


def _judge(reading: Reading) -> None:
    rules = _permissions(reading)
    for each in reading.declarations:
        if each.state in ("effective", "disabled") and each.runs is not None and each.server is not None:
            if each.runs.transport is None:
                why = "it says only whether it is on, and no file says what to start"
                each.state, each.decided_by = "broken", Decision("invalid-entry", each.spot, why)
            else:
                applied(each, rules)


def _permissions(reading: Reading) -> dict[str, str]:
    """All files' rules, the weakest file first; `tools: {name: false}` is the older word for a deny."""
    found: dict[str, str] = {}
    order = sorted(
        (seen for seen in reading.seen if seen.place.known.value is True and seen.document is not None),
        key=lambda seen: seen.place.rank,
    )
    places: dict[int, list[Mapping[str, object]]] = {}
    for seen in order:
        value = seen.document.value if seen.document is not None else None
        if isinstance(value, dict):
            places.setdefault(seen.place.rank, []).insert(0, value)
    for value in (each for values in places.values() for each in values):
        tools, permission = value.get("tools"), value.get("permission")
        for name, on in tools.items() if isinstance(tools, dict) else ():
            found.setdefault(str(name), "allow" if on is True else "deny")
        for name, answer in permission.items() if isinstance(permission, dict) else ():
            if isinstance(answer, str):
                found.pop(str(name), None)
                found[str(name)] = answer
    return found


# Writing


def _oauth(oauth: OAuth) -> tuple[Mapping[str, Json], frozenset[str]]:
    said: dict[str, Json] = {}
    if oauth.client_id is not None:
        said["clientId"] = oauth.client_id
    if oauth.client_id_env is not None:
        said["clientId"] = "{env:" + oauth.client_id_env + "}"
    if oauth.client_secret_env is not None:
        said["clientSecret"] = "{env:" + oauth.client_secret_env + "}"
    if oauth.scopes:
        said["scope"] = " ".join(oauth.scopes)
    if oauth.callback_port is not None:
        said["callbackPort"] = oauth.callback_port
    names = frozenset(("clientId", "clientIdEnv", "clientSecretEnv", "scopes", "callbackPort"))
    return ({"oauth": said} if said else {}), names


_DIALECT = Dialect(
    types={"stdio": "local", "http": "remote", "sse": "remote"}, form="{env:V}", cwd=True, asks=False,
    startup=("timeout", 1000.0), passes_all=True, oauth=_oauth,
)  # fmt: skip


def write(wanted: Wanted, machine: Machine) -> Rendered:
    if wanted.server is None:
        return Rendered(entry=_listed(rendered(_DIALECT, wanted, machine).entry) | {"enabled": True})
    server = wanted.server
    entry, losses = launched(_DIALECT, server, machine)
    rules = wanted_rules(wanted.name, tool_rules(server))
    file = _target(wanted, machine)
    limits, late = times(_DIALECT, server)
    if server.required:
        losses.append(Loss("required", "this host goes on without the server", weakens=False))
    return Rendered(
        entry=_listed(entry) | limits | {"enabled": server.enabled},
        edits=elsewhere(file, "jsonc", edits(machine, file, rules), comments=True) if rules else (),
        losses=(*losses, *late),
    )


def _listed(entry: Mapping[str, Json]) -> dict[str, Json]:
    """The program and its arguments as one list, and `env` by its name here."""
    made = dict(entry)
    args = made.pop("args", [])
    if "command" in made and isinstance(args, list):
        made["command"] = [made["command"], *args]
    if "env" in made:
        made["environment"] = made.pop("env")
    return made


def _target(wanted: Wanted, machine: Machine) -> str:
    """The file that the entry goes into: the first that is there, else the first."""
    if wanted.file is not None:
        return wanted.file
    here = [machine.join(machine.folder, name) for name in _NAMES]
    paths = list(_user(machine)) if wanted.scope == "user" else here
    return next((path for path in paths if os.path.exists(machine.real(path))), paths[0])


ADAPTER = Adapter(
    id="opencode",
    label="OpenCode",
    seen=_V,
    verified="2026-11-30",
    places=(
        Place(
            scope="managed", find=_managed, format="jsonc", tables=_TABLES, rank=60, shown="/etc/opencode/opencode.json",
            known=Fact(True, "S", "the path stands in the program; nobody has tried it"),
        ),
        Place(
            scope="user", find=_folder, format="jsonc", tables=_TABLES, rank=50, shown="$OPENCODE_CONFIG_DIR/opencode.json",
            known=Fact(True, "O", _V),
        ),
        Place(
            scope="user", find=_home, format="jsonc", tables=_TABLES, rank=45, shown="~/.opencode/opencode.json",
            known=Fact(True, "O", f"{_V}; over every project's file"),
        ),
        Place(
            scope="project", find=_dotted, format="jsonc", tables=_TABLES, rank=40, shown=".opencode/opencode.json",
            known=Fact(True, "OD", f"{_V}; in each folder up to the repository's root, the outermost wins"),
        ),
        Place(
            scope="project", find=_project, format="jsonc", tables=_TABLES, rank=30, shown="opencode.json(c)",
            known=Fact(True, "OD", f"{_V}; in each folder up to the repository's root, the nearest wins; .jsonc over .json"),
            writes=True,
        ),
        Place(
            scope="user", find=_named, format="jsonc", tables=_TABLES, rank=25, shown="$OPENCODE_CONFIG",
            known=Fact(True, "OD", _V),
        ),
        Place(
            scope="user", find=_user, format="jsonc", tables=_TABLES, rank=20, shown="~/.config/opencode/opencode.json(c)",
            known=Fact(True, "OD", f"{_V}; .jsonc over .json over config.json"), writes=True,
        ),
        Place(
            scope="user", find=_every, format="jsonc", tables=(("mcpServers",), ("mcp_servers",)), rank=0,
            shown="opencode.json (other keys)", known=Fact(False, "O", "OpenCode reads servers from the key `mcp` only."),
            instead="Move the entries to `mcp`, in OpenCode's own words (`type`, `command` as a list, `environment`).",
        ),
        Place(
            scope="project", find=_stray, format="jsonc", tables=(("mcp",), ("mcpServers",)), rank=0,
            shown=".opencode/mcp.json", known=Fact(False, "D", "OpenCode reads servers from opencode.json only."),
            instead="Move the entries to `mcp` in opencode.json.",
        ),
    ),
    tolerance=Tolerance(
        empty=Fact(True, "O", _V),
        comments=Fact(True, "O", _V), trailing_comma=Fact(True, "O", _V), bom=Fact(True, "O", _V),
        duplicate_keys=Fact("last", "O", _V), fault=Fact("host", "O", f"{_V}: it does not start"),
        bad_entry=Fact("host", "O", f"{_V}: it does not start"),
    ),
    merge=Fact("fields", "O", f"{_V}, for `mcp` and for `mcp.servers`; the documentation of 2.x says whole entries there"),
    transports=Fact(frozenset(("stdio", "http", "sse")), "OD", "`remote` is tried as http, then as sse"),
    variables=Fact(
        Variables(
            forms=("{env:V}", "{file:V}"), missing="empty",
            fields=frozenset(("command", "args", "env", "url", "headers", "cwd")),
        ), "O", f"{_V}, in every text; `${{X}}` stays as it is",
    ),
    child_env=Fact(ChildEnv(kind="all"), "O", _V),
    switch=Fact(Switch(field="enabled"), "O", f"{_V}; `disabled: true` switches off too"),
    names=Fact(
        CallableNames(form="{server}_{tool}", clash="last"), "O", f"{_V}: cuts nothing; of two equal names one is lost silently"
    ),
    read=read,
    write=write,
    expands_home=Fact(False, "O", _V),
    fields=FIELDS,
    server_names=Fact(r".+", "O", f"{_V}; spaces and dots start too"),
    closed=unknown("change the file while a session runs, then a setting in that session, and look what is left"),
    output_cap=Fact("51,200 characters; beyond: the head and a file", "O", _V),
    timeouts=Fact("`timeout` 5,000 ms for the list of tools; a call ends after 60 s unless progress comes", "DO", _V),
    approvals=Fact("runs every tool unasked, unless `permission` says `ask` or `deny`", "O", _V),
    tool_lists=Fact("`permission` (and the older `tools`) with patterns on `server_tool`; the last that matches decides", "DO"),
    gates=unknown("a fresh clone, opened in the terminal, with a server in its opencode.json"),
    reload=unknown("change the file while it runs, and look at `opencode mcp list`"),
    oracles=(
        Oracle(command=("opencode", "debug", "config"), gives="the configuration as merged", live=False, evidence="O"),
        Oracle(command=("opencode", "mcp", "list"), gives="connected, failed or disabled for each server", live=True,
               evidence="O"),
    ),
    plugins=("opencode",),
    sources=("opencode.ai/docs/mcp-servers", "opencode.ai/docs/config", "opencode.ai/v1/docs/permissions"),
    unknowns=(
        "2.x: known from its documentation only",
        "a name in `mcp` and in `mcp.servers` of one file: which fields win",
        "how ~/.opencode and $OPENCODE_CONFIG_DIR rank against each other",
        "settings of an organisation (.well-known/opencode) stand in no file of this machine",
    ),
    more={
        "schema": Fact("on every start it adds `$schema` to a configuration file that begins with `{` and has none", "O", "1.18.33"),
        "inline": Fact("$OPENCODE_CONFIG_CONTENT holds a configuration that wins over all files", "O", _V),
        "half an entry": Fact("one with only `enabled` is allowed; without a command from another file it is not listed", "O", _V),
        "stale fields": Fact("a remote entry over a local one keeps its command and environment, unused", "O", _V),
        "writer": Fact("`opencode mcp add` writes the user's file", "O", _V),
    },
    admit=_admit,
    judge=_judge,
)  # fmt: skip
