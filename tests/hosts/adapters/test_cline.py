from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform
from interlock.hosts.reading import BadEntry
from interlock.manifest.config import Policy, ToolOverride

SERVERS = {"mcpServers": {"a": {"command": "one"}}}
NEW = ".cline/data/settings/cline_mcp_settings.json"
OLD: dict[Platform, str] = {
    "linux": "/home/ada/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    "macos": "/Users/ada/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/"
    "cline_mcp_settings.json",
    "windows": "C:\\Users\\ada\\AppData\\Roaming\\Code\\User\\globalStorage\\saoudrizwan.claude-dev\\settings\\"
    "cline_mcp_settings.json",
}


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
def test_the_old_file_counts_until_the_new_one_is_there(tmp_path: Path, platform: Platform) -> None:
    on = fake.machine(tmp_path, platform)
    fake.put(on, OLD[platform], SERVERS)
    assert fake.states(fake.look("cline", on)) == {("a", OLD[platform]): "effective"}
    new = fake.put(on, on.user(*NEW.split("/")), {"mcpServers": {"b": {"command": "two"}}})
    assert fake.states(fake.look("cline", on)) == {("a", OLD[platform]): "never-read", ("b", new): "effective"}


@pytest.mark.parametrize(
    ("environ", "file"),
    [
        ({"CLINE_DIR": "/srv/cline"}, "/srv/cline/data/settings/cline_mcp_settings.json"),
        ({"CLINE_DATA_DIR": "/srv/data"}, "/srv/data/settings/cline_mcp_settings.json"),
        ({"CLINE_MCP_SETTINGS_PATH": "/srv/x.json", "CLINE_DIR": "/srv/cline"}, "/srv/x.json"),
    ],
)
def test_variables_move_the_file(tmp_path: Path, environ: dict[str, str], file: str) -> None:
    on = fake.machine(tmp_path, environ=environ)
    fake.put(on, file, SERVERS)
    assert fake.states(fake.look("cline", on)) == {("a", file): "effective"}


@pytest.mark.parametrize(
    ("raw", "transport"),
    [
        ({"command": "one"}, "stdio"),
        ({"command": "one", "url": "https://x.example"}, "stdio"),
        ({"url": "https://x.example"}, "sse"),
        ({"url": "https://x.example", "type": "streamableHttp"}, "http"),
        ({"url": "https://x.example", "transportType": "http"}, "http"),
        ({"transport": {"type": "stdio", "command": "one"}}, "stdio"),
        ({"transport": {"type": "streamableHttp", "url": "https://x.example"}}, "http"),
    ],
)
def test_both_ways_to_write_an_entry(raw: dict[str, object], transport: str) -> None:
    found = fake.adapter("cline").read(raw)
    assert (found.transport, found.ignored) == (transport, ())


@pytest.mark.parametrize(
    "raw",
    [
        {"url": "https://x.example", "type": "http"},
        {"url": "https://x.example", "type": "stdio"},
        {"transport": {"command": "one"}},
        {"disabled": False},
    ],
)
def test_entries_that_it_refuses(raw: dict[str, object]) -> None:
    with pytest.raises(BadEntry):
        fake.adapter("cline").read(raw)


def test_one_wrong_entry_takes_down_the_file(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    entries = {"good": {"command": "one"}, "bad": {"url": "https://x.example", "type": "http"}}
    file = fake.put(on, on.user(*NEW.split("/")), {"mcpServers": entries})
    reading = fake.look("cline", on)
    assert fake.states(reading) == {("good", file): "broken", ("bad", file): "broken"}
    good = next(each for each in reading.declarations if each.server == "good")
    assert good.decided_by.rule == "host-broken"


def test_a_comment_takes_down_the_file(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.user(*NEW.split("/")), '{\n  // mine\n  "mcpServers": {"a": {"command": "one"}}\n}\n')
    reading = fake.look("cline", on)
    assert fake.states(reading) == {("a", file): "broken"}
    assert reading.declarations[0].decided_by.spot is not None
    assert reading.declarations[0].decided_by.spot.line == 2


def test_disabled_is_obeyed(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.user(*NEW.split("/")), {"mcpServers": {"a": {"command": "one", "disabled": True}}})
    assert fake.states(fake.look("cline", on)) == {("a", file): "disabled"}


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    server = fake.stdio(
        enabled=False, policy=Policy(default_approval="writes", tool_timeout_seconds=90), tools=dict(fake.READ_TOOL)
    )
    made = fake.written("cline", server, on)
    assert made.entry == {
        "command": "uvx", "args": ["issues-mcp"], "disabled": True, "autoApprove": ["get"], "timeout": 90,
    }  # fmt: skip
    assert fake.lost(made) == {}
    read = fake.back("cline", made)
    assert (read.enabled, read.approvals, read.call_seconds) == (False, {"get": "auto"}, 90)
    remote = fake.written("cline", fake.http(headers=fake.BEARER, deny=("put",)), on)
    assert remote.entry == {
        "type": "streamableHttp", "url": "https://issues.example/mcp", "headers": {"X-Team": "a"}, "disabled": False,
    }  # fmt: skip
    assert fake.lost(remote) == {"transports.http.headers.Authorization": True, "capability.tools.deny": True}
    every = fake.stdio(policy=Policy(default_approval="auto"), tools={"get": ToolOverride(approval="auto")})
    made = fake.written("cline", every, on)
    assert (made.entry["autoApprove"], fake.lost(made)) == (["get"], {"policy.defaultApproval": False})


def test_interlocks_own_entry(tmp_path: Path) -> None:
    made = fake.written("cline", None, fake.machine(tmp_path))
    assert made.entry == {"command": "/opt/bin/interlock", "args": ["connect", "--host", "cline"], "disabled": False}
    assert "TOKEN" in made.notes[0]
