"""Changes that were put together into fewer come to the same value, and hundreds of new entries cost one reading of the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from interlock.hosts.place import Format
from interlock.hosts.text import editing, steps
from interlock.hosts.text.steps import Drop, Put
from interlock.hosts.writing import Edit, FileEdits

NAMES = some.sampled_from(("a", "b", "c"))
VALUES = some.recursive(
    some.sampled_from((1, True, "x")), lambda inner: some.dictionaries(NAMES, inner, max_size=3), max_leaves=4
)
EDITS = some.lists(some.tuples(some.lists(NAMES, min_size=1, max_size=3), VALUES), max_size=8)


@given(VALUES, EDITS)
def test_the_same_value(start: object, wanted: list[tuple[list[str], object]]) -> None:
    value: object = {"top": start}
    changes: list[Put | Drop] = []
    for path, new in wanted:
        try:
            each = steps.steps(value, Edit(("top", *path), new), None)  # type: ignore[arg-type]
        except steps.Damaged:
            continue
        value = steps.applied(value, each)
        changes += each
    before = list(changes)
    fewer = steps.joined(changes)
    assert len(fewer) <= len(changes)
    assert steps.same(steps.applied({"top": start}, fewer), value)
    assert changes == before


@pytest.mark.parametrize(("format", "list_key"), [("json", None), ("toml", None), ("yaml", None), ("yaml", "name")])
def test_all_entries_of_a_new_file_are_one_change(
    format: Format, list_key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = steps.joined

    def counted(changes: list[Put | Drop]) -> list[Put | Drop]:
        made = real(changes)
        seen.append(len(made))
        return made

    monkeypatch.setattr(steps, "joined", counted)
    edits = tuple(Edit(("mcpServers", f"s{number}"), {"command": "node", "args": ["x"]}) for number in range(50))
    asked = FileEdits(file="", format=format, comments=True, edits=edits, list_key=list_key)
    after = editing.edited(b"", asked)
    assert seen == [1]
    assert editing.edited(after, asked) == after
