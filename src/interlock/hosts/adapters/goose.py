"""goose: YAML, words of its own, extensions that are off unless they say they are on, and secrets by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from interlock.hosts.adapter import Adapter, CallableNames, ChildEnv, Oracle, Switch, Tolerance, Variables
from interlock.hosts.adapters import file_rules
from interlock.hosts.dialect import Dialect, elsewhere, launched, standing, started, times, united, with_more
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry, Reading
from interlock.hosts.shapes import flag, seconds, table, text, texts
from interlock.hosts.tool_lists import allow_only
from interlock.hosts.tool_rules import ALLOW, DEFAULT, DENY, ToolRules, approvals_lost, tool_rules, unasked
from interlock.hosts.writing import Edit, FileEdits, Json, Loss, Rendered, Wanted
from interlock.manifest.config import EnvValue, HttpTransport, ServerConfig, StdioTransport

_EXTENSION = "aaif-goose/goose crates/goose/src/agents/extension.rs"
_CONFIG = "aaif-goose/goose crates/goose/src/config/extensions.rs"
_PERMISSION = "aaif-goose/goose crates/goose/src/config/permission.rs, permission/permission_inspector.rs"
_FIELDS = frozenset(
    (
        "type", "name", "display_name", "description", "enabled", "cmd", "args", "envs", "env_keys", "timeout", "bundled",
        "available_tools", "uri", "headers", "socket", "cwd",
    )
)  # fmt: skip
_INSIDE = frozenset(("builtin", "platform", "frontend", "inline_python"))
_LISTS = ("always_allow", "ask_before", "never_allow")


def _folder(machine: Machine, *parts: str) -> str:
    if machine.platform == "windows":
        return machine.application("Block", "goose", "config", *parts)
    return machine.config("goose", *parts)


def _exact(raw: Mapping[str, object]) -> None:
    """YAML makes numbers and flags of words without quotes, and goose skips an extension that has one for a text."""
    if not isinstance(raw.get("name"), str):
        raise BadEntry("it has no `name` that is a text, so this host skips it", "name", "Add its `name`.")
    for field in ("args", "env_keys", "available_tools", "envs", "headers"):
        value = raw.get(field)
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, each in items:
            if not isinstance(each, str):
                raise BadEntry(
                    f"`{field}.{name}` is not a text, so this host skips the extension", f"{field}.{name}",
                    "Put it in quotes.",
                )  # fmt: skip
    limit = raw.get("timeout")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise BadEntry("`timeout` is not a whole number of seconds, so this host skips the extension", "timeout")


def read(raw: Mapping[str, object]) -> Entry:
    said = text(raw, "type")
    if said is None:
        raise BadEntry("it has no `type`, so this host skips it", todo="Add `type: stdio` or `type: streamable_http`.")
    if said == "sse":
        raise BadEntry("this host no longer speaks `sse`", "type", "Use `streamable_http` and its address.")
    if said == "stdio":
        if text(raw, "cmd") is None or raw.get("args") is None:
            missing = "cmd" if raw.get("cmd") is None else "args"
            raise BadEntry(f"a stdio extension without `{missing}` is skipped", todo=f"Add `{missing}`.")
    elif said == "streamable_http":
        if text(raw, "uri") is None:
            raise BadEntry("it has no `uri`, so this host skips it", todo="Add the address of the server as `uri`.")
    elif said not in _INSIDE:
        raise BadEntry("this host knows no such `type`", "type", "Use `stdio` or `streamable_http`.")
    _exact(raw)
    stdio = said == "stdio"
    return Entry(
        transport="stdio" if stdio else "http" if said == "streamable_http" else "other",
        command=(text(raw, "cmd") or "", *texts(raw, "args")) if stdio else (),
        cwd=text(raw, "cwd"),
        url=text(raw, "uri"),
        env=table(raw, "envs"),
        env_names=texts(raw, "env_keys"),
        headers=table(raw, "headers"),
        enabled=flag(raw, "enabled", False),
        allow=texts(raw, "available_tools") or None,
        call_seconds=seconds(raw, "timeout"),
        ignored=tuple(name for name in raw if name not in _FIELDS and said not in _INSIDE),
    )


DIALECT = Dialect(
    transports=frozenset(("stdio", "http")), url="uri", form="${V}", fills=frozenset(("headers", "url")), cwd=True,
    call=("timeout", 1.0), passes_all=True,
)  # fmt: skip


def write(wanted: Wanted, machine: Machine) -> Rendered:
    server = wanted.server
    head: dict[str, Json] = {"name": wanted.name, "type": "stdio"}
    if server is None:
        return Rendered(entry={**head, "enabled": True, **_own_words(started(wanted.connect, machine))})
    reached, losses = launched(DIALECT, _without_references(server), machine)
    env, keys, lost = _env(server)
    head["type"] = "stdio" if isinstance(server.transport, StdioTransport) else "streamable_http"
    entry = {**head, "enabled": server.enabled, **_own_words(reached)}
    if env:
        entry["envs"] = {**env}
    if keys:
        entry["env_keys"] = [*keys]
    limits, late = times(DIALECT, server)
    rules = tool_rules(server)
    lists = allow_only(rules)
    if lists.allow:
        entry["available_tools"] = [*lists.allow]
    elif lists.allow is not None:
        losses.append(Loss(ALLOW, "an empty list means all tools here", weakens=True))
    found = Rendered(entry=entry | limits, losses=(*losses, *lost, *lists.losses, *late))
    return _permissions(found, wanted, rules, machine)


def _own_words(entry: Mapping[str, Json]) -> dict[str, Json]:
    names = {"command": "cmd", "env": "envs"}
    return {names.get(name, name): value for name, value in entry.items()}


def _without_references(server: ServerConfig) -> ServerConfig:
    """Variables of a program are named, not filled in: `_env` says them."""
    if isinstance(server.transport, StdioTransport):
        return replace(server, transport=replace(server.transport, env=()))
    return server


def _env(server: ServerConfig) -> tuple[dict[str, str], list[str], list[Loss]]:
    """Literals, names of secrets, and what neither of them can say."""
    transport = server.transport
    if isinstance(transport, HttpTransport):
        return {}, _names(transport), []
    env: dict[str, str] = {}
    keys: list[str] = []
    losses: list[Loss] = []
    for value in transport.env:
        if value.file is not None or (value.source is not None and value.source != value.name):
            losses.append(Loss(f"transports.stdio.env.{value.name}", _renamed(value), weakens=True))
        elif value.source is not None:
            keys.append(value.name)
        else:
            env[value.name] = value.literal or ""
    return env, keys, losses


def _renamed(value: EnvValue) -> str:
    if value.file is not None:
        return "this host reads no value from a file"
    return "this host passes a variable on under its own name only"


def _names(transport: HttpTransport) -> list[str]:
    """`${NAME}` in an address or a header is looked for in the entry's own `env_keys`."""
    names = [transport.endpoint_env, *(header.source for header in transport.headers)]
    if transport.token is not None:
        names.append(transport.token.env)
    return list(dict.fromkeys(name for name in names if name is not None))


