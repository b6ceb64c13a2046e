from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform
from interlock.manifest.config import Policy, ToolOverride

ONE = {"command": "one"}


@pytest.mark.parametrize(
    ("platform", "current", "layer"),
    [
        ("linux", "/home/ada/.config/devin/mcp_config.json", "/home/ada/.config/Devin/User/mcp.json"),
        (
            "macos", "/Users/ada/.config/devin/mcp_config.json",
            "/Users/ada/Library/Application Support/Devin/User/mcp.json",
        ),
        (
            "windows", "C:\\Users\\ada\\AppData\\Roaming\\devin\\mcp_config.json",
            "C:\\Users\\ada\\AppData\\Roaming\\Devin\\User\\mcp.json",
        ),
    ],
)  # fmt: skip
def test_its_three_live_files_on_every_platform(tmp_path: Path, platform: Platform, current: str, layer: str) -> None:
    on = fake.machine(tmp_path, platform)
    fake.put(on, current, {"mcpServers": {"now": ONE}})
    old = fake.put(on, on.user(".codeium", "windsurf", "mcp_config.json"), {"mcpServers": {"old": ONE}})
    fake.put(on, layer, {"servers": {"layer": ONE}})
    local = fake.put(on, on.join(on.folder, ".devin", "mcp_config.local.json"), {"mcpServers": {"mine": ONE}})
    project = fake.put(on, on.join(on.folder, ".devin", "mcp_config.json"), {"mcpServers": {"ours": ONE}})
    assert fake.states(fake.look("windsurf", on)) == {
        ("mine", local): "effective", ("ours", project): "effective", ("now", current): "effective",
        ("old", old): "effective", ("layer", layer): "effective",
    }  # fmt: skip


def test_the_configuration_folder_may_be_elsewhere(tmp_path: Path) -> None:
    on = fake.machine(tmp_path, environ={"XDG_CONFIG_HOME": "/srv/conf"})
    file = fake.put(on, "/srv/conf/devin/mcp_config.json", {"mcpServers": {"a": ONE}})
    assert fake.states(fake.look("windsurf", on)) == {("a", file): "effective"}


def test_which_of_two_files_wins_is_in_doubt(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    now = fake.put(on, on.config("devin", "mcp_config.json"), {"mcpServers": {"a": ONE}})
    old = fake.put(on, on.user(".codeium", "windsurf", "mcp_config.json"), {"mcpServers": {"a": {"command": "two"}}})
    reading = fake.look("windsurf", on)
    assert fake.states(reading) == {("a", now): "effective", ("a", old): "shadowed"}
    assert "precedence-unknown" in fake.codes(reading)


@pytest.mark.parametrize("word", ["serverUrl", "url"])
def test_both_words_for_an_address(word: str) -> None:
    found = fake.adapter("windsurf").read({word: "https://x.example/mcp"})
    assert (found.transport, found.url, found.ignored) == ("http", "https://x.example/mcp", ())


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("windsurf", fake.http(headers=fake.BEARER), on)
    assert made.entry == {
        "serverUrl": "https://issues.example/mcp",
        "headers": {"Authorization": "Bearer ${env:TOKEN}", "X-Team": "a"},
    }  # fmt: skip
    assert "Quit" in made.notes[0]
    assert fake.lost(made) == {}
    assert fake.back("windsurf", made).url == "https://issues.example/mcp"
    strict = fake.stdio(
        deny=("put",),
        enabled=False,
        policy=Policy(default_approval="auto"),
        tools={"put": ToolOverride(approval="prompt")},
    )
    assert fake.lost(fake.written("windsurf", strict, on)) == {"capability.tools.deny": True, "enabled": True}
    asked = fake.stdio(policy=Policy(default_approval="auto"), tools={"wipe": ToolOverride(approval="prompt")})
    assert fake.lost(fake.written("windsurf", asked, on)) == {"tools.wipe.approval": True}


def test_interlocks_own_entry(tmp_path: Path) -> None:
    made = fake.written("windsurf", None, fake.machine(tmp_path))
    assert made.entry == {
        "command": "/opt/bin/interlock", "args": ["connect", "--host", "windsurf"], "env": {"TOKEN": "${env:TOKEN}"},
    }  # fmt: skip
