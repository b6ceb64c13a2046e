"""JetBrains' three: AI Assistant, Junie and Air, each with files of its own. Little more than their paths is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from interlock.hosts.adapter import Adapter, Merge, Tolerance
from interlock.hosts.declaration import Declaration, Problem
from interlock.hosts.dialect import Dialect, kind, plain, rendered, with_more
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place, Scope
from interlock.hosts.reading import Reading
from interlock.hosts.settling import groups, undecided
from interlock.hosts.writing import Rendered, Wanted

_JUNIE = "jetbrains.com/help/junie/model-context-protocol-mcp.html"
_FIELDS = frozenset(("command", "args", "env"))
_UNSURE = frozenset(("type", "url", "headers", "disabled", "enabled", "cwd", "timeout"))


def read(raw: Mapping[str, object]) -> Entry:
    return plain(raw, kind(raw), _FIELDS, unsure=_UNSURE)


DIALECT = Dialect(
    transports=frozenset(("stdio",)), no_remote="Junie starts programs only, by its documentation", fills=frozenset(), unsure=True,
    asks=True,
)  # fmt: skip


def write(wanted: Wanted, machine: Machine) -> Rendered:
    note = "This is Junie's file. AI Assistant has .ai/mcp/mcp.json, and Air .air/mcp.json."
    return with_more(rendered(DIALECT, wanted, machine), notes=(note,))


def _product(declaration: Declaration) -> str:
    shown = declaration.place.shown
    return "junie" if ".junie" in shown else "assistant" if ".ai/" in shown or "AIAssistant" in shown else "air"


def _settle(reading: Reading) -> None:
    """One product's files do not touch another's."""
    for group in groups(reading).values():
        for product in ("assistant", "junie", "air"):
            undecided(reading, [each for each in group if _product(each) == product])


def _problems(declaration: Declaration, machine: Machine) -> Sequence[Problem]:
    entry = declaration.entry
    if declaration.state != "effective" or entry is None or entry.url is None or _product(declaration) != "junie":
        return ()
    return (
        Problem(
            "transport-unsupported", "problem", "Junie in the IDE starts programs only.", _JUNIE,
            "Start `interlock bridge URL` in its place, which speaks stdio to the host.", "url",
            declaration.spots.get("url", declaration.spot),
        ),
    )  # fmt: skip


def _project(*parts: str) -> Callable[[Machine], list[str]]:
    return lambda machine: [machine.join(folder, *parts) for folder in machine.project_folders()]


def _user(*parts: str) -> Callable[[Machine], list[str]]:
    return lambda machine: [machine.user(*parts)]


def _air(machine: Machine) -> list[str]:
    return [machine.user(".air"), *_project(".air")(machine)]


def _place(
    scope: Scope,
    find: Callable[[Machine], list[str]],
    rank: int,
    shown: str,
    known: Fact[bool],
    *,
    writes: bool = False,
    shared: bool = False,
) -> Place:
    return Place(
        scope=scope,
        find=find,
        format="json",
        tables=(("mcpServers",),),
        rank=rank,
        shown=shown,
        known=known,
        writes=writes,
        shared=shared,
    )


_MERGE: Fact[Merge] = unknown("one name with two commands in the user's and the project's file of one product")

ADAPTER = Adapter(
    id="jetbrains",
    label="JetBrains (Junie, AI Assistant, Air)",
    aliases=("junie",),
    seen="documentation and third parties, 2026-11-30",
    verified="2026-11-30",
    places=(
        _place("project", _project(".junie", "mcp", "mcp.json"), 20, ".junie/mcp/mcp.json", Fact(True, "DT", "Junie."),
               writes=True),
        _place("user", _user(".junie", "mcp", "mcp.json"), 10, "~/.junie/mcp/mcp.json", Fact(True, "DT", "Junie."),
               writes=True),
        _place("project", _project(".ai", "mcp", "mcp.json"), 20, ".ai/mcp/mcp.json", Fact(True, "T", "AI Assistant.")),
        _place("user", _user(".ai", "mcp", "mcp.json"), 10, "~/.ai/mcp/mcp.json", Fact(True, "T", "AI Assistant.")),
        _place(
            "user", lambda machine: [machine.application("JetBrains", "AIAssistant", "mcp.json")], 5,
            "~/.config/JetBrains/AIAssistant/mcp.json",
            Fact(None, "X", "An older report of AI Assistant; newer ones name ~/.ai/mcp/mcp.json. The list of servers in "
                 "its settings tells."),
        ),
        _place("project", _project(".air", "mcp.json"), 20, ".air/mcp.json", Fact(True, "T", "Air.")),
        _place("project", _project(".mcp.json"), 10, ".mcp.json", Fact(True, "T", "Air."), shared=True),
    ),
    tolerance=Tolerance(
        comments=unknown("a comment in mcp.json, then the list of servers"),
        trailing_comma=unknown("a comma after the last member, then the list of servers"),
        bom=unknown("the file saved with a byte order mark"),
        duplicate_keys=unknown("one name twice, then the list of servers"),
        fault=unknown("a broken project file beside a right user file"),
        bad_entry=unknown("an entry without a command beside a right one"),
    ),
    merge=_MERGE,
    transports=unknown("Junie in the IDE takes programs only, by its documentation. A URL in .ai/mcp/mcp.json and in .air/mcp.json."),
    variables=unknown("`${HOME}` and `$HOME` in args and in env"),
    child_env=unknown("a server that writes its environment"),
    switch=unknown('an entry with `"disabled": true`: does the server start?'),
    no_switch="Or switch it off in Settings, Tools, in the list of MCP servers.",
    names=unknown("the tool names in a session's log"),
    read=read,
    write=write,
    fields=frozenset(),
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=unknown("`~/server` as the command"),
    approvals=Fact("Junie asks, unless its Action Allowlist in the settings says otherwise.", "D", source=_JUNIE),
    tool_lists=unknown("whether a tool can be left out"),
    gates=unknown("a project that is opened for the first time"),
    timeouts=unknown("servers that answer `initialize` and a call after 30, 60 and 120 s"),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    reload=unknown("a change of mcp.json while the IDE runs"),
    closed=unknown("whether it writes the file while it runs"),
    gui=True,
    sources=(_JUNIE, "dyoshikawa/rulesync"),
    unknowns=("everything beyond the paths and Junie's asking",),
    signs=_air,
    settle=_settle,
    entry_problems=_problems,
)  # fmt: skip
