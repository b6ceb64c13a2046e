"""A host's files, read and judged, whatever stands in them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hosts import tiny_host as tiny

from interlock.hosts import reading as reading_module
from interlock.hosts import registry
from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine

ONE = '{"mcpServers": {"a": {"command": "one"}}}'


def test_an_entry_knows_where_it_and_its_fields_stand(tmp_path: Path) -> None:
    text = '{\n  "mcpServers": {\n    "a": {\n      "command": "one",\n      "env": {"X": "y"}\n    }\n  }\n}\n'
    (found,) = tiny.look(tmp_path, tiny.host(), {tiny.USER: text}).declarations
    assert (found.spot.file, found.spot.line, found.spot.column) == (tiny.USER, 3, 5)
    assert {name: (spot.line, spot.column) for name, spot in found.spots.items()} == {
        "command": (4, 7), "env": (5, 7), "env.X": (5, 15),
    }  # fmt: skip
    assert str(found.spots["env.X"]) == "/u.json:5"


def test_no_file_is_no_trouble(tmp_path: Path) -> None:
    reading = tiny.look(tmp_path, tiny.host(), {})
    assert (reading.seen, reading.declarations, reading.problems) == ([], [], [])


LIBERTIES = [
    ("comments", '{"mcpServers": {"a": {"command": "one"}} /* x */}', (1, 42)),
    ("trailing_comma", '{"mcpServers": {"a": {"command": "one",}}}', (1, 39)),
    ("bom", "\ufeff" + ONE, (1, 1)),
]


@pytest.mark.parametrize(("name", "text", "at"), LIBERTIES)
@pytest.mark.parametrize("takes", [True, False, None])
def test_liberties_are_the_hosts(tmp_path: Path, name: str, text: str, at: tuple[int, int], takes: bool | None) -> None:
    fact = Fact(takes, "O") if takes is not None else Fact(None, "U")
    host = tiny.host(tolerance=replace(tiny.TOLERANCE, **{name: fact}))  # type: ignore[arg-type]
    reading = tiny.look(tmp_path, host, {tiny.USER: text})
    (found,) = reading.declarations
    assert found.state == ("broken" if takes is False else "effective")
    assert found.entry is not None
    if takes is False:
        (problem,) = found.problems
        assert problem.code == "file-unreadable"
        assert problem.spot is not None
        assert (problem.spot.line, problem.spot.column) == at


@pytest.mark.parametrize(("rule", "state"), [("error", "broken"), ("last", "effective")])
def test_a_key_that_stands_twice(tmp_path: Path, rule: str, state: str) -> None:
    host = tiny.host(tolerance=replace(tiny.TOLERANCE, duplicate_keys=Fact(rule, "O")))  # type: ignore[arg-type]
    text = '{"mcpServers": {"a": {"command": "one"},\n"a": {"command": "two"}}}'
    (found,) = tiny.look(tmp_path, host, {tiny.USER: text}).declarations
    assert found.state == state
    if state == "effective":
        assert found.entry is not None
        assert found.entry.command == ("two",)


@pytest.mark.parametrize(
    ("reach", "states"),
    [
        ("entry", {"good /u.json": "effective", "bad /u.json": "broken", "p /p.json": "effective"}),
        ("file", {"good /u.json": "broken", "bad /u.json": "broken", "p /p.json": "effective"}),
        ("host", {"good /u.json": "broken", "bad /u.json": "broken", "p /p.json": "broken"}),
    ],
)
def test_how_far_a_bad_entry_reaches(
    tmp_path: Path, reach: Literal["entry", "file", "host"], states: dict[str, str]
) -> None:
    host = tiny.host(tolerance=replace(tiny.TOLERANCE, bad_entry=Fact(reach, "O")))
    user = '{"mcpServers": {"good": {"command": "one"}, "bad": {"command": 1}}}'
    project = '{"mcpServers": {"p": {"command": "one"}}}'
    reading = tiny.look(tmp_path, host, {tiny.USER: user, tiny.PROJECT: project})
    assert tiny.states(reading) == states
    for each in reading.declarations:
        if each.state == "broken" and each.server != "bad":
            assert each.decided_by.rule == "host-broken"
            assert each.decided_by.spot is not None
            assert each.decided_by.spot.file == tiny.USER


@pytest.mark.parametrize(("reach", "state"), [("file", "effective"), ("host", "broken")])
def test_how_far_a_broken_file_reaches(tmp_path: Path, reach: Literal["file", "host"], state: str) -> None:
    host = tiny.host(tolerance=replace(tiny.TOLERANCE, fault=Fact(reach, "O")))
    reading = tiny.look(tmp_path, host, {tiny.USER: "{", tiny.PROJECT: ONE})
    assert tiny.states(reading) == {"None /u.json": "broken", "a /p.json": state}


def test_a_file_that_several_places_look_into_is_broken_once(tmp_path: Path) -> None:
    host = tiny.host(places=(tiny.place(tiny.USER, 20), tiny.place(tiny.USER, 40, tables=(("projects", "x"),))))
    assert len(tiny.look(tmp_path, host, {tiny.USER: "{"}).declarations) == 1


def test_in_a_wrong_file_nothing_is_broken_and_nothing_breaks(tmp_path: Path) -> None:
    strict = replace(tiny.TOLERANCE, fault=Fact("host", "O"), bad_entry=Fact("host", "O"), comments=Fact(False, "O"))
    wrong = tiny.place(tiny.PROJECT, 0, known=Fact(False, "O", "Tiny does not read it."), instead="Move it to /u.json.")
    host = tiny.host(places=(tiny.place(tiny.USER, 20), wrong), tolerance=strict)
    reading = tiny.look(
        tmp_path, host, {tiny.USER: ONE, tiny.PROJECT: '{/* x */"mcpServers": {"b": {}, "a": {"command": "x"}}}'}
    )
    assert tiny.states(reading) == {"a /u.json": "effective", "b /p.json": "never-read", "a /p.json": "never-read"}
    assert [[problem.code for problem in each.problems] for each in reading.declarations[1:]] == [["never-read"]] * 2
    assert reading.declarations[1].problems[0].todo == "Move it to /u.json."
    reading = tiny.look(tmp_path, host, {tiny.USER: ONE, tiny.PROJECT: "{"})
    assert tiny.states(reading) == {"a /u.json": "effective"}
    assert [(problem.code, problem.severity) for problem in reading.problems] == [("file-unreadable", "note")]


@pytest.mark.parametrize("text", ['{"mcpServers": "x"}', '{"mcpServers": 7}', '{"mcpServers": true}'])
def test_something_else_in_the_place_of_entries_is_said(tmp_path: Path, text: str) -> None:
    reading = tiny.look(tmp_path, tiny.host(), {tiny.USER: text})
    assert [problem.code for problem in reading.problems] == ["not-a-table"]
    assert reading.problems[0].spot is not None
    assert reading.problems[0].spot.column == 2


@pytest.mark.parametrize("text", ["[]", "null", "7", '"x"', '[{"mcpServers": {}}]'])
def test_something_else_at_the_top_is_said(tmp_path: Path, text: str) -> None:
    reading = tiny.look(tmp_path, tiny.host(), {tiny.USER: text})
    assert [(problem.code, str(problem.spot)) for problem in reading.problems] == [("not-a-table", f"{tiny.USER}:1")]


@pytest.mark.parametrize(("listed", "servers", "problems"), [(False, [], ["not-a-table"]), (True, ["a"], [])])
def test_a_list_holds_entries_only_where_the_host_has_lists(
    tmp_path: Path, listed: bool, servers: list[str], problems: list[str]
) -> None:
    host = tiny.host()
    host = replace(host, places=tuple(replace(each, listed=listed) for each in host.places))
    reading = tiny.look(tmp_path, host, {tiny.USER: '{"mcpServers": [{"name": "a", "command": "x"}]}'})
    assert [each.server for each in reading.declarations] == servers
    assert [problem.code for problem in reading.problems] == problems


@pytest.mark.parametrize("text", ["{}", "", '{"mcpServers": null}', '{"mcpServers": {}}'])
def test_files_without_entries(tmp_path: Path, text: str) -> None:
    reading = tiny.look(tmp_path, tiny.host(), {tiny.USER: text})
    assert (reading.declarations, reading.problems) == ([], [])


@pytest.mark.parametrize(("takes", "state"), [(True, []), (False, ["broken"]), (None, [])])
def test_an_empty_file(tmp_path: Path, takes: bool | None, state: list[str]) -> None:
    fact = Fact(takes, "O") if takes is not None else Fact(None, "U")
    host = tiny.host(tolerance=replace(tiny.TOLERANCE, empty=fact))
    reading = tiny.look(tmp_path, host, {tiny.USER: " \n"})
    assert [each.state for each in reading.declarations] == state


@pytest.mark.parametrize("raw", ["null", "7", '"x"', "[]", "true"])
def test_an_entry_that_is_none(tmp_path: Path, raw: str) -> None:
    (found,) = tiny.look(tmp_path, tiny.host(), {tiny.USER: f'{{"mcpServers": {{"a": {raw}}}}}'}).declarations
    assert (found.state, found.entry, found.raw) == ("broken", None, {})


def test_a_secret_is_in_no_complaint(tmp_path: Path) -> None:
    secret = "gh" + "p_" + "A" * 36
    text = f'{{"mcpServers": {{"a": {{"command": ["{secret}"]}}, "b": {{"command": "x", "url": "{secret}"}}}}'
    for content in (text, text + "}"):
        reading = tiny.look(tmp_path, tiny.host(), {tiny.USER: content})
        assert {each.state for each in reading.declarations} == {"broken"}
        told = [(each.problems, each.decided_by) for each in reading.declarations], reading.problems
        assert secret not in repr(told)


def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    (tmp_path / "u.json").mkdir()
    reading = tiny.look(tmp_path, tiny.host(), {tiny.PROJECT: ONE})
    assert tiny.states(reading) == {"None /u.json": "broken", "a /p.json": "effective"}
    assert "directory" in reading.declarations[0].decided_by.by.lower()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    file = tmp_path / "u.json"
    file.write_text(ONE)
    file.chmod(0)
    reading = tiny.look(tmp_path, tiny.host(), {})
    assert tiny.states(reading) == {"None /u.json": "broken"}


def test_a_file_that_is_far_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "MAX_BYTES", 64)
    files = {tiny.USER: ONE + " " * 64, tiny.PROJECT: ONE}
    reading = tiny.look(tmp_path, tiny.host(), files)
    assert tiny.states(reading) == {"None /u.json": "broken", "a /p.json": "effective"}


def test_other_files_are_read_once(tmp_path: Path) -> None:
    reading = tiny.look(tmp_path, tiny.host(), {"/trust.json": '{"x": 1}', "/bad.json": "{"})
    first = reading.other("/trust.json")
    assert first is not None
    assert first.value == {"x": 1}
    (tmp_path / "trust.json").write_text("{}")
    assert reading.other("/trust.json") is first
    assert reading.other("/bad.json") is None
    assert reading.other("/none.json") is None


def test_a_file_of_two_scopes_belongs_to_the_first(tmp_path: Path) -> None:
    host = tiny.host(places=(tiny.place(tiny.USER, 20), tiny.place(tiny.USER, 30, scope="project")))
    assert [each.scope for each in tiny.look(tmp_path, host, {tiny.USER: ONE}).declarations] == ["user"]


@pytest.mark.parametrize("id", registry.IDS)
@settings(max_examples=15, deadline=None)
@given(
    content=st.one_of(
        st.binary(max_size=200), st.text(alphabet='{}[]":,mcpServersa.\n= #-', max_size=200).map(str.encode)
    )
)
def test_nothing_in_a_file_makes_reading_fail(
    id: str, content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("any")
    host = registry.find(id)
    assert host is not None
    on = Machine(platform="linux", home="/home/ada", folder="/home/ada/app", environ={}, root=str(root))
    for place in host.places:
        for path in place.find(on)[:3]:
            file = Path(on.real(path))
            if not file.is_dir():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
    reading_module.read(host, on)
