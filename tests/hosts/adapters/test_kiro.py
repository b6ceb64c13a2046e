from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform
from interlock.manifest.config import Policy, ToolOverride

ONE, TWO = {"command": "one"}, {"command": "two"}


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
def test_the_workspace_replaces_the_users(tmp_path: Path, platform: Platform) -> None:
    on = fake.machine(tmp_path, platform)
    user = fake.put(on, on.user(".kiro", "settings", "mcp.json"), {"mcpServers": {"a": ONE, "b": ONE}})
    project = fake.put(on, on.join(on.folder, ".kiro", "settings", "mcp.json"), {"mcpServers": {"a": TWO}})
    reading = fake.look("kiro", on)
    assert fake.states(reading) == {("a", project): "effective", ("a", user): "shadowed", ("b", user): "effective"}
    assert fake.runs(reading) == {"a": ("two",), "b": ("one",)}


def test_disabled_is_obeyed(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user = fake.put(on, on.user(".kiro", "settings", "mcp.json"), {"mcpServers": {"a": {**ONE, "disabled": True}}})
    assert fake.states(fake.look("kiro", on)) == {("a", user): "disabled"}


def test_a_broken_file_has_its_line(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user = fake.put(
        on, on.user(".kiro", "settings", "mcp.json"), '{"mcpServers": {\n"a": {"command": "one"}\n"b": {}\n}}'
    )
    reading = fake.look("kiro", on)
    assert fake.states(reading) == {("", user): "broken"}
    assert reading.declarations[0].spot.line == 3


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("kiro", fake.stdio(env=fake.TOKEN, deny=("put",), policy=Policy(default_approval="auto")), on)
    assert made.entry == {
        "command": "uvx", "args": ["issues-mcp"], "env": {"TOKEN": "${TOKEN}", "LEVEL": "info"},
        "disabledTools": ["put"], "autoApprove": ["*"],
    }  # fmt: skip
    assert fake.lost(made) == {}
    read = fake.back("kiro", made)
    assert (read.deny, read.approvals) == (("put",), {"*": "auto"})
    asked = fake.stdio(policy=Policy(default_approval="auto"), tools={"put": ToolOverride(approval="prompt")})
    made = fake.written("kiro", asked, on)
    assert "autoApprove" not in made.entry, "`*` would be more than the manifest allows"
    assert fake.lost(made) == {"policy.defaultApproval": False}
    assert fake.lost(fake.written("kiro", fake.http(headers=fake.BEARER), on)) == {
        "transports.http.headers.Authorization": True
    }
