"""The report for people: each state with its reason, paths as short as they can be, and JSON's stages beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.checks.tiny import TINY, checked, machine, place, servers

from interlock.cli.inventory_json import objects
from interlock.cli.inventory_text import Style, report, short_path
from interlock.hosts.checks.codes import found
from interlock.hosts.declaration import Decision, Declaration, Spot, State
from interlock.hosts.entry import Entry
from interlock.hosts.inventory import Inventory
from interlock.hosts.reading import Reading

HOME = "/home/ada"


def _inventory(tmp_path: Path, *declarations: Declaration) -> Inventory:
    made = machine(tmp_path)
    return Inventory(made, [Reading(TINY, made, declarations=list(declarations))])


def _declared(state: State, rule: str, by: str = "", spot: Spot | None = None, **more: object) -> Declaration:
    return Declaration(
        host="tiny", scope="user", place=place(), spot=Spot(f"{HOME}/.tiny/mcp.json", 3, 5), server="issues",
        entry=Entry(transport="stdio", command=("run",)), state=state, decided_by=Decision(rule, spot, by), **more,  # type: ignore[arg-type]
    )  # fmt: skip


PROJECT = Spot(f"{HOME}/shop/.tiny/mcp.json", 7, 1)


@pytest.mark.parametrize(
    ("declaration", "line"),
    [
        (_declared("effective", "only-one"), "✓ issues    user     ~/.tiny/mcp.json:3"),
        (
            _declared("shadowed", "higher-scope", 'project entry "issues"', PROJECT),
            "↓ issues    user     ~/.tiny/mcp.json:3  shadowed by project .tiny/mcp.json:7",
        ),
        (
            _declared("shadowed", "field-merge", 'project entry "issues"', PROJECT, shadowed_fields={"args": PROJECT}),
            "↓ issues    user     ~/.tiny/mcp.json:3 shadowed in args by project .tiny/mcp.json:7",
        ),
        (
            _declared("disabled", "entry-off", "enabled", PROJECT),
            "○ issues    user     ~/.tiny/mcp.json:3  off by enabled .tiny/mcp.json:7",
        ),
        (
            _declared("blocked", "untrusted", "trust_level", PROJECT),
            "⊘ issues    user     ~/.tiny/mcp.json:3 not trusted: trust_level .tiny/mcp.json:7",
        ),
        (_declared("blocked", "policy", "a list of names"), "⊘ issues    user     ~/.tiny/mcp.json:3  blocked: a list of names"),
        (
            _declared("broken", "invalid-entry", "`command` is not a text", Spot(f"{HOME}/.tiny/mcp.json", 4)),
            "✗ issues    user     ~/.tiny/mcp.json:3 broken ~/.tiny/mcp.json:4: `command` is not a text",
        ),
        (
            _declared("broken", "host-broken", "it is not JSON", PROJECT),
            "✗ issues    user     ~/.tiny/mcp.json:3 taken down by .tiny/mcp.json:7: it is not JSON",
        ),
        (
            _declared("never-read", "wrong-file", "Tiny does not read it"),
            "? issues    user     ~/.tiny/mcp.json:3  never read: Tiny does not read it",
        ),
    ],
)  # fmt: skip
def test_each_state_says_what_settled_it(tmp_path: Path, declaration: Declaration, line: str) -> None:
    lines = report([_inventory(tmp_path, declaration)], Style())
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines[1 : lines.index("")])
    assert " ".join(text.split()) == " ".join(line.split())


@pytest.mark.parametrize(
    ("rule", "state", "allowed", "trusted"),
    [
        ("only-one", "effective", None, None),
        ("policy", "blocked", False, None),
        ("untrusted", "blocked", None, False),
        ("not-approved", "blocked", None, False),
        ("invalid-entry", "broken", None, None),
    ],
)
def test_stages(tmp_path: Path, rule: str, state: State, allowed: bool | None, trusted: bool | None) -> None:
    (entry,) = objects(_inventory(tmp_path, _declared(state, rule)))
    stages = entry["stages"]
    assert isinstance(stages, dict)
    assert (stages["allowed"], stages["trusted"]) == (allowed, trusted)
    assert stages["parsed"] is (state != "broken")


def test_what_the_host_itself_said_is_in_the_stages(tmp_path: Path) -> None:
    (entry,) = objects(_inventory(tmp_path, _declared("effective", "only-one", connected=True, tools=("a",))))
    stages = entry["stages"]
    assert isinstance(stages, dict)
    assert (stages["connected"], stages["toolsVisible"], entry["tools"]) == (True, True, ["a"])
    (silent,) = objects(_inventory(tmp_path, _declared("effective", "only-one", connected=True, tools=())))
    assert isinstance(silent["stages"], dict)
    assert silent["stages"]["toolsVisible"] is False


def test_a_problem_that_two_hosts_share_is_spelled_out_once(tmp_path: Path) -> None:
    problem = found("plain-http", "example.com is reached by plain http.", spot=PROJECT)
    first, second = (_declared("effective", "only-one", problems=[problem]) for _ in range(2))
    text = "\n".join(report([_inventory(tmp_path, first, second)], Style()))
    assert text.count("example.com is reached by") == 1
    assert text.count("as above: plain-http") == 1
    assert "1 warning. Nothing was changed." in text


def test_a_remedy_is_told_once_for_each_host(tmp_path: Path) -> None:
    spots = (PROJECT, Spot(f"{HOME}/shop/.tiny/mcp.json", 9, 1))
    declared = [
        _declared("effective", "only-one", problems=[found("literal-secret", "`env.T` holds a secret.", spot=spot)])
        for spot in spots
    ]
    inventory = _inventory(tmp_path, *declared)
    assert "\n".join(report([inventory], Style())).count("> Put it into an environment variable") == 1
    assert "\n".join(report([inventory], Style(all=True))).count("> Put it into an environment variable") == 2


def test_servers_of_several_hosts_are_named_once_with_their_other_names(tmp_path: Path) -> None:
    note = found("duplicate-server", "Also elsewhere.")
    declared = [_declared("effective", "only-one", problems=[note]) for _ in range(3)]
    for line, (each, (host, name)) in enumerate(
        zip(declared, (("a", "clock"), ("b", "time"), ("c", "time")), strict=True)
    ):
        each.host, each.server, each.spot = host, name, Spot(f"{HOME}/.tiny/mcp.json", line, 1)
    assert "In several hosts: time (a as clock, b, c)." in report([_inventory(tmp_path, *declared)], Style())


def test_one_line_that_two_hosts_read_is_one_copy(tmp_path: Path) -> None:
    note = found("duplicate-server", "Also elsewhere.")
    declared = [_declared("effective", "only-one", problems=[note]) for _ in range(3)]
    for each, host in zip(declared, ("a", "b", "c"), strict=True):
        each.host = host
    declared[2].spot = PROJECT
    assert "In several hosts: issues (a + b, c)." in report([_inventory(tmp_path, *declared)], Style())


def test_a_neighbour_without_anything_has_no_heading(tmp_path: Path) -> None:
    first = _inventory(tmp_path, _declared("effective", "only-one"))
    second = Inventory(machine(tmp_path), [])
    assert sum(line.startswith("== ") for line in report([first, second], Style())) == 1
    assert sum(line.startswith("== ") for line in report([first, first], Style())) == 2


def test_what_wins_stands_first_and_what_is_misplaced_last(tmp_path: Path) -> None:
    declared = [
        _declared("never-read", "wrong-file"), _declared("effective", "only-one"), _declared("effective", "only-one"),
    ]  # fmt: skip
    for each, (scope, name) in zip(declared, (("project", "lost"), ("user", "mine"), ("project", "ours")), strict=True):
        each.scope, each.server = scope, name  # type: ignore[assignment]
    lines = report([_inventory(tmp_path, *declared)], Style())
    assert [line.split()[1] for line in lines if line.startswith("  ") and line[2] in "✓?"] == ["ours", "mine", "lost"]


def test_notes_are_for_those_who_ask(tmp_path: Path) -> None:
    inventory = _inventory(
        tmp_path, _declared("effective", "only-one", problems=[found("npx-asks", "`npx` without `-y`.")])
    )
    assert "npx-asks" not in "\n".join(report([inventory], Style()))
    assert "1 note with --all" in "\n".join(report([inventory], Style()))
    assert "note npx-asks: `npx` without `-y`." in "\n".join(report([inventory], Style(all=True)))


def test_colour_is_only_where_it_was_asked_for(tmp_path: Path) -> None:
    inventory = _inventory(tmp_path, _declared("effective", "only-one"))
    assert "\x1b[32m✓\x1b[0m" in "\n".join(report([inventory], Style(colour=True)))
    assert "\x1b" not in "\n".join(report([inventory], Style()))


def test_a_file_problem_without_entries_is_an_object_of_its_own(tmp_path: Path) -> None:
    made = machine(tmp_path)
    path = servers(made, {})
    reading = checked(made)
    reading.problems.append(found("file-writable-by-others", "Any user can write it.", spot=Spot(path)))
    (entry,) = objects(Inventory(made, [reading]))
    assert (entry["host"], entry["scope"], entry["file"], entry["server"]) == ("tiny", "user", path, None)
    assert entry["problems"] == ["file-writable-by-others"]


def test_a_file_problem_is_with_each_of_its_entries(tmp_path: Path) -> None:
    made = machine(tmp_path)
    path = servers(made, {"one": {"command": "x"}, "two": {"command": "y"}})
    reading = checked(made)
    reading.problems.append(found("file-writable-by-others", "Any user can write it.", spot=Spot(path)))
    assert ["file-writable-by-others" in each["problems"] for each in objects(Inventory(made, [reading]))] == [
        True,
        True,
    ]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("platform", "path", "short"),
    [
        ("linux", "/home/ada/shop/.mcp.json", ".mcp.json"),
        ("linux", "/home/ada/.claude.json", "~/.claude.json"),
        ("linux", "/home/adam/.claude.json", "/home/adam/.claude.json"),
        ("linux", "/etc/codex/config.toml", "/etc/codex/config.toml"),
        ("windows", "C:\\Users\\ada\\.cursor\\mcp.json", "~\\.cursor\\mcp.json"),
        ("windows", "C:\\Users\\ada\\shop\\.mcp.json", ".mcp.json"),
    ],
)
def test_short_paths(tmp_path: Path, platform: str, path: str, short: str) -> None:
    assert short_path(path, machine(tmp_path, platform)) == short


def test_at_home_paths_keep_the_tilde(tmp_path: Path) -> None:
    assert short_path("/home/ada/.claude.json", machine(tmp_path, folder=HOME)) == "~/.claude.json"
