"""What keeps a right entry of Claude Code from starting: approval of project files, lists of disabled servers, policy.

An entry that is not approved hides nothing; a denied one does, because policy comes after the scopes.
"""

from __future__ import annotations

import re
from dataclasses import replace

from interlock.hosts.adapters.claude_code_files import at, is_trusted, main, names, of_project, safe, settings
from interlock.hosts.declaration import Decision, Declaration, Problem, Spot
from interlock.hosts.entry import Approval, Entry
from interlock.hosts.reading import Reading, read_bytes
from interlock.hosts.text.document import Damaged

RESERVED = frozenset(("workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"))


def admit(reading: Reading) -> None:
    _whole(reading)
    off, approved, all_ = _approvals(reading)
    for each in reading.declarations:
        if each.state != "effective" or each.server is None:
            continue
        if each.server in RESERVED:
            why = "the name is reserved by Claude Code"
            each.state, each.decided_by = "broken", Decision("invalid-entry", each.spot, why)
            each.problems.append(
                Problem(
                    "name-reserved", "problem", f"{why}: it is skipped.", spot=each.spot, todo="Give it another name."
                )
            )
        elif each.scope != "project":
            continue
        elif (spot := off.get(safe(each.server))) is not None:
            each.state, each.decided_by = "disabled", Decision("list-off", spot, "disabledMcpjsonServers")
        elif all_ is None and safe(each.server) not in approved:
            each.state, each.decided_by = "blocked", Decision("not-approved", None, "no approval of this .mcp.json")
            each.problems.append(
                Problem(
                    "not-approved", "warning", "Claude Code waits for your approval before it starts this server.",
                    why="Whoever writes a project's .mcp.json could have it start anything. `claude -p` does not wait.",
                    spot=each.spot, todo="Start `claude` in the project and approve it, or add it to enabledMcpjsonServers.",
                )
            )  # fmt: skip


def _approvals(reading: Reading) -> tuple[dict[str, Spot], dict[str, Spot], Spot | None]:
    """Refused names, approved names, and where all are approved. What a project says of itself counts in a trusted one only."""
    trusted = is_trusted(reading)
    off = names(of_project(reading, "disabledMcpjsonServers"))
    approved = names(of_project(reading, "enabledMcpjsonServers")) if trusted else {}
    all_: Spot | None = None
    for scope, file in settings(reading.machine).items():
        off |= names(at(reading, file, "disabledMcpjsonServers"))
        if trusted or scope in ("managed", "user"):
            approved |= names(at(reading, file, "enabledMcpjsonServers"))
            every = at(reading, file, "enableAllProjectMcpServers")
            all_ = every[1] if every is not None and every[0] is True else all_
    return off, approved, all_


def _whole(reading: Reading) -> None:
    """Without its main file Claude Code does not start, whatever stands elsewhere."""
    file = main(reading.machine)[0]
    spot, why = Spot(file), "the file is empty"
    fault = next((each.fault for each in reading.seen if each.path == file and each.fault is not None), None)
    if fault is not None:
        spot, why = fault.spot or spot, fault.seen
    elif not _empty(reading, file):
        return
    for each in reading.declarations:
        if each.state == "effective":
            each.state, each.decided_by = "broken", Decision("host-broken", spot, why)
    reading.problems.append(
        Problem(
            "host-broken", "problem", f"Claude Code cannot read its main file: {why}.", spot=spot,
            why="It then starts with none of the servers, puts the file aside and offers a backup of it.",
            todo="Correct the file, or copy the newest one of ~/.claude/backups over it.",
        )
    )  # fmt: skip


def _empty(reading: Reading, file: str) -> bool:
    try:
        content = read_bytes(reading.machine, file)
    except (OSError, Damaged):
        return False
    return content is not None and not content.strip()


def judge(reading: Reading) -> None:
    off = names(of_project(reading, "disabledMcpServers"))
    denied = _rules(reading, "deniedMcpServers")
    allowed = _rules(reading, "allowedMcpServers")
    for each in reading.declarations:
        entry = each.runs
        waits = each.state == "blocked" and each.decided_by.rule == "not-approved"
        if (each.state != "effective" and not waits) or each.server is None or entry is None:
            continue
        spot = _denied(denied, each.server, entry) or _not_allowed(allowed, each.server, entry)
        if spot is not None:
            each.state = "blocked"
            each.decided_by = Decision("policy", spot[0], spot[1])
        elif not waits and safe(each.server) in off:
            each.state, each.decided_by = "disabled", Decision("list-off", off[safe(each.server)], "disabledMcpServers")
        _permissions(reading, each)


