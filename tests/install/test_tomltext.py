"""One table of a TOML file is added or changed; comments, order and all else stay."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.install.jsontext import Damaged
from interlock.install.tomltext import put

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_ENTRIES = st.fixed_dictionaries({"command": _TEXTS, "args": st.lists(_TEXTS), "enabled": st.booleans()})

_FILE = """# mine
model = "x"  # the good one

[mcp_servers.other]
command = "npx"
args = ["-y",
  "[thing]"]

[mcp_servers.other.env]
A = "1"

# about the last one
[tui]
theme = "dark"
"""


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True), _ENTRIES, _ENTRIES)
def test_an_entry_is_added_and_then_changed(name: str, entry: dict[str, object], later: dict[str, object]) -> None:
    if name == "other":
        return
    added = put(_FILE, ("mcp_servers", name), entry)
    assert added.startswith(_FILE)
    assert tomllib.loads(added)["mcp_servers"][name] == entry
    changed = put(added, ("mcp_servers", name), later)
    before = tomllib.loads(_FILE)
    assert tomllib.loads(changed) == {**before, "mcp_servers": {**before["mcp_servers"], name: later}}
    assert changed.startswith(_FILE)


@given(st.text())
def test_any_text_is_taken_or_refused(text: str) -> None:
    try:
        changed = put(text, ("mcp_servers", "x"), {"command": "a"})
    except Damaged:
        return
    assert tomllib.loads(changed.removeprefix("\ufeff"))["mcp_servers"]["x"]["command"] == "a"


def test_what_a_person_added_to_the_entry_stays() -> None:
    text = '[mcp_servers.x]\n# slow\nstartup_timeout_sec = 20\ncommand = "old"\n[mcp_servers.x.env]\nB = "2"\n'
    changed = put(text, ("mcp_servers", "x"), {"command": "new", "args": ["a"]})
    assert changed == (
        '[mcp_servers.x]\nargs = ["a"]\n# slow\nstartup_timeout_sec = 20\ncommand = "new"\n[mcp_servers.x.env]\nB = "2"\n'
    )


def test_line_endings_stay() -> None:
    changed = put('a = 1\r\n', ("mcp_servers", "x"), {"command": "c"})  # fmt: skip
    assert changed == 'a = 1\r\n\r\n[mcp_servers.x]\r\ncommand = "c"\r\n'


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = 3",
        'mcp_servers = { other = { command = "a" } }',
        '[mcp_servers]\nx = { command = "a" }',
        'mcp_servers.x.command = "a"',
        '[mcp_servers.x]\ncommand = """\na"""\n',
        "[mcp_servers.x\n",
        "a = 1\na = 2\n",
    ],
)
def test_what_cannot_be_changed_safely_is_refused(text: str) -> None:
    with pytest.raises(Damaged):
        put(text, ("mcp_servers", "x"), {"command": "b"})
