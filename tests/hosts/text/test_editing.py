"""Members put, replaced and removed in files as people write them: what comes out, to the byte."""

from __future__ import annotations

import pytest
from tests.hosts.text.samples import edits

from interlock.hosts.place import Format
from interlock.hosts.text.document import Damaged
from interlock.hosts.text.editing import edited, parsed
from interlock.hosts.writing import REMOVE, Edit, FileEdits, Json, _Remove

ONE: Json = {"command": "i", "args": ["connect"]}


def done(format: Format, text: str, *given: Edit, list_key: str | None = None) -> str:
    """Also: doing it again changes nothing."""
    wanted = edits(format, *given, list_key=list_key)
    after = edited(text.encode(), wanted)
    assert edited(after, wanted) == after
    return after.decode()


_PUT_JSON = [
    ("", '{\n  "m": {\n    "x": 1\n  }\n}\n'),
    (" \n", '{\n  "m": {\n    "x": 1\n  }\n}\n'),
    ("// mine\n", '// mine\n{\n  "m": {\n    "x": 1\n  }\n}\n'),
    ("{}", '{"m": {"x": 1}}'),
    ("{}\n", '{"m": {"x": 1}}\n'),
    ('{"a":1}', '{"a":1,"m":{"x":1}}'),
    ('{"a": 1, "m": {"y": 2}}', '{"a": 1, "m": {"y": 2, "x": 1}}'),
    ('{"m": {"y": 2,},}', '{"m": {"y": 2, "x": 1,},}'),
    ('{"m": null}', '{"m": {"x": 1}}'),
    ('\ufeff{\n\t"a": 1\n}', '\ufeff{\n\t"a": 1,\n\t"m": {\n\t\t"x": 1\n\t}\n}'),
    ('{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "m": {\r\n    "x": 1\r\n  }\r\n}\r\n'),
    ('{\n    "m": {}\n}', '{\n    "m": {\n        "x": 1\n    }\n}'),
    ('{\n  "m": {\n  }\n}', '{\n  "m": {\n    "x": 1\n  }\n}'),
    ('{\n  "m": {\n    // none yet\n  }\n}', '{\n  "m": {\n    "x": 1\n    // none yet\n  }\n}'),
    ('{\n  "m": { // none\n  }\n}', '{\n  "m": { // none\n    "x": 1\n  }\n}'),
    ('{\n  "m": {\n    "y": 2 // why\n  }\n}', '{\n  "m": {\n    "y": 2, // why\n    "x": 1\n  }\n}'),
    (
        '{\n  "m": {\n    "y": 2, // why\n    // end\n  }\n}',
        '{\n  "m": {\n    "y": 2, // why\n    "x": 1,\n    // end\n  }\n}',
    ),
    ('{\n  "m": {"y": 2} // on one line\n}', '{\n  "m": {"y": 2, "x": 1} // on one line\n}'),
    ('{\n  "m": {\n    "x": 0, // old\n    "y": 2\n  }\n}', '{\n  "m": {\n    "x": 1, // old\n    "y": 2\n  }\n}'),
]


@pytest.mark.parametrize(("text", "wanted"), _PUT_JSON)
def test_put_into_json(text: str, wanted: str) -> None:
    assert done("jsonc", text, Edit(("m", "x"), 1)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"m": {"x": 1}}', '{"m": {}}'),
        ('{"m": {"x": 1, "y": 2}}', '{"m": {"y": 2}}'),
        ('{"m": {"y": 2, "x": 1}}', '{"m": {"y": 2}}'),
        ('{"m": {"y": 2, "x": 1,}}', '{"m": {"y": 2,}}'),
        ('{\n  "m": {\n    "x": 1\n  }\n}', '{\n  "m": {}\n}'),
        ('{\n  "m": {\n    "x": 1,\n    "y": 2\n  }\n}', '{\n  "m": {\n    "y": 2\n  }\n}'),
        ('{\r\n  "m": {\r\n    "y": 2,\r\n    "x": 1\r\n  }\r\n}', '{\r\n  "m": {\r\n    "y": 2\r\n  }\r\n}'),
        ('{\n  "m": {\n    "y": 2,\n    "x": 1,\n  }\n}', '{\n  "m": {\n    "y": 2,\n  }\n}'),
        (
            '{\n  "m": {\n    "y": 2, // two\n    // about x\n    "x": 1 // one\n    // end\n  }\n}',
            '{\n  "m": {\n    "y": 2 // two\n    // about x\n    // one\n    // end\n  }\n}',
        ),
        (
            '{\n  "m": {\n    "x": 1 /* a */, // b\n    "y": 2\n  }\n}',
            '{\n  "m": {\n     /* a */ // b\n    "y": 2\n  }\n}',
        ),
        ('{"a": 1}', '{"a": 1}'),
        ('{"m": null}', '{"m": null}'),
    ],
)
def test_remove_from_json(text: str, wanted: str) -> None:
    assert done("jsonc", text, Edit(("m", "x"), REMOVE)) == wanted


