"""OpenCode's `permission` map for a server's tools: read into the entry that runs, and written from the manifest.

Of several patterns that match a tool the last one in the file decides, so a general one has to stand before the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from interlock.hosts.declaration import Declaration
from interlock.hosts.dialect import standing
from interlock.hosts.entry import Approval
from interlock.hosts.machine import Machine
from interlock.hosts.tool_rules import ToolRules
from interlock.hosts.writing import REMOVE, Edit, Json

_UNSAFE = re.compile(r"[^A-Za-z0-9_*-]")
_ANSWERS: Mapping[str, Approval] = {"allow": "auto", "ask": "prompt"}


def pattern(server: str, tool: str) -> str:
    return f"{_UNSAFE.sub('_', server)}_{_UNSAFE.sub('_', tool)}"


def applied(declaration: Declaration, rules: Mapping[str, str]) -> None:
    """`rules`: pattern to answer, in the order in which they count."""
    entry, server = declaration.runs, declaration.server
    if entry is None or server is None:
        return
    prefix = pattern(server, "")
    own = {name[len(prefix) :]: answer for name, answer in rules.items() if name.startswith(prefix) and name != prefix}
    if not own:
        return
    allowed = tuple(name for name, answer in own.items() if answer in _ANSWERS and name != "*")
    denied = tuple(name for name, answer in own.items() if answer == "deny" and name != "*")
    approvals = {name: _ANSWERS[answer] for name, answer in own.items() if answer in _ANSWERS}
    allow = allowed if own.get("*") == "deny" else None
    declaration.merged = replace(entry, allow=allow, deny=denied, approvals=approvals)


def wanted(server: str, rules: ToolRules) -> dict[str, str]:
    """Patterns and answers, the general first. OpenCode runs what no pattern speaks of."""
    default = {"auto": "allow", "ask": "ask", "writes": "ask", None: None}[rules.default]
    found: dict[str, str] = {}
    if rules.allow is not None:
        found["*"] = "deny"
        for name in (*rules.allow_globs, *rules.allow):
            found[name] = default or "allow"
    elif default is not None:
        found["*"] = default
    offered = None if rules.allow is None or rules.allow_globs else frozenset(rules.allow)
    for names, answer in ((rules.auto, "allow"), (rules.ask, "ask")):
        for name in names:
            if offered is None or name in offered:
                found.pop(name, None)
                found[name] = answer
    for name in (*rules.deny_globs, *rules.deny):
        found.pop(name, None)
        found[name] = "deny"
    return {pattern(server, name): answer for name, answer in found.items()}


def edits(machine: Machine, file: str, rules: Mapping[str, str]) -> list[Edit]:
    """Of the file's `permission`: what stands there in the right order stays, everything else of ours goes to the end."""
    value = standing(machine, file, "jsonc", ("permission",))
    if isinstance(value, str):
        whole: dict[str, Json] = {"*": value, **rules}
        return [Edit(("permission",), whole)]
    present = value if isinstance(value, dict) else {}
    if [(name, present[name]) for name in present if name in rules] == list(rules.items()) and _last(present, rules):
        return []
    gone = [Edit(("permission", name), REMOVE) for name in rules if name in present]
    return gone + [Edit(("permission", name), answer) for name, answer in rules.items()]


def _last(present: Mapping[str, object], rules: Mapping[str, str]) -> bool:
    """Whether no pattern of somebody else that could match the same tools stands behind the first of ours."""
    names = list(present)
    first = next((index for index, name in enumerate(names) if name in rules), len(names))
    return all(name in rules or "*" not in name for name in names[first:])
