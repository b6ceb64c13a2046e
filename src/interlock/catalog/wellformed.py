"""What every list entry is checked for: can it be read, has it a name, and are its optional members of the right kind?

Shared by the repair of tools (schema_repair.py) and of prompts, resources and templates (entry_repair.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

MAX_DEPTH = 100
"""Levels of nesting in one definition. Some JSON parsers in hosts stop at 128, envelope included."""

Members = dict[str, msgspec.Raw]
Rule = tuple[str, Callable[[object], bool], str]
"""An optional member, whether a decoded value fits it, and what it should be, in words."""

read_members = msgspec.json.Decoder(Members).decode
_read_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


@dataclass(frozen=True, slots=True)
class Repaired:
    """What to publish of one entry. `raw` is None where it is withheld; `name` is empty where it has none."""

    raw: bytes | None
    name: str
    problems: tuple[str, ...] = ()
    """Each says what was wrong and what was done, in words for `interlock tools` and the log."""


@dataclass(slots=True)
class Readable:
    """An entry taken apart: raw members to splice from, the same decoded, what it is called, what was found so far."""

    members: Members
    value: Mapping[str, object]
    identity: str
    problems: list[str]


def read_entry(raw: bytes, identity: str) -> Readable | Repaired:
    """Take an entry apart; `identity` is the member that names it. A withheld `Repaired` where that cannot be done."""
    try:
        members = read_members(raw)
        value: object = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Repaired(None, "", ("withheld: the definition is not a JSON object that can be read",))
    if not isinstance(value, dict):
        return Repaired(None, "", ("withheld: the definition is not a JSON object",))
    name = value.get(identity)
    if not isinstance(name, str) or not name:
        return Repaired(None, "", (f"withheld: `{identity}` is missing, empty or not a string",))
    if _deeper_than(value, raw, MAX_DEPTH):
        return Repaired(None, name, (f"withheld: the definition is nested more than {MAX_DEPTH} levels deep",))
    problems = [f"`{key}` is given twice: the last one was kept" for key in _repeated(raw, members)]
    return Readable(members, value, name, problems)


def drop_wrong_kinds(
    members: Members, value: Mapping[str, object], rules: tuple[Rule, ...], problems: list[str]
) -> None:
    """Take out the optional members that do not fit their rule; `null` fits none."""
    for key, fits, kind in rules:
        if key in value and not fits(value[key]):
            problems.append(f"`{key}` is not {kind}: dropped")
            del members[key]


def repair_icons(members: Members, value: Mapping[str, object], problems: list[str]) -> None:
    """Take the malformed ones out of a list of icons."""
    icons = value.get("icons")
    if not isinstance(icons, list) or all(_is_icon(icon) for icon in icons):
        return
    parts = _read_items(members["icons"])
    kept = [part for part, icon in zip(parts, icons, strict=True) if _is_icon(icon)]
    members["icons"] = msgspec.Raw(msgspec.json.encode(kept))
    problems.append(f"{len(icons) - len(kept)} of the `icons` malformed: dropped")


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_object(value: object) -> bool:
    return isinstance(value, dict)


def is_list(value: object) -> bool:
    return isinstance(value, list)


ICONS: Rule = ("icons", is_list, "a list")
META: Rule = ("_meta", is_object, "an object")


def _is_icon(icon: object) -> bool:
    if not isinstance(icon, dict) or not isinstance(icon.get("src"), str):
        return False
    sizes = icon.get("sizes", [])
    return (
        isinstance(icon.get("mimeType", ""), str)
        and isinstance(sizes, list)
        and all(isinstance(size, str) for size in sizes)
        and icon.get("theme", "light") in ("light", "dark")
    )


def _repeated(raw: bytes, members: Members) -> tuple[str, ...]:
    """Top-level members given more than once: strict parsers refuse such an object, and the others do not agree."""
    # Without white space, a round trip is shorter only where something was given twice: the costly look is rare.
    if len(msgspec.json.encode(members)) == len(raw):
        return ()
    counts: dict[str, int] = {}

    def count(pairs: list[tuple[str, object]]) -> None:
        # Called for every object, the outermost last.
        counts.clear()
        for key, _ in pairs:
            counts[key] = counts.get(key, 0) + 1

    json.loads(raw, object_pairs_hook=count)
    return tuple(key for key, times in counts.items() if times > 1)


def _deeper_than(value: object, raw: bytes, limit: int) -> bool:
    if raw.count(b"{") + raw.count(b"[") <= limit:
        return False
    level: list[object] = [value]
    for _ in range(limit):
        below: list[object] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
        level = [node for node in below if isinstance(node, dict | list)]
        if not level:
            return False
    return True
