"""Windsurf, now Devin Desktop: three files are alive, depending on the version, and Devin Local has its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from interlock.hosts.adapter import Adapter, Merge, Tolerance, Variables
from interlock.hosts.dialect import Dialect, kind, plain, rendered, with_more
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.writing import Rendered, Wanted

_DOCS = "docs.devin.ai/desktop/cascade/mcp"
_FIELDS = frozenset(("command", "args", "env", "serverUrl", "url", "headers"))
_UNSURE = frozenset(("type", "disabled", "disabledTools", "alwaysAllow", "cwd", "timeout"))
_URLS = ("serverUrl", "url")
_CHANNELS = ("windsurf", "windsurf-next", "windsurf-insiders")


def _current(machine: Machine) -> list[str]:
    if machine.platform == "windows":
        return [machine.application("devin", "mcp_config.json")]
    return [machine.config("devin", "mcp_config.json")]


def _older(machine: Machine) -> list[str]:
    return [machine.user(".codeium", channel, "mcp_config.json") for channel in _CHANNELS]


def _layer(machine: Machine) -> list[str]:
    return [machine.application("Devin", "User", "mcp.json")]


def _local(name: str) -> Callable[[Machine], list[str]]:
    return lambda machine: [machine.join(folder, ".devin", name) for folder in machine.project_folders()]


def read(raw: Mapping[str, object]) -> Entry:
    return plain(raw, kind(raw, url=_URLS), _FIELDS, url=_URLS, unsure=_UNSURE)


DIALECT = Dialect(url="serverUrl", form="${env:V}")


def write(wanted: Wanted, machine: Machine) -> Rendered:
    note = "Quit Devin Desktop (Windsurf) before the file is changed: it writes the file from memory."
    return with_more(rendered(DIALECT, wanted, machine), notes=(note,) if wanted.scope == "user" else ())


_MERGE: Fact[Merge] = unknown("one name with two commands in two of its files, each writing a file of its own")

ADAPTER = Adapter(
    id="windsurf",
    label="Windsurf (Devin Desktop)",
    aliases=("devin", "windsurf-devin"),
    seen="documentation, 1.126 by third parties",
    verified="2026-11-30",
    places=(
        Place(
            scope="local", find=_local("mcp_config.local.json"), format="json", tables=(("mcpServers",),), rank=60,
            shown=".devin/mcp_config.local.json", known=Fact(True, "T", "Devin Local."), writes=True,
        ),
        Place(
            scope="project", find=_local("mcp_config.json"), format="json", tables=(("mcpServers",),), rank=50,
            shown=".devin/mcp_config.json", known=Fact(True, "T", "Devin Local."), writes=True,
        ),
        Place(
            scope="project", find=_local("config.json"), format="json", tables=(("mcpServers",),), rank=45,
            shown=".devin/config.json",
            known=Fact(None, "U", "Old, and moved to .devin/mcp_config.json from v3000.3 on; whether it is still read "
                       "after that: two servers of different names, one in each."),
        ),
        Place(
            scope="user", find=_current, format="json", tables=(("mcpServers",),), rank=30,
            shown="~/.config/devin/mcp_config.json, %APPDATA%\\devin\\mcp_config.json",
            known=Fact(True, "D", "By the documentation of today.", _DOCS), writes=True, older=_older,
        ),
        Place(
            scope="user", find=_older, format="json", tables=(("mcpServers",),), rank=20,
            shown="~/.codeium/windsurf/mcp_config.json",
            known=Fact(None, "X", "In older documentation, and still made by 1.126; today's names another file. The list "
                       "of servers in its settings tells."),
        ),
        Place(
            scope="user", find=_layer, format="jsonc", tables=(("servers",),), rank=10, shown="Devin/User/mcp.json",
            known=Fact(True, "T", "The layer that came from VS Code; `devin-desktop --add-mcp` writes here."),
        ),
    ),
    tolerance=Tolerance(
        comments=unknown("a comment in the file, then the list of servers"),
        trailing_comma=unknown("a comma after the last member, then the list of servers"),
        bom=unknown("the file saved with a byte order mark, then the list of servers"),
        duplicate_keys=unknown("one name twice, then the list of servers"),
        fault=unknown("a broken file beside a right one"),
        bad_entry=unknown("an entry without command and URL beside a right one"),
    ),
    merge=_MERGE,
    transports=Fact(frozenset(("stdio", "http", "sse")), "D", source=_DOCS),
    variables=Fact(
        Variables(
            forms=("${env:V}", "${file:V}"), fields=frozenset(("command", "args", "env", "url", "headers")), missing="empty",
        ),
        "D", "${file:PATH} that cannot be read stays as it is.", _DOCS,
    ),
    child_env=unknown("a server that writes its environment, started from the desktop and from a terminal"),
    switch=unknown('an entry with `"disabled": true`: does the server start?'),
    no_switch="Or switch it off in its settings, under MCP servers.",
    names=unknown("the tool names in a session's log"),
    read=read,
    write=write,
    fields=_FIELDS,
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=unknown("`~/server` as the command"),
    approvals=unknown("a first and a second call of a tool, with no rule"),
    tool_lists=Fact("100 tools in all; single ones are switched in its settings.", "D", source=_DOCS),
    gates=Fact("devin.cascade.enabled was false by default in one build of 1.126; chat.mcp.* as in VS Code.", "T"),
    timeouts=unknown("servers that answer `initialize` and a call after 30, 60 and 120 s"),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    reload=unknown("a change of the file while it runs"),
    closed=Fact(True, "T", "It writes the file from memory while it runs."),
    gui=True,
    sources=(_DOCS,),
    unknowns=("which of its files a version reads", "which of them wins", "tool names", "time limits", "limits of results",
              "whether `disabled` is obeyed"),
    more={"writer": Fact("`devin-desktop --add-mcp JSON`; only its exit code says anything", "T")},
)  # fmt: skip
