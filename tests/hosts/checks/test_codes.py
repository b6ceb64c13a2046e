"""The table of codes is complete: whatever any part of hosts reports stands in it, with what it means and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlock.hosts.checks.codes import CODES, Code, found

HOSTS = Path(__file__).parents[3] / "src" / "interlock" / "hosts"
_MADE = re.compile(r'(?<![.\w])(?:Problem|found)\(\s*"([a-z][a-z-]+)"')


def test_every_reported_code_is_in_the_table() -> None:
    used = {code for file in HOSTS.rglob("*.py") for code in _MADE.findall(file.read_text(encoding="utf-8"))}
    assert len(used) > 30
    assert used - set(CODES) == set()


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_each_says_what_it_means_and_what_to_do_in_one_line(name: str, code: Code) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)+", name)
    assert code.severity in ("problem", "warning", "note")
    for text in (code.means, code.todo):
        assert text
        assert "\n" not in text
        assert len(text) <= 120


def test_what_is_not_given_is_the_tables() -> None:
    made = found("plain-http", "seen")
    assert (made.severity, made.why, made.todo) == (*CODES["plain-http"][:2], CODES["plain-http"].todo)
    assert found("plain-http", "seen", severity="note", why="w", todo="t").severity == "note"
    with pytest.raises(KeyError):
        found("no-such-code", "seen")