def _mode(machine: Machine) -> object:
    said = machine.environ.get("GOOSE_MODE") or standing(
        machine, _folder(machine, "config.yaml"), "yaml", ("GOOSE_MODE",)
    )
    return said if said is not None else "auto"


def _permissions(found: Rendered, wanted: Wanted, rules: ToolRules, machine: Machine) -> Rendered:
    """Rules in permission.yaml, which goose looks at only in the modes that ask."""
    if _mode(machine) not in ("approve", "smart_approve"):
        return with_more(found, losses=approvals_lost(rules, asks=False))
    auto, lost = unasked(rules)
    never = [*rules.deny]
    losses = [loss for loss in found.losses if loss.field != DENY or rules.deny_globs]
    if _mode(machine) == "smart_approve" and rules.default in ("ask", "writes"):
        why = "in the mode smart_approve goose itself judges which tools only read, and asks for the others"
        lost.append(Loss(DEFAULT, why, weakens=True))
    words = {
        name: [f"{key(wanted.name)}__{tool}" for tool in tools]
        for name, tools in zip(_LISTS, (auto, [*rules.ask], never), strict=True)
    }
    file = _folder(machine, "permission.yaml")
    if not any(words.values()):
        return with_more(replace(found, losses=tuple(losses)), losses=lost)
    return with_more(replace(found, losses=tuple(losses)), edits=_lists(machine, file, words), losses=lost)


def _lists(machine: Machine, file: str, words: Mapping[str, list[str]]) -> tuple[FileEdits, ...]:
    """All three lists have to be there, and a tool in one of them only."""
    edits: list[Edit | None] = []
    for name in _LISTS:
        others = [word for other in _LISTS if other != name for word in words[other]]
        edits.append(united(machine, file, "yaml", ("user", name), words[name], others))
    return elsewhere(file, "yaml", edits, comments=False)


def key(name: str) -> str:
    """As goose makes an extension's name into the beginning of its tools' names."""
    kept = "".join(each for each in name if not each.isspace())
    return "".join(each if (each.isascii() and each.isalnum()) or each in "_-" else "_" for each in kept).lower()


