"""One malformed tool must not cost a whole server: repairs a tool definition, or withholds that one tool.

Most hosts check a tool list as a whole and drop every tool of a server for one that breaks the protocol's schema. So
each definition is checked here against what hosts check, member by member. What is missing or of the wrong kind is
repaired where the meaning is clear and dropped where it is optional; a tool that cannot be called rightly is withheld.
A definition in order comes back byte for byte; values that are kept are spliced, never re-encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from interlock.catalog.header_params import KEYWORD, header_problem
from interlock.catalog.wellformed import (
    ICONS,
    META,
    Members,
    Repaired,
    Rule,
    drop_wrong_kinds,
    is_object,
    is_text,
    read_entry,
    read_members,
    repair_icons,
)

INVALID_MCP_HEADER = "invalid_mcp_header"
"""Begins the problem of a tool that clients over HTTP have to exclude (see header_params.py)."""

_OBJECT = msgspec.Raw(b'{"type":"object"}')
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_TASK_SUPPORT = ("forbidden", "optional", "required")


def repair_tool(raw: bytes, upstream: Literal["http", "stdio"] = "http") -> Repaired:
    """Check one entry of `tools`. Never raises.

    `upstream` is how the server is reached: only a client over modern HTTP must exclude a tool with an invalid
    `x-mcp-header`. Pass "stdio" for all others: the annotation means nothing there, so the tool is kept as it is and
    the problem is reported.
    """
    entry = read_entry(raw, "name")
    if isinstance(entry, Repaired):
        return entry
    members, value, name, problems = entry.members, entry.value, entry.identity, entry.problems
    wrong_type = _repair_input_schema(members, value, problems)
    if wrong_type is not None:
        return Repaired(None, name, (*problems, f"withheld: {wrong_type}"))
    notes: tuple[str, ...] = ()
    if KEYWORD.encode() in raw and (reason := header_problem(value.get("inputSchema"))) is not None:
        if upstream == "http":
            return Repaired(None, name, (*problems, f"{INVALID_MCP_HEADER}: withheld: {reason}"))
        notes = (f"{INVALID_MCP_HEADER}: kept, because it is not reached over HTTP: {reason}",)
    drop_wrong_kinds(members, value, _OPTIONAL, problems)
    _repair_annotations(members, value, problems)
    repair_icons(members, value, problems)
    published = msgspec.json.encode(members) if problems else raw
    return Repaired(published, name, (*problems, *notes))


def keep_first(tools: Iterable[Repaired]) -> tuple[tuple[Repaired, ...], tuple[Repaired, ...]]:
    """Of one server's tools: those to publish, in order and each name once, and those withheld, with the reason."""
    kept: dict[str, Repaired] = {}
    withheld: list[Repaired] = []
    for tool in tools:
        if tool.raw is None:
            withheld.append(tool)
        elif tool.name in kept:
            reason = "withheld: the server lists this name more than once, and the first one stays"
            withheld.append(Repaired(None, tool.name, (*tool.problems, reason)))
        else:
            kept[tool.name] = tool
    return tuple(kept.values()), tuple(withheld)


def for_legacy(raw: bytes) -> bytes:
    """A repaired tool as legacy clients can take it: no `outputSchema` but one whose type is "object".

    Revisions up to 2025-11-25 know no other, nor property schemas in it that are `true` or `false`; hosts drop the
    whole server for one.
    """
    if b'"outputSchema"' not in raw:
        return raw
    try:
        members = read_members(raw)
        schema: object = msgspec.json.decode(members["outputSchema"])
    except (msgspec.MsgspecError, ValueError, RecursionError, KeyError):
        return raw
    if isinstance(schema, dict) and schema.get("type") == "object" and _plain_object_schema(schema):
        return raw
    del members["outputSchema"]
    return msgspec.json.encode(members)


