from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.dialect import standing
from interlock.hosts.machine import Platform
from interlock.hosts.reading import BadEntry
from interlock.manifest.config import EnvValue, Policy, ToolOverride

FILE = "/home/ada/.config/goose/config.yaml"
RULES = "/home/ada/.config/goose/permission.yaml"
ONE = """\
# mine
GOOSE_MODE: approve
extensions:
  one:
    type: stdio
    name: one
    enabled: true
    cmd: one
    args: [-x]
    envs: {LEVEL: info}
    env_keys: [TOKEN]
    timeout: 30
    available_tools: [get]
"""


@pytest.mark.parametrize(
    ("platform", "file"),
    [
        ("linux", FILE),
        ("macos", "/Users/ada/.config/goose/config.yaml"),
        ("windows", "C:\\Users\\ada\\AppData\\Roaming\\Block\\goose\\config\\config.yaml"),
    ],
)
def test_its_file_on_every_platform(tmp_path: Path, platform: Platform, file: str) -> None:
    on = fake.machine(tmp_path, platform)
    fake.put(on, file, ONE)
    reading = fake.look("goose", on)
    assert fake.states(reading) == {("one", file): "effective"}
    found = reading.declarations[0].entry
    assert found is not None
    assert (found.command, found.env, found.env_names) == (("one", "-x"), {"LEVEL": "info"}, ("TOKEN",))
    assert (found.allow, found.call_seconds, found.ignored) == (("get",), 30, ())


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("{type: stdio, name: a, cmd: one, args: [], enabled: true}", "effective"),
        ("{type: stdio, name: a, cmd: one, args: [], enabled: false}", "disabled"),
        ("{type: stdio, name: a, cmd: one, args: []}", "disabled"),
        ("{type: stdio, name: a, cmd: one, enabled: true}", "broken"),
        ("{name: a, cmd: one, args: [], enabled: true}", "broken"),
        ("{type: sse, name: a, uri: 'https://x.example', enabled: true}", "broken"),
        ("{type: streamable_http, name: a, uri: 'https://x.example', enabled: true}", "effective"),
        ("{type: stdio, cmd: one, args: [], enabled: true}", "broken"),
        ("{type: stdio, name: 7, cmd: one, args: [], enabled: true}", "broken"),
        ("{type: stdio, name: a, cmd: one, args: [--port, 8080], enabled: true}", "broken"),
        ("{type: stdio, name: a, cmd: one, args: [], envs: {DEBUG: true}, enabled: true}", "broken"),
        ("{type: stdio, name: a, cmd: one, args: [], timeout: 1.5, enabled: true}", "broken"),
        ("{type: builtin, name: developer, enabled: true}", "effective"),
        ("{type: builtin, name: developer, enabled: false}", "disabled"),
    ],
)
def test_an_extension_is_off_unless_it_says_that_it_is_on(tmp_path: Path, text: str, state: str) -> None:
    on = fake.machine(tmp_path)
    fake.put(
        on,
        FILE,
        f"extensions:\n  a: {text}\n  other: {{type: stdio, name: other, cmd: two, args: [], enabled: true}}\n",
    )
    assert fake.states(fake.look("goose", on)) == {("a", FILE): state, ("other", FILE): "effective"}


