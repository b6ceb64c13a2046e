from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine
from interlock.hosts.reading import Reading
from interlock.manifest.config import HttpTransport, OAuth, Policy, ServerConfig, ToolOverride

Raw = dict[str, object]


def local(*words: str, **more: object) -> Raw:
    return {"type": "local", "command": list(words), **more}


def remote(url: str = "https://a.example/mcp", **more: object) -> Raw:
    return {"type": "remote", "url": url, **more}


def user(on: Machine, content: object, name: str = "opencode.json") -> str:
    return fake.put(on, on.user(".config", "opencode", name), content)


def project(on: Machine, content: object, *path: str) -> str:
    return fake.put(on, on.join(on.folder, *(path or ("opencode.json",))), content)


def look(on: Machine) -> Reading:
    return fake.look("opencode", on)


def test_which_of_all_its_files_wins(tmp_path: Path) -> None:
    on = fake.machine(tmp_path, environ={"OPENCODE_CONFIG": "/srv/named.json", "OPENCODE_CONFIG_DIR": "/srv/dir"})
    low_to_high = [
        ("config.json", user), ("opencode.json", user), ("opencode.jsonc", user), ("/srv/named.json", None),
        ("opencode.json", project), ("opencode.jsonc", project), ("sub/opencode.json", project),
        ("sub/.opencode/opencode.json", project), (".opencode/opencode.json", project), (".opencode/opencode.jsonc", project),
        ("/home/ada/.opencode/opencode.json", None), ("/srv/dir/opencode.json", None),
    ]  # fmt: skip
    below = replace(on, folder=on.join(on.folder, "sub"))
    fake.put(on, "/home/ada/code/opencode.json", {"mcp": {"x": local("above")}})
    for index, (path, put) in enumerate(low_to_high):
        content = {"mcp": {"x": local(str(index))}}
        file = user(on, content, path) if put is user else (
            project(on, content, *path.split("/")) if put is project else fake.put(on, path, content)
        )  # fmt: skip
        reading = look(below)
        assert fake.runs(reading) == {"x": (str(index),)}, path
        winner = next(each for each in reading.declarations if each.state == "effective")
        assert winner.file == file


def test_outside_of_a_repository_all_folders_above_count(tmp_path: Path) -> None:
    on = Machine(platform="linux", home="/home/ada", folder="/srv/app/sub", environ={}, root=str(tmp_path))
    above = fake.put(on, "/srv/opencode.json", {"mcp": {"x": local("above")}})
    assert fake.states(look(on)) == {("x", above): "effective"}


def test_layers_are_merged_field_by_field(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {"mcp": {"x": local("one", "-v", environment={"A": "1", "B": "1"}, timeout=9000)}})
    near = project(on, {"mcp": {"x": local("two", environment={"B": "2"})}})
    reading = look(on)
    assert fake.states(reading) == {("x", own): "shadowed", ("x", near): "effective"}
    winner = next(each for each in reading.declarations if each.state == "effective")
    assert winner.runs == Entry(transport="stdio", command=("two",), env={"A": "1", "B": "2"}, startup_seconds=9)
    assert winner.origins["environment.A"].file == own
    assert winner.origins["command"].file == near
    loser = next(each for each in reading.declarations if each.state == "shadowed")
    assert set(loser.shadowed_fields) == {"type", "command", "environment.B"}


