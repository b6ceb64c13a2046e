"""Switches and fields that the host does not read, and keys that it does not start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import FIELDS, NOTHING_KNOWN, TINY, checked, codes, machine, problems, servers

from interlock.hosts.adapter import Adapter
from interlock.hosts.fact import Fact, unknown

OURS = {"switch-ignored", "field-ignored"}
NO_SWITCH = replace(
    TINY, switch=unknown(), no_switch="Remove it with `tiny remove`.", fields=FIELDS - {"enabled"},
)  # fmt: skip
NAMES = {"name-never-starts", "name-reserved", "name-not-portable"}


@pytest.mark.parametrize(
    ("entry", "adapter", "expected"),
    [
        ({"command": "x", "disabled": True}, TINY, {"switch-ignored"}),
        ({"command": "x", "disabled": False}, TINY, set()),
        ({"command": "x", "enabled": False}, TINY, set()),
        ({"command": "x", "enabled": True}, NO_SWITCH, set()),
        ({"command": "x", "enabled": False, "disabled": True}, NO_SWITCH, {"switch-ignored"}),
        ({"command": "x", "disabled": True}, NOTHING_KNOWN, set()),
        ({"command": "x", "alwaysAllow": ["a"]}, TINY, {"field-ignored"}),
        ({"command": "x", "$schema": "x", "_comment": "y", "description": "z"}, TINY, set()),
        ({"command": "x", "alwaysAllow": ["a"]}, NOTHING_KNOWN, set()),
    ],
)
def test_fields(tmp_path: Path, entry: dict[str, object], adapter: Adapter, expected: set[str]) -> None:
    assert codes(machine(tmp_path), entry, adapter) & OURS == expected


def test_it_still_starts(tmp_path: Path) -> None:
    (found,) = [
        each for each in problems(machine(tmp_path), {"command": "x", "disabled": True}, NO_SWITCH) if each.code in OURS
    ]
    assert found.seen == "`disabled: true` is ignored: the server STILL STARTS."
    assert (found.severity, found.todo, found.field) == ("problem", "Remove it with `tiny remove`.", "disabled")
    (other,) = [each for each in problems(machine(tmp_path), {"command": "x", "disabled": True}) if each.code in OURS]
    assert other.todo == "Write `enabled` = false instead."


def test_where_nobody_has_tried_it_is_said_so(tmp_path: Path) -> None:
    untried = replace(NO_SWITCH, switch=unknown('an entry with `"disabled": true`: does the server start?'))
    (found,) = [
        each for each in problems(machine(tmp_path), {"command": "x", "disabled": True}, untried) if each.code in OURS
    ]
    assert found.seen == "`disabled: true` is no field that Tiny documents: the server may STILL START."
    assert (found.severity, found.field) == ("warning", "disabled")
    assert found.todo == (
        "Remove the entry, or let Interlock stand there and say `enabled: false` in its manifest. Remove it with `tiny remove`."
    )


def test_what_to_do_names_the_server(tmp_path: Path) -> None:
    named = replace(NO_SWITCH, no_switch="Run `tiny remove NAME`.")
    (found,) = [
        each for each in problems(machine(tmp_path), {"command": "x", "disabled": True}, named) if each.code in OURS
    ]
    assert found.todo == "Run `tiny remove one`."


def test_a_field_of_another_host_is_left_to_it_in_a_file_that_both_read(tmp_path: Path) -> None:
    shared = replace(TINY, places=tuple(replace(each, shared=True) for each in TINY.places))
    entry = {"command": "x", "alwaysAllow": ["a"], "disabled": True}
    assert codes(machine(tmp_path), entry, shared) & OURS == {"switch-ignored"}
    assert codes(machine(tmp_path), entry, TINY) & OURS == {"switch-ignored", "field-ignored"}


def test_what_is_off_by_the_right_field_too_only_gets_a_note(tmp_path: Path) -> None:
    found = problems(machine(tmp_path), {"command": "x", "disabled": True, "enabled": False})
    assert [each.severity for each in found if each.code == "switch-ignored"] == ["note"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("issues", set()),
        ("issues-2", set()),
        ("my server", {"name-never-starts"}),
        ("my.server", {"name-never-starts"}),
        ("workspace", {"name-reserved"}),
        ("Issues", {"name-not-portable"}),
        ("my_server", {"name-not-portable"}),
    ],
)
def test_names(tmp_path: Path, name: str, expected: set[str]) -> None:
    host = replace(TINY, server_names=Fact("^[A-Za-z0-9_-]+$", "O"), reserved=frozenset(("workspace",)))
    made = machine(tmp_path)
    servers(made, {name: {"command": "x"}})
    (declaration,) = checked(made, host).declarations
    assert {each.code for each in declaration.problems} & NAMES == expected


def test_the_letter_that_keeps_it_from_starting_is_named(tmp_path: Path) -> None:
    host = replace(TINY, server_names=Fact("^[A-Za-z0-9_-]+$", "O"))
    made = machine(tmp_path)
    servers(made, {"my server.v2": {"command": "x"}})
    (declaration,) = checked(made, host).declarations
    (found,) = [each for each in declaration.problems if each.code in NAMES]
    assert found.seen == "Tiny never starts a server of this name, because of a space, `.`."
