"""What a host will call each tool of each server, and which of them it loses on the way.

Computed from `Adapter.names` alone. All tools of a host go in at once: who meets whom decides on many a name.
Where a host puts a hash whose input is not known, its digits are shown as `*`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from interlock.hosts.adapter import CallableNames

Key = tuple[str, str]
"""Server key and tool name."""
UNKNOWN_DIGIT = "*"


@dataclass(frozen=True, slots=True)
class Collision:
    """Several tools that the host would call alike."""

    name: str
    """What they all become."""
    keys: tuple[Key, ...]
    lost: tuple[Key, ...] | None
    """Those that the model never sees; None: some of them, and which is not known. Empty: all are renamed apart."""


@dataclass(frozen=True, slots=True)
class Called:
    """The host's names for a set of tools. A name is None where the tool is left out, or cannot be told."""

    names: Mapping[Key, str | None]
    collisions: tuple[Collision, ...] = ()
    shortened: tuple[Key, ...] = ()
    """Longer than the host takes: cut, hashed or left out."""
    full: Mapping[Key, str] = field(default_factory=dict)
    """What each would be called if the host took any length."""


def server_part(server: str, rule: CallableNames) -> str:
    """What becomes of a server's key in the names of its tools."""
    kept = re.sub(f"[{rule.dropped}]", "", server) if rule.dropped else server
    return re.sub(f"[^{rule.keep}]", rule.replacement, kept.lower() if rule.lower is not None else kept)


def tool_part(tool: str, rule: CallableNames) -> str:
    """What becomes of a tool's own name."""
    keep = rule.keep if rule.tool_keep is None else rule.tool_keep
    return re.sub(f"[^{keep}]", rule.replacement, tool.lower() if rule.lower == "all" else tool)


def plain(server: str, tool: str, rule: CallableNames) -> str:
    """The whole name, before anything is cut."""
    if rule.bare:
        return tool_part(tool, rule)
    return rule.form.replace("{server}", server_part(server, rule)).replace("{tool}", tool_part(tool, rule))


def prefix(server: str, rule: CallableNames) -> str:
    """What stands before the tool's own name."""
    return "" if rule.bare else plain(server, "", rule)


def call(tools: Mapping[str, Sequence[str]], rule: CallableNames) -> Called:
    """Names of all tools of all servers of one host, in the order in which they are defined there."""
    if rule.announced:
        return Called({(server, tool): None for server, names in tools.items() for tool in names})
    keys = [(server, tool) for server, names in tools.items() for tool in dict.fromkeys(names)]
    full = {key: plain(*key, rule) for key in keys}
    names: dict[Key, str | None] = {}
    short: list[Key] = []
    for key in keys:
        name, was_cut = _fitted(full[key], rule)
        names[key] = name
        if was_cut:
            short.append(key)
    if rule.bare:
        _prefix_clashes(names, full, rule, short)
    collisions = _clashes(names, full, rule)
    return Called(names, tuple(collisions), tuple(short), full)


def _fitted(name: str, rule: CallableNames) -> tuple[str | None, bool]:
    limit = rule.limit
    if limit is None or len(name) <= limit:
        return name, False
    if rule.overflow == "dropped":
        return None, True
    if rule.overflow == "hash":
        digits = rule.hash_digits
        return name[: limit - digits - 1] + "_" + UNKNOWN_DIGIT * digits, True
    if rule.overflow == "middle":
        head = rule.head
        tail = limit - head - len(rule.filler)
        return name[:head] + rule.filler + name[len(name) - tail :], True
    if rule.overflow in ("cut", "cut-number"):
        return name[:limit], True
    return name, True  # what happens is not known


def _prefix_clashes(
    names: dict[Key, str | None], full: Mapping[Key, str], rule: CallableNames, short: list[Key]
) -> None:
    """Zed: a tool's own name, and `server_tool`, with the server's part cut to fit, where two meet."""
    for group in _groups(names).values():
        if len(group) < 2:
            continue
        for server, tool in group:
            own = tool_part(tool, rule)
            room = (rule.limit or 10_000) - len(own) - 1
            if room >= 2:
                names[server, tool] = f"{server_part(server, rule)[:room]}_{own}"


def _groups(names: Mapping[Key, str | None]) -> dict[str, list[Key]]:
    groups: dict[str, list[Key]] = {}
    for key, name in names.items():
        if name is not None:
            groups.setdefault(name, []).append(key)
    return groups


def _clashes(names: dict[Key, str | None], full: Mapping[Key, str], rule: CallableNames) -> list[Collision]:
    collisions: list[Collision] = []
    for name, group in _groups(names).items():
        if len(group) < 2:
            continue
        cut = all(len(full[key]) > (rule.limit or len(full[key])) for key in group)
        if rule.overflow == "hash" and cut and len({full[key] for key in group}) == len(group):
            continue  # each has a hash of its own
        lost: tuple[Key, ...] | None
        if rule.overflow == "cut-number" and cut:
            for number, key in enumerate(group[1:], 2):
                names[key] = name[: (rule.limit or len(name)) - len(str(number))] + str(number)
            lost = ()
        elif rule.clash == "hash-both":
            digits = rule.hash_digits
            room = (rule.limit or 10_000) - digits - 1
            for key in group:
                names[key] = f"{full[key][:room]}_{UNKNOWN_DIGIT * digits}"
            lost = ()
        elif rule.clash == "number":
            for number, key in enumerate(group[1:], 2):
                names[key] = name[: (rule.limit or 10_000) - len(str(number))] + str(number)
            lost = ()
        elif rule.clash in ("first", "later-skipped"):
            lost = tuple(group[1:])
        elif rule.clash == "last" or rule.clash == "prefix":
            lost = tuple(group[:-1])
        else:
            lost = None
        for key in lost or ():
            names[key] = None
        collisions.append(Collision(name, tuple(group), lost))
    return collisions
