"""The same server several times: across hosts, under two keys, and past Interlock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import TINY, checked, entry_of, machine, place, servers

from interlock.hosts.checks import duplicates, running
from interlock.hosts.checks.duplicates import identity
from interlock.hosts.entry import Entry
from interlock.hosts.reading import read

OTHER = replace(TINY, id="other", label="Other", places=(place("user", ".other/mcp.json"),))
NPX = {"command": "npx", "args": ["-y", "@scope/server@1.0.0"]}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (NPX, {"command": "npx", "args": ["@scope/server"]}, True),
        (NPX, {"command": "cmd", "args": ["/c", "npx", "-y", "@scope/server@2.0.0"]}, True),
        (NPX, {"command": "pnpm", "args": ["dlx", "@scope/server"]}, True),
        (NPX, {"command": "npx", "args": ["-y", "@scope/other"]}, False),
        ({"command": "npx", "args": ["-y", "fs", "/a"]}, {"command": "npx", "args": ["-y", "fs", "/b"]}, False),
        ({"command": "uvx", "args": ["mcp_time"]}, {"command": "uvx", "args": ["mcp-time==1.0"]}, True),
        (
            {"command": "docker", "args": ["run", "-e", "A", "a/b:1"]},
            {"command": "docker", "args": ["run", "a/b"]},
            True,
        ),
        ({"command": "/usr/bin/node", "args": ["s.js"]}, {"command": "node", "args": ["s.js"]}, True),
        ({"command": "node", "args": ["s.js"]}, {"command": "node", "args": ["t.js"]}, False),
        ({"url": "https://Example.com/mcp"}, {"url": "https://example.com/mcp/"}, True),
        ({"url": "https://example.com/mcp"}, {"url": "https://example.com/other"}, False),
        (
            {"url": "https://example.com/mcp"},
            {"command": "npx", "args": ["mcp-remote", "https://example.com/mcp"]},
            True,
        ),
        ({"url": "${URL}"}, {"url": "${URL}"}, False),
    ],
)
def test_what_is_the_same_server(one: Mapping[str, object], other: Mapping[str, object], same: bool) -> None:
    first, second = identity(entry_of(one)), identity(entry_of(other))
    assert (first is not None and first == second) is same


def _both(
    tmp_path: Path, one: Mapping[str, object], other: Mapping[str, object], name: str = "issues"
) -> list[list[str]]:
    made = machine(tmp_path)
    servers(made, {"issues": one})
    servers(made, {name: other}, "~/.other/mcp.json")
    readings = [read(TINY, made), read(OTHER, made)]
    running.run(readings)
    return [
        [problem.seen for problem in each.problems if problem.code == "duplicate-server"]
        for each in running.declared(readings)
    ]


@pytest.mark.parametrize(
    ("other", "name", "how"),
    [
        (NPX, "issues", "all say the same"),
        (NPX, "tickets", "they differ in name"),
        ({"command": "npx", "args": ["-y", "@scope/server@2.0.0"]}, "issues", "they differ in version"),
        ({**NPX, "env": {"A": "1"}}, "issues", "they differ in names of variables"),
        ({**NPX, "enabled": False}, "issues", "they differ in on or off"),
    ],
)
def test_across_hosts(tmp_path: Path, other: Mapping[str, object], name: str, how: str) -> None:
    assert _both(tmp_path, NPX, other, name) == [[f"Also in other; {how}."], [f"Also in tiny; {how}."]]


def test_one_entry_of_a_file_that_both_read_is_no_copy(tmp_path: Path) -> None:
    made = machine(tmp_path)
    servers(made, {"issues": NPX})
    servers(made, {"issues": NPX}, "~/.other/mcp.json")
    third = replace(OTHER, id="third", places=OTHER.places)
    readings = [read(TINY, made), read(OTHER, made), read(third, made)]
    running.run(readings)
    seen = [
        [problem.seen for problem in each.problems if problem.code == "duplicate-server"]
        for each in running.declared(readings)
    ]
    copies = "Also in tiny; all say the same."
    assert seen == [["Also in other, third; all say the same."], [copies], [copies]]


def test_different_values_are_told_without_them(tmp_path: Path) -> None:
    found = _both(tmp_path, {**NPX, "env": {"A": "wonder"}}, {**NPX, "env": {"A": "land"}})
    assert found[0] == ["Also in other; they differ in values of variables."]


def test_different_servers_are_none(tmp_path: Path) -> None:
    assert _both(tmp_path, NPX, {"command": "uvx", "args": ["mcp-time"]}) == [[], []]


def test_interlock_in_every_host_is_no_duplicate(tmp_path: Path) -> None:
    ours = {"command": "interlock", "args": ["connect", "--host", "tiny"]}
    assert _both(tmp_path, ours, ours) == [[], []]


@pytest.mark.parametrize(
    ("second", "found"),
    [
        (NPX, True),
        ({**NPX, "env": {"A": "1"}}, False),
        ({"command": "npx", "args": ["-y", "@scope/server@2.0.0"]}, False),
        ({**NPX, "enabled": False}, False),
    ],
)
def test_one_command_under_two_keys(tmp_path: Path, second: Mapping[str, object], found: bool) -> None:
    made = machine(tmp_path)
    servers(made, {"one": NPX, "two": second})
    said = [
        [each.seen for each in declaration.problems if each.code == "same-command-twice"]
        for declaration in checked(made).declarations
    ]
    assert said == ([["Exactly this also runs as `two`."], ["Exactly this also runs as `one`."]] if found else [[], []])


def test_one_key_in_two_scopes_is_no_second_server(tmp_path: Path) -> None:
    made = machine(tmp_path)
    servers(made, {"one": NPX})
    servers(made, {"one": NPX}, "/home/ada/shop/.tiny/mcp.json")
    codes = {problem.code for each in checked(made).declarations for problem in each.problems}
    assert "same-command-twice" not in codes


SERVED = {"npm-server": Entry(transport="stdio", command=("npx", "@scope/server@1.0.0"))}


@pytest.mark.parametrize(
    ("entries", "served", "expected"),
    [
        ({"interlock": {"command": "interlock", "args": ["connect"]}, "issues": NPX}, SERVED, ["issues"]),
        ({"interlock": {"command": "interlock", "args": ["connect"]}, "issues": NPX}, {}, []),
        ({"issues": NPX}, SERVED, []),
        ({"interlock": {"command": "interlock", "args": ["connect"], "enabled": False}, "issues": NPX}, SERVED, []),
        ({"interlock": {"command": "interlock", "args": ["connect"]}, "other": {"command": "uvx", "args": ["x"]}}, SERVED, []),
    ],
)  # fmt: skip
def test_past_interlock(
    tmp_path: Path, entries: Mapping[str, object], served: Mapping[str, Entry], expected: list[str]
) -> None:
    made = machine(tmp_path)
    servers(made, entries)
    found = duplicates.direct(running.subjects_of(read(TINY, made)), served)
    assert [(each.server, problem.code) for each, problem in found] == [(name, "also-direct") for name in expected]
