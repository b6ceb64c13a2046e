"""VS Code with Copilot Chat: a file per profile, others' files on request, and one name is used once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interlock.hosts.adapter import Adapter, CallableNames, ChildEnv, Tolerance, Variables
from interlock.hosts.dialect import Dialect, kind, plain, rendered, standing, with_more
from interlock.hosts.entry import Entry, Transport
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import Reading
from interlock.hosts.settling import groups, whole
from interlock.hosts.writing import Json, Rendered, Wanted
from interlock.manifest.config import OAuth

_DOCS = "microsoft/vscode-docs docs/agents/reference/mcp-configuration.md"
_TYPES = "microsoft/vscode src/vs/workbench/contrib/mcp/common/mcpTypes.ts"
_FIELDS = frozenset(
    ("type", "command", "args", "env", "envFile", "cwd", "sandboxEnabled", "sandbox", "dev", "url", "headers", "oauth")
)
_UNSURE = frozenset(("gallery", "version"))
_WORDS: Mapping[str, Transport] = {"stdio": "stdio", "http": "http", "sse": "sse"}
_PRODUCTS = ("Code", "Code - Insiders")
DISCOVERY = "chat.mcp.discovery.enabled"
_MOVED = "Move the entries to mcp.json beside it, under `servers` (command `MCP: Open User Configuration`)."


def _user(machine: Machine) -> list[str]:
    return [machine.application(product, "User", "mcp.json") for product in _PRODUCTS]


def _profiles(machine: Machine) -> list[str]:
    found = []
    for product in _PRODUCTS:
        folder = machine.application(product, "User", "profiles")
        found += [machine.join(folder, name, "mcp.json") for name in machine.names_in(folder)]
    return found


def _settings(machine: Machine) -> list[str]:
    return [machine.application(product, "User", "settings.json") for product in _PRODUCTS]


def _in_project(*parts: str) -> Callable[[Machine], list[str]]:
    return lambda machine: [machine.join(folder, *parts) for folder in machine.project_folders()]


def _workspace_files(machine: Machine) -> list[str]:
    return [
        machine.join(folder, name)
        for folder in machine.project_folders()
        for name in machine.names_in(folder)
        if name.endswith(".code-workspace")
    ]


def _signs(machine: Machine) -> list[str]:
    return [*(machine.application(product) for product in _PRODUCTS), *_in_project(".vscode")(machine)]


def discovers(machine: Machine, source: str) -> bool:
    """Whether the settings let it read this other host's file."""
    for file in (*_in_project(".vscode", "settings.json")(machine), *_settings(machine)):
        said = standing(machine, file, "jsonc", (DISCOVERY,))
        if isinstance(said, bool):
            return said
        if isinstance(said, dict):
            return said.get(source) is True
    return False


def _discovered(source: str, find: Callable[[Machine], list[str]]) -> Callable[[Machine], list[str]]:
    return lambda machine: find(machine) if discovers(machine, source) else []


def read(raw: Mapping[str, object]) -> Entry:
    return plain(raw, kind(raw, _WORDS), _FIELDS, unsure=_UNSURE)


def _oauth(oauth: OAuth) -> tuple[Mapping[str, Json], frozenset[str]]:
    if oauth.client_id is None:
        return {}, frozenset()
    return {"oauth": {"clientId": oauth.client_id}}, frozenset(("clientId",))


DIALECT = Dialect(
    types={"stdio": "stdio", "http": "http", "sse": "sse"}, form="${env:V}", cwd=True, asks=True, passes_all=True,
    oauth=_oauth,
)  # fmt: skip


def write(wanted: Wanted, machine: Machine) -> Rendered:
    note = "VS Code asks whether to trust the server when it first starts."
    return with_more(rendered(DIALECT, wanted, machine), notes=(note,))


def _settle(reading: Reading) -> None:
    """The highest source keeps the name, and the others are switched off; profiles and Insiders stand side by side."""
    machine = reading.machine
    said = [standing(machine, file, "jsonc", ("chat.mcp.collisionBehavior",)) for file in _settings(machine)]
    if "suffix" in said:
        return
    for group in groups(reading).values():
        top = [each for each in group if each.place.rank == group[0].place.rank]
        if top[0].scope == "project":
            whole(top)
        for winner in top[:1]:
            whole([winner, *group[len(top) :]], disabled=True)


