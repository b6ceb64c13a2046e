"""Kiro, the IDE and its command line: Claude Desktop's words, with a switch and two lists of tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from interlock.hosts.adapter import Adapter, Switch, Tolerance, Variables
from interlock.hosts.dialect import Dialect, kind, plain, rendered
from interlock.hosts.entry import Approval, Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.shapes import flag, texts
from interlock.hosts.writing import Rendered, Wanted

_DOCS = "kiro.dev/docs/mcp/configuration"
_CLI = "kiro.dev/docs/cli/chat/configuration"
_FIELDS = frozenset(
    (
        "command",
        "args",
        "env",
        "url",
        "headers",
        "disabled",
        "autoApprove",
        "disabledTools",
        "timeout",
        "oauth",
        "oauthScopes",
    )
)


def read(raw: Mapping[str, object]) -> Entry:
    auto: dict[str, Approval] = dict.fromkeys(texts(raw, "autoApprove"), "auto")
    return replace(
        plain(raw, kind(raw), _FIELDS, unsure=frozenset(("type", "cwd"))),
        enabled=not flag(raw, "disabled", False),
        deny=texts(raw, "disabledTools"),
        approvals=auto,
    )


DIALECT = Dialect(
    form="${V}", fills=frozenset(("env",)), off=("disabled", True), deny="disabledTools", auto="autoApprove", every="*",
    asks=True,
)  # fmt: skip


def write(wanted: Wanted, machine: Machine) -> Rendered:
    return rendered(DIALECT, wanted, machine)


ADAPTER = Adapter(
    id="kiro",
    label="Kiro",
    seen="documentation of 2026",
    verified="2026-11-30",
    places=(
        Place(
            scope="project", find=lambda machine: [machine.join(folder, ".kiro", "settings", "mcp.json")
                                                   for folder in machine.project_folders()],
            format="json", tables=(("mcpServers",),), rank=20, shown=".kiro/settings/mcp.json",
            known=Fact(True, "D", source=_DOCS), writes=True,
        ),
        Place(
            scope="user", find=lambda machine: [machine.user(".kiro", "settings", "mcp.json")], format="json",
            tables=(("mcpServers",),), rank=10, shown="~/.kiro/settings/mcp.json", known=Fact(True, "D", source=_DOCS),
            writes=True,
        ),
    ),
    tolerance=Tolerance(
        comments=unknown("a comment in mcp.json, then the list of servers"),
        trailing_comma=unknown("a comma after the last member, then the list of servers"),
        bom=unknown("the file saved with a byte order mark"),
        duplicate_keys=unknown("one name twice, then the list of servers"),
        fault=unknown("a broken workspace file beside a right user file"),
        bad_entry=unknown("an entry without command and url beside a right one"),
    ),
    merge=Fact("entry", "D", "The workspace's takes precedence, and the CLI takes what is nearest: an agent's, then the "
               "project's, then the user's. That the whole entry is replaced is not said word for word.", f"{_DOCS}, {_CLI}"),
    transports=Fact(frozenset(("stdio", "http", "sse")), "DT", "https, or http on this machine.", _DOCS),
    variables=Fact(Variables(forms=("${V}",), fields=frozenset(("env",))), "D", "Shown in `env`; elsewhere unknown.", _DOCS),
    child_env=unknown("a server that writes its environment, started from the desktop and from a terminal"),
    switch=Fact(Switch(field="disabled"), "D", source=_DOCS),
    names=unknown("the tool names in a session's log"),
    read=read,
    write=write,
    fields=_FIELDS,
    server_names=unknown("names with a space, a dot and a slash"),
    expands_home=unknown("`~/server` as the command"),
    approvals=Fact("`autoApprove`: names of tools that run unasked, or `*`", "DT", source=_DOCS),
    tool_lists=Fact("`disabledTools`: names of tools that are left out", "D", source=_DOCS),
    gates=Fact("A company's registry of servers.", "D"),
    timeouts=unknown("`timeout` is reported; its unit, and what holds without it: servers that answer after 30 and 60 s"),
    output_cap=unknown("results of 10 to 200 thousand characters"),
    reload=Fact("When the file is saved.", "T"),
    closed=unknown("whether it writes mcp.json while it runs"),
    gui=True,
    sources=(_DOCS, "kiro.dev/docs/cli/mcp/configuration", _CLI),
    unknowns=("whether an entry is replaced whole", "variables outside of `env`, and whether each has to be approved first",
              "tool names", "time limits", "what a server inherits"),
    more={"agents": Fact("an agent's file in .kiro/agents may bring servers that win while that agent is used", "D", source=_CLI)},
)  # fmt: skip
