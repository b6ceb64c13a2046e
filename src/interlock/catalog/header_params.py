"""Tool parameters that a modern HTTP client mirrors into `Mcp-Param-*` headers (`x-mcp-header` in the input schema).

Specification 2026-07-28, basic/transports/streamable-http, "Custom Headers from Tool Parameters". An annotation counts
wherever a schema may stand (JSON Schema 2020-12), but is valid only on a property that is reached through `properties`
alone. Data (`const`, `enum`, `default`, `examples`) and unknown keywords are not looked into; no `$ref` is followed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

KEYWORD = "x-mcp-header"
HEADER_PREFIX = "Mcp-Param-"

# RFC 9110, 5.6.2.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_PRIMITIVE = frozenset({"string", "integer", "boolean"})
# Keywords that hold a schema, a list of schemas, or a map from names to schemas.
_ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})
_NAMED = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})

_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeaderParam:
    """One mirrored argument: the whole header name, and the chain of property names from the arguments' root."""

    header_name: str
    path: tuple[str, ...]


def header_params(schema: bytes) -> tuple[HeaderParam, ...]:
    """The mirrored parameters of an input schema, in the order of their paths; none where the schema is invalid."""
    if KEYWORD.encode() not in schema:
        return ()
    try:
        root: object = msgspec.json.decode(schema)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ()
    if header_problem(root) is not None:
        return ()
    return tuple(
        HeaderParam(f"{HEADER_PREFIX}{node[KEYWORD]}", path)
        for path, node in sorted(_annotated(root), key=lambda found: found[0] or ())
        if path
    )


def header_problem(schema: object) -> str | None:
    """Why a decoded input schema breaks the rules for `x-mcp-header`, or None. One reason is enough."""
    taken: dict[str, str] = {}
    for path, node in sorted(_annotated(schema), key=lambda found: found[0] or ()):
        if not path:
            return f"{KEYWORD} stands where a property cannot be reached through `properties` alone"
        where = ".".join(path)
        header = node[KEYWORD]
        if not isinstance(header, str):
            return f"{KEYWORD} of {where!r} is not a string"
        if not _TOKEN.match(header):
            return f"{KEYWORD} of {where!r} is not an HTTP field name"
        kind = node.get("type")
        if not isinstance(kind, str) or kind not in _PRIMITIVE:
            return f"{KEYWORD} of {where!r} needs the type string, integer or boolean"
        other = taken.setdefault(header.lower(), where)
        if other != where:
            return f"{KEYWORD} {header!r} is given to {other!r} and {where!r}"
    return None


def _annotated(root: object) -> Iterator[tuple[_Path | None, Mapping[str, object]]]:
    """All schemas with the keyword, each with its path of `properties`; None off that chain, () for the root itself."""
    # A stack of its own, so that the depth of the schema is never the depth of the interpreter.
    stack: list[tuple[_Path | None, object]] = [((), root)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict):
            continue
        if KEYWORD in node:
            yield path, node
        for keyword, value in node.items():
            if keyword == "properties" and isinstance(value, dict):
                stack.extend((None if path is None else (*path, name), sub) for name, sub in value.items())
            elif isinstance(value, dict) and keyword in _NAMED:
                stack.extend((None, sub) for sub in value.values())
            elif isinstance(value, dict) and keyword in _ONE:
                stack.append((None, value))
            elif isinstance(value, list) and keyword in _MANY:
                stack.extend((None, sub) for sub in value)
