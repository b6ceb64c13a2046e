from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform
from interlock.manifest.config import OAuth, Policy

ONE, TWO = {"type": "stdio", "command": "one"}, {"type": "stdio", "command": "two"}
USERS: dict[Platform, str] = {
    "linux": "/home/ada/.config/Code/User/mcp.json",
    "macos": "/Users/ada/Library/Application Support/Code/User/mcp.json",
    "windows": "C:\\Users\\ada\\AppData\\Roaming\\Code\\User\\mcp.json",
}


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
def test_its_files_on_every_platform(tmp_path: Path, platform: Platform) -> None:
    on = fake.machine(tmp_path, platform)
    files = [
        USERS[platform],
        on.application("Code - Insiders", "User", "mcp.json"),
        on.application("Code", "User", "profiles", "1a2b", "mcp.json"),
        on.join(on.folder, ".vscode", "mcp.json"),
    ]
    for number, file in enumerate(files):
        fake.put(on, file, {"servers": {f"s{number}": ONE}})
    more = {
        "p": fake.put(on, on.join(on.folder, ".mcp.json"), {"mcpServers": {"p": ONE}}),
        "c": fake.put(on, on.user(".copilot", "mcp-config.json"), {"mcpServers": {"c": ONE}}),
        "w": fake.put(on, on.join(on.folder, "app.code-workspace"), {"settings": {"mcp": {"servers": {"w": ONE}}}}),
    }
    expected = {(f"s{number}", file): "effective" for number, file in enumerate(files)}
    assert fake.states(fake.look("vscode", on)) == expected | dict.fromkeys(more.items(), "effective")


def test_the_folder_keeps_the_name_and_letter_case_does_not_matter(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    folder = fake.put(on, on.join(on.folder, ".vscode", "mcp.json"), {"servers": {"Issues": ONE}})
    user = fake.put(on, USERS["linux"], {"servers": {"issues": TWO}})
    reading = fake.look("vscode", on)
    assert fake.states(reading) == {("Issues", folder): "effective", ("issues", user): "disabled"}
    loser = next(each for each in reading.declarations if each.state == "disabled")
    assert loser.decided_by.rule == "higher-scope"
    fake.put(on, on.config("Code", "User", "settings.json"), '{"chat.mcp.collisionBehavior": "suffix", /* */}')
    assert set(fake.states(fake.look("vscode", on)).values()) == {"effective"}


def test_profiles_and_insiders_stand_side_by_side(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    for product in ("Code", "Code - Insiders"):
        fake.put(on, on.config(product, "User", "mcp.json"), {"servers": {"a": ONE}})
    fake.put(on, on.config("Code", "User", "profiles", "x", "mcp.json"), {"servers": {"a": TWO}})
    assert list(fake.states(fake.look("vscode", on)).values()) == ["effective"] * 3


@pytest.mark.parametrize(
    ("setting", "seen"),
    [
        ("{}", set()),
        ('{"chat.mcp.discovery.enabled": false}', set()),
        ('{"chat.mcp.discovery.enabled": true}', {"cursor", "desktop", "surf", "here"}),
        (
            '{\n  // one of them\n  "chat.mcp.discovery.enabled": {"cursor-global": true, "windsurf": false},\n}',
            {"cursor"},
        ),
    ],
)
def test_others_files_are_read_on_request(tmp_path: Path, setting: str, seen: set[str]) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, on.config("Code", "User", "settings.json"), setting)
    for name, file in {
        "cursor": on.user(".cursor", "mcp.json"),
        "desktop": on.config("Claude", "claude_desktop_config.json"),
        "surf": on.user(".codeium", "windsurf", "mcp_config.json"),
        "here": on.join(on.folder, ".cursor", "mcp.json"),
    }.items():
        fake.put(on, file, {"mcpServers": {name: {"command": "one"}}})
    assert {name for name, _ in fake.states(fake.look("vscode", on))} == seen


def test_wrong_keys_and_wrong_files_are_never_read(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    files = {
        "a": fake.put(on, on.join(on.folder, ".vscode", "mcp.json"), {"mcpServers": {"a": ONE}}),
        "b": fake.put(on, USERS["linux"], {"mcpServers": {"b": ONE}}),
        "c": fake.put(on, on.config("Code", "User", "settings.json"), {"mcp": {"servers": {"c": ONE}}}),
        "d": fake.put(on, on.join(on.folder, ".vscode", "settings.json"), {"mcp.servers": {"d": ONE}}),
    }
    reading = fake.look("vscode", on)
    assert fake.states(reading) == dict.fromkeys(files.items(), "never-read")
    todo = {each.server: each.problems[-1].todo for each in reading.declarations}
    assert "`servers`" in todo["a"]
    assert "mcp.json" in todo["c"]


def test_a_broken_file_has_its_line_and_column(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, USERS["linux"], '{\n  // mine\n  "servers": {\n    "a": }\n}\n')
    reading = fake.look("vscode", on)
    assert fake.states(reading) == {("", file): "broken"}
    assert (reading.declarations[0].spot.line, reading.declarations[0].spot.column) == (4, 10)


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("vscode", fake.stdio(env=fake.TOKEN, deny=("put",), enabled=False), on)
    assert made.entry == {
        "type": "stdio", "command": "uvx", "args": ["issues-mcp"], "env": {"TOKEN": "${env:TOKEN}", "LEVEL": "info"},
    }  # fmt: skip
    assert fake.lost(made) == {"capability.tools.deny": True, "enabled": True}
    remote = fake.written("vscode", fake.http(headers=fake.BEARER, policy=Policy(default_approval="writes")), on)
    assert remote.entry == {
        "type": "http", "url": "https://issues.example/mcp",
        "headers": {"Authorization": "Bearer ${env:TOKEN}", "X-Team": "a"},
    }  # fmt: skip
    assert fake.lost(remote) == {"policy.defaultApproval": False}, "it asks for everything"
    assert fake.back("vscode", remote).headers["X-Team"] == "a"


def test_a_sign_in_keeps_its_client_and_loses_what_secures_it(tmp_path: Path) -> None:
    from dataclasses import replace

    from interlock.manifest.config import HttpTransport

    server = fake.http()
    assert isinstance(server.transport, HttpTransport)
    oauth = OAuth(client_id="abc", issuer="https://login.example", scopes=("read",))
    made = fake.written(
        "vscode", replace(server, transport=replace(server.transport, oauth=oauth)), fake.machine(tmp_path)
    )
    assert made.entry["oauth"] == {"clientId": "abc"}
    assert fake.lost(made) == {"transports.http.oauth.issuer": True, "transports.http.oauth.scopes": True}


def test_interlocks_own_entry_needs_no_variables(tmp_path: Path) -> None:
    made = fake.written("vscode", None, fake.machine(tmp_path))
    assert made.entry == {"type": "stdio", "command": "/opt/bin/interlock", "args": ["connect", "--host", "vscode"]}