def test_a_stale_command_stays_and_is_not_used(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user(on, {"mcp": {"x": local("one", environment={"A": "1"})}})
    project(on, {"mcp": {"x": remote()}})
    assert [each.runs for each in look(on).declarations if each.state == "effective"] == [
        Entry(transport="http", url="https://a.example/mcp")
    ]


@pytest.mark.parametrize("switch", [{"enabled": False}, {"disabled": True}])
def test_half_an_entry_switches_off(tmp_path: Path, switch: Raw) -> None:
    on = fake.machine(tmp_path)
    own, near = user(on, {"mcp": {"x": local("one")}}), project(on, {"mcp": {"x": switch}})
    reading = look(on)
    assert fake.states(reading) == {("x", own): "shadowed", ("x", near): "disabled"}
    spot = next(each.decided_by.spot for each in reading.declarations if each.state == "disabled")
    assert spot is not None
    assert (spot.file, spot.line) == (near, 4)


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [
        ({"disabled": True}, {}, "disabled"),
        ({"disabled": True}, {"enabled": True}, "effective"),
        ({"disabled": False}, {"enabled": False}, "disabled"),
        ({"enabled": True}, {"disabled": True}, "disabled"),
        ({"enabled": False}, {"disabled": False}, "effective"),
        ({}, {"enabled": True, "disabled": True}, "effective"),
        ({"enabled": False}, {"enabled": True, "disabled": True}, "effective"),
    ],
)
def test_both_switches_are_one(tmp_path: Path, low: Raw, high: Raw, state: str) -> None:
    on = fake.machine(tmp_path)
    user(on, {"mcp": {"x": local("one", **low)}})
    near = project(on, {"mcp": {"x": local("two", **high)}})
    assert fake.states(look(on))[("x", near)] == state


def test_an_entry_of_the_newer_form_is_on_unless_it_says_otherwise(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user(on, {"mcp": {"x": local("one", enabled=False)}})
    near = project(on, {"mcp": {"servers": {"x": local("two")}}})
    assert fake.states(look(on))[("x", near)] == "effective"


def test_half_an_entry_alone_starts_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {"mcp": {"x": {"enabled": True}, "y": local("one")}})
    assert fake.states(look(on)) == {("x", own): "broken", ("y", own): "effective"}


def test_the_newer_form(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(
        on,
        {"mcp": {"servers": {"x": local("one", disabled=True), "y": remote(timeout={"startup": 100, "request": 2000})},
                 "z": local("two")}},
    )  # fmt: skip
    reading = look(on)
    assert fake.states(reading) == {("x", own): "disabled", ("y", own): "effective", ("z", own): "effective"}
    found = {each.server: each.runs for each in reading.declarations}
    assert found["y"] == Entry(transport="http", url="https://a.example/mcp", startup_seconds=0.1, call_seconds=2)


BAD: list[tuple[object, str]] = [
    ({"type": "local", "command": "a"}, "command"),
    ({"command": ["a"]}, ""),
    ({"type": "http", "url": "https://a"}, "type"),
    ({"type": "remote"}, ""),
    (local("a", environment={"A": 1}), "environment.A"),
    (local("a", timeout=0), "timeout"),
    (local("a", enabled="no"), "enabled"),
    (None, ""),
]


@pytest.mark.parametrize(("raw", "field"), BAD)
def test_one_bad_entry_stops_the_program(tmp_path: Path, raw: object, field: str) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {"mcp": {"good": local("one"), "bad": raw}})
    project(on, {"mcp": {"bad": local("fine")}})
    reading = look(on)
    assert {each.state for each in reading.declarations} == {"broken"}
    bad = next(each for each in reading.declarations if each.server == "bad" and each.file == own)
    assert [(problem.code, problem.field) for problem in bad.problems] == [("entry-invalid", field)]
    good = next(each for each in reading.declarations if each.server == "good")
    assert (good.decided_by.rule, good.decided_by.spot) == ("host-broken", bad.decided_by.spot)


def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user(on, {"mcp": {"x": local("one", env={"A": "1"}, bogus=1)}})
    (found,) = look(on).declarations
    assert found.runs == Entry(transport="stdio", command=("one",), ignored=("env", "bogus"))


