"""Rules for single tools that a host keeps in another file than its servers, put into the entries that run.

Generating writes these rules; reading them is what keeps a forbidden tool forbidden when its server moves behind Interlock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from interlock.hosts.declaration import Declaration, Spot
from interlock.hosts.entry import Approval
from interlock.hosts.place import Format
from interlock.hosts.reading import Reading


def value(reading: Reading, file: str, format: Format, path: Sequence[str]) -> object:
    """What stands at this place of another file; None where nothing does."""
    document = reading.other(file, format)
    found: object = document.value if document is not None else None
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def texts(found: object) -> list[str]:
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def spot(reading: Reading, file: str, format: Format, path: Sequence[str]) -> Spot:
    document = reading.other(file, format)
    return Spot(file, *((document.at(*path) if document is not None else None) or (0, 0)))


def put(
    declaration: Declaration, deny: Sequence[str], approvals: Mapping[str, Approval], places: Mapping[str, Spot]
) -> None:
    """Into what the host runs for this entry, beside what the entry itself says. `*` is every tool."""
    entry = declaration.runs
    if entry is None or not (deny or approvals):
        return
    declaration.merged = replace(
        entry, deny=tuple(dict.fromkeys((*entry.deny, *deny))), approvals={**approvals, **entry.approvals}
    )
    declaration.tool_rules = {**declaration.tool_rules, **places}


def zed(reading: Reading, file: str) -> None:
    """`agent.tool_permissions.tools."mcp:SERVER:TOOL".default`: allow, confirm or deny."""
    rules = value(reading, file, "jsonc", ("agent", "tool_permissions", "tools"))
    words: Mapping[object, Approval] = {"allow": "auto", "confirm": "prompt"}
    for each in reading.declarations:
        deny: list[str] = []
        approvals: dict[str, Approval] = {}
        places: dict[str, Spot] = {}
        for name, rule in rules.items() if isinstance(rules, dict) else ():
            said = rule.get("default") if isinstance(rule, dict) else None
            tool = str(name).removeprefix(f"mcp:{each.server}:")
            if tool == str(name) or not tool:
                continue
            places[tool] = spot(reading, file, "jsonc", ("agent", "tool_permissions", "tools", str(name)))
            if said == "deny":
                deny.append(tool)
            elif said in words:
                approvals[tool] = words[said]
        put(each, deny, approvals, places)


def antigravity(reading: Reading, file: str) -> None:
    """`permissions`: lists deny, ask and allow of `mcp(SERVER/TOOL)`, the first of them the strongest."""
    lists = {name: texts(value(reading, file, "json", ("permissions", name))) for name in ("deny", "ask", "allow")}
    for each in reading.declarations:
        tools = {name: _mcp_tools(rules, each.server or "") for name, rules in lists.items()}
        approvals: dict[str, Approval] = dict.fromkeys(tools["allow"], "auto")
        approvals |= dict.fromkeys(tools["ask"], "prompt")
        places = {
            tool: spot(reading, file, "json", ("permissions", name))
            for name in ("allow", "ask", "deny")
            for tool in tools[name]
        }
        put(each, tools["deny"], approvals, places)


def _mcp_tools(rules: Sequence[str], server: str) -> list[str]:
    found = []
    for rule in rules:
        inner = rule.removeprefix("mcp(").removesuffix(")")
        name, _slash, tool = inner.partition("/")
        if rule.startswith("mcp(") and name in (server, "*"):
            found.append(tool or "*")
    return found


def goose(reading: Reading, file: str, prefix: Mapping[str, str]) -> None:
    """permission.yaml: lists of `PREFIX__TOOL`; `prefix` is by server."""
    lists = {
        name: texts(value(reading, file, "yaml", ("user", name)))
        for name in ("always_allow", "ask_before", "never_allow")
    }
    for each in reading.declarations:
        begins = f"{prefix.get(each.server or '')}__"
        tools = {
            name: [word.removeprefix(begins) for word in words if word.startswith(begins)]
            for name, words in lists.items()
        }
        approvals: dict[str, Approval] = dict.fromkeys(tools["always_allow"], "auto")
        approvals |= dict.fromkeys(tools["ask_before"], "prompt")
        places = {tool: spot(reading, file, "yaml", ("user", name)) for name in tools for tool in tools[name]}
        put(each, tools["never_allow"], approvals, places)
