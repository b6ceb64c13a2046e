from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine, Platform
from interlock.hosts.reading import BadEntry, Reading
from interlock.manifest.config import HttpTransport, OAuth, Policy, ServerConfig, ToolOverride

ONE, TWO, THREE = (
    {"command": "one"},
    {"command": "two", "args": ["-x"]},
    {"type": "http", "url": "https://a.example/mcp"},
)
Settings = dict[str, object]


def main(on: Machine, servers: Settings | None = None, **project: object) -> str:
    content: Settings = {"mcpServers": servers or {}}
    if project:
        content["projects"] = {on.folder: project}
    return fake.put(on, on.user(".claude.json"), content)


def shared(on: Machine, servers: Settings, *up: str) -> str:
    return fake.put(on, on.paths.normpath(on.join(on.folder, *up, ".mcp.json")), {"mcpServers": servers})


def settings(on: Machine, where: str, content: Settings) -> str:
    names = {
        "user": on.user(".claude", "settings.json"), "project": on.join(on.folder, ".claude", "settings.json"),
        "local": on.join(on.folder, ".claude", "settings.local.json"), "managed": "/etc/claude-code/managed-settings.json",
    }  # fmt: skip
    return fake.put(on, names[where], content)


def look(on: Machine) -> Reading:
    return fake.look("claude-code", on)


# Scopes


