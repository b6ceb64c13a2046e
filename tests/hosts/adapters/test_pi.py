from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform
from interlock.manifest.config import Policy, ToolOverride

LOW_TO_HIGH = (
    ("home", ".config", "mcp", "mcp.json"),
    ("home", ".agents", "mcp.json"),
    ("home", ".agents", "mcp", "mcp.json"),
    ("home", ".pi", "agent", "mcp.json"),
    ("folder", ".mcp.json"),
    ("folder", ".pi", "mcp.json"),
)


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
def test_six_files_over_each_other(tmp_path: Path, platform: Platform) -> None:
    on = fake.machine(tmp_path, platform)
    files = [on.join(on.home if where == "home" else on.folder, *parts) for where, *parts in LOW_TO_HIGH]
    for number, file in enumerate(files):
        fake.put(
            on,
            file,
            {"mcpServers": {"a": {"command": f"c{number}", f"x{number}": 1}, f"only{number}": {"command": "o"}}},
        )
    reading = fake.look("pi", on)
    states = fake.states(reading)
    assert [states["a", file] for file in files] == ["shadowed"] * 5 + ["effective"]
    assert [states[f"only{number}", file] for number, file in enumerate(files)] == ["effective"] * 6
    assert fake.runs(reading)["a"] == ("c5",)


def test_fields_are_merged_and_have_their_origins(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user = fake.put(
        on, on.user(".pi", "agent", "mcp.json"), {"mcpServers": {"a": {"command": "one", "env": {"X": "1"}}}}
    )
    project = fake.put(on, on.join(on.folder, ".pi", "mcp.json"), {"mcpServers": {"a": {"disabled": True}}})
    reading = fake.look("pi", on)
    assert fake.states(reading) == {("a", project): "disabled", ("a", user): "shadowed"}
    winner = next(each for each in reading.declarations if each.state == "disabled")
    assert winner.merged is not None
    assert (winner.merged.command, winner.merged.env) == (("one",), {"X": "1"})
    assert {name: spot.file for name, spot in winner.origins.items()} == {
        "command": user, "env": user, "disabled": project,
    }  # fmt: skip
    assert winner.decided_by.spot is not None
    assert winner.decided_by.spot.file == project


def test_another_way_to_reach_it_drops_the_old_ones_fields_and_secrets(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    low = {"url": "https://a.example", "headers": {"Authorization": "x"}, "idleTimeout": 3}
    fake.put(
        on,
        on.user(".pi", "agent", "mcp.json"),
        {"mcpServers": {"a": low, "b": low, "c": {"command": "one", "cwd": "/x"}}},
    )
    high = {"a": {"url": "https://b.example"}, "b": {"command": "two"}, "c": {"url": "https://c.example"}}
    fake.put(on, on.join(on.folder, ".mcp.json"), {"mcpServers": high})
    found = {each.server: each.merged for each in fake.look("pi", on).declarations if each.merged is not None}
    assert {name: (entry.transport, entry.headers, entry.cwd) for name, entry in found.items()} == {
        "a": ("http", {}, None), "b": ("stdio", {}, None), "c": ("http", {}, None),
    }  # fmt: skip


def test_a_layer_without_a_command_is_refused_when_it_stands_alone(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.join(on.folder, ".pi", "mcp.json"), {"mcpServers": {"a": {"disabled": False}}})
    reading = fake.look("pi", on)
    assert fake.states(reading) == {("a", file): "broken"}
    assert "entry-invalid" in fake.codes(reading)


def test_others_files_are_read_where_they_are_named(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, on.user(".cursor", "mcp.json"), {"mcpServers": {"cur": {"command": "one"}}})
    fake.put(on, on.user(".codex", "config.toml"), '[mcp_servers.cod]\ncommand = "two"\n')
    fake.put(on, on.join(on.folder, "opencode.json"), {"mcp": {"open": {"type": "local", "command": ["three", "-x"]}}})
    own = fake.put(on, on.user(".pi", "agent", "mcp.json"), {"mcpServers": {}})
    assert fake.runs(fake.look("pi", on)) == {}
    fake.put(on, own, '{\n  // mine\n  "imports": ["cursor", "codex", "opencode"],\n}\n')
    assert fake.runs(fake.look("pi", on)) == {"cur": ("one",), "cod": ("two",), "open": ("three", "-x")}


def test_the_agents_folder_may_be_elsewhere(tmp_path: Path) -> None:
    on = fake.machine(tmp_path, environ={"PI_CODING_AGENT_DIR": "~/pi"})
    file = fake.put(on, on.user("pi", "mcp.json"), {"mcp-servers": {"a": {"command": "one"}}})
    assert fake.states(fake.look("pi", on)) == {("a", file): "effective"}


def test_only_the_word_true_switches_off() -> None:
    read = fake.adapter("pi").read
    assert [read({"command": "one", "disabled": said}).enabled for said in (True, False, "true", 1)] == [
        False,
        True,
        True,
        True,
    ]
    assert read({"url": "https://x", "bearerTokenEnv": "T"}).header_names == {"Authorization": ("Bearer ", "T")}
    assert read({"socket": "/run/x"}).transport == "other"


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    server = fake.stdio(
        env=fake.TOKEN, allow=("get*",), deny=("get.secret",), enabled=False,
        policy=Policy(default_approval="prompt", tool_timeout_seconds=2.5),
    )  # fmt: skip
    made = fake.written("pi", server, on)
    assert made.entry == {
        "command": "uvx", "args": ["issues-mcp"], "env": {"TOKEN": "${TOKEN}", "LEVEL": "info"}, "disabled": True,
        "includeTools": ["get*"], "excludeTools": ["get.secret"], "approveTools": True, "requestTimeoutMs": 2500,
    }  # fmt: skip
    assert fake.lost(made) == {}
    read = fake.back("pi", made)
    assert (read.enabled, read.allow, read.deny) == (False, ("get*",), ("get.secret",))
    assert (read.approvals, read.call_seconds) == ({"*": "prompt"}, 2.5)
    assert fake.lost(fake.written("pi", fake.stdio(allow=()), on)) == {"capability.tools.allow": True}
    some = fake.stdio(policy=Policy(default_approval="auto"), tools={"put": ToolOverride(approval="prompt")})
    assert fake.written("pi", some, on).entry["approveTools"] == ["put"]
