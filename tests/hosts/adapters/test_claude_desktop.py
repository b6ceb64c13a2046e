from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform
from interlock.hosts.reading import BadEntry
from interlock.manifest.config import Policy

SERVERS = {"mcpServers": {"a": {"command": "one"}}}
STORE = "C:\\Users\\ada\\AppData\\Local\\Packages\\Claude_pzs8sxrjxfjjc\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json"
PLAIN = "C:\\Users\\ada\\AppData\\Roaming\\Claude\\claude_desktop_config.json"


@pytest.mark.parametrize(
    ("platform", "file"),
    [
        ("linux", "/home/ada/.config/Claude/claude_desktop_config.json"),
        ("macos", "/Users/ada/Library/Application Support/Claude/claude_desktop_config.json"),
        ("windows", PLAIN),
        ("windows", STORE),
    ],
)
def test_its_file_on_every_platform(tmp_path: Path, platform: Platform, file: str) -> None:
    on = fake.machine(tmp_path, platform)
    fake.put(on, file, SERVERS)
    assert fake.states(fake.look("claude-desktop", on)) == {("a", file): "effective"}


def test_the_stores_file_is_the_one_where_it_is_there(tmp_path: Path) -> None:
    on = fake.machine(tmp_path, "windows")
    fake.put(on, STORE, SERVERS)
    fake.put(on, PLAIN, {"mcpServers": {"a": {"command": "two"}}})
    reading = fake.look("claude-desktop", on)
    # Each installation has its own; whether there is a plain one too cannot be seen.
    assert fake.states(reading) == {("a", STORE): "effective", ("a", PLAIN): "effective"}
    codes = {each.file: [problem.code for problem in each.problems] for each in reading.declarations}
    assert codes == {STORE: [], PLAIN: ["place-uncertain"]}


def test_a_file_that_cannot_be_read_counts_as_empty(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.config("Claude", "claude_desktop_config.json"), '{"mcpServers": {"a": {"command": "one"}}\n')
    reading = fake.look("claude-desktop", on)
    assert fake.states(reading) == {("", file): "broken"}
    assert reading.declarations[0].spot.line > 0
    assert fake.adapter("claude-desktop").tolerance.fault.value == "file"


def test_a_url_starts_nothing() -> None:
    read = fake.adapter("claude-desktop").read
    with pytest.raises(BadEntry, match="programs only") as error:
        read({"type": "http", "url": "https://x.example/mcp"})
    assert "Connectors" in error.value.todo
    assert read({"command": "one", "alwaysAllow": []}).ignored == ("alwaysAllow",)


def test_servers_as_they_are_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("claude-desktop", fake.stdio(env=fake.TOKEN, policy=Policy(default_approval="always")), on)
    assert made.entry == {"command": "uvx", "args": ["issues-mcp"], "env": {"LEVEL": "info"}}
    assert fake.lost(made) == {"transports.stdio.env.TOKEN": True, "policy.defaultApproval": True}
    assert "Quit Claude Desktop" in made.notes[0]
    assert fake.back("claude-desktop", made).env == {"LEVEL": "info"}
    remote = fake.written("claude-desktop", fake.http(), on)
    assert remote.entry == {}
    assert fake.lost(remote) == {"transports.http": True}


def test_a_batch_file_goes_through_cmd_on_windows(tmp_path: Path) -> None:
    on = fake.machine(tmp_path, "windows")
    made = fake.written("claude-desktop", fake.stdio("npx", "-y", "issues-mcp@1.2.3"), on)
    assert made.entry == {"command": "cmd", "args": ["/c", "npx", "-y", "issues-mcp@1.2.3"]}


def test_the_application_has_to_be_closed() -> None:
    found = fake.adapter("claude-desktop")
    assert found.closed.value is True
    assert found.gui
    assert found.names.value is None
