"""Which of several entries of one name a host runs, and what is said of the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.hosts import tiny_host as tiny

from interlock.hosts.adapter import Merge
from interlock.hosts.declaration import Declaration
from interlock.hosts.fact import Fact

Files = dict[str, str]


def files(user: dict[str, object], project: dict[str, object]) -> Files:
    return {
        tiny.USER: json.dumps({"mcpServers": user}, indent=1),
        tiny.PROJECT: json.dumps({"mcpServers": project}, indent=1),
    }


def of(declarations: list[Declaration], file: str, server: str = "a") -> Declaration:
    return next(each for each in declarations if each.file == file and each.server == server)


@pytest.mark.parametrize(
    ("merge", "user", "project"),
    [
        ("entry", "shadowed", "effective"),
        ("single", "shadowed", "effective"),
        ("loser-disabled", "disabled", "effective"),
        ("both", "effective", "effective"),
        ("fields", "shadowed", "effective"),
        (None, "shadowed", "effective"),
    ],
)
def test_the_rule_of_the_host(tmp_path: Path, merge: Merge | None, user: str, project: str) -> None:
    reading = tiny.look(tmp_path, tiny.host(merge), files({"a": {"command": "one"}}, {"a": {"command": "two"}}))
    assert tiny.states(reading) == {"a /u.json": user, "a /p.json": project}


@pytest.mark.parametrize("merge", ["entry", "loser-disabled"])
def test_a_loser_names_its_winner(tmp_path: Path, merge: Merge) -> None:
    reading = tiny.look(
        tmp_path, tiny.host(merge), files({"a": {"command": "one", "args": []}}, {"a": {"command": "two"}})
    )
    winner, loser = of(reading.declarations, tiny.PROJECT), of(reading.declarations, tiny.USER)
    assert (loser.decided_by.rule, loser.decided_by.spot) == ("higher-scope", winner.spot)
    assert loser.decided_by.by == 'project entry "a"'
    assert dict(loser.shadowed_fields) == {"command": winner.spot, "args": winner.spot}
    assert winner.decided_by.rule == "only-one"


def test_where_nobody_knows_the_rule_both_say_so(tmp_path: Path) -> None:
    reading = tiny.look(tmp_path, tiny.host(None), files({"a": {"command": "one"}}, {"a": {"command": "two"}}))
    assert [[problem.code for problem in each.problems] for each in reading.declarations] == [
        ["precedence-unknown"], ["precedence-unknown"],
    ]  # fmt: skip
    assert "/p.json:3" in of(reading.declarations, tiny.USER).problems[0].seen


def test_what_is_broken_hides_nothing(tmp_path: Path) -> None:
    reading = tiny.look(tmp_path, tiny.host(), files({"a": {"command": "one"}}, {"a": {"command": 1}}))
    assert tiny.states(reading) == {"a /u.json": "effective", "a /p.json": "broken"}


def test_a_winner_that_is_off_hides_the_others_all_the_same(tmp_path: Path) -> None:
    reading = tiny.look(
        tmp_path, tiny.host(), files({"a": {"command": "one"}}, {"a": {"command": "two", "enabled": False}})
    )
    assert tiny.states(reading) == {"a /u.json": "shadowed", "a /p.json": "disabled"}
    off = of(reading.declarations, tiny.PROJECT)
    assert off.decided_by.spot is not None
    assert (off.decided_by.rule, off.decided_by.spot.line) == ("entry-off", 5)


@pytest.mark.parametrize(("folds", "user"), [(True, "shadowed"), (False, "effective")])
def test_letter_case(tmp_path: Path, folds: bool, user: str) -> None:
    reading = tiny.look(
        tmp_path, tiny.host(folds_case=folds), files({"A": {"command": "one"}}, {"a": {"command": "two"}})
    )
    assert tiny.states(reading) == {"A /u.json": user, "a /p.json": "effective"}


def test_inside_of_one_place_the_first_path_wins(tmp_path: Path) -> None:
    place = tiny.place(tiny.USER, 20, find=lambda machine: ["/near.json", "/far.json"])
    one, two = (json.dumps({"mcpServers": {"a": {"command": word}}}) for word in ("one", "two"))
    reading = tiny.look(tmp_path, tiny.host(places=(place,)), {"/far.json": one, "/near.json": two})
    assert tiny.states(reading) == {"a /near.json": "effective", "a /far.json": "shadowed"}
    assert of(reading.declarations, "/far.json").decided_by.rule == "nearer-file"


def test_an_exclusive_file_takes_all_others_out(tmp_path: Path) -> None:
    host = tiny.host(places=(tiny.place(tiny.USER, 20), tiny.place(tiny.PROJECT, 90, exclusive=True)))
    both = files({"a": {"command": "one"}, "b": {"command": "one"}}, {"a": {"command": "two"}})
    reading = tiny.look(tmp_path, host, both)
    assert tiny.states(reading) == {"a /u.json": "blocked", "b /u.json": "blocked", "a /p.json": "effective"}
    blocked = of(reading.declarations, tiny.USER, "b").decided_by
    assert blocked.spot is not None
    assert (blocked.rule, blocked.spot.file) == ("policy", tiny.PROJECT)
    without = tiny.look(tmp_path / "other", host, {tiny.USER: both[tiny.USER]})
    assert tiny.states(without) == {"a /u.json": "effective", "b /u.json": "effective"}


def test_fields_are_put_over_each_other(tmp_path: Path) -> None:
    user: dict[str, object] = {
        "command": "one",
        "env": {"X": "u", "Y": "u"},
        "args": ["u"],
        "t": {"k": {"m": 1}},
        "s": "u",
    }
    project: dict[str, object] = {"env": {"X": "p"}, "args": ["p"], "t": {"k": {"n": 2}}, "s": {"now": "a table"}}
    reading = tiny.look(tmp_path, tiny.host("fields"), files({"a": user}, {"a": project}))
    winner, loser = of(reading.declarations, tiny.PROJECT), of(reading.declarations, tiny.USER)
    assert (winner.state, winner.entry, loser.state) == ("effective", None, "shadowed")
    assert winner.runs is not None
    assert winner.runs.command == ("one",)
    assert {name: spot.file for name, spot in winner.origins.items()} == {
        "command": tiny.USER, "env.X": tiny.PROJECT, "env.Y": tiny.USER, "args": tiny.PROJECT, "t.k.m": tiny.USER,
        "t.k.n": tiny.PROJECT, "s.now": tiny.PROJECT,
    }  # fmt: skip
    assert {name: spot.file for name, spot in loser.shadowed_fields.items()} == dict.fromkeys(
        ("env.X", "args", "s"), tiny.PROJECT
    )


def test_a_plain_value_over_a_table(tmp_path: Path) -> None:
    both = files({"a": {"command": "one", "env": {"X": "u"}}}, {"a": {"env": "none"}})
    winner = of(tiny.look(tmp_path, tiny.host("fields"), both).declarations, tiny.PROJECT)
    assert {name: spot.file for name, spot in winner.origins.items()} == {"command": tiny.USER, "env": tiny.PROJECT}


def test_right_apart_and_wrong_together(tmp_path: Path) -> None:
    both = files({"a": {"command": "one"}}, {"a": {"url": "https://a"}})
    reading = tiny.look(tmp_path, tiny.host("fields"), both)
    assert tiny.states(reading) == {"a /u.json": "broken", "a /p.json": "broken"}
    for each in reading.declarations:
        assert [problem.code for problem in each.problems] == ["merge-invalid"]
        assert each.decided_by.spot is not None
        assert (each.decided_by.spot.file, each.decided_by.spot.line) == (tiny.PROJECT, 4)


def test_a_fault_of_one_layer_is_said_of_that_layer(tmp_path: Path) -> None:
    both = files({"a": {"command": 7}}, {"a": {"enabled": True}})
    reading = tiny.look(tmp_path, tiny.host("fields"), both)
    problems = {problem.code: problem.spot for each in reading.declarations for problem in each.problems}
    assert set(problems) == {"entry-invalid"}
    spot = problems["entry-invalid"]
    assert spot is not None
    assert (spot.file, spot.line) == (tiny.USER, 4)


def test_a_fault_that_another_layer_replaces_is_none(tmp_path: Path) -> None:
    reading = tiny.look(tmp_path, tiny.host("fields"), files({"a": {"command": 7}}, {"a": {"command": "two"}}))
    assert tiny.states(reading) == {"a /u.json": "shadowed", "a /p.json": "effective"}
    assert [each.problems for each in reading.declarations] == [[], []]


def test_a_layer_alone_that_is_not_enough(tmp_path: Path) -> None:
    reading = tiny.look(tmp_path, tiny.host("fields"), files({"a": {"enabled": False}}, {}))
    (found,) = reading.declarations
    assert (found.state, found.decided_by.rule) == ("broken", "invalid-entry")


def test_the_hosts_own_rules_come_last(tmp_path: Path) -> None:
    seen: list[str] = []
    host = tiny.host(
        admit=lambda reading: seen.append("admit " + reading.declarations[0].state),
        judge=lambda reading: seen.append("judge " + reading.declarations[0].state),
    )
    tiny.look(tmp_path, host, files({"a": {"command": "one"}}, {"a": {"command": "two"}}))
    assert seen == ["admit effective", "judge shadowed"]


def test_a_hosts_own_merging_takes_the_place_of_the_common_one(tmp_path: Path) -> None:
    host = tiny.host(settle=lambda reading: None)
    reading = tiny.look(tmp_path, host, files({"a": {"command": "one"}}, {"a": {"command": "two"}}))
    assert tiny.states(reading) == {"a /u.json": "effective", "a /p.json": "effective"}
    assert host.merge == Fact("entry", "O")
