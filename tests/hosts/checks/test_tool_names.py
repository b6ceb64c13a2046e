"""Collisions and over-long names as problems of entries: exact where the tools are known, careful where they are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import NOTHING_KNOWN, TINY, checked, machine, servers

from interlock.hosts.adapter import CallableNames
from interlock.hosts.declaration import Declaration
from interlock.hosts.fact import Fact

FIRST = CallableNames(form="mcp__{server}__{tool}", limit=40, overflow="dropped", clash="first")
HASH = CallableNames(form="mcp__{server}__{tool}", limit=40, overflow="hash", clash="hash-both")
BARE = CallableNames(form="{server}_{tool}", limit=64, clash="prefix", bare=True)
ANNOUNCED = CallableNames(form="{server}_{tool}", limit=10, clash="number", announced=True)
OURS = {"name-collision", "name-too-long"}


def found(
    tmp_path: Path, rule: CallableNames | None, tools: Mapping[str, Sequence[str] | None], **more: bool
) -> list[tuple[str, str, str]]:
    """(server, code, severity)"""
    made = machine(tmp_path)
    servers(made, {name: {"command": f"run-{number}", **more} for number, name in enumerate(tools)})
    host = NOTHING_KNOWN if rule is None else replace(TINY, names=Fact(rule, "O"))

    def tools_of(declaration: Declaration) -> Sequence[str] | None:
        return tools[declaration.server or ""]

    reading = checked(made, host, tools_of=tools_of)
    return [
        (each.server or "", problem.code, problem.severity)
        for each in reading.declarations
        for problem in each.problems
        if problem.code in OURS
    ]


@pytest.mark.parametrize(
    ("rule", "tools", "expected"),
    [
        # Without tools
        (FIRST, {"a": None, "b": None}, []),
        (FIRST, {"my.srv": None, "my_srv": None}, [("my.srv", "name-collision", "warning"), ("my_srv", "name-collision", "warning")]),
        (HASH, {"my.srv": None, "my_srv": None}, [("my.srv", "name-collision", "note"), ("my_srv", "name-collision", "note")]),
        (FIRST, {"s" * 20: None}, [("s" * 20, "name-too-long", "warning")]),
        (FIRST, {"s" * 33: None}, [("s" * 33, "name-too-long", "problem")]),
        (FIRST, {"s" * 16: None}, []),
        (BARE, {"my.srv": None, "my_srv": None}, []),
        (ANNOUNCED, {"my.srv": None, "my_srv": None}, []),
        (None, {"my.srv": None, "my_srv": None}, []),
        # With them
        (FIRST, {"my.srv": ["a"], "my_srv": ["b"]}, []),
        (FIRST, {"my.srv": ["a"], "my_srv": ["a"]}, [("my.srv", "name-collision", "warning"), ("my_srv", "name-collision", "warning")]),
        (FIRST, {"a": ["b__c"], "a__b": ["c"]}, [("a", "name-collision", "warning"), ("a__b", "name-collision", "warning")]),
        (FIRST, {"a": ["x_y", "x.y"]}, [("a", "name-collision", "warning")]),
        (FIRST, {"s" * 20: ["short"]}, []),
        (FIRST, {"s" * 20: ["t" * 20]}, [("s" * 20, "name-too-long", "warning")]),
        (HASH, {"s" * 20: ["t" * 20]}, [("s" * 20, "name-too-long", "note")]),
    ],
)  # fmt: skip
def test_found(
    tmp_path: Path,
    rule: CallableNames | None,
    tools: Mapping[str, Sequence[str] | None],
    expected: list[tuple[str, str, str]],
) -> None:
    assert found(tmp_path, rule, tools) == expected


def test_what_is_off_meets_nobody(tmp_path: Path) -> None:
    assert found(tmp_path, FIRST, {"my.srv": None, "my_srv": None}, enabled=False) == []


def test_the_lost_one_is_named(tmp_path: Path) -> None:
    made = machine(tmp_path)
    servers(made, {"a": {"command": "x"}})
    reading = checked(made, replace(TINY, names=Fact(FIRST, "O")), tools_of=lambda _: ["x_y", "x.y", "t" * 40])
    seen = {each.code: each.seen for each in reading.declarations[0].problems}
    assert seen["name-collision"] == "`a/x_y` and `a/x.y` are both `mcp__a__x_y` on Tiny: `a/x.y` is lost."
    assert seen["name-too-long"] == f"1 tool is left out: `{'t' * 40}` makes 48 characters, Tiny takes 40."