_INSIDE = """{
    "servers": {
        // mine
        "i": {
            "args": ["a", /* two */ "b"], // odd
            "url": "https://x.example/?a=//b",
            "command": "old",
        },
    },
    "other": [1,2,
      3]
}
"""


def test_inside_of_an_entry_only_what_differs_changes() -> None:
    after = done("jsonc", _INSIDE, Edit(("servers", "i"), {"command": "new", "args": ["a", "b", "c"], "on": True}))
    assert after == _INSIDE.replace('"b"]', '"b", "c"]').replace('"old",', '"new",\n            "on": true,').replace(
        '            "url": "https://x.example/?a=//b",\n', ""
    )
    kept = done("jsonc", _INSIDE, Edit(("servers", "i"), {"command": "new"}, keep=True))
    assert kept == _INSIDE.replace('"old"', '"new"')


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ('["a"]', ["a", "b"], '["a", "b"]'),
        ('["a", "b", "c"]', ["a", "c"], '["a", "c"]'),
        ('["a", "b"]', ["b", "c"], '["b", "c"]'),
        ('["a"]', ["b"], '["b"]'),
        ('["a"]', [], "[]"),
        ("[]", ["a"], '["a"]'),
        ('[\n  "a", // first\n  "b"\n]', ["a"], '[\n  "a" // first\n]'),
    ],
)
def test_lists_keep_what_stays(old: str, new: Json, wanted: str) -> None:
    assert done("jsonc", f'{{"l": {old}}}', Edit(("l",), new)) == f'{{"l": {wanted}}}'


_PUT_TOML = [
    ("", '[m.x]\ncommand = "i"\nargs = ["connect"]\n'),
    ("a = 1", 'a = 1\n\n[m.x]\ncommand = "i"\nargs = ["connect"]'),
    ("# end\r\n", '# end\r\n\r\n[m.x]\r\ncommand = "i"\r\nargs = ["connect"]\r\n'),
    (
        "[m.y]\nk = 1\n\n# about z\n[z]\n",
        '[m.y]\nk = 1\n\n[m.x]\ncommand = "i"\nargs = ["connect"]\n\n# about z\n[z]\n',
    ),
    (
        "[m.y]\nk = 1\n# a = 2\n\n# about z\n[z]\n",
        '[m.y]\nk = 1\n# a = 2\n\n[m.x]\ncommand = "i"\nargs = ["connect"]\n\n# about z\n[z]\n',
    ),
    (
        "[m.y]\nk = 1\n# about z\n[z]\n",
        '[m.y]\nk = 1\n\n[m.x]\ncommand = "i"\nargs = ["connect"]\n# about z\n[z]\n',
    ),
    ("m = {}\n", 'm = { x = { command = "i", args = ["connect"] } }\n'),
    ("m = {y = 1}\n", 'm = {y = 1, x = { command = "i", args = ["connect"] }}\n'),
    ("m.y.k = 1\n", 'm.y.k = 1\nm.x = { command = "i", args = ["connect"] }\n'),
    ("[m]\ny.k = 1\n[z]\n", '[m]\ny.k = 1\n\n[m.x]\ncommand = "i"\nargs = ["connect"]\n[z]\n'),
    (
        '[m.x]\n# slow\ncommand = "old" # why\nargs = [\n  "connect", # this\n]\n',
        '[m.x]\n# slow\ncommand = "i" # why\nargs = [\n  "connect", # this\n]\n',
    ),
    (
        '[m.x]\ncommand = "i"\nt = 1\n[m.x.env]\nA = "1"\n[z]\n',
        '[m.x]\ncommand = "i"\nargs = ["connect"]\n[z]\n',
    ),
]


