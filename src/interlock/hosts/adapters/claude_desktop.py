"""Claude Desktop: one file per installation, for programs only, which the application writes over from memory."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.hosts.adapter import Adapter, Tolerance, Variables
from interlock.hosts.dialect import SDK_ENV, Dialect, plain, rendered, with_more
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry, exists
from interlock.hosts.shapes import text
from interlock.hosts.writing import Rendered, Wanted

_NAME = "claude_desktop_config.json"
_FIELDS = frozenset(("command", "args", "env"))
_BY_HAND = "add the address in Settings, Connectors, Add custom connector"


def _files(machine: Machine) -> list[str]:
    """The Store's package on Windows has a folder of its own; where it is there, its file is the one."""
    plain_file = machine.application("Claude", _NAME)
    if machine.platform != "windows":
        return [plain_file]
    store = machine.local_application("Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude", _NAME)
    return [store] if exists(machine, store) else [plain_file]


def _beside(machine: Machine) -> list[str]:
    """The plain file where the package has its own: only a second, plain installation reads it."""
    plain_file = machine.application("Claude", _NAME)
    return [] if plain_file in _files(machine) else [plain_file]


def read(raw: Mapping[str, object]) -> Entry:
    if text(raw, "command") is None:
        if raw.get("url") is not None:
            raise BadEntry("this file is for programs only; a URL in it starts nothing", "url",
                           _BY_HAND[0].upper() + _BY_HAND[1:] + ".")  # fmt: skip
        raise BadEntry("it has no `command`", todo="Add the command of the server.")
    return plain(raw, "stdio", _FIELDS, unsure=frozenset(("type", "cwd", "disabled")))


DIALECT = Dialect(
    transports=frozenset(("stdio",)), no_remote=f"its file is for programs only: {_BY_HAND}", fills=frozenset()
)


def write(wanted: Wanted, machine: Machine) -> Rendered:
    note = "Quit Claude Desktop wholly before the file is changed, and start it again afterwards: it writes the file from memory."
    return with_more(rendered(DIALECT, wanted, machine), notes=(note,))


ADAPTER = Adapter(
    id="claude-desktop",
    label="Claude Desktop",
    seen="documentation and third parties, 2026-11-30",
    verified="2026-11-30",
    places=(
        Place(
            scope="user", find=_files, format="json", tables=(("mcpServers",),), rank=10,
            shown="Claude/claude_desktop_config.json",
            known=Fact(True, "DT", "Linux: builds of the community. Windows from the Store: a folder of its own.",
                       "modelcontextprotocol.io/docs/develop/connect-local-servers, anthropics/claude-code#26073"),
            writes=True,
        ),
        Place(
            scope="user", find=_beside, format="json", tables=(("mcpServers",),), rank=5,
            shown="Claude/claude_desktop_config.json (beside the Store's)",
            known=Fact(None, "X", "Claude from the Store has a file of its own and does not read this one; a plain "
                       "installation reads only this one. Which of the two is started cannot be seen.",
                       "anthropics/claude-code#26073"),
        ),
    ),
    tolerance=Tolerance(
        comments=unknown("a comment in the file; keep a copy, it may be written over"),
        trailing_comma=unknown("a comma after the last member; keep a copy"),
        bom=Fact(False, "T", "The file was read as empty, and later written over.", "tradesdontlie/tradingview-mcp#419"),
        duplicate_keys=unknown("one name twice in the file"),
        fault=Fact("file", "T", "A file that cannot be read counts as `{}`, and the next change of a setting writes that.",
                   "anthropics/claude-code#32345, #59640, #63651"),
        bad_entry=unknown("an entry without a command beside a right one"),
    ),
    merge=Fact("single", "D", "One file. A Store and a plain installation have one each, and neither reads the other's."),
    settle=lambda reading: None,
    transports=Fact(frozenset(("stdio",)), "D", "URLs are added as connectors, in its settings."),
    variables=Fact(Variables(forms=()), "D", "None is documented."),
    child_env=Fact(SDK_ENV, "D", "A limited set; the names are the MCP SDK's.", "modelcontextprotocol.io/docs/tools/debugging"),
    switch=unknown('an entry with `"disabled": true`: does the server start?'),
    no_switch="Take the entry out, or switch the server off in Settings, Developer.",
    names=unknown("the tool names in mcp-server-NAME.log and in a transcript"),
    read=read,
    write=write,
    fields=_FIELDS,
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=unknown("`~/server` as the command"),
    approvals=unknown("a first and a second call of a tool that is said to write, and of one that is said to read"),
    tool_lists=Fact("None in the file.", "D"),
    gates=unknown("a company's list of extensions: whether it stops servers of this file"),
    reload=Fact("After it was quit wholly and started again.", "D"),
    closed=Fact(True, "T", "It writes the file from memory.", "anthropics/claude-code#32345"),
    gui=True,
    output_cap=unknown("results of 10 to 200 thousand characters"),
    timeouts=unknown("servers that answer `initialize` and a call after 30, 60 and 120 s"),
    sources=("modelcontextprotocol.io/docs/tools/debugging", "anthropics/claude-code#26073",
             "anthropics/claude-code#32345", "anthropics/claude-code#59640", "anthropics/claude-code#63651"),
    unknowns=("tool names", "limits", "a company's list and servers written by hand", "comments in the file"),
    more={
        "extensions": Fact("MCPB packages are in `Claude Extensions` and extensions-installations.json, not here.", "D"),
        "log": Fact("mcp-server-NAME.log, in ~/Library/Logs/Claude or %APPDATA%\\Claude\\logs, is its only sign.", "D"),
    },
)  # fmt: skip