def test_local_then_project_then_user(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = main(on, {"a": ONE, "b": ONE, "u": ONE}, mcpServers={"a": TWO}, enabledMcpjsonServers=["a", "b", "p"],
               hasTrustDialogAccepted=True)  # fmt: skip
    near = shared(on, {"a": THREE, "b": THREE, "p": THREE})
    reading = look(on)
    found = {(each.scope, each.server): each.state for each in reading.declarations}
    assert found == {
        ("local", "a"): "effective", ("project", "a"): "shadowed", ("user", "a"): "shadowed", ("project", "b"): "effective",
        ("user", "b"): "shadowed", ("project", "p"): "effective", ("user", "u"): "effective",
    }  # fmt: skip
    assert fake.runs(reading) == {"a": ("two", "-x"), "b": THREE["url"], "p": THREE["url"], "u": ("one",)}
    loser = next(each for each in reading.declarations if each.server == "b" and each.state == "shadowed")
    assert loser.decided_by.spot is not None
    assert (loser.decided_by.rule, loser.decided_by.spot.file) == ("higher-scope", near)
    assert set(loser.shadowed_fields) == {"command"}
    assert own != near


def test_project_files_are_looked_for_past_the_repository(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    main(on)
    settings(on, "user", {"enableAllProjectMcpServers": True})
    near = shared(on, {"a": ONE})
    above = shared(on, {"a": TWO, "b": TWO}, "..")
    reading = look(on)
    assert fake.states(reading) == {("a", near): "effective", ("a", above): "shadowed", ("b", above): "effective"}
    loser = next(each for each in reading.declarations if each.state == "shadowed")
    assert loser.decided_by.rule == "nearer-file"


def test_local_servers_belong_to_the_repositorys_root(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    deep = on.join(on.folder, "sub")
    file = fake.put(
        on, on.user(".claude.json"),
        {"projects": {on.folder: {"mcpServers": {"root": ONE}}, deep: {"mcpServers": {"deep": ONE}},
                      "/home/ada/code": {"mcpServers": {"above": ONE}}}},
    )  # fmt: skip
    assert fake.states(look(replace(on, folder=deep))) == {("root", file): "effective"}


def test_windows_writes_its_projects_with_either_slash(tmp_path: Path) -> None:
    on = fake.machine(tmp_path, "windows")
    file = fake.put(
        on, on.user(".claude.json"), {"projects": {on.folder.replace("\\", "/"): {"mcpServers": {"a": ONE}}}}
    )
    assert fake.states(look(on)) == {("a", file): "effective"}


@pytest.mark.parametrize(
    ("platform", "managed"),
    [
        ("linux", "/etc/claude-code/managed-mcp.json"),
        ("macos", "/Library/Application Support/ClaudeCode/managed-mcp.json"),
        ("windows", "C:\\Program Files\\ClaudeCode\\managed-mcp.json"),
    ],
)
def test_where_there_is_a_managed_file_only_that_counts(tmp_path: Path, platform: Platform, managed: str) -> None:
    on = fake.machine(tmp_path, platform)
    own = main(on, {"a": ONE})
    fake.put(on, managed, {"mcpServers": {"m": TWO}})
    reading = look(on)
    assert fake.states(reading) == {("m", managed): "effective", ("a", own): "blocked"}
    assert next(each for each in reading.declarations if each.server == "a").decided_by.rule == "policy"


def test_its_folder_moves(tmp_path: Path) -> None:
    on = fake.machine(tmp_path, environ={"CLAUDE_CONFIG_DIR": "/srv/claude"})
    file = fake.put(on, "/srv/claude/.claude.json", {"mcpServers": {"a": ONE}})
    fake.put(on, on.user(".claude.json"), {"mcpServers": {"b": ONE}})
    assert fake.states(look(on)) == {("a", file): "effective"}


# Approval of a project's servers


@pytest.mark.parametrize(
    ("project", "where", "content", "state"),
    [
        ({}, "user", {}, "blocked"),
        ({"enabledMcpjsonServers": ["p"]}, "user", {}, "blocked"),
        ({"enabledMcpjsonServers": ["p"], "hasTrustDialogAccepted": True}, "user", {}, "effective"),
        ({}, "user", {"enableAllProjectMcpServers": True}, "effective"),
        ({}, "user", {"enabledMcpjsonServers": ["p"]}, "effective"),
        ({}, "project", {"enableAllProjectMcpServers": True}, "blocked"),
        ({"hasTrustDialogAccepted": True}, "project", {"enableAllProjectMcpServers": True}, "effective"),
        ({}, "local", {"enabledMcpjsonServers": ["p"]}, "blocked"),
        ({"hasTrustDialogAccepted": True}, "local", {"enabledMcpjsonServers": ["p"]}, "effective"),
        ({}, "user", {"enableAllProjectMcpServers": True, "disabledMcpjsonServers": ["p"]}, "disabled"),
        ({"disabledMcpjsonServers": ["p"]}, "user", {"enableAllProjectMcpServers": True}, "disabled"),
        ({}, "project", {"disabledMcpjsonServers": ["p"]}, "disabled"),
        ({}, "user", {"enableAllProjectMcpServers": "yes"}, "blocked"),
    ],
)
def test_approval(tmp_path: Path, project: Settings, where: str, content: Settings, state: str) -> None:
    on = fake.machine(tmp_path)
    own = main(on, {"p": TWO}, **project)
    near = shared(on, {"p": ONE})
    settings(on, where, content)
    reading = look(on)
    assert fake.states(reading)[("p", near)] == state
    assert ("not-approved" in fake.codes(reading)) is (state == "blocked")
    # What is not approved hides nothing.
    assert fake.states(reading)[("p", own)] == ("shadowed" if state == "effective" else "effective")


@pytest.mark.parametrize(
    ("path", "state"),
    [
        (("sub", ".claude", "settings.json"), "effective"),
        (("sub", ".claude", "settings.local.json"), "effective"),
        ((".claude", "settings.local.json"), "effective"),
        ((".claude", "settings.json"), "blocked"),
    ],
)
def test_whose_settings_count_below_the_root(tmp_path: Path, path: tuple[str, ...], state: str) -> None:
    on = fake.machine(tmp_path)
    main(on, hasTrustDialogAccepted=True)
    near = shared(on, {"p": ONE})
    fake.put(on, on.join(on.folder, *path), {"enableAllProjectMcpServers": True})
    assert fake.states(look(replace(on, folder=on.join(on.folder, "sub")))) == {("p", near): state}


@pytest.mark.parametrize(
    ("trusted", "state"), [("/home/ada/code/app/sub", "effective"), ("/home/ada/code/app", "effective")]
)
def test_trust_between_the_folder_and_the_root(tmp_path: Path, trusted: str, state: str) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, on.user(".claude.json"), {"projects": {trusted: {"hasTrustDialogAccepted": True}}})
    near = shared(on, {"p": ONE})
    below = replace(on, folder=on.join(on.folder, "sub"))
    settings(below, "project", {"enableAllProjectMcpServers": True})
    assert fake.states(look(below)) == {("p", near): state}


def test_trust_of_a_folder_above_is_not_enough(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, on.user(".claude.json"), {"projects": {"/home/ada/code": {"hasTrustDialogAccepted": True}}})
    near = shared(on, {"p": ONE})
    settings(on, "project", {"enableAllProjectMcpServers": True})
    assert fake.states(look(on)) == {("p", near): "blocked"}


# Lists and policy


@pytest.mark.parametrize(
    ("where", "content", "a", "b"),
    [
        ("user", {"deniedMcpServers": [{"serverName": "a"}]}, "blocked", "effective"),
        ("project", {"deniedMcpServers": [{"serverName": "a"}]}, "blocked", "effective"),
        ("managed", {"deniedMcpServers": [{"serverCommand": ["two", "-x"]}]}, "blocked", "effective"),
        ("managed", {"deniedMcpServers": [{"serverCommand": ["two"]}]}, "effective", "effective"),
        ("user", {"deniedMcpServers": [{"serverUrl": "https://*.example/*"}]}, "effective", "blocked"),
        ("user", {"allowedMcpServers": [{"serverName": "b"}]}, "blocked", "effective"),
        ("user", {"allowedMcpServers": []}, "blocked", "blocked"),
        # Once commands are listed, the name of a command's server is not enough.
        ("user", {"allowedMcpServers": [{"serverName": "a"}, {"serverCommand": ["other"]}]}, "blocked", "blocked"),
        ("user", {"allowedMcpServers": [{"serverName": "b"}, {"serverCommand": ["two", "-x"]}]}, "effective", "effective"),
        (
            "user", {"allowedMcpServers": [{"serverName": "a"}], "deniedMcpServers": [{"serverName": "a"}]}, "blocked",
            "blocked",
        ),
        ("user", {"disabledMcpServers": ["a"]}, "effective", "effective"),
    ],
)  # fmt: skip
def test_policy(tmp_path: Path, where: str, content: Settings, a: str, b: str) -> None:
    on = fake.machine(tmp_path)
    own = main(on, {"a": TWO, "b": THREE})
    file = settings(on, where, content)
    reading = look(on)
    assert fake.states(reading) == {("a", own): a, ("b", own): b}
    spots = [each.decided_by.spot for each in reading.declarations if each.state == "blocked"]
    assert all(spot is not None and spot.file == file for spot in spots)


def test_a_denied_server_still_hides_the_one_behind_it(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    main(on, {"a": ONE}, mcpServers={"a": TWO})
    settings(on, "user", {"deniedMcpServers": [{"serverCommand": ["two", "-x"]}]})
    assert {each.scope: each.state for each in look(on).declarations} == {"local": "blocked", "user": "shadowed"}


def test_of_what_is_neither_approved_nor_allowed_the_policy_is_named(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    main(on)
    shared(on, {"p": ONE})
    settings(on, "user", {"deniedMcpServers": [{"serverName": "p"}]})
    (found,) = look(on).declarations
    assert (found.state, found.decided_by.rule) == ("blocked", "policy")


def test_allow_lists_of_several_files_are_one(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = main(on, {"a": TWO, "b": THREE})
    settings(on, "user", {"allowedMcpServers": [{"serverName": "a"}]})
    settings(on, "project", {"allowedMcpServers": [{"serverName": "b"}]})
    assert fake.states(look(on)) == {("a", own): "effective", ("b", own): "effective"}
    settings(on, "managed", {"allowedMcpServers": [{"serverName": "b"}], "allowManagedMcpServersOnly": True})
    assert fake.states(look(on)) == {("a", own): "blocked", ("b", own): "effective"}


def test_a_projects_list_of_disabled_servers(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = main(on, {"a": ONE, "b": ONE}, disabledMcpServers=["a"])
    reading = look(on)
    assert fake.states(reading) == {("a", own): "disabled", ("b", own): "effective"}
    assert reading.declarations[0].decided_by.by == "disabledMcpServers"


def test_a_switch_in_the_entry_does_nothing(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = main(on, {"a": {**ONE, "disabled": True, "enabled": False}})
    reading = look(on)
    assert fake.states(reading) == {("a", own): "effective"}
    assert reading.declarations[0].entry is not None
    assert reading.declarations[0].entry.ignored == ("disabled", "enabled")


def test_permission_rules_belong_to_the_entry_that_runs(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    main(on, {"my.srv": ONE, "other": TWO})
    settings(on, "user", {"permissions": {"deny": ["mcp__my_srv__wipe", "Bash(rm)"], "allow": ["mcp__my_srv__get"]}})
    settings(on, "project", {"permissions": {"ask": ["mcp__my_srv__get", "mcp__my_srv"]}})
    runs = {each.server: each.runs for each in look(on).declarations}
    assert runs["my.srv"] == Entry(
        transport="stdio", command=("one",), deny=("wipe",), approvals={"get": "prompt", "*": "prompt"}
    )
    assert runs["other"] == Entry(transport="stdio", command=("two", "-x"))


# Faults


BAD: list[tuple[object, str]] = [
    ({"url": "https://a"}, "url"),
    ({"type": "foo", "url": "https://a"}, "type"),
    ({"command": "a", "args": "x"}, "args"),
    ({"command": "a", "args": [1]}, "args.0"),
    ({"args": []}, ""),
    ({"command": "a", "env": {"A": 1}}, "env.A"),
    (None, ""),
    ("x", ""),
    ({"type": "http", "command": "a"}, ""),
    ({"type": "stdio", "url": "https://a"}, ""),
    ({"command": ["a", "x"]}, "command"),
    ({"command": ""}, "command"),
    ({"type": "http", "url": "https://a", "headers": {"A": 1}}, "headers.A"),
    ({"command": "a", "timeout": "x"}, "timeout"),
    ({"type": "sse", "url": "https://a", "oauth": {"scopes": ["a"]}}, "oauth.scopes"),
]


@pytest.mark.parametrize(("raw", "field"), BAD)
def test_a_bad_entry_is_skipped_alone(tmp_path: Path, raw: object, field: str) -> None:
    on = fake.machine(tmp_path)
    own = main(on, {"good": ONE, "bad": raw})
    reading = look(on)
    assert fake.states(reading) == {("good", own): "effective", ("bad", own): "broken"}
    bad = next(each for each in reading.declarations if each.server == "bad")
    assert [(problem.code, problem.field) for problem in bad.problems] == [("entry-invalid", field)]


def test_a_skipped_entry_hides_nothing(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    main(on, {"a": ONE}, mcpServers={"a": {"url": "https://a"}})
    assert {each.scope: each.state for each in look(on).declarations} == {"local": "broken", "user": "effective"}


GOOD: list[Settings] = [
    {"type": "streamable-http", "url": "https://a"}, {"type": "http", "url": "not a url"}, {"command": "a", "timeout": 10},
    {"command": "a", "url": "https://a"}, {"type": "ws", "url": "ws://a"}, {"type": "http", "url": "https://a",
    "oauth": {"clientId": "q", "callbackPort": 8, "scopes": "a b"}},
]  # fmt: skip


@pytest.mark.parametrize("raw", GOOD)
def test_what_it_takes(raw: Settings) -> None:
    assert fake.adapter("claude-code").read(raw).transport in ("stdio", "http", "ws")


def test_reserved_names_are_not_loaded(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = main(on, {"workspace": ONE, "a b.c": ONE})
    assert fake.states(look(on)) == {("workspace", own): "broken", ("a b.c", own): "effective"}


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        ('{"mcpServers":{\n"a":{"command":"one",}}}', 2, 21),
        ('{\n // mine\n"mcpServers":{"a":{"command":"one"}}}', 2, 2),
        ('{"mcpServers":{\n"a":{"command" "one"}}}', 2, 16),
    ],
)
def test_a_projects_broken_file_takes_only_itself_down(tmp_path: Path, content: str, line: int, column: int) -> None:
    on = fake.machine(tmp_path)
    own = main(on, {"u": ONE})
    settings(on, "user", {"enableAllProjectMcpServers": True})
    near = fake.put(on, on.join(on.folder, ".mcp.json"), content)
    above = shared(on, {"par": ONE}, "..")
    reading = look(on)
    states = fake.states(reading)
    assert (states[("u", own)], states[("par", above)]) == ("effective", "effective")
    broken = [each for each in reading.declarations if each.file == near]
    assert {each.state for each in broken} == {"broken"}
    spot = broken[0].decided_by.spot
    assert spot is not None
    assert (spot.line, spot.column) == (line, column)


@pytest.mark.parametrize("content", ['{"mcpServers":{"a":{"command":"one"},}}', "{/* x */}", "", "{"])
def test_its_main_file_takes_all_down(tmp_path: Path, content: str) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, on.user(".claude.json"), content)
    settings(on, "user", {"enableAllProjectMcpServers": True})
    near = shared(on, {"p": ONE})
    reading = look(on)
    assert fake.states(reading)[("p", near)] == "broken"
    assert "host-broken" in fake.codes(reading)
    assert sum(each.file == on.user(".claude.json") for each in reading.declarations) <= 1


def test_what_it_takes_of_a_file(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = fake.put(
        on, on.user(".claude.json"), '\ufeff{"mcpServers":{"a":{"command":"one","args":["1"]},"a":{"command":"one"}}}'
    )
    reading = look(on)
    assert fake.states(reading) == {("a", own): "effective"}
    assert fake.runs(reading) == {"a": ("one",)}


# Wrong files


@pytest.mark.parametrize(
    "path",
    ["{home}/.mcp.json", "{folder}/.claude/.mcp.json", "{folder}/.claude/mcp.json", "{home}/.claude/.mcp.json",
     "{home}/.claude/mcp.json", "{home}/.claude/mcp_servers.json", "{home}/.claude/settings.json",
     "{folder}/.claude/settings.json", "{folder}/.claude/settings.local.json", "{folder}/.claude.json"],
)  # fmt: skip
def test_files_that_are_never_read(tmp_path: Path, path: str) -> None:
    on = Machine(platform="linux", home="/home/ada", folder="/srv/app", environ={}, root=str(tmp_path))
    file = fake.put(on, path.format(home=on.home, folder=on.folder), {"mcpServers": {"a": ONE}})
    reading = look(on)
    assert fake.states(reading) == {("a", file): "never-read"}
    assert reading.declarations[0].problems[-1].todo


def test_below_home_the_users_file_is_a_projects(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.user(".mcp.json"), {"mcpServers": {"a": ONE}})
    reading = look(on)
    assert fake.states(reading) == {("a", file): "blocked"}
    check = fake.adapter("claude-code").entry_problems
    assert check is not None
    assert [problem.code for problem in check(reading.declarations[0], on)] == ["home-as-project"]


def test_the_key_servers_is_never_read(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.join(on.folder, ".mcp.json"), {"servers": {"a": ONE}})
    assert fake.states(look(on)) == {("a", file): "never-read"}


# Writing


STDIO: Settings = {"type": "stdio", "command": "uvx", "args": ["issues-mcp"]}
WRITTEN: list[tuple[str, ServerConfig | None, Settings, dict[str, list[str]], dict[str, bool]]] = [
    (
        "secrets by reference", fake.stdio(env=fake.TOKEN), {**STDIO, "env": {"TOKEN": "${TOKEN}", "LEVEL": "info"}}, {}, {},
    ),
    (
        "headers", fake.http(headers=fake.BEARER),
        {"type": "http", "url": "https://issues.example/mcp",
         "headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "a"}}, {}, {},
    ),
    (
        "deny, with globs", fake.stdio(deny=("issues.delete", "admin.*")), STDIO,
        {"deny": ["mcp__issues__issues_delete", "mcp__issues__admin_*"]}, {},
    ),
    ("allow", fake.stdio(allow=("get",)), STDIO, {}, {"capability.tools.allow": True}),
    (
        "approvals", fake.stdio(
            policy=Policy(default_approval="prompt"),
            tools={"get": ToolOverride(approval="auto", read=True), "put": ToolOverride(approval="always")},
        ),
        STDIO, {"ask": ["mcp__issues__put"], "allow": ["mcp__issues__get"]}, {},
    ),
    ("ask for all", fake.stdio(policy=Policy(default_approval="prompt")), STDIO, {"ask": ["mcp__issues"]}, {}),
    ("all unasked", fake.stdio(policy=Policy(default_approval="auto")), STDIO, {"allow": ["mcp__issues"]}, {}),
    (
        "times", fake.stdio(policy=Policy(startup_timeout_seconds=10, tool_timeout_seconds=45)),
        {**STDIO, "timeout": 45000}, {}, {"policy.startupTimeoutSeconds": False},
    ),
    ("off", fake.stdio(enabled=False), STDIO, {}, {"enabled": True}),
    (
        "the one entry of Interlock", None,
        {"type": "stdio", "command": "/opt/bin/interlock", "args": ["connect", "--host", "claude-code"]}, {}, {},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("about", "server", "entry", "rules", "losses"), WRITTEN, ids=[each[0] for each in WRITTEN])
def test_what_is_written(
    tmp_path: Path, about: str, server: ServerConfig | None, entry: Settings, rules: dict[str, list[str]],
    losses: dict[str, bool],
) -> None:  # fmt: skip
    on = fake.machine(tmp_path)
    made = fake.written("claude-code", server, on)
    assert made.entry == entry
    assert fake.lost(made) == losses
    assert [each.file for each in made.edits] == ([on.user(".claude", "settings.json")] if rules else [])
    for each in made.edits:
        assert json.loads(fake.applied(on, each)) == {"permissions": rules}


def test_rules_that_stand_there_stay(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = settings(
        on, "user", {"model": "x", "permissions": {"deny": ["Bash(rm:*)", "mcp__issues__wipe"], "allow": ["Read"]}}
    )
    made = fake.written("claude-code", fake.stdio(deny=("wipe", "drop")), on)
    (edits,) = made.edits
    assert edits.file == file
    assert json.loads(fake.applied(on, edits)) == {
        "model": "x",
        "permissions": {"deny": ["Bash(rm:*)", "mcp__issues__wipe", "mcp__issues__drop"], "allow": ["Read"]},
    }
    Path(on.real(file)).write_text(fake.applied(on, edits))
    assert fake.written("claude-code", fake.stdio(deny=("wipe", "drop")), on).edits == ()


@pytest.mark.parametrize(
    ("scope", "file", "content"),
    [
        ("project", "{folder}/.claude/settings.json", {"disabledMcpjsonServers": ["issues"]}),
        ("local", "{home}/.claude.json", {"projects": {"{folder}": {"disabledMcpServers": ["issues"]}}}),
    ],
)
def test_off_for_one_project_is_a_list(tmp_path: Path, scope: str, file: str, content: Settings) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("claude-code", fake.stdio(enabled=False), on, scope=scope)
    assert made.losses == ()
    (edits,) = made.edits
    assert edits.file == file.format(home=on.home, folder=on.folder)
    text = json.dumps(content).replace("{folder}", on.folder)
    assert json.loads(fake.applied(on, edits)) == json.loads(text)


def test_a_projects_rules_go_into_the_projects_settings(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("claude-code", fake.stdio(deny=("wipe",)), on, scope="project")
    assert [each.file for each in made.edits] == [on.join(on.folder, ".claude", "settings.json")]
    assert "approve" in made.notes[0]


def test_a_sign_in(tmp_path: Path) -> None:
    server = fake.http()
    assert isinstance(server.transport, HttpTransport)
    oauth = OAuth(client_id="cli", scopes=("r", "w"), callback_port=3, client_secret_env="SECRET")
    made = fake.written(
        "claude-code", replace(server, transport=replace(server.transport, oauth=oauth)), fake.machine(tmp_path)
    )
    assert made.entry["oauth"] == {"clientId": "cli", "callbackPort": 3, "scopes": "r w"}
    assert fake.lost(made) == {"transports.http.oauth.clientSecretEnv": True}


def test_written_then_read_back_with_its_rules(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    server = fake.http(
        headers=fake.BEARER, deny=("wipe",), policy=Policy(tool_timeout_seconds=45),
        tools={"put": ToolOverride(approval="prompt"), "get": ToolOverride(approval="auto")},
    )  # fmt: skip
    made = fake.written("claude-code", server, on)
    main(on, {"issues": dict(made.entry)})
    for each in made.edits:
        fake.put(on, each.file, fake.applied(on, each))
    (found,) = look(on).declarations
    assert found.runs == Entry(
        transport="http", url="https://issues.example/mcp", headers={"Authorization": "Bearer ${TOKEN}", "X-Team": "a"},
        deny=("wipe",), approvals={"put": "prompt", "get": "auto"}, call_seconds=45,
    )  # fmt: skip


def test_a_url_needs_its_type() -> None:
    with pytest.raises(BadEntry) as error:
        fake.adapter("claude-code").read({"url": "https://a"})
    assert '"type": "http"' in error.value.todo