@pytest.mark.parametrize(("text", "wanted"), _PUT_TOML)
def test_put_into_toml(text: str, wanted: str) -> None:
    assert done("toml", text, Edit(("m", "x"), ONE)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('a = 1\n\n[m.x]\nk = 1\n\n[m.x.env]\nA = "1"\n\n[z]\n', "a = 1\n\n[z]\n"),
        ("[m.x]\nk = 1\n", ""),
        ("[z]\n# about x\n[m.x]\nk = 1\n# about y\n[m.y]\n", "[z]\n# about x\n# about y\n[m.y]\n"),
        ("[m.x]\nk = 1\n[z]\n[m.x.env]\nA = 1\n", "[z]\n"),
        ("m = { x = 1, y = 2 }\n", "m = { y = 2 }\n"),
        ("m = { y = 2, x = 1 }\n", "m = { y = 2 }\n"),
        ("[m]\nx.a = 1\ny = 2\nx.b = 3\n", "[m]\ny = 2\n"),
        ("[m]\r\nx = 1 # why\r\ny = 2", "[m]\r\ny = 2"),
        ("a = 1\n[m]\nx = 1", "a = 1\n[m]"),
    ],
)
def test_remove_from_toml(text: str, wanted: str) -> None:
    assert done("toml", text, Edit(("m", "x"), REMOVE)) == wanted


_PUT_YAML = [
    ("", "m:\n  x:\n    command: i\n    args:\n      - connect\n"),
    ("# mine\n", "# mine\nm:\n  x:\n    command: i\n    args:\n      - connect\n"),
    ("---\n", "---\nm:\n  x:\n    command: i\n    args:\n      - connect\n"),
    ("a: 1", "a: 1\nm:\n  x:\n    command: i\n    args:\n      - connect"),
    ("m: # none\n", "m: # none\n  x:\n    command: i\n    args:\n      - connect\n"),
    ("m: {} # none\r\nz: 1\r\n", "m: # none\r\n  x:\r\n    command: i\r\n    args:\r\n      - connect\r\nz: 1\r\n"),
    (
        "m:\n  y:\n    a: 1\n    # b: 2\n  # about more\nz: 1\n",
        "m:\n  y:\n    a: 1\n    # b: 2\n  x:\n    command: i\n    args:\n      - connect\n  # about more\nz: 1\n",
    ),
    ("m: {y: 1}\n", "m: {y: 1, x: {command: i, args: [connect]}}\n"),
    (
        "m:\n    y:\n        t: |\n          a\n\n\n# about z\nz: 1\n",
        "m:\n    y:\n        t: |\n          a\n    x:\n      command: i\n      args:\n        - connect\n\n\n# about z\nz: 1\n",
    ),
    (
        "m:\n  x:\n    args: [connect] # this\n    command:   old # why\n",
        "m:\n  x:\n    args: [connect] # this\n    command: i # why\n",
    ),
]


@pytest.mark.parametrize(("text", "wanted"), _PUT_YAML)
def test_put_into_yaml(text: str, wanted: str) -> None:
    assert done("yaml", text, Edit(("m", "x"), ONE)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("m:\n  x: 1\n", "m: {}\n"),
        ("m: # mine\n  x: 1 # one\nz: 1\n", "m: {} # mine\nz: 1\n"),
        ("m:\n  # about x\n  x:\n    a: 1\n\n  # about y\n  y: 2\n", "m:\n  # about x\n\n  # about y\n  y: 2\n"),
        ("m:\n  y: 2\n  x: |\n    a\n\n    b\n", "m:\n  y: 2\n"),
        ("m: {x: 1, y: 2}\n", "m: {y: 2}\n"),
        ("m: {y: 2, x: 1}", "m: {y: 2}"),
        ("m:\r\n  y: 2\r\n  x: 1", "m:\r\n  y: 2"),
    ],
)
def test_remove_from_yaml(text: str, wanted: str) -> None:
    assert done("yaml", text, Edit(("m", "x"), REMOVE)) == wanted


@pytest.mark.parametrize(
    ("text", "value", "wanted"),
    [
        ("", ONE, "m:\n  - name: x\n    command: i\n    args:\n      - connect\n"),
        ("m: []\n", {"a": 1}, "m:\n  - name: x\n    a: 1\n"),
        (
            "m:\n- name: y\n  a: 1 # one\n\n# end\n",
            {"a": 2},
            "m:\n- name: y\n  a: 1 # one\n- name: x\n  a: 2\n\n# end\n",
        ),
        ("m:\n  - name: x\n    a: 1 # one\n  - name: y\n", {"a": 2}, "m:\n  - name: x\n    a: 2 # one\n  - name: y\n"),
        ("m:\n  - name: y\n  # about x\n  - name: x\n    a: 1\n", REMOVE, "m:\n  - name: y\n  # about x\n"),
        ("m:\n  - name: x\n    a: 1\n  - name: y\n", REMOVE, "m:\n  - name: y\n"),
        ("m:\n  -\n    name: x\n", REMOVE, "m: []\n"),
        ("m: [{name: y}, {name: x}]\n", REMOVE, "m: [{name: y}]\n"),
        ("m:\n  - name: y\n", REMOVE, "m:\n  - name: y\n"),
    ],
)
def test_entries_in_a_list_of_maps(text: str, value: Json | _Remove, wanted: str) -> None:
    assert done("yaml", text, Edit(("m", "x"), value), list_key="name") == wanted


