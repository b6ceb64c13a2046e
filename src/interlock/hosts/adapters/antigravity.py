"""Google Antigravity, the IDE and agy: the file moved twice, and a marker says whether the old one still counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from interlock.hosts.adapter import Adapter, Oracle, Switch, Tolerance
from interlock.hosts.adapters import file_rules
from interlock.hosts.declaration import Declaration, Problem
from interlock.hosts.dialect import Dialect, elsewhere, kind, plain, rendered, united, with_more
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry, Reading, exists, read_bytes
from interlock.hosts.shapes import flag, texts
from interlock.hosts.text.document import Damaged
from interlock.hosts.tool_rules import other_losses, tool_rules, unasked
from interlock.hosts.writing import Rendered, Wanted

_DOCS = "antigravity.google/docs/mcp"
_FIELDS = frozenset(
    ("command", "args", "env", "cwd", "serverUrl", "headers", "oauth", "authProviderType", "disabled", "disabledTools")
)
_RIGHT = "Move the entry to ~/.gemini/config/mcp_config.json."


def _legacy(machine: Machine, *, dead: bool) -> list[str]:
    migrated = exists(machine, machine.user(".gemini", "config", ".migrated"))
    return [machine.user(".gemini", "antigravity", "mcp_config.json")] if migrated is dead else []


def _copied(machine: Machine) -> list[str]:
    """agy may keep a copy of the right file there: only what differs was put there by mistake."""
    right, wrong = (machine.user(".gemini", folder, "mcp_config.json") for folder in ("config", "antigravity-cli"))
    try:
        same = read_bytes(machine, right) == read_bytes(machine, wrong)
    except (OSError, Damaged):
        same = False
    return [] if same else [wrong]


def _wrong_project(machine: Machine) -> list[str]:
    files = ((".antigravitycli", "mcp_config.json"), (".gemini", "config", "mcp_config.json"))
    return [machine.join(machine.folder, *parts) for parts in files if machine.folder != machine.home]


def read(raw: Mapping[str, object]) -> Entry:
    for wrong in ("url", "httpUrl"):
        if raw.get(wrong) is not None and raw.get("serverUrl") is None:
            raise BadEntry(f"this host reads `serverUrl`; with `{wrong}` the server is silently missing", wrong,
                           f"Rename `{wrong}` to `serverUrl`.")  # fmt: skip
    found = plain(raw, kind(raw, url=("serverUrl",)), _FIELDS, url=("serverUrl",), unsure=frozenset(("type",)))
    return Entry(
        transport=found.transport, command=found.command, cwd=found.cwd, url=found.url, env=found.env,
        headers=found.headers, ignored=found.ignored, enabled=not flag(raw, "disabled", False),
        deny=texts(raw, "disabledTools"),
    )  # fmt: skip


def _problems(declaration: Declaration, machine: Machine) -> Sequence[Problem]:
    if declaration.raw.get("type") != "stdio":
        return ()
    return (
        Problem(
            "type-refused", "warning", '`"type": "stdio"` is reported to make this host drop the entry silently.',
            "colbymchenry/codegraph#399; not tried.", "Remove `type`: it is not needed.", "type",
            declaration.spots.get("type", declaration.spot),
        ),
    )  # fmt: skip


DIALECT = Dialect(url="serverUrl", unsure=True, cwd=True, off=("disabled", True), deny="disabledTools", asks=True)


def write(wanted: Wanted, machine: Machine) -> Rendered:
    found = rendered(DIALECT, wanted, machine)
    if wanted.server is None:
        return found
    rules = tool_rules(wanted.server)
    tools, lost = unasked(rules, "*")
    found = replace(found, losses=(*other_losses(found.losses), *lost))
    if not tools:
        return found
    file = _settings(machine)
    allow, asked = ([f"mcp({wanted.name}/{tool})" for tool in names] for names in (tools, rules.ask))
    change = united(machine, file, "json", ("permissions", "allow"), allow, asked)
    return with_more(found, edits=elsewhere(file, "json", [change], comments=True))


def _settings(machine: Machine) -> str:
    return machine.user(".gemini", "antigravity-cli", "settings.json")


def _judge(reading: Reading) -> None:
    file_rules.antigravity(reading, _settings(reading.machine))


ADAPTER = Adapter(
    id="antigravity",
    label="Antigravity",
    aliases=("agy",),
    seen="documentation and third parties, agy up to 1.2.7",
    verified="2026-11-30",
    places=(
        Place(
            scope="project", find=lambda machine: [machine.join(folder, ".agents", "mcp_config.json")
                                                   for folder in machine.project_folders()],
            format="json", tables=(("mcpServers",),), rank=30, shown=".agents/mcp_config.json",
            known=Fact(None, "X", "Documented, and seen working on agy 1.0.3; agy 1.0.15 and the IDE on macOS are "
                       "reported never to read it. `agy mcp list` in the project tells.",
                       "google-antigravity/antigravity-cli#60, Opendray/opendray#416, laravel/boost#818"),
        ),
        Place(
            scope="user", find=lambda machine: [machine.user(".gemini", "config", "mcp_config.json")], format="json",
            tables=(("mcpServers",),), rank=20, shown="~/.gemini/config/mcp_config.json",
            known=Fact(True, "DT", "IDE and agy, from 2.0.", _DOCS), writes=True,
        ),
        Place(
            scope="user", find=lambda machine: _legacy(machine, dead=False), format="json", tables=(("mcpServers",),),
            rank=10, shown="~/.gemini/antigravity/mcp_config.json",
            known=Fact(True, "T", "Before 2.0 only.", "thedotmack/claude-mem#2826"),
        ),
        Place(
            scope="user", find=lambda machine: _legacy(machine, dead=True), format="json", tables=(("mcpServers",),),
            rank=0, shown="~/.gemini/antigravity/mcp_config.json (migrated)", instead=_RIGHT,
            known=Fact(False, "T", "~/.gemini/config/.migrated is there, so Antigravity ignores its old file."),
        ),
        Place(
            scope="user", find=_copied, format="json", tables=(("mcpServers",),), rank=0,
            shown="~/.gemini/antigravity-cli/mcp_config.json", instead=_RIGHT,
            known=Fact(False, "T", "That folder is agy's own; a copy of the right file may stand there, and none is read "
                       "from there.", "akitaonrails/ai-memory#510"),
        ),
        Place(
            scope="project", find=_wrong_project, format="json", tables=(("mcpServers",),), rank=0,
            shown=".antigravitycli/mcp_config.json, .gemini/config/mcp_config.json", instead=_RIGHT,
            known=Fact(False, "T", "Antigravity does not look for a project's servers there."),
        ),
    ),
    tolerance=Tolerance(
        comments=unknown("a comment in mcp_config.json, then `agy mcp list`"),
        trailing_comma=unknown("a comma after the last member, then `agy mcp list`"),
        bom=Fact(False, "T", source="monk-io/monk-plugin#367"),
        duplicate_keys=unknown("one name twice, then `agy mcp list`"),
        fault=unknown("a broken file, then `agy mcp list`"),
        bad_entry=Fact("entry", "T", "An entry with `url` is dropped and the others start."),
    ),
    merge=unknown("one name with two commands in the user's and a project's file"),
    transports=Fact(frozenset(("stdio", "http", "sse")), "D", source=_DOCS),
    variables=unknown("`${HOME}` and `$HOME` in args; env is reported to be passed on as it stands (Opendray#416)"),
    child_env=unknown("a server that writes its environment"),
    switch=Fact(Switch(field="disabled"), "D", source=_DOCS),
    names=unknown("the tool names in a session's log"),
    read=read,
    write=write,
    judge=_judge,
    fields=_FIELDS,
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=unknown("`~/server` as the command"),
    approvals=Fact(
        "Deny, then ask, then allow; asks where no rule speaks. `permissions.allow` in "
        "~/.gemini/antigravity-cli/settings.json: mcp(SERVER/TOOL), mcp(SERVER/*), mcp(*).",
        "DT", "mcp(SERVER) is taken and never matches. `trustedWorkspaces: []` makes every call be asked for.",
        "google-antigravity/antigravity-cli#548, #814, #916",
    ),
    tool_lists=Fact("`disabledTools` in the entry", "D", source=_DOCS),
    gates=Fact("A company's list in the Cloud console; workspaces that are not in `trustedWorkspaces`.", "T"),
    timeouts=unknown("servers that answer after 30, 60 and 120 s"),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    reload=unknown("a change of mcp_config.json while it runs"),
    closed=unknown("whether it writes mcp_config.json while it runs"),
    gui=True,
    oracles=(Oracle(command=("agy", "mcp", "list"), gives="the servers that it has read; a wrong token shows no error",
                    live=False, evidence="T"),),
    plugins=("antigravity",),
    sources=(_DOCS, "antigravity.google/docs/gcli-migration", "google-antigravity/antigravity-cli#60",
             "Opendray/opendray#416", "WolframResearch/AgentTools#191"),
    unknowns=("which file wins", "whether a version reads .agents/mcp_config.json", "tool names", "variables", "limits",
              "whether `type` drops an entry", "whether the IDE reads agy's permissions at once"),
    more={
        "folder": Fact("a server starts in the session's workspace", "T", source="Opendray/opendray#416"),
        "also-not-read": Fact(".gemini/settings.json: that is Gemini CLI's", "T"),
        "grants": Fact("grants given in a session are in ~/.gemini/config/config.json and config/projects/*.json", "T",
                       source="google-antigravity/antigravity-cli#548"),
    },
    entry_problems=_problems,
)  # fmt: skip
