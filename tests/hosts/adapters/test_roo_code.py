from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform
from interlock.hosts.reading import BadEntry
from interlock.manifest.config import Policy, ToolOverride

ONE, TWO = {"command": "one"}, {"command": "two"}
TAIL = ("User", "globalStorage", "rooveterinaryinc.roo-cline", "settings", "mcp_settings.json")


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
def test_its_files_on_every_platform(tmp_path: Path, platform: Platform) -> None:
    on = fake.machine(tmp_path, platform)
    user = fake.put(on, on.application("Code", *TAIL), {"mcpServers": {"a": ONE}})
    project = fake.put(on, on.join(on.folder, ".roo", "mcp.json"), {"mcpServers": {"b": TWO}})
    assert fake.states(fake.look("roo-code", on)) == {("a", user): "effective", ("b", project): "effective"}


@pytest.mark.parametrize(
    ("project_off", "user_off", "project_state", "user_state"),
    [
        (False, False, "effective", "shadowed"),
        (True, False, "disabled", "effective"),
        (False, True, "effective", "disabled"),
        (True, True, "disabled", "disabled"),
    ],
)
def test_a_projects_entry_that_is_off_leaves_the_users_running(
    tmp_path: Path, project_off: bool, user_off: bool, project_state: str, user_state: str
) -> None:
    on = fake.machine(tmp_path)
    user = fake.put(on, on.config("Code", *TAIL), {"mcpServers": {"a": {**ONE, "disabled": user_off}}})
    project = fake.put(
        on, on.join(on.folder, ".roo", "mcp.json"), {"mcpServers": {"a": {**TWO, "disabled": project_off}}}
    )
    assert fake.states(fake.look("roo-code", on)) == {("a", project): project_state, ("a", user): user_state}


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ({"url": "https://x.example"}, "url"),
        ({"url": "https://x.example", "type": "http"}, "type"),
        ({"url": "https://x.example", "command": "one"}, "url"),
        ({"command": "one", "type": "sse"}, "type"),
    ],
)
def test_entries_that_it_refuses(raw: dict[str, object], field: str) -> None:
    with pytest.raises(BadEntry) as error:
        fake.adapter("roo-code").read(raw)
    assert error.value.field == field


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    server = fake.http(
        headers=fake.BEARER,
        deny=("put",),
        policy=Policy(tool_timeout_seconds=30),
        tools={"get": ToolOverride(approval="auto")},
    )
    made = fake.written("roo-code", server, on, scope="project")
    assert made.entry == {
        "type": "streamable-http", "url": "https://issues.example/mcp",
        "headers": {"Authorization": "Bearer ${env:TOKEN}", "X-Team": "a"},
        "disabledTools": ["put"], "alwaysAllow": ["get"], "timeout": 30,
    }  # fmt: skip
    assert fake.lost(made) == {}
    read = fake.back("roo-code", made)
    assert (read.transport, read.deny, read.approvals) == ("http", ("put",), {"get": "auto"})
    assert fake.lost(fake.written("roo-code", fake.stdio(allow=("get",)), on)) == {"capability.tools.allow": True}


def test_interlocks_own_entry(tmp_path: Path) -> None:
    assert fake.written("roo-code", None, fake.machine(tmp_path)).entry == {
        "command": "/opt/bin/interlock", "args": ["connect", "--host", "roo-code"], "env": {"TOKEN": "${env:TOKEN}"},
    }  # fmt: skip