def test_broken_yaml_takes_all_of_the_file(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, FILE, "extensions:\n  a: {type: stdio\n  b:\n")
    reading = fake.look("goose", on)
    assert fake.states(reading) == {("", FILE): "broken"}
    assert reading.declarations[0].spot.line > 1
    assert fake.adapter("goose").tolerance.fault.value == "file"


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("goose", fake.stdio(env=fake.TOKEN, allow=("get", "put"), deny=("put",)), on)
    assert made.entry == {
        "name": "issues", "type": "stdio", "enabled": True, "cmd": "uvx", "args": ["issues-mcp"],
        "envs": {"LEVEL": "info"}, "env_keys": ["TOKEN"], "available_tools": ["get"],
    }  # fmt: skip
    assert fake.lost(made) == {}
    assert fake.back("goose", made).env_names == ("TOKEN",)
    renamed = fake.written("goose", fake.stdio(env=(EnvValue("TOKEN", source="OTHER"),), enabled=False), on)
    assert fake.lost(renamed) == {"transports.stdio.env.TOKEN": True}
    assert renamed.entry["enabled"] is False
    remote = fake.written("goose", fake.http(headers=fake.BEARER, policy=Policy(tool_timeout_seconds=60)), on)
    assert remote.entry == {
        "name": "issues", "type": "streamable_http", "enabled": True, "uri": "https://issues.example/mcp",
        "headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "a"}, "env_keys": ["TOKEN"], "timeout": 60,
    }  # fmt: skip
    assert fake.back("goose", remote).transport == "http"


@pytest.mark.parametrize(
    ("server", "lost"),
    [
        (fake.stdio(allow=()), {"capability.tools.allow": True}),
        (fake.stdio(deny=("put",)), {"capability.tools.deny": True}),
        (fake.stdio(policy=Policy(default_approval="prompt")), {"policy.defaultApproval": True}),
        (fake.stdio(tools={"put": ToolOverride(approval="always")}), {"tools.put.approval": True}),
        (fake.stdio(policy=Policy(default_approval="auto")), {}),
    ],
)
def test_in_the_mode_that_never_asks_rules_are_lost(tmp_path: Path, server: object, lost: dict[str, bool]) -> None:
    made = fake.written("goose", server, fake.machine(tmp_path))  # type: ignore[arg-type]
    assert fake.lost(made) == lost
    assert made.edits == ()


def test_in_a_mode_that_asks_rules_join_what_stands_there(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, FILE, ONE)
    fake.put(
        on,
        RULES,
        "user:\n  always_allow: [other__x, issues__put]\n  ask_before: []\n  never_allow: []\nsmart_approve: {}\n",
    )
    tools = {"get": ToolOverride(approval="auto"), "put": ToolOverride(approval="prompt")}
    server = fake.stdio(deny=("wipe",), tools=tools)
    made = fake.written("goose", server, on)
    assert fake.lost(made) == {}
    fake.put(on, RULES, fake.applied(on, made.edits[0]))
    assert standing(on, RULES, "yaml", ("user",)) == {
        "always_allow": ["other__x", "issues__get"], "ask_before": ["issues__put"], "never_allow": ["issues__wipe"],
    }  # fmt: skip
    assert standing(on, RULES, "yaml", ("smart_approve",)) == {}
    assert fake.written("goose", server, on).edits == ()


def test_all_three_lists_are_made(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, FILE, ONE)
    made = fake.written("goose", fake.stdio(tools={"get": ToolOverride(approval="auto")}), on)
    fake.put(on, RULES, fake.applied(on, made.edits[0]))
    assert standing(on, RULES, "yaml", ("user",)) == {
        "always_allow": ["issues__get"], "ask_before": [], "never_allow": [],
    }  # fmt: skip


def test_interlocks_own_entry(tmp_path: Path) -> None:
    assert fake.written("goose", None, fake.machine(tmp_path)).entry == {
        "name": "issues", "type": "stdio", "enabled": True, "cmd": "/opt/bin/interlock",
        "args": ["connect", "--host", "goose"],
    }  # fmt: skip


@pytest.mark.parametrize(("name", "key"), [("My Tool", "mytool"), ("a.b-C_d", "a_b-c_d"), ("Ä1", "_1")])
def test_an_extensions_name_in_its_tools_names(name: str, key: str) -> None:
    from interlock.hosts.adapters import goose

    assert goose.key(name) == key


def test_a_type_that_it_does_not_know() -> None:
    with pytest.raises(BadEntry, match="no such"):
        fake.adapter("goose").read({"type": "http", "uri": "https://x.example"})
