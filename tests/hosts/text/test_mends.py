"""Each fault that a parser or a host's rules name has a remedy of its own, with the line that it is in."""

from __future__ import annotations

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.reading import parse
from interlock.hosts.text.document import Damaged
from interlock.hosts.text.mends import mend

JSON = {
    "{\n'a': 1}": 'Write `"` for the single quotes in line 2.',
    '{\n"a": 1\n"b": 2}': "Write a comma before what stands in line 3, at the end of the member above.",
    '{\n"a": 1,,\n"b": 2}': "Remove the comma in line 2.",
    "{\n# one\n}": "Remove the comment in line 2.",
    "{\n/* one\n}": "Close the comment in line 2 with `*/`, or remove it.",
    '{\n<<<<<<< HEAD\n"a": 1\n=======\n>>>>>>> b\n}': (
        "Keep one of the two versions from line 2 on, and delete the lines with `<<<<<<<`, `=======` and `>>>>>>>`."
    ),
    '{\n"a": \u201cb\u201d}': 'Write `"` for the typographic quotation marks in line 2.',
    '{\n"a": "b}': "Write the quotation mark that is missing in line 2.",
    '{\n"a": "C:\\x"}': "Write `\\\\` for each backslash in line 2.",
    '{\n"a": "\t"}': "Write the tab or control character in line 2 as an escape such as `\\t`, or delete it.",
    "{\na: 1}": "Write the key in line 2 in double quotes.",
    '{\n"a" 1}': "Write a `:` after the key in line 2.",
    '{\n"a": True}': "Write it as JSON in line 2: `true`.",
    '{\n"a": b}': "Write the word in line 2 in double quotes.",
    '{\n"a": }': "Write the value that is missing in line 2.",
    '{\n"a": 1': "Write the closing bracket that is missing at the end of the file.",
    '{\n"a": 1}}': "Remove the bracket in line 2.",
    '{}\n{"a": 1}': "Remove everything from line 2 on, or put it inside of the first value.",
    '{\n"a": \u00a01}': "Delete the invisible character in line 2.",
}
TOML = {
    "[a]\nb: 1": "Write `=` for the colon in line 2.",
    "[a]\nb = 1\nb = 2": "Remove or rename the second one in line 3.",
    "[a]\nb = hello": "Put the text in line 2 in quotation marks; `true` and `false` are written small.",
    "[a]\n// one": "Begin the comment in line 2 with `#`.",
    '[a]\nb = "C:\\x"': "Write the text in line 2 in single quotes, or `\\\\` for each backslash.",
    "[a\nb = 1": "Write the `]` that is missing in line 1.",
}
YAML = {
    "a:\n\tb: 1": "Write spaces for the tab in line 2.",
    "a: b: c": "Indent line 1 as its neighbours, or put the text with the colon in quotation marks.",
    "a: 1\n---\nb: 2": "Remove everything from the `---` in line 2 on.",
}


@pytest.mark.parametrize(
    ("format", "text", "todo"),
    [(format, *each) for format, table in (("json", JSON), ("toml", TOML), ("yaml", YAML)) for each in table.items()],
)
def test_each_fault_has_a_remedy(format: str, text: str, todo: str) -> None:
    with pytest.raises(Damaged) as caught:
        parse(text.encode(), format)  # type: ignore[arg-type]
    assert mend(caught.value.why, caught.value.at[0] if caught.value.at else 0) == todo


def test_of_an_encoding() -> None:
    with pytest.raises(Damaged) as caught:
        parse("{}".encode("utf-16"), "json")
    assert mend(caught.value.why, 1) == "Save the file as UTF-8 (VS Code: Save with Encoding, `UTF-8`)."


LIBERTIES = {
    '{"mcpServers": {\n"a": {"command": "x"},\n}}': "Remove the comma in line 2.",
    '\ufeff{"mcpServers": {"a": {"command": "x"}}}': "Save the file as UTF-8 without a byte order mark",
}


@pytest.mark.parametrize(("text", "todo"), LIBERTIES.items())
def test_what_this_host_alone_refuses(tmp_path_factory: pytest.TempPathFactory, text: str, todo: str) -> None:
    on = fake.machine(tmp_path_factory.mktemp("on"))
    fake.put(on, on.user(".gemini", "settings.json"), text)
    (problem,) = {
        (each.code, each.todo) for one in fake.look("gemini-cli", on).declarations for each in one.problems
        if each.code == "file-unreadable"
    }  # fmt: skip
    assert problem[1].startswith(todo)


def test_what_nobody_foresaw_names_the_line() -> None:
    assert mend("something else", 7) == "Correct line 7."
    assert mend("something else", 0) == "Correct the file."
