"""Cursor, the editor and cursor-agent: two files, and nobody official says which of them wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from interlock.hosts.adapter import Adapter, CallableNames, Merge, Oracle, Tolerance, Variables
from interlock.hosts.dialect import Dialect, elsewhere, kind, plain, rendered, united, with_more
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.tool_rules import other_losses, tool_rules, unasked
from interlock.hosts.writing import Json, Rendered, Wanted
from interlock.manifest.config import OAuth

_DOCS = "cursor.com/docs/mcp"
_PERMISSIONS = "cursor.com/docs/reference/permissions"
_FIELDS = frozenset(("type", "command", "args", "env", "envFile", "url", "headers", "auth"))
_UNSURE = frozenset(("disabled", "enabled", "timeout", "cwd", "name", "description"))


def _user(machine: Machine) -> list[str]:
    return [machine.user(".cursor", "mcp.json")]


def _project(machine: Machine) -> list[str]:
    return [machine.join(folder, ".cursor", "mcp.json") for folder in machine.project_folders()]


def _wrong(machine: Machine) -> list[str]:
    return [machine.join(folder, ".cursor", "mcp-configs", "mcp-servers.json") for folder in machine.project_folders()]


def read(raw: Mapping[str, object]) -> Entry:
    return plain(raw, kind(raw), _FIELDS, unsure=_UNSURE)


def _oauth(oauth: OAuth) -> tuple[Mapping[str, Json], frozenset[str]]:
    auth: dict[str, Json] = {}
    said = set()
    if oauth.client_id is not None:
        auth["CLIENT_ID"] = oauth.client_id
        said.add("clientId")
    if oauth.scopes:
        auth["scopes"] = [*oauth.scopes]
        said.add("scopes")
    return ({"auth": auth} if auth else {}), frozenset(said)


DIALECT = Dialect(types={"stdio": "stdio"}, form="${env:V}", asks=True, oauth=_oauth)


def write(wanted: Wanted, machine: Machine) -> Rendered:
    found = rendered(DIALECT, wanted, machine)
    if wanted.server is None:
        return found
    tools, lost = unasked(tool_rules(wanted.server), "*")
    found = replace(found, losses=(*other_losses(found.losses), *lost))
    folder = machine.home if wanted.scope == "user" or wanted.project_root is None else wanted.project_root
    file = machine.join(folder, ".cursor", "permissions.json")
    change = united(machine, file, "jsonc", ("mcpAllowlist",), [f"{wanted.name}:{tool}" for tool in tools])
    if not tools or change is None:
        return found
    note = "Once `mcpAllowlist` stands in permissions.json, Cursor no longer uses the list in its own settings."
    return with_more(found, edits=elsewhere(file, "jsonc", [change], comments=True), notes=(note,))


_MERGE: Fact[Merge] = Fact(
    None, "X",
    "The documentation does not say. Five blogs: the project wins; one report: plugin, then project, then user, whole "
    "entry. To tell: one name with two commands in both files, each writing a file of its own.",
)  # fmt: skip

ADAPTER = Adapter(
    id="cursor",
    label="Cursor",
    seen="documentation and third parties, 2026-11-30",
    verified="2026-11-30",
    places=(
        Place(
            scope="project", find=_project, format="json", tables=(("mcpServers",),), rank=20, shown=".cursor/mcp.json",
            known=Fact(True, "DT", source=_DOCS), writes=True,
        ),
        Place(
            scope="user", find=_user, format="json", tables=(("mcpServers",),), rank=10, shown="~/.cursor/mcp.json",
            known=Fact(True, "DT", source=_DOCS), writes=True,
        ),
        Place(
            scope="project", find=_project, format="json", tables=(("servers",),), rank=0,
            shown=".cursor/mcp.json (servers)", instead="Rename the key `servers` to `mcpServers`.",
            known=Fact(False, "D", "`servers` is VS Code's key; Cursor reads `mcpServers`.", _DOCS),
        ),
        Place(
            scope="user", find=_user, format="json", tables=(("servers",),), rank=0,
            shown="~/.cursor/mcp.json (servers)", instead="Rename the key `servers` to `mcpServers`.",
            known=Fact(False, "D", "`servers` is VS Code's key; Cursor reads `mcpServers`.", _DOCS),
        ),
        Place(
            scope="project", find=_wrong, format="json", tables=(("mcpServers",), ("servers",)), rank=0,
            shown=".cursor/mcp-configs/mcp-servers.json", instead="Move the entries to .cursor/mcp.json.",
            known=Fact(False, "DT", "An installer wrote its servers there; Cursor does not look there.", "affaan-m/ECC#1518"),
        ),
    ),
    tolerance=Tolerance(
        comments=unknown("a comment in ~/.cursor/mcp.json, then the MCP settings"),
        trailing_comma=unknown("a comma after the last member, then the MCP settings"),
        bom=unknown("the file saved with a byte order mark"),
        duplicate_keys=unknown("one name twice in one file"),
        fault=unknown("a broken project file beside a right user file"),
        bad_entry=unknown("an entry without command and url beside a right one"),
    ),
    merge=_MERGE,
    transports=Fact(frozenset(("stdio", "http", "sse")), "D", source=_DOCS),
    variables=Fact(
        Variables(forms=("${env:V}",), fields=frozenset(("command", "args", "env", "url", "headers"))),
        "D", "Also ${userHome}, ${workspaceFolder}, ${workspaceFolderBasename}, ${pathSeparator}, ${/}.", _DOCS,
    ),
    child_env=unknown("a server that writes its environment, started from the desktop and from a terminal"),
    switch=unknown('an entry with `"disabled": true`: does the server start?'),
    no_switch="Or switch it off in Settings, Tools & MCP, beside the server: where that is kept is unknown.",
    names=Fact(
        CallableNames(form="mcp_{server}_{tool}", limit=60), "T", "Reported; the limit too. Neither is documented.",
        "mcp-automem#31, sparfenyuk/mcp-proxy#45",
    ),
    read=read,
    write=write,
    fields=_FIELDS,
    expands_home=unknown("`~/server` as the command"),
    server_names=unknown("names with a space, a dot and a slash"),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    timeouts=unknown("servers that answer `initialize` and a call after 30, 60 and 120 s"),
    approvals=Fact(
        "Asks unless `mcpAllowlist` in ~/.cursor/permissions.json and .cursor/permissions.json (both count) has "
        "`server:tool` or `server:*`. cursor-agent: `permissions` in ~/.cursor/cli-config.json and .cursor/cli.json.",
        "DT", "The CLI's form is told as `Mcp(server:tool)` and as `Mcp(server, tool)`, so it is not written.",
        _PERMISSIONS,
    ),
    tool_lists=Fact(
        "None in a file; single tools are switched off in the settings. 40 tools in all, by the documentation of 2025.",
        "T", source="anyproto/anytype-mcp#5",
    ),
    gates=Fact("A project's new server needs approval; Cursor 3 begins with every new server switched off.", "T"),
    reload=unknown("a change of mcp.json while Cursor runs"),
    closed=unknown("whether it writes mcp.json while it runs"),
    gui=True,
    oracles=(Oracle(command=("cursor-agent", "mcp", "list"), gives="status of each server", live=True, evidence="T"),),
    plugins=("cursor", "agent-plugin"),
    sources=(_DOCS, _PERMISSIONS, "cursor/cursor#2886", "cursor/cursor#3479", "cursor/cursor#3606",
             "dyoshikawa/rulesync", "neondatabase/add-mcp"),
    unknowns=("which of user and project wins", "what a server inherits", "tool names", "limits",
              "where the switches are kept", "whether `disabled: true` is obeyed"),
    more={
        "both": Fact("A server of the project and of a plugin is shown twice, as project-NAME and plugin-NAME.", "T"),
        "sign-in": Fact("redirects to cursor://anysphere.cursor-mcp/oauth/callback", "D", source=_DOCS),
        "writer": Fact("`cursor --add-mcp JSON [--mcp-workspace]`; only its exit code says anything", "T"),
        "parents": Fact("cursor-agent also finds files in the folders above the working directory", "T",
                        source="developersdigest.tech/reference/cursor-cli/config-files"),
    },
)  # fmt: skip
