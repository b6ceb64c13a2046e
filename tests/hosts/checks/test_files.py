"""A file's form and rights, and entries under a key that the host does not look under."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import NOTHING_KNOWN, TINY, checked, lay, machine, place

from interlock.hosts.adapter import Adapter
from interlock.hosts.checks import misplaced
from interlock.hosts.reading import read

PLAIN = '{"mcpServers": {"one": {"command": "x"}}}'
TWICE = '{"mcpServers": {\n "one": {"command": "x"},\n "one": {"command": "y"}}}'


@pytest.mark.parametrize(
    ("content", "adapter", "expected"),
    [
        (PLAIN, TINY, []),
        (PLAIN, NOTHING_KNOWN, []),
        ("\ufeff" + PLAIN, TINY, [("byte-order-mark", "note", 1)]),
        ("\ufeff" + PLAIN, NOTHING_KNOWN, [("byte-order-mark", "warning", 1)]),
        ("// why\n" + PLAIN, TINY, []),
        ("// why\n" + PLAIN, NOTHING_KNOWN, [("tolerance-unknown", "note", 1)]),
        ('{"mcpServers": {"one": {"command": "x"}},\n}', TINY, []),
        ('{"mcpServers": {"one": {"command": "x"}},\n}', NOTHING_KNOWN, [("tolerance-unknown", "note", 1)]),
        (TWICE, TINY, [("duplicate-key", "warning", 3)]),
        (TWICE, NOTHING_KNOWN, [("duplicate-key", "warning", 3)]),
        ('{"a": 1, "a": 2, "mcpServers": {"one": {"command": "x"}}}', TINY, []),
    ],
)
def test_form(tmp_path: Path, content: str, adapter: Adapter, expected: list[tuple[str, str, int]]) -> None:
    made = machine(tmp_path)
    lay(made, "~/.tiny/mcp.json", content)
    found = checked(made, adapter).problems
    assert [(each.code, each.severity, each.spot.line if each.spot else None) for each in found] == expected


@pytest.mark.skipif(os.name != "posix", reason="file modes of POSIX")
@pytest.mark.parametrize(
    ("mode", "folder", "found"),
    [(0o644, 0o755, False), (0o666, 0o755, True), (0o666, 0o700, False), (0o644, 0o777, True), (0o644, 0o1777, False)],
)
def test_who_may_write_it(tmp_path: Path, mode: int, folder: int, found: bool) -> None:
    made = machine(tmp_path)
    path = lay(made, "~/.tiny/mcp.json", PLAIN)
    for above in ("/home", "/home/ada"):
        os.chmod(made.real(above), 0o755)
    os.chmod(made.real(path), mode)
    os.chmod(made.real("/home/ada/.tiny"), folder)
    assert ["file-writable-by-others"] * found == [each.code for each in checked(made).problems]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ({"servers": {"one": {"command": "x"}, "two": {"url": "https://example.com"}}}, ["one", "two"]),
        ({"mcpServers": {}, "mcp_servers": {"one": {"command": "x"}}}, ["one"]),
        ({"mcpServers": {"one": {"command": "x"}}}, []),
        ({"servers": {}}, []),
        ({"servers": {"one": {"port": 1}}}, []),
        ({"extensions": {"recommended": True}}, []),
        ({"mcp": ["a"]}, []),
    ],
)
def test_the_wrong_key(tmp_path: Path, content: object, names: list[str]) -> None:
    made = machine(tmp_path)
    lay(made, "~/.tiny/mcp.json", json.dumps(content, indent=1))
    reading = read(TINY, made)
    before = len(reading.declarations)
    reading.declarations.extend(misplaced.declarations(reading))
    found = reading.declarations[before:]
    assert [each.server for each in found] == names
    for each in found:
        assert (each.state, each.decided_by.rule) == ("never-read", "wrong-file")
        assert each.spot.line > 1
        assert [problem.code for problem in each.problems] == ["wrong-table"]
        assert "looks under `mcpServers`" in each.problems[0].seen


def test_a_file_that_is_never_read_is_not_judged(tmp_path: Path) -> None:
    made = machine(tmp_path)
    lay(made, "~/.tiny/old.json", "\ufeff" + PLAIN)
    host = replace(TINY, places=(place("user", ".tiny/old.json", known=False),))
    reading = checked(made, host)
    assert reading.problems == []
    assert [each.state for each in reading.declarations] == ["never-read"]