def _judge(reading: Reading) -> None:
    """Rules in permission.yaml count only in the modes that ask."""
    if _mode(reading.machine) in ("approve", "smart_approve"):
        prefix = {each.server: key(each.server) for each in reading.declarations if each.server is not None}
        file_rules.goose(reading, _folder(reading.machine, "permission.yaml"), prefix)


ADAPTER = Adapter(
    id="goose",
    label="goose",
    seen="source of autumn 2026; 1.46 by third parties",
    verified="2026-11-30",
    places=(
        Place(
            scope="user", find=lambda machine: [_folder(machine, "config.yaml")], format="yaml", tables=(("extensions",),),
            rank=10, shown="~/.config/goose/config.yaml, %APPDATA%\\Block\\goose\\config\\config.yaml",
            known=Fact(True, "DS", source="goose-docs.ai"), writes=True,
        ),
        Place(
            scope="project", find=lambda machine: [machine.join(folder, ".goose", "config.yaml")
                                                   for folder in machine.project_folders()],
            format="yaml", tables=(("extensions",),), rank=5, shown=".goose/config.yaml",
            known=Fact(None, "U", "Not documented; two other tools write it. `goose info -v` in the project tells.",
                       "dyoshikawa/rulesync, neondatabase/add-mcp"),
        ),
    ),
    tolerance=Tolerance(
        comments=Fact(True, "S"),
        trailing_comma=Fact(True, "S", "YAML's own lists take one."),
        bom=unknown("the file saved with a byte order mark, then `goose info -v`"),
        duplicate_keys=unknown("one name twice, then `goose info -v`"),
        fault=Fact("file", "T", "A file that cannot be read counts as goose's own defaults, and every extension of "
                   "yours is gone without a word.", "goose 1.46"),
        bad_entry=Fact("entry", "S", "It is skipped, with a line in the log.", _CONFIG),
    ),
    merge=unknown("one extension in the user's and in a project's file, then `goose info -v`"),
    transports=Fact(frozenset(("stdio", "http")), "S", "`sse` is refused since it was dropped.", _EXTENSION),
    variables=Fact(
        Variables(forms=("${V}", "$V"), fields=frozenset(("headers", "url")), missing="literal"), "S",
        "Looked for among the entry's own `envs` and `env_keys` only.",
        "aaif-goose/goose crates/goose/src/agents/extension_manager.rs substitute_env_vars",
    ),
    child_env=Fact(ChildEnv(kind="all"), "S", "Nothing takes variables away; PATH is goose's own search path. PATH, "
                   "LD_PRELOAD, PYTHONPATH, NODE_OPTIONS and others in `envs` are left out.", _EXTENSION),
    switch=Fact(Switch(field="enabled", default_on=False), "ST", "Without it the entry is skipped.", _CONFIG),
    names=Fact(
        CallableNames(
            form="{server}__{tool}", keep="A-Za-z0-9_-", dropped=r"\s", lower="server", tool_keep=r"\s\S",
            clash="later-skipped",
        ), "S",
        "The name is made small and loses its spaces. The tool's name stays as it is.",
        "aaif-goose/goose crates/goose/src/agents/extension_manager.rs fetch_all_tools",
    ),
    read=read,
    write=write,
    judge=_judge,
    fields=_FIELDS,
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=unknown("`~/server` as `cmd`"),
    timeouts=Fact("`timeout` in seconds, 300 unless set", "S", source=_CONFIG),
    approvals=Fact(
        "GOOSE_MODE auto (the default) runs everything; approve and smart_approve look at `user` in permission.yaml: "
        "always_allow, ask_before, never_allow, each a list of SERVER__TOOL. chat runs nothing.",
        "S", "All three lists have to be there, or the file counts for nothing.", _PERMISSION,
    ),
    tool_lists=Fact("`available_tools`; empty or missing: all", "S", source=_EXTENSION),
    gates=Fact("GOOSE_ALLOWLIST; a check for known malware before a package is started.", "S"),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    reload=Fact("A new session.", "S", source=_CONFIG),
    closed=Fact(False, "S", "It reads the file again before it changes it.", _CONFIG),
    oracles=(Oracle(command=("goose", "info", "-v"), gives="the file as it was read", live=False, evidence="T"),),
    sources=(_EXTENSION, _CONFIG, _PERMISSION, "goose-docs.ai"),
    unknowns=("files of a project", "limits of results", "longest tool name"),
    more={
        "secrets": Fact("`env_keys` names secrets that are in the keyring, in secrets.yaml or in the environment.", "S"),
        "renaming": Fact("its own commands write an extension under its name made small, without spaces", "S", source=_CONFIG),
    },
)  # fmt: skip
