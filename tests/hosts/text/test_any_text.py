"""Whatever stands in a file: it is read or called damaged, changed as asked or left alone. Nothing else ever happens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.text.samples import edits

from interlock.hosts.place import Format
from interlock.hosts.text.document import Damaged
from interlock.hosts.text.editing import edited, parsed
from interlock.hosts.writing import REMOVE, Edit, Json, _Remove

_JSON = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    '"m"',
    '"x"',
    "1",
    "null",
    "//",
    "/*",
    "*/",
    "\n",
    "\r",
    "\t",
    " ",
    "\\",
    '"',
    "'",
    "\u2028",
]
_TOML = [
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "m",
    "x",
    '"',
    '"""',
    "'",
    "'''",
    "1",
    "-",
    ":",
    "#",
    "\n",
    "\r\n",
    " ",
    "\\",
]
_YAML = [
    "m",
    "x",
    ":",
    ": ",
    "- ",
    "-",
    "  ",
    "\n",
    "\r\n",
    "#",
    " #",
    "{",
    "}",
    "[",
    "]",
    ",",
    "|",
    ">",
    "&a",
    "*a",
    "!t",
    "? ",
    '"',
    "'",
    "---",
    "...",
]
_SHAPED: dict[Format, list[str]] = {
    "jsonc": ['{"m": {', '}}', '"x": ', "// c\n", "/* c */", '"y": 1', ",", "\n", "  ", "[", "]", "{", "}"],
    "toml": ["[m]\n", "[m.x]\n", "m.x = 1\n", "m = {", "}", "x = 1", ", ", "\n", "# c\n", "y = [\n", "1,\n", "]", "[[m.z]]\n", "  "],
    "yaml": ["m:\n", "m: ", "  x: 1\n", "  x:\n", "    y: 1\n", "  - x\n", "{x: 1}", "{", "}", "# c\n", "\n", "  z: |\n", "     t\n"],
}  # fmt: skip
_ENDS: dict[Format, list[str]] = {"jsonc": _JSON, "toml": _TOML, "yaml": _YAML}


@pytest.mark.parametrize("format", ["jsonc", "toml", "yaml"])
@pytest.mark.parametrize("value", [{"a": "b", "c": [1]}, [1, "a"], "t", REMOVE])
@given(data=st.data())
def test_it_is_changed_as_asked_or_refused(format: Format, value: Json | _Remove, data: st.DataObject) -> None:
    pieces = data.draw(st.sampled_from([_SHAPED[format], _ENDS[format], [*_SHAPED[format], *_ENDS[format]]]))
    text = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=14)))
    wanted = edits(format, Edit(("m", "x"), value))
    try:
        after = edited(text.encode(), wanted)
    except Damaged:
        return
    found = parsed(after, wanted).value
    assert isinstance(found, dict)
    if value is REMOVE:
        assert "x" not in (found.get("m") or {})
    else:
        assert found["m"]["x"] == value
    assert edited(after, wanted) == after


@pytest.mark.parametrize("format", ["jsonc", "toml", "yaml"])
@given(content=st.binary(max_size=30))
def test_any_bytes(format: Format, content: bytes) -> None:
    try:
        document = parsed(content, edits(format))
    except Damaged as damaged:
        assert damaged.why  # noqa: PT017 - either is right
        return
    assert all(line > 0 and column > 0 for line, column in document.spots.values())