def _repair_input_schema(members: Members, tool: Mapping[str, object], problems: list[str]) -> str | None:
    """Makes `inputSchema` one that hosts take. Returns why the tool must be withheld, or None."""
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        what = "missing" if "inputSchema" not in tool else "not an object"
        problems.append(f'`inputSchema` is {what}: {{"type":"object"}} was put in its place')
        members["inputSchema"] = _OBJECT
        return None
    kind = schema.get("type")
    if kind == "object" and _plain_object_schema(schema):
        return None
    inner = read_members(members["inputSchema"])
    if kind != "object":
        if isinstance(kind, str) and kind.lower() != "object":
            return f"its `inputSchema` has the type {kind[:40]!r}, and arguments are always an object"
        if isinstance(kind, list) and kind and "object" not in kind:
            return "its `inputSchema` allows no object, and arguments are always an object"
        problems.append('`inputSchema` does not say `"type":"object"`: it was added')
        inner = {"type": msgspec.Raw(b'"object"')} | {key: part for key, part in inner.items() if key != "type"}
    _repair_properties(inner, schema, problems)
    _repair_required(inner, schema, problems)
    if "$schema" in schema and not isinstance(schema["$schema"], str):
        problems.append("`$schema` of `inputSchema` is not a string: dropped")
        del inner["$schema"]
    members["inputSchema"] = msgspec.Raw(msgspec.json.encode(inner))
    return None


def _plain_object_schema(schema: Mapping[str, object]) -> bool:
    """True where `properties` maps to objects, `required` lists strings and `$schema` is one: what hosts check."""
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    return (
        isinstance(properties, dict)
        and all(isinstance(part, dict) for part in properties.values())
        and isinstance(required, list)
        and all(isinstance(part, str) for part in required)
        and isinstance(schema.get("$schema", ""), str)
    )


def _repair_properties(inner: Members, schema: Mapping[str, object], problems: list[str]) -> None:
    if "properties" not in schema:
        return
    properties = schema["properties"]
    if not isinstance(properties, dict):
        # An empty list is how some languages write an empty map.
        problems.append("`properties` of `inputSchema` is not an object: emptied")
        inner["properties"] = msgspec.Raw(b"{}")
        return
    wrong = [key for key, part in properties.items() if not isinstance(part, dict)]
    if not wrong:
        return
    parts = read_members(inner["properties"])
    for key in wrong:
        # `true` and `false` are schemas too (JSON Schema 2020-12, 4.3.2), but hosts take objects only.
        parts[key] = msgspec.Raw(b'{"not":{}}' if properties[key] is False else b"{}")
    problems.append(f"{len(wrong)} of the `properties` of `inputSchema` not objects: written as objects")
    inner["properties"] = msgspec.Raw(msgspec.json.encode(parts))


def _repair_required(inner: Members, schema: Mapping[str, object], problems: list[str]) -> None:
    if "required" not in schema:
        return
    required = schema["required"]
    if not isinstance(required, list):
        problems.append("`required` of `inputSchema` is not a list: dropped")
        del inner["required"]
    elif not all(isinstance(part, str) for part in required):
        problems.append("`required` of `inputSchema` does not list strings only: the others were dropped")
        inner["required"] = msgspec.Raw(msgspec.json.encode([part for part in required if isinstance(part, str)]))


def _is_task_support(value: object) -> bool:
    return isinstance(value, dict) and ("taskSupport" not in value or value["taskSupport"] in _TASK_SUPPORT)


_OPTIONAL: tuple[Rule, ...] = (
    ("title", is_text, "a string"),
    ("description", is_text, "a string"),
    ("outputSchema", is_object, "an object"),
    ("annotations", is_object, "an object"),
    ("execution", _is_task_support, "as the protocol says"),
    ICONS,
    META,
)


def _repair_annotations(members: Members, tool: Mapping[str, object], problems: list[str]) -> None:
    annotations = tool.get("annotations")
    if not isinstance(annotations, dict):
        return
    wrong = [key for key in _HINTS if key in annotations and not isinstance(annotations[key], bool)]
    if "title" in annotations and not isinstance(annotations["title"], str):
        wrong.append("title")
    if wrong:
        inner = read_members(members["annotations"])
        members["annotations"] = msgspec.Raw(
            msgspec.json.encode({key: part for key, part in inner.items() if key not in wrong})
        )
        problems.append(f"`annotations`: {', '.join(wrong)} of the wrong kind: dropped")
