"""The published JSON Schema (2020-12) of one manifest document, made from the table of fields: editors complete it.

It accepts every document that the loader accepts. The loader refuses more, which a schema cannot say: literal secrets,
a variable or header declared twice, a server key that is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from interlock.manifest.fields import DOCUMENT, SCHEMA_VERSION
from interlock.manifest.shapes import (
    EitherField,
    Field,
    FlagField,
    Implies,
    ListField,
    LiteralField,
    MapField,
    NumberField,
    Only,
    RecordField,
    TextField,
)

Schema = dict[str, object]

_STATUS: Mapping[str, str] = {
    "enforced": "",
    "information": " For information.",
    "not enforced": " Accepted, not enforced in this release.",
    "refused": " Not enforced in this release: a server that has it does not start.",
}


def schema() -> Schema:
    """A new copy each time, so that a caller may change it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:interlock:{SCHEMA_VERSION.replace('/', ':')}",
        "title": f"Interlock manifest ({SCHEMA_VERSION})",
        **_schema(DOCUMENT),
    }


def _schema(field: Field) -> Schema:
    made: Schema
    match field:
        case TextField():
            made = _text(field)
        case NumberField():
            made = {"type": "integer" if field.whole else "number", "minimum": field.least, "maximum": field.most}
        case FlagField():
            made = {"type": "boolean"}
        case LiteralField():
            made = {"type": ["string", "number", "boolean"]}
        case ListField():
            made = {"type": "array", "items": _schema(field.item), "maxItems": field.most}
            if field.least:
                made["minItems"] = field.least
        case MapField():
            made = {
                "type": "object",
                "propertyNames": _text(field.key),
                "additionalProperties": _schema(field.value),
            }
        case RecordField():
            made = _record(field)
        case EitherField():
            made = {"anyOf": [_schema(field.literal), _schema(field.table)]}
    if isinstance(field, TextField | NumberField | FlagField) and field.default is not None:
        made["default"] = field.default
    return {"description": field.about + _STATUS[field.status], **made}


def _text(field: TextField) -> Schema:
    if field.choices:
        return {"type": "string", "enum": list(field.choices)}
    return {"type": "string", "minLength": field.least, "maxLength": field.most, "pattern": field.pattern}


def _record(field: RecordField) -> Schema:
    made: Schema = {
        "type": "object",
        "properties": {name: _schema(inner) for name, inner in field.fields.items()},
        "additionalProperties": False,
    }
    if field.required:
        made["required"] = list(field.required)
    if field.only_one:
        made["oneOf"] = [{"required": [name]} for name in field.only_one]
    if field.some:
        made["anyOf"] = [{"required": [name]} for name in field.some]
    rules = [*map(_implication, field.implies), *map(_condition, field.only)]
    rules += [{"not": {"required": list(pair)}} for pair in combinations(field.at_most_one, 2)]
    if rules:
        made["allOf"] = rules
    return made


def _implication(rule: Implies) -> Schema:
    found: Schema = {"required": [rule.field]}
    if rule.values:
        found["properties"] = {rule.field: {"enum": list(rule.values)}}
    return {"if": found, "then": {"anyOf": [{"required": [name]} for name in rule.needs]}}


def _condition(rule: Only) -> Schema:
    return {
        "if": {"required": [rule.field]},
        "then": {"properties": {rule.other: {"const": rule.value}}, "required": [rule.other]},
    }