_TEXTS = [
    *(
        "yes",
        "No",
        "",
        "1",
        "1e3",
        "a: b",
        "# c",
        "- x",
        "~",
        "null",
        "{",
        "a\nb",
        "\u2028",
        "é",
        "ключ",
        "'",
        "\\",
        "\x7f",
    ),
    *("\U0001f600", "@x", "!t", "*a", "0x1f", "2026-01-01", " x ", "${A}", "$HOME", "a,b", "x]", "%a", "`", "|", "? a"),
]


@pytest.mark.parametrize("text", _TEXTS)
@pytest.mark.parametrize(
    ("format", "before"),
    [
        ("jsonc", ""),
        ("jsonc", "{}"),
        ("toml", ""),
        ("toml", "m = {}"),
        ("yaml", ""),
        ("yaml", "m: {}"),
        ("yaml", "m: {y: 1}"),
    ],
)
def test_any_text_comes_back_as_it_was(format: Format, before: str, text: str) -> None:
    entry: Json = {"command": text, "args": [text], "env": {text: text}}
    wanted = edits(format, Edit(("m", "x"), entry))
    after = edited(before.encode(), wanted)
    document = parsed(after, wanted)
    assert isinstance(document.value, dict)
    assert document.value["m"]["x"] == entry
    assert edited(after, wanted) == after


@pytest.mark.parametrize(
    ("format", "text", "words"),
    [
        ("jsonc", "[]", "does not hold an object"),
        ("jsonc", '{"m": []}', "m is no object"),
        ("jsonc", '{"m": {}, "m": {}}', "twice"),
        ("jsonc", '{"m": {"x": 1, "x": 2}}', "twice"),
        ("jsonc", '{"a": 1', "is not closed"),
        ("toml", "m = 1", "m is no object"),
        ("toml", "[[m]]", "m is no object"),
        ("toml", "[m", "not closed"),
        ("yaml", "- a", "does not hold an object"),
        ("yaml", "m: 1", "m is no object"),
        ("yaml", "m:\n  x: 1\nm:\n  x: 2", "twice"),
        ("yaml", "a: &a {y: 1}\nm: *a", "an alias"),
        ("yaml", "m: &a\n  y: 1\nb: *a", "change it by hand|changed safely"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(format: Format, text: str, words: str) -> None:
    with pytest.raises(Damaged, match=words):
        edited(text.encode(), edits(format, Edit(("m", "x"), 3)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n  "m": {} // why\n}', "line 2 has a comment"),
        ('{\n  "m": {},\n}', "line 2 has a comma after the last member"),
    ],
)
def test_a_liberty_that_the_host_does_not_take_is_a_damage(text: str, words: str) -> None:
    for edit in (Edit(("m", "x"), 1), Edit(("m", "x"), REMOVE)):
        with pytest.raises(Damaged, match=words):
            edited(text.encode(), FileEdits(file="/f", format="json", comments=False, edits=(edit,)))


def test_edits_come_one_after_another() -> None:
    given = [Edit(("m", "x"), 1), Edit(("m", "y"), 2), Edit(("m", "x"), REMOVE), Edit(("m", "y", "z"), 3)]
    with pytest.raises(Damaged, match="y is no object"):
        edited(b"{}", edits("jsonc", *given))
    assert edited(b"{}", edits("jsonc", *given[:3])) == b'{"m": {"y": 2}}'


@pytest.mark.parametrize("value", [1, 1.0, True])
def test_numbers_and_flags_are_not_the_same(value: Json) -> None:
    for format, text in (("jsonc", '{"m": %s}'), ("toml", "m = %s"), ("yaml", "m: %s")):
        for old in ("1", "1.0", "true"):
            after = edited((text % old).encode(), edits(format, Edit(("m",), value)))  # type: ignore[arg-type]
            assert after.decode() == text % {"1": "1", "1.0": "1.0", "True": "true"}[str(value)]
