"""What a host says goes to its entries: connected, tools, and each difference with its reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import TINY, checked, machine, servers

from interlock.hosts.adapter import CallableNames
from interlock.hosts.asked import ask_all, put
from interlock.hosts.fact import Fact
from interlock.hosts.inventory import Inventory
from interlock.hosts.oracles.asked import Asked, OracleSays, Says
from interlock.hosts.reading import Reading

HOST = replace(TINY, id="gemini-cli", names=Fact(CallableNames(form="{server}_{tool}", clash="last"), "O"))


def _reading(tmp_path: Path, names: tuple[str, ...] = ("one",)) -> Reading:
    made = machine(tmp_path)
    servers(made, {name: {"command": f"run-{name}"} for name in names})
    return checked(made, HOST)


def _asked(**servers: OracleSays) -> Asked:
    return Asked(host="gemini-cli", command=("gemini", "mcp", "list"), live=True, servers=servers)


@pytest.mark.parametrize(
    ("state", "connected"), [("connected", True), ("failed", False), ("enabled", None), ("needs-login", None)]
)
def test_only_a_host_that_tried_says_connected(tmp_path: Path, state: Says, connected: bool | None) -> None:
    reading = _reading(tmp_path)
    put(reading, _asked(one=OracleSays(state=state)))
    assert reading.declarations[0].connected is connected
    assert [each.code for each in reading.declarations[0].problems] == []


def test_a_difference_is_told_with_both_sides(tmp_path: Path) -> None:
    reading = _reading(tmp_path)
    put(reading, _asked(one=OracleSays(state="disabled", detail="excluded")))
    (problem,) = reading.declarations[0].problems
    assert (problem.code, problem.severity) == ("host-disagrees", "warning")
    assert "effective (only-one)" in problem.seen
    assert "`gemini mcp list` says disabled: excluded." in problem.seen


def test_a_server_of_no_file_is_told_too(tmp_path: Path) -> None:
    reading = _reading(tmp_path)
    put(reading, _asked(one=OracleSays(state="connected"), two=OracleSays(state="connected")))
    (problem,) = reading.problems
    assert problem.code == "host-disagrees"
    assert "also has `two`" in problem.seen


def test_a_host_that_is_not_there_is_told_and_changes_nothing(tmp_path: Path) -> None:
    reading = _reading(tmp_path)
    put(reading, Asked(host="gemini-cli", trouble="`gemini` is not installed", partial=True))
    assert [(each.code, each.seen) for each in reading.problems] == [
        ("host-not-asked", "Tiny: `gemini` is not installed")
    ]
    assert reading.declarations[0].connected is None


def test_a_host_that_is_not_installed_is_no_fault(tmp_path: Path) -> None:
    reading = _reading(tmp_path)
    put(reading, Asked(host="gemini-cli", trouble="`gemini` is not on the PATH", partial=True, installed=False))
    assert [(each.code, each.severity, each.seen) for each in reading.problems] == [
        ("host-not-asked", "note", "Tiny could not be asked: `gemini` is not on the PATH.")
    ]


def test_a_host_that_refuses_its_files_is_a_problem(tmp_path: Path) -> None:
    reading = _reading(tmp_path)
    put(reading, Asked(host="gemini-cli", command=("gemini",), trouble="bad settings", refuses=True))
    assert [(each.code, each.severity) for each in reading.problems] == [("host-refuses", "problem")]
    assert [each.code for each in reading.declarations[0].problems] == ["host-disagrees"]


def test_what_the_host_wrote_and_remarked_is_told(tmp_path: Path) -> None:
    reading = _reading(tmp_path)
    asked = _asked(one=OracleSays(state="connected"))
    asked.wrote, asked.notes = ["/home/ada/.tiny/mcp.json"], ["conflicting scopes"]
    put(reading, asked)
    assert [each.code for each in reading.problems] == ["host-wrote", "host-says"]


def test_with_the_tools_known_names_are_told_exactly(tmp_path: Path) -> None:
    reading = _reading(tmp_path, ("a.b", "a_b"))
    assert {each.code for each in reading.declarations[0].problems} == {"name-collision", "name-not-portable"}
    put(reading, _asked(**{
        "a.b": OracleSays(state="connected", tools=("x",)), "a_b": OracleSays(state="connected", tools=("y",)),
    }))  # fmt: skip
    assert [each.tools for each in reading.declarations] == [("x",), ("y",)]
    assert {each.code for each in reading.declarations[0].problems} == {"name-not-portable"}


def test_only_hosts_with_entries_and_a_command_are_asked(tmp_path: Path) -> None:
    made = machine(tmp_path)
    servers(made, {"one": {"command": "x"}})
    silent = checked(made, replace(TINY, id="zed"))
    empty = checked(machine(tmp_path / "other"), HOST)
    asked = []

    def ask(reading: Reading, seconds: float) -> Asked:
        asked.append((reading.adapter.id, seconds))
        return _asked(one=OracleSays(state="connected"))

    ask_all(Inventory(made, [checked(made, HOST), silent, empty]), 5.0, ask)
    assert asked == [("gemini-cli", 5.0)]
