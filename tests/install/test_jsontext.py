"""One member of a JSON file changes, and every other byte stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.install import jsontext
from interlock.install.jsontext import Damaged, parse, put

ENTRY = {"command": "/home/u/.interlock/bin/interlock", "args": ["bridge", "https://x.example/mcp"]}

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
_OBJECTS = st.dictionaries(st.text(), _VALUES, max_size=5)


@given(_OBJECTS, _OBJECTS, st.text(), st.sampled_from([None, 1, 2, 4, "\t"]), st.booleans())
def test_any_file_gets_exactly_the_entry(
    outer: dict[str, object], servers: dict[str, object], name: str, indent: int | str | None, there: bool
) -> None:
    if there:
        outer = {**outer, "mcpServers": servers}
    elif not isinstance(outer.get("mcpServers", {}), dict):
        return
    text = json.dumps(outer, indent=indent, ensure_ascii=False)
    changed = put(text, ("mcpServers", name), ENTRY, comments=False)
    held = outer.get("mcpServers", {})
    assert isinstance(held, dict)
    assert json.loads(changed) == {**outer, "mcpServers": {**held, name: ENTRY}}
    assert put(changed, ("mcpServers", name), ENTRY, comments=False) == changed or indent is None or not text.strip()


@given(_OBJECTS, st.text(st.characters(exclude_characters="*/\r\n", exclude_categories=["Cs"])))
def test_comments_and_trailing_commas_stay(outer: dict[str, object], words: str) -> None:
    outer.pop("servers", None)
    inner = json.dumps(outer, indent=2)
    text = f"// {words}\n" + inner[:-1].rstrip() + (", /* a, } */ \n" if outer else "") + "}\n// end"
    changed = put(text, ("servers", "x"), ENTRY, comments=True)
    assert parse(changed, comments=True) == {**outer, "servers": {"x": ENTRY}}
    assert changed.startswith(f"// {words}\n")
    assert changed.endswith("}\n// end")
    assert ("/* a, } */" in changed) == bool(outer)


@given(st.text(max_size=60))
def test_any_text_is_taken_or_refused(text: str) -> None:
    for comments in (True, False):
        try:
            changed = put(text, ("mcpServers", "x"), ENTRY, comments=comments)
        except Damaged:
            continue
        assert jsontext.parse(changed, comments=comments)["mcpServers"]["x"] == ENTRY  # type: ignore[index]


_KEPT = """{
    // my servers
    "mcpServers": {
        "one": {"command": "a",   "args": []},  // odd   spacing
        "two": {
            "url": "https://two.example/?a=//b"
        },
    },
    "other": [1,2,
      3]
}
"""


def test_where_it_goes_in_a_file_of_a_person() -> None:
    changed = put(_KEPT, ("mcpServers", "new"), {"url": "u"}, comments=True)
    wanted = _KEPT.replace(
        '        },\n    },\n    "other"',
        '        },\n        "new": {\n            "url": "u"\n        },\n    },\n    "other"',
    )
    assert changed == wanted


def test_only_the_value_of_an_entry_that_is_there_changes() -> None:
    changed = put(_KEPT, ("mcpServers", "one"), {"command": "b"}, comments=True)
    wanted = _KEPT.replace('{"command": "a",   "args": []}', '{\n            "command": "b"\n        }')
    assert changed == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", '{\n  "m": {\n    "x": 1\n  }\n}\n'),
        (" \n", '{\n  "m": {\n    "x": 1\n  }\n}\n'),
        ("{}", '{"m": {"x": 1}}'),
        ("{}\n", '{"m": {"x": 1}}\n'),
        ('{"a":1}', '{"a":1, "m": {"x": 1}}'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"m": {\n\t\t"x": 1\n\t}\n}'),
        ('{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "m": {\r\n    "x": 1\r\n  }\r\n}\r\n'),
        ('{\n  "m": {}\n}', '{\n  "m": {\n    "x": 1\n  }\n}'),
        ('{\n  "m": {\n  }\n}', '{\n  "m": {\n    "x": 1\n  }\n}'),
        ('{"m": {"x": 0}, "n": 2}', '{"m": {"x": 1}, "n": 2}'),
    ],
)
def test_it_looks_as_the_file_looks(text: str, wanted: str) -> None:
    assert put(text, ("m", "x"), 1, comments=False) == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "does not hold an object"),
        ('{"m": []}', '"m" is not an object'),
        ('{"m": {}, "m": {}}', "twice"),
        ('{"m": {"x": 1, "x": 2}}', "twice"),
        ('{"a": 1,}', "line 1"),
        ('{"a": 1 // why\n}', "comment in line 1"),
        ('{"a": "\n"}', "line 1"),
        ('\ufeff{"a": 1}', "byte order mark"),
        ('{"a":' * 100000, "nested|line 1"),
        ('{"a": 1', "line 1"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(text: str, words: str) -> None:
    with pytest.raises(Damaged, match=words):
        put(text, ("m", "x"), 1, comments=False)
