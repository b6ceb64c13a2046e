from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform
from interlock.hosts.reading import BadEntry
from interlock.manifest.config import Policy, ToolOverride

ONE, TWO = {"command": "one"}, {"command": "two", "args": ["-x"]}


@pytest.mark.parametrize(
    ("platform", "user", "project"),
    [
        ("linux", "/home/ada/.cursor/mcp.json", "/home/ada/code/app/.cursor/mcp.json"),
        ("macos", "/Users/ada/.cursor/mcp.json", "/Users/ada/code/app/.cursor/mcp.json"),
        ("windows", "C:\\Users\\ada\\.cursor\\mcp.json", "C:\\Users\\ada\\code\\app\\.cursor\\mcp.json"),
    ],
)
def test_its_files_on_every_platform(tmp_path: Path, platform: Platform, user: str, project: str) -> None:
    on = fake.machine(tmp_path, platform)
    fake.put(on, user, {"mcpServers": {"a": ONE}})
    fake.put(on, project, {"mcpServers": {"b": TWO}})
    assert fake.states(fake.look("cursor", on)) == {("a", user): "effective", ("b", project): "effective"}


def test_of_one_name_the_project_is_shown_and_the_doubt_is_said_on_both(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user = fake.put(on, on.user(".cursor", "mcp.json"), {"mcpServers": {"a": ONE}})
    project = fake.put(on, on.join(on.folder, ".cursor", "mcp.json"), {"mcpServers": {"a": TWO}})
    reading = fake.look("cursor", on)
    assert fake.states(reading) == {("a", project): "effective", ("a", user): "shadowed"}
    loser = next(each for each in reading.declarations if each.state == "shadowed")
    assert loser.decided_by.rule == "higher-scope"
    assert loser.decided_by.spot is not None
    assert loser.decided_by.spot.file == project
    assert [[problem.code for problem in each.problems] for each in reading.declarations] == [
        ["precedence-unknown"]
    ] * 2


def test_the_key_of_vs_code_is_never_read(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user = fake.put(on, on.user(".cursor", "mcp.json"), {"servers": {"a": ONE}})
    reading = fake.look("cursor", on)
    assert fake.states(reading) == {("a", user): "never-read"}
    assert "mcpServers" in reading.declarations[0].problems[0].todo


def test_the_file_of_an_installer_is_never_read(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.join(on.folder, ".cursor", "mcp-configs", "mcp-servers.json"), {"mcpServers": {"a": ONE}})
    reading = fake.look("cursor", on)
    assert fake.states(reading) == {("a", file): "never-read"}
    assert ".cursor/mcp.json" in reading.declarations[0].problems[0].todo


def test_a_broken_file_has_its_line_and_column(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user = fake.put(on, on.user(".cursor", "mcp.json"), '{\n  "mcpServers": {\n    "a": {"command" "one"}\n  }\n}\n')
    reading = fake.look("cursor", on)
    assert fake.states(reading) == {("", user): "broken"}
    spot = reading.declarations[0].spot
    assert (spot.line, spot.column) == (3, 21)


def test_what_an_entry_says() -> None:
    read = fake.adapter("cursor").read
    found = read({"url": "https://x.example/mcp", "headers": {"A": "b"}, "alwaysAllow": ["t"], "disabled": True})
    assert (found.transport, found.url, found.headers) == ("http", "https://x.example/mcp", {"A": "b"})
    assert found.ignored == ("alwaysAllow",), "whether `disabled` is obeyed is unknown, so it is not called ignored"
    assert found.enabled
    with pytest.raises(BadEntry):
        read({"args": ["x"]})
    both = read({"command": "one", "url": "https://x.example/mcp"})
    assert both.transport is None, "nobody knows which of the two it takes"


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("cursor", fake.stdio("uvx", "issues-mcp", env=fake.TOKEN), on)
    assert made.entry == {
        "type": "stdio", "command": "uvx", "args": ["issues-mcp"], "env": {"TOKEN": "${env:TOKEN}", "LEVEL": "info"},
    }  # fmt: skip
    assert fake.lost(made) == {}
    assert made.edits == ()
    assert fake.back("cursor", made).command == ("uvx", "issues-mcp")
    remote = fake.written("cursor", fake.http(headers=fake.BEARER), on)
    assert remote.entry == {
        "url": "https://issues.example/mcp", "headers": {"Authorization": "Bearer ${env:TOKEN}", "X-Team": "a"},
    }  # fmt: skip
    assert fake.back("cursor", remote).transport == "http"


def test_what_it_cannot_say_is_lost_by_name(tmp_path: Path) -> None:
    server = fake.stdio(
        allow=("get",), deny=("put",), enabled=False, policy=Policy(default_approval="prompt", tool_timeout_seconds=9)
    )
    assert fake.lost(fake.written("cursor", server, fake.machine(tmp_path))) == {
        "capability.tools.allow": True, "capability.tools.deny": True, "enabled": True, "policy.toolTimeoutSeconds": False,
    }  # fmt: skip


def test_tools_that_run_unasked_join_the_list_that_stands_there(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.user(".cursor", "permissions.json"), '{\n  // mine\n  "mcpAllowlist": ["other:*"]\n}\n')
    made = fake.written("cursor", fake.stdio(tools={"get": ToolOverride(approval="auto")}), on)
    assert [edit.file for edit in made.edits] == [file]
    text = fake.applied(on, made.edits[0])
    assert "// mine" in text
    assert json.loads(text.replace("// mine", ""))["mcpAllowlist"] == ["other:*", "issues:get"]
    fake.put(on, file, text)
    assert fake.written("cursor", fake.stdio(tools={"get": ToolOverride(approval="auto")}), on).edits == ()
    every = fake.written("cursor", fake.stdio(policy=Policy(default_approval="auto")), on, scope="project")
    assert every.edits[0].file == on.join(on.folder, ".cursor", "permissions.json")
    assert every.edits[0].edits[0].value == ["issues:*"]


def test_interlocks_own_entry(tmp_path: Path) -> None:
    made = fake.written("cursor", None, fake.machine(tmp_path))
    assert made.entry == {
        "type": "stdio", "command": "/opt/bin/interlock", "args": ["connect", "--host", "cursor"],
        "env": {"TOKEN": "${env:TOKEN}"},
    }  # fmt: skip
