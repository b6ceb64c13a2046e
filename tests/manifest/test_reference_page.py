"""docs/manifest.md has a row for every field, with the very words of the table of fields, and no other row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ruamel.yaml import YAML

from interlock.manifest.fields import DOCUMENT
from interlock.manifest.json_schema import schema
from interlock.manifest.nodes import MAX_BYTES, MAX_DEPTH, MAX_NODES
from interlock.manifest.places import MAX_FILES
from interlock.manifest.shapes import (
    EitherField,
    Field,
    FlagField,
    ListField,
    LiteralField,
    MapField,
    NumberField,
    RecordField,
    TextField,
)

if TYPE_CHECKING:
    from conftest import Desk

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "manifest.md").read_text(encoding="utf-8")
STATUS = {
    "enforced": "",
    "information": " For information.",
    "not enforced": " **Accepted, not enforced in this release.**",
    "refused": " **A server that has it does not start in this release.**",
}


def fields(shape: Field, path: str) -> Iterator[tuple[str, Field]]:
    if isinstance(shape, RecordField):
        for name, inner in shape.fields.items():
            inner_path = f"{path}.{name}" if path else name
            yield inner_path, inner
            yield from fields(inner, inner_path)
    elif isinstance(shape, MapField):
        yield from fields(shape.value, f"{path}.*")
    elif isinstance(shape, EitherField):
        yield from fields(shape.table, path)
    elif isinstance(shape, ListField):
        yield from fields(shape.item, f"{path}[]")


def holds(field: Field) -> str:
    match field:
        case TextField(choices=()):
            return "text"
        case TextField(choices=(only,)):
            return f"`{only}`"
        case TextField():
            return "one of " + ", ".join(f"`{choice}`" for choice in field.choices)
        case NumberField():
            return f"{'whole ' if field.whole else ''}number, {field.least:.12g} to {field.most:.12g}"
        case FlagField():
            return "`true` or `false`"
        case LiteralField():
            return "text, number or boolean"
        case ListField(item=TextField()):
            return "list of texts"
        case ListField():
            return "list of tables"
        case MapField():
            return "table by name"
        case _:
            return "table"


def default(field: Field) -> str:
    value = field.default if isinstance(field, TextField | NumberField | FlagField) else None
    if value is None:
        return ""
    word = str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else f"{value:.12g}"
    return f" Default: `{word}`."


def test_every_field_has_its_row_and_no_other() -> None:
    wanted = {
        path: f"| `{path}` | {holds(field)} | {field.about}{STATUS[field.status]}{default(field)} |"
        for path, field in fields(DOCUMENT, "")
    }
    tables = re.findall(r"^\| field \| holds \| meaning \|\n\| --- \| --- \| --- \|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert sorted(rows) == sorted(wanted.values())


def test_the_schema_describes_every_field() -> None:
    def walk(part: object) -> Iterator[tuple[str, object]]:
        if isinstance(part, dict):
            for name, value in (part.get("properties") or {}).items():
                yield name, value
            for keyword, value in part.items():
                if keyword != "if":  # a condition describes nothing
                    yield from walk(value)
        elif isinstance(part, list):
            for value in part:
                yield from walk(value)

    described = [
        (name, value) for name, value in walk(schema()) if "type" in value or "anyOf" in value or "enum" in value
    ]
    assert {path.rpartition(".")[2] for path, _field in fields(DOCUMENT, "")} == {name for name, _value in described}
    assert [name for name, value in described if not value.get("description")] == []


def test_the_limits_are_the_real_ones() -> None:
    for limit in (f"{MAX_BYTES // 1024} KiB", f"| {MAX_FILES} |", f"| {MAX_DEPTH} levels |", f"| {MAX_NODES:,} |"):
        assert limit in PAGE


@pytest.mark.parametrize("example", re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_the_examples_load(desk: Desk, example: str) -> None:
    entry = {
        "schemaVersion": "agent-routing/v1",
        "integrationId": "a.b",
        "transports": {"http": {"endpointEnv": "U"}},
        **YAML(typ="safe", pure=True).load(example),
    }
    lines = [f"{name}: {json_text(value)}" for name, value in entry.items()]
    assert desk.load_text("\n".join(lines)).errors == ()


def json_text(value: object) -> str:
    import json

    return json.dumps(value)


@pytest.mark.parametrize(
    ("path", "field"), list(fields(DOCUMENT, "")), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_example_in_advice_is_yaml(path: str, field: Field) -> None:
    assert YAML(typ="safe", pure=True).load(field.example) is not None
