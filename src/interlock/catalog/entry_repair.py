"""One malformed prompt, resource or template must not cost a whole list: the counterpart of schema_repair.py for these.

The same hosts check these lists as a whole. Optional members of the wrong kind are dropped, a missing `name` of a
resource is filled with its URI, and an entry without what identifies it is withheld. An entry in order comes back
byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from interlock.catalog.wellformed import (
    ICONS,
    META,
    Members,
    Repaired,
    Rule,
    drop_wrong_kinds,
    is_list,
    is_text,
    read_entry,
    repair_icons,
)

EntryKind = Literal["prompts", "resources", "templates"]

_IDENTITY: dict[EntryKind, str] = {"prompts": "name", "resources": "uri", "templates": "uriTemplate"}
# RFC 3339 with an offset: what hosts take for `lastModified`.
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)\Z")


def repair_entry(kind: EntryKind, raw: bytes) -> Repaired:
    """Check one entry of `prompts`, `resources` or `resourceTemplates`. Never raises.

    `Repaired.name` is what identifies the entry: a prompt's name, a resource's URI, a template's URI template.
    """
    entry = read_entry(raw, _IDENTITY[kind])
    if isinstance(entry, Repaired):
        return entry
    members, value, problems = entry.members, entry.value, entry.problems
    if not isinstance(value.get("name"), str):
        problems.append("`name` is missing or not a string: the URI was put in its place")
        members["name"] = msgspec.Raw(msgspec.json.encode(entry.identity))
    drop_wrong_kinds(members, value, _PROMPT if kind == "prompts" else _RESOURCE, problems)
    if kind == "prompts":
        _repair_arguments(members, value, problems)
    repair_icons(members, value, problems)
    return Repaired(msgspec.json.encode(members) if problems else raw, entry.identity, tuple(problems))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _are_annotations(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    audience, priority = value.get("audience", []), value.get("priority", 0)
    modified = value.get("lastModified", "1970-01-01T00:00:00Z")
    return (
        isinstance(audience, list)
        and all(who in ("user", "assistant") for who in audience)
        and isinstance(priority, int | float)
        and not isinstance(priority, bool)
        and 0 <= priority <= 1
        and isinstance(modified, str)
        and _DATE_TIME.match(modified) is not None
    )


_PROMPT: tuple[Rule, ...] = (
    ("title", is_text, "a string"),
    ("description", is_text, "a string"),
    ("arguments", is_list, "a list"),
    ICONS,
    META,
)
_RESOURCE: tuple[Rule, ...] = (
    ("title", is_text, "a string"),
    ("description", is_text, "a string"),
    ("mimeType", is_text, "a string"),
    ("size", _is_number, "a number"),
    ("annotations", _are_annotations, "as the protocol says"),
    ICONS,
    META,
)


def _repair_arguments(members: Members, value: Mapping[str, object], problems: list[str]) -> None:
    """A malformed argument is taken out where it has no name; otherwise its own wrong members are."""
    arguments = value.get("arguments")
    if not isinstance(arguments, list) or all(_is_argument(argument) for argument in arguments):
        return
    kept: list[msgspec.Raw] = []
    for raw, argument in zip(msgspec.json.decode(members["arguments"], type=list[msgspec.Raw]), arguments, strict=True):
        if _is_argument(argument):
            kept.append(raw)
        elif isinstance(argument, dict) and isinstance(argument.get("name"), str):
            inner = msgspec.json.decode(raw, type=Members)
            drop_wrong_kinds(inner, argument, _ARGUMENT, [])
            kept.append(msgspec.Raw(msgspec.json.encode(inner)))
    members["arguments"] = msgspec.Raw(msgspec.json.encode(kept))
    problems.append("`arguments` has malformed entries: repaired, and dropped where without a name")


_ARGUMENT: tuple[Rule, ...] = (
    ("title", is_text, "a string"),
    ("description", is_text, "a string"),
    ("required", lambda value: isinstance(value, bool), "true or false"),
)


def _is_argument(argument: object) -> bool:
    return (
        isinstance(argument, dict)
        and isinstance(argument.get("name"), str)
        and all(fits(argument[key]) for key, fits, _ in _ARGUMENT if key in argument)
    )
