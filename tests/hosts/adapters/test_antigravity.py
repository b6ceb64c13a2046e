from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform
from interlock.hosts.reading import BadEntry
from interlock.manifest.config import Policy, ToolOverride

SERVERS = {"mcpServers": {"a": {"command": "one"}}}


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
@pytest.mark.parametrize("migrated", [False, True])
def test_the_marker_says_whether_the_old_file_counts(tmp_path: Path, platform: Platform, migrated: bool) -> None:
    on = fake.machine(tmp_path, platform)
    old = fake.put(on, on.user(".gemini", "antigravity", "mcp_config.json"), SERVERS)
    if migrated:
        fake.put(on, on.user(".gemini", "config", ".migrated"), "")
    assert fake.states(fake.look("antigravity", on)) == {("a", old): "never-read" if migrated else "effective"}


@pytest.mark.parametrize(
    ("parts", "state"),
    [
        ((".gemini", "config", "mcp_config.json"), "effective"),
        ((".gemini", "antigravity-cli", "mcp_config.json"), "never-read"),
        (("code", "app", ".agents", "mcp_config.json"), "effective"),
        (("code", "app", ".antigravitycli", "mcp_config.json"), "never-read"),
        (("code", "app", ".gemini", "config", "mcp_config.json"), "never-read"),
    ],
)
def test_right_and_wrong_files(tmp_path: Path, parts: tuple[str, ...], state: str) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.user(*parts), SERVERS)
    reading = fake.look("antigravity", on)
    assert fake.states(reading) == {("a", file): state}
    if state == "never-read":
        assert "~/.gemini/config/mcp_config.json" in reading.declarations[0].problems[0].todo


def test_the_copy_that_agy_keeps_is_no_mistake(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    right = fake.put(on, on.user(".gemini", "config", "mcp_config.json"), SERVERS)
    copy = fake.put(on, on.user(".gemini", "antigravity-cli", "mcp_config.json"), SERVERS)
    assert fake.states(fake.look("antigravity", on)) == {("a", right): "effective"}
    fake.put(on, copy, {"mcpServers": {"b": {"command": "two"}}})
    assert fake.states(fake.look("antigravity", on)) == {("a", right): "effective", ("b", copy): "never-read"}


def test_whether_a_projects_file_is_read_is_in_doubt(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, on.join(on.folder, ".agents", "mcp_config.json"), SERVERS)
    reading = fake.look("antigravity", on)
    assert [(each.code, each.severity) for each in reading.declarations[0].problems] == [("place-uncertain", "warning")]
    assert "agy mcp list" in reading.declarations[0].problems[0].why
    place = next(each for each in fake.adapter("antigravity").places if each.shown == ".agents/mcp_config.json")
    assert (place.known.value, place.known.evidence, place.writes) == (None, "X", False)


def test_a_byte_order_mark_takes_down_the_file(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.user(".gemini", "config", "mcp_config.json"), "\ufeff" + json.dumps(SERVERS))
    assert fake.states(fake.look("antigravity", on)) == {("a", file): "broken"}


@pytest.mark.parametrize("wrong", ["url", "httpUrl"])
def test_the_wrong_word_for_an_address(wrong: str) -> None:
    with pytest.raises(BadEntry, match="serverUrl"):
        fake.adapter("antigravity").read({wrong: "https://x.example/mcp"})


def test_disabled_is_obeyed_and_the_reported_type_is_a_warning(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    entries = {
        "off": {"command": "one", "disabled": True, "disabledTools": ["put"]},
        "typed": {"type": "stdio", "command": "two"},
        "far": {"serverUrl": "https://x.example/mcp"},
    }
    file = fake.put(on, on.user(".gemini", "config", "mcp_config.json"), {"mcpServers": entries})
    reading = fake.look("antigravity", on)
    assert fake.states(reading) == {("off", file): "disabled", ("typed", file): "effective", ("far", file): "effective"}
    found = fake.adapter("antigravity")
    assert found.entry_problems is not None
    typed = next(each for each in reading.declarations if each.server == "typed")
    problems = found.entry_problems(typed, on)
    assert [(each.code, each.severity, each.field) for each in problems] == [("type-refused", "warning", "type")]
    assert problems[0].spot == typed.spots["type"]
    assert [each.deny for each in (typed.entry, reading.declarations[0].entry) if each is not None] == [(), ("put",)]


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("antigravity", fake.http(deny=("put", "admin.*")), on)
    assert made.entry == {"serverUrl": "https://issues.example/mcp", "disabledTools": ["put"]}
    assert fake.lost(made) == {"capability.tools.deny": True}, "the glob"
    assert fake.back("antigravity", made).deny == ("put",)
    local = fake.written("antigravity", fake.stdio(env=fake.TOKEN, enabled=False), on)
    assert local.entry == {"command": "uvx", "args": ["issues-mcp"], "env": {"LEVEL": "info"}, "disabled": True}
    assert fake.lost(local) == {"transports.stdio.env.TOKEN": True}, "no reference, and no value either"
    assert not fake.back("antigravity", local).enabled


def test_approvals_join_the_rules_of_agy(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    standing = {"permissions": {"allow": ["mcp(other/*)", "mcp(issues/put)"], "deny": ["command(rm)"]}, "model": "x"}
    file = fake.put(on, on.user(".gemini", "antigravity-cli", "settings.json"), standing)
    tools = {"get": ToolOverride(approval="auto"), "put": ToolOverride(approval="prompt")}
    made = fake.written("antigravity", fake.stdio(tools=tools), on)
    assert [each.file for each in made.edits] == [file]
    assert json.loads(fake.applied(on, made.edits[0])) == {
        "permissions": {"allow": ["mcp(other/*)", "mcp(issues/get)"], "deny": ["command(rm)"]}, "model": "x",
    }  # fmt: skip
    every = fake.written("antigravity", fake.stdio(policy=Policy(default_approval="auto")), on)
    assert every.edits[0].edits[0].value == ["mcp(other/*)", "mcp(issues/put)", "mcp(issues/*)"]


def test_interlocks_own_entry_says_which_variables_do_not_pass(tmp_path: Path) -> None:
    made = fake.written("antigravity", None, fake.machine(tmp_path))
    assert made.entry == {"command": "/opt/bin/interlock", "args": ["connect", "--host", "antigravity"]}
    assert "TOKEN" in made.notes[0]
