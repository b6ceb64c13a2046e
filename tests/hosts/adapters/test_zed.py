from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform
from interlock.manifest.config import Policy, ToolOverride


@pytest.mark.parametrize(
    ("platform", "file"),
    [
        ("linux", "/home/ada/.config/zed/settings.json"),
        ("macos", "/Users/ada/.config/zed/settings.json"),
        ("windows", "C:\\Users\\ada\\AppData\\Roaming\\Zed\\settings.json"),
    ],
)
def test_its_files_on_every_platform(tmp_path: Path, platform: Platform, file: str) -> None:
    on = fake.machine(tmp_path, platform)
    fake.put(on, file, '// Zed\n{\n  "theme": "One",\n  "context_servers": {"a": {"command": "one"},},\n}\n')
    project = fake.put(on, on.join(on.folder, ".zed", "settings.json"), {"context_servers": {"b": {"command": "two"}}})
    assert fake.states(fake.look("zed", on)) == {("a", file): "effective", ("b", project): "effective"}


def test_the_project_replaces_the_whole_entry(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user = fake.put(
        on, on.config("zed", "settings.json"), {"context_servers": {"a": {"command": "one", "env": {"X": "1"}}}}
    )
    project = fake.put(on, on.join(on.folder, ".zed", "settings.json"), {"context_servers": {"a": {"command": "two"}}})
    reading = fake.look("zed", on)
    assert fake.states(reading) == {("a", project): "effective", ("a", user): "shadowed"}
    winner = next(each for each in reading.declarations if each.state == "effective")
    assert winner.runs is not None
    assert winner.runs.env == {}
    assert "precedence-unknown" not in fake.codes(reading)


def test_enabled_is_obeyed_and_disabled_is_not(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    entries = {"off": {"command": "one", "enabled": False}, "on": {"command": "two", "disabled": True}}
    file = fake.put(on, on.config("zed", "settings.json"), {"context_servers": entries})
    reading = fake.look("zed", on)
    assert fake.states(reading) == {("off", file): "disabled", ("on", file): "effective"}
    assert reading.declarations[0].decided_by.rule == "entry-off"
    found = next(each.entry for each in reading.declarations if each.server == "on")
    assert found is not None
    assert found.ignored == ("disabled",)


@pytest.mark.parametrize(
    ("raw", "transport", "command"),
    [
        ({"source": "custom", "command": "one", "args": ["x"]}, "stdio", ("one", "x")),
        ({"command": {"path": "one", "args": ["x"], "env": {}}, "settings": {}}, "stdio", ("one", "x")),
        ({"command": "one", "url": "https://x.example"}, "stdio", ("one",)),
        ({"url": "https://x.example", "timeout": 9}, "http", ()),
        ({"settings": {"token": "x"}}, "other", ()),
        ({"mistake": True}, "other", ()),
    ],
)
def test_every_form_of_an_entry(raw: dict[str, object], transport: str, command: tuple[str, ...]) -> None:
    found = fake.adapter("zed").read(raw)
    assert (found.transport, found.command) == (transport, command)


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("zed", fake.stdio(enabled=False, policy=Policy(tool_timeout_seconds=20)), on)
    assert made.entry == {"command": "uvx", "args": ["issues-mcp"], "enabled": False, "timeout": 20}
    assert fake.lost(made) == {}
    read = fake.back("zed", made)
    assert (read.enabled, read.call_seconds) == (False, 20)
    secret = fake.written("zed", fake.http(headers=fake.BEARER), on)
    assert secret.entry == {"url": "https://issues.example/mcp", "headers": {"X-Team": "a"}}
    assert fake.lost(secret) == {"transports.http.headers.Authorization": True}
    assert "not known" in secret.losses[0].why


def test_tool_rules_go_beside_what_stands_there(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(
        on, on.config("zed", "settings.json"),
        '{\n  // mine\n  "agent": {"tool_permissions": {"tools": {"terminal": {"default": "confirm"}}}}\n}\n',
    )  # fmt: skip
    tools = {"get": ToolOverride(approval="auto"), "edit": ToolOverride(approval="prompt")}
    server = fake.stdio(deny=("wipe", "admin.*"), allow=("get", "edit"), tools=tools)
    made = fake.written("zed", server, on)
    assert fake.lost(made) == {"capability.tools.deny": True, "capability.tools.allow": True}
    text = fake.applied(on, made.edits[0])
    fake.put(on, file, text)
    from interlock.hosts.dialect import standing

    assert "// mine" in text
    assert standing(on, file, "jsonc", ("agent", "tool_permissions", "tools")) == {
        "terminal": {"default": "confirm"},
        "mcp:issues:wipe": {"default": "deny"},
        "mcp:issues:get": {"default": "allow"},
        "mcp:issues:edit": {"default": "confirm"},
    }
    assert fake.written("zed", server, on).edits == ()


def test_asking_is_lost_where_everything_is_allowed(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    server = fake.stdio(policy=Policy(default_approval="prompt"))
    assert fake.lost(fake.written("zed", server, on)) == {}
    fake.put(on, on.config("zed", "settings.json"), {"agent": {"tool_permissions": {"default": "allow"}}})
    assert fake.lost(fake.written("zed", server, on)) == {"policy.defaultApproval": True}