@pytest.mark.parametrize(
    ("content", "state"),
    [
        ('{/* x */"mcp":{"x":{"type":"local","command":["a"],},},}', "effective"),
        ('\ufeff{"mcp":{"x":{"type":"local","command":["a"]}}}', "effective"),
        ('{"mcp":{"x":{"type":"local","command":["1"]},"x":{"type":"local","command":["a"]}}}', "effective"),
    ],
)
def test_liberties(tmp_path: Path, content: str, state: str) -> None:
    on = fake.machine(tmp_path)
    own = user(on, content)
    reading = look(on)
    assert fake.states(reading) == {("x", own): state}
    assert fake.runs(reading) == {"x": ("a",)}


def test_a_broken_file_stops_the_program(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own, near = user(on, {"mcp": {"x": local("one")}}), project(on, '{"mcp":\n {"x": ]}}')
    reading = look(on)
    assert fake.states(reading) == {("", near): "broken", ("x", own): "broken"}
    spot = next(each.spot for each in reading.declarations if each.server is None)
    assert (spot.line, spot.column) == (2, 8)


def test_other_keys_and_files_are_never_read(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {"mcpServers": {"a": {"command": "one"}}})
    file = project(on, {"mcp": {"b": local("one")}}, ".opencode", "mcp.json")
    assert fake.states(look(on)) == {("a", own): "never-read", ("b", file): "never-read"}


# Permission


@pytest.mark.parametrize(
    ("permission", "more", "allow", "deny", "approvals"),
    [
        ({"x_*": "ask", "x_del": "deny", "bash": "ask"}, {}, None, ("del",), {"*": "prompt"}),
        ({}, {"tools": {"x_del": False}}, None, ("del",), {}),
        ({"x_*": "deny", "x_get": "allow", "x_put": "ask"}, {}, ("get", "put"), (), {"get": "auto", "put": "prompt"}),
        ("ask", {}, None, (), {}),
        ({"y_*": "deny"}, {}, None, (), {}),
    ],
)
def test_rules_belong_to_the_entry_that_runs(
    tmp_path: Path, permission: object, more: Raw, allow: tuple[str, ...] | None, deny: tuple[str, ...],
    approvals: dict[str, str],
) -> None:  # fmt: skip
    on = fake.machine(tmp_path)
    user(on, {"mcp": {"x": local("one")}, "permission": permission, **more})
    runs = look(on).declarations[0].runs
    assert runs is not None
    assert (runs.allow, runs.deny, runs.approvals) == (allow, deny, approvals)


STDIO: Raw = {"type": "local", "command": ["uvx", "issues-mcp"], "enabled": True}
WRITTEN: list[tuple[str, ServerConfig | None, Raw, Raw, dict[str, bool]]] = [
    (
        "secrets by reference", fake.stdio(env=fake.TOKEN),
        {**STDIO, "environment": {"TOKEN": "{env:TOKEN}", "LEVEL": "info"}}, {}, {},
    ),
    (
        "headers", fake.http(headers=fake.BEARER),
        {"type": "remote", "url": "https://issues.example/mcp", "enabled": True,
         "headers": {"Authorization": "Bearer {env:TOKEN}", "X-Team": "a"}}, {}, {},
    ),
    (
        "deny, with globs", fake.stdio(deny=("issues.delete", "admin.*")), STDIO,
        {"issues_admin_*": "deny", "issues_issues_delete": "deny"}, {},
    ),
    (
        "allow", fake.stdio(allow=("get", "put*"), deny=("put_all",)), STDIO,
        {"issues_*": "deny", "issues_put*": "allow", "issues_get": "allow", "issues_put_all": "deny"}, {},
    ),
    (
        "approvals", fake.stdio(
            policy=Policy(default_approval="prompt"), tools={"get": ToolOverride(approval="auto", read=True)}
        ),
        STDIO, {"issues_*": "ask", "issues_get": "allow"}, {},
    ),
    (
        "what is not allowed is not asked for", fake.stdio(allow=("get",), tools={"put": ToolOverride(approval="prompt")}),
        STDIO, {"issues_*": "deny", "issues_get": "allow"}, {},
    ),
    ("all unasked", fake.stdio(policy=Policy(default_approval="auto")), STDIO, {"issues_*": "allow"}, {}),
    (
        "times", fake.stdio(policy=Policy(startup_timeout_seconds=10, tool_timeout_seconds=45)),
        {**STDIO, "timeout": 10000}, {}, {"policy.toolTimeoutSeconds": False},
    ),
    ("off", fake.stdio(enabled=False), {**STDIO, "enabled": False}, {}, {}),
    (
        "the one entry of Interlock", None,
        {"type": "local", "command": ["/opt/bin/interlock", "connect", "--host", "opencode"], "enabled": True}, {}, {},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("about", "server", "entry", "rules", "losses"), WRITTEN, ids=[each[0] for each in WRITTEN])
def test_what_is_written(
    tmp_path: Path, about: str, server: ServerConfig | None, entry: Raw, rules: Raw, losses: dict[str, bool]
) -> None:
    on = fake.machine(tmp_path)
    file = user(on, {"mcp": {}})
    made = fake.written("opencode", server, on)
    assert made.entry == entry
    assert fake.lost(made) == losses
    assert [each.file for each in made.edits] == ([file] if rules else [])
    for each in made.edits:
        assert list(json.loads(fake.applied(on, each))["permission"].items()) == list(rules.items())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ask", {"*": "ask", "issues_*": "ask", "issues_get": "allow"}),
        ({"bash": "deny"}, {"bash": "deny", "issues_*": "ask", "issues_get": "allow"}),
        # A general rule has to stand before the others, and after everybody's.
        ({"issues_get": "deny", "bash": "ask"}, {"bash": "ask", "issues_*": "ask", "issues_get": "allow"}),
        (
            {"issues_*": "ask", "issues_get": "allow", "*": "allow"},
            {"*": "allow", "issues_*": "ask", "issues_get": "allow"},
        ),
        ({"issues_*": "ask", "bash": "ask", "issues_get": "allow"}, None),
    ],
)
def test_the_order_of_rules(tmp_path: Path, before: object, after: Raw | None) -> None:
    on = fake.machine(tmp_path)
    server = fake.stdio(policy=Policy(default_approval="prompt"), tools={"get": ToolOverride(approval="auto")})
    file = user(on, {"permission": before})
    made = fake.written("opencode", server, on)
    if after is None:
        assert made.edits == ()
        return
    (edits,) = made.edits
    changed = fake.applied(on, edits)
    assert list(json.loads(changed)["permission"].items()) == list(after.items())
    fake.put(on, file, changed)
    assert fake.written("opencode", server, on).edits == ()