def _other(
    shown: str, find: Callable[[Machine], list[str]], source: str, *, project: bool = False, rank: int = 10
) -> Place:
    return Place(
        scope="project" if project else "user", find=_discovered(source, find), format="json", tables=(("mcpServers",),),
        rank=rank, shown=shown, known=Fact(True, "S", f"Read because of `{DISCOVERY}`.", _TYPES),
    )  # fmt: skip


def _claude_desktop(machine: Machine) -> list[str]:
    return [machine.application("Claude", "claude_desktop_config.json")]


def _wrong(shown: str, find: Callable[[Machine], list[str]], *tables: tuple[str, ...], why: str, instead: str) -> Place:
    return Place(
        scope="project" if ".vscode" in shown else "user", find=find, format="jsonc", tables=tables, rank=0, shown=shown,
        instead=instead, known=Fact(False, "DT", why, _DOCS),
    )  # fmt: skip


ADAPTER = Adapter(
    id="vscode",
    label="VS Code",
    aliases=("code", "vs-code"),
    seen="1.139 by its source, 1.133 by third parties",
    verified="2026-11-30",
    places=(
        Place(
            scope="project", find=_in_project(".vscode", "mcp.json"), format="jsonc", tables=(("servers",),), rank=60,
            shown=".vscode/mcp.json", known=Fact(True, "DS", source=_DOCS), writes=True,
        ),
        Place(
            scope="project", find=_in_project(".mcp.json"), format="jsonc", tables=(("mcpServers",),), rank=55,
            shown=".mcp.json", shared=True, known=Fact(True, "S", "The portable file, in new versions. Its order among the others is "
                                          "unknown.", "microsoft/vscode#335884"),
        ),
        Place(
            scope="project", find=_workspace_files, format="jsonc", tables=(("settings", "mcp", "servers"),), rank=50,
            shown="*.code-workspace", known=Fact(True, "D", "While it is the open workspace.", _DOCS),
        ),
        Place(
            scope="user", find=_user, format="jsonc", tables=(("servers",),), rank=40, shown="Code/User/mcp.json",
            known=Fact(True, "DS", "Insiders: in `Code - Insiders`.", _DOCS), writes=True,
        ),
        Place(
            scope="user", find=_profiles, format="jsonc", tables=(("servers",),), rank=40,
            shown="Code/User/profiles/*/mcp.json",
            known=Fact(True, "DS", "Each profile has its own, read while that profile is active.", _DOCS),
        ),
        Place(
            scope="user", find=lambda machine: [machine.user(".copilot", "mcp-config.json")], format="jsonc",
            tables=(("mcpServers",),), rank=35, shown="~/.copilot/mcp-config.json", shared=True,
            known=Fact(True, "S", "In new versions. Its order among the others is unknown.", _TYPES),
        ),
        _other("Claude Desktop's file", _claude_desktop, "claude-desktop"),
        _other("Windsurf's file", lambda machine: [machine.user(".codeium", "windsurf", "mcp_config.json")], "windsurf"),
        _other("~/.cursor/mcp.json", lambda machine: [machine.user(".cursor", "mcp.json")], "cursor-global"),
        _other(".cursor/mcp.json", _in_project(".cursor", "mcp.json"), "cursor-workspace", project=True, rank=12),
        _wrong(
            ".vscode/mcp.json (mcpServers)", _in_project(".vscode", "mcp.json"), ("mcpServers",),
            why="VS Code reads `servers` there; `mcpServers` is the key of other hosts.",
            instead="Rename the key `mcpServers` to `servers`.",
        ),
        _wrong(
            "Code/User/mcp.json (mcpServers)", _user, ("mcpServers",),
            why="VS Code reads `servers` there; `mcpServers` is the key of other hosts.",
            instead="Rename the key `mcpServers` to `servers`.",
        ),
        _wrong(
            "Code/User/settings.json", _settings, ("mcp", "servers"), ("mcp.servers",), ("mcpServers",),
            why="Since 1.102 servers stand in mcp.json, not in settings.json.", instead=_MOVED,
        ),
        _wrong(
            ".vscode/settings.json", _in_project(".vscode", "settings.json"), ("mcp", "servers"), ("mcp.servers",),
            ("mcpServers",),
            why="Since 1.102 servers stand in mcp.json, not in settings.json.",
            instead="Move the entries to .vscode/mcp.json, under `servers`.",
        ),
    ),
    tolerance=Tolerance(
        comments=Fact(True, "DS"),
        trailing_comma=unknown("a comma after the last member, then `MCP: List Servers`"),
        bom=unknown("the file saved with a byte order mark, then `MCP: List Servers`"),
        duplicate_keys=unknown("one name twice, then `MCP: List Servers`"),
        fault=unknown("a broken workspace file beside a right user file"),
        bad_entry=unknown("an entry without command and url beside a right one"),
    ),
    merge=Fact(
        "loser-disabled", "S", "Or both with a suffix, by `chat.mcp.collisionBehavior`. Folder, workspace, user, "
        "extension, plugin, other hosts' files. A remote window lifts its own.", "microsoft/vscode#312234",
    ),
    transports=Fact(frozenset(("stdio", "http", "sse")), "DS", "A URL may be unix:// or pipe://.", _DOCS),
    variables=Fact(
        Variables(forms=("${env:V}", "${input:V}"), fields=frozenset(("command", "args", "env", "url", "headers", "cwd"))),
        "D", "Also ${workspaceFolder} and ${userHome}. `inputs` asks a person and keeps the answer.", _DOCS,
    ),
    child_env=Fact(ChildEnv(kind="all"), "S", "Its whole environment, then envFile, then env; null takes one away.",
                   "microsoft/vscode extHostMcpNode.ts"),
    switch=unknown('no field is documented; an entry with `"disabled": true` would tell'),
    no_switch="Run `MCP: List Servers` in it and disable the server there: that is kept in the application's storage, in no file.",
    names=Fact(
        CallableNames(
            form="mcp_{server}_{tool}", keep="a-z0-9_-", lower="server", tool_keep="A-Za-z0-9_-", prefix_limit=18, limit=64,
            overflow="cut", clash="number", announced=True,
        ),
        "S", "From the title or name that the server announces (1.139); older versions took the key. The numbers "
        "follow the order of starting.", "microsoft/vscode mcpServer.ts McpPrefixGenerator, mcpTypes.ts McpToolName",
    ),
    read=read,
    write=write,
    fields=_FIELDS,
    folds_case=True,
    expands_home=Fact(False, "T", source="microsoft/vscode#247076"),
    server_names=unknown("names with a space, a dot and a slash"),
    approvals=Fact("Asks for each tool; answers are kept in its storage. `sandboxEnabled` runs unasked (macOS, Linux).", "D"),
    tool_lists=Fact("None in a file; tools are chosen in the chat.", "D"),
    gates=Fact("Trust of the server; chat.mcp.access, allowedServers, deniedServers, allowManagedServersOnly, autostart. "
               "What a company sets by policy is in no file.", "DS"),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    timeouts=unknown("servers that answer `initialize` and a call after 30, 60 and 120 s"),
    reload=unknown("a change of mcp.json while it runs"),
    closed=Fact(False, "T"),
    gui=True,
    plugins=("vscode", "agent-plugin"),
    sources=(_DOCS, _TYPES, "microsoft/vscode extHostMcpNode.ts", "microsoft/vscode#312234", "microsoft/vscode#335884"),
    unknowns=("time limits", "policy of a company", "the last step of a tool's name in the Copilot extension",
              "which profile is active", "whether `type` may be left out: its documentation says both"),
    more={
        "writer": Fact("`code --add-mcp JSON` writes to the user's profile", "D"),
        "discovery": Fact(f"`{DISCOVERY}` reads the files of Claude Desktop, Windsurf and Cursor: then one entry may "
                          "start twice", "S", source=_TYPES),
    },
    signs=_signs,
    settle=_settle,
)  # fmt: skip