# Policy: lists of {serverName | serverCommand | serverUrl}

Rules = list[tuple[list[object], Spot]]


def _rules(reading: Reading, name: str) -> Rules:
    files = settings(reading.machine)
    only = at(reading, files["managed"], "allowManagedMcpServersOnly")
    if name == "allowedMcpServers" and only is not None and only[0] is True:
        files = {"managed": files["managed"]}
    found = [at(reading, file, name) for file in files.values()]
    return [(each[0], each[1]) for each in found if each is not None and isinstance(each[0], list)]


def _denied(rules: Rules, server: str, entry: Entry) -> tuple[Spot, str] | None:
    for listed, spot in rules:
        if any(_matches(rule, server, entry) for rule in listed):
            return spot, "deniedMcpServers"
    return None


def _not_allowed(rules: Rules, server: str, entry: Entry) -> tuple[Spot, str] | None:
    """Where the list speaks of commands (or addresses) at all, a server has to match by its command, not by its name."""
    listed = [rule for each, _ in rules for rule in each if isinstance(rule, dict)]
    if not rules:
        return None
    kind = "serverCommand" if entry.transport == "stdio" else "serverUrl"
    if any(kind in rule for rule in listed):
        listed = [rule for rule in listed if kind in rule]
    return None if any(_matches(rule, server, entry) for rule in listed) else (rules[0][1], "allowedMcpServers")


def _matches(rule: object, server: str, entry: Entry) -> bool:
    if not isinstance(rule, dict):
        return False
    name, command, url = rule.get("serverName"), rule.get("serverCommand"), rule.get("serverUrl")
    if isinstance(name, str):
        return name == server
    if isinstance(command, list):
        return tuple(command) == entry.command
    if isinstance(url, str) and entry.url is not None:
        return re.fullmatch(".*".join(re.escape(part) for part in url.split("*")), entry.url) is not None
    return False


# Permission rules: `mcp__server`, `mcp__server__*`, `mcp__server__tool`


def _permissions(reading: Reading, declaration: Declaration) -> None:
    """Rules of settings files for this server's tools, put into the entry that runs."""
    entry = declaration.runs
    if entry is None or declaration.server is None:
        return
    prefix = f"mcp__{safe(declaration.server)}"
    deny: dict[str, Spot] = {}
    approvals: dict[str, Approval] = {}
    places: dict[str, Spot] = {}
    words: tuple[tuple[str, Approval], ...] = (("allow", "auto"), ("ask", "prompt"))
    for file in settings(reading.machine).values():
        deny = {**_tools(reading, file, "deny", prefix), **deny}
    for list_, answer in words:  # what asks is stronger than what allows
        for file in settings(reading.machine).values():
            found = _tools(reading, file, list_, prefix)
            approvals |= dict.fromkeys(found, answer)
            places |= found
    if deny or approvals:
        declaration.merged = replace(entry, deny=tuple(deny), approvals=approvals)
        declaration.tool_rules = {**places, **deny}


def _tools(reading: Reading, file: str, list_: str, prefix: str) -> dict[str, Spot]:
    """The tools that a list of rules speaks of, and where."""
    found = at(reading, file, "permissions", list_)
    rules = found[0] if found is not None and isinstance(found[0], list) else []
    tools: dict[str, Spot] = {}
    for number, rule in enumerate(rules):
        exact = _place(reading, file, list_, number) or (found[1] if found is not None else Spot(file))
        if rule in (prefix, f"{prefix}__*", "mcp__*"):
            tools["*"] = exact
        elif isinstance(rule, str) and rule.startswith(f"{prefix}__"):
            tools[rule[len(prefix) + 2 :]] = exact
    return tools


def _place(reading: Reading, file: str, list_: str, number: int) -> Spot | None:
    document = reading.other(file)
    exact = document.at("permissions", list_, number) if document is not None else None
    return Spot(file, *exact) if exact is not None else None