def test_a_sign_in_names_its_secret_and_does_not_hold_it(tmp_path: Path) -> None:
    server = fake.http()
    assert isinstance(server.transport, HttpTransport)
    oauth = OAuth(client_id="cli", client_secret_env="SECRET", scopes=("r", "w"))
    made = fake.written(
        "opencode", replace(server, transport=replace(server.transport, oauth=oauth)), fake.machine(tmp_path)
    )
    assert made.entry["oauth"] == {"clientId": "cli", "clientSecret": "{env:SECRET}", "scope": "r w"}
    assert made.losses == ()


def test_written_then_read_back_with_its_rules(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    server = fake.http(headers=fake.BEARER, allow=("get", "put"), tools={"put": ToolOverride(approval="prompt")})
    file = user(on, "{}")
    made = fake.written("opencode", server, on)
    for each in made.edits:
        fake.put(on, file, fake.applied(on, each))
    content = json.loads(Path(on.real(file)).read_text())
    user(on, {**content, "mcp": {"issues": dict(made.entry)}})
    (found,) = look(on).declarations
    assert found.runs == Entry(
        transport="http", url="https://issues.example/mcp", headers={"Authorization": "Bearer {env:TOKEN}", "X-Team": "a"},
        allow=("get", "put"), approvals={"get": "auto", "put": "prompt"},
    )  # fmt: skip
