from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine
from interlock.hosts.reading import BadEntry, Reading
from interlock.manifest.config import Policy, ServerConfig, ToolOverride

ONE, TWO, THREE = {"command": "one"}, {"command": "two", "args": ["-x"]}, {"url": "https://a.example/mcp"}


def user(on: Machine, content: object) -> str:
    return fake.put(on, on.user(".copilot", "mcp-config.json"), content)


def project(on: Machine, servers: object, *path: str) -> str:
    return fake.put(on, on.join(on.folder, *(path or (".mcp.json",))), {"mcpServers": servers})


def trust(on: Machine, *folders: str, key: str = "trusted_folders") -> str:
    return fake.put(on, on.user(".copilot", "config.json"), {key: list(folders or (on.folder,))})


def look(on: Machine) -> Reading:
    return fake.look("copilot-cli", on)


def test_the_workspace_replaces_the_users_entry_and_the_nearest_wins(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    trust(on)
    own = user(on, {"mcpServers": {"a": ONE, "u": ONE}})
    root, deep = project(on, {"a": TWO, "b": TWO}), project(on, {"a": THREE}, "sub", ".mcp.json")
    fake.put(on, "/home/ada/code/.mcp.json", {"mcpServers": {"above": ONE}})
    reading = look(replace(on, folder=on.join(on.folder, "sub")))
    assert fake.states(reading) == {
        ("a", deep): "effective", ("a", root): "shadowed", ("a", own): "shadowed", ("b", root): "effective",
        ("u", own): "effective",
    }  # fmt: skip
    assert fake.runs(reading)["a"] == "https://a.example/mcp"


def test_of_two_files_in_one_folder_one_counts(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    trust(on)
    github = project(on, {"g": ONE}, ".github", "mcp.json")
    assert fake.states(look(on)) == {("g", github): "effective"}
    plain = project(on, {"p": ONE})
    assert fake.states(look(on)) == {("p", plain): "effective", ("g", github): "never-read"}
    deep = project(on, {"d": ONE}, "sub", ".github", "mcp.json")
    below = look(replace(on, folder=on.join(on.folder, "sub")))
    assert fake.states(below) == {("d", deep): "effective", ("p", plain): "effective", ("g", github): "never-read"}


@pytest.mark.parametrize(
    ("folders", "key", "environ", "state"),
    [
        (None, "", {}, "blocked"),
        (["/home/ada/code/app"], "trusted_folders", {}, "effective"),
        (["/home/ada/code/app"], "trustedFolders", {}, "effective"),
        (["/home/ada/code"], "trusted_folders", {}, "effective"),
        (["/home/ada/code/app/sub", "/home/ada/wor"], "trusted_folders", {}, "blocked"),
        (None, "", {"COPILOT_ALLOW_ALL": "true"}, "effective"),
    ],
)
def test_a_folder_that_is_not_trusted_adds_nothing(
    tmp_path: Path, folders: list[str] | None, key: str, environ: dict[str, str], state: str
) -> None:
    on = fake.machine(tmp_path, environ=environ)
    if folders is not None:
        trust(on, *folders, key=key)
    own, near = user(on, {"mcpServers": {"a": ONE}}), project(on, {"a": TWO})
    reading = look(on)
    assert fake.states(reading) == {
        ("a", near): state, ("a", own): "shadowed" if state == "effective" else "effective",
    }  # fmt: skip
    assert ("folder-untrusted" in fake.codes(reading)) is (state == "blocked")


def test_each_file_needs_the_trust_of_its_own_folder(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    trust(on, on.join(on.folder, "sub"))
    root, deep = project(on, {"a": ONE}), project(on, {"b": ONE}, "sub", ".github", "mcp.json")
    below = replace(on, folder=on.join(on.folder, "sub"))
    assert fake.states(look(below)) == {("b", deep): "effective", ("a", root): "blocked"}


def test_a_repositorys_list_counts_in_a_trusted_folder_only(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    trust(on, on.join(on.folder, "sub"))
    own = user(on, {"mcpServers": {"a": ONE}})
    fake.put(on, on.join(on.folder, ".github", "copilot", "settings.json"), {"disabledMcpServers": ["a"]})
    assert fake.states(look(on)) == {("a", own): "effective"}
    assert fake.states(look(replace(on, folder=on.join(on.folder, "sub")))) == {("a", own): "disabled"}


@pytest.mark.parametrize(
    "where",
    [
        ".copilot/settings.json",
        "code/app/.github/copilot/settings.json",
        "code/app/.github/copilot/settings.local.json",
    ],
)
def test_the_lists_of_disabled_servers(tmp_path: Path, where: str) -> None:
    on = fake.machine(tmp_path)
    trust(on)
    own = user(on, {"mcpServers": {"a": ONE, "b": {**ONE, "disabled": True}}})
    file = fake.put(on, on.user(*where.split("/")), {"disabledMcpServers": ["a"]})
    reading = look(on)
    assert fake.states(reading) == {("a", own): "disabled", ("b", own): "effective"}
    assert reading.declarations[0].decided_by.spot is not None
    assert reading.declarations[0].decided_by.spot.file == file


@pytest.mark.parametrize(
    "raw",
    [
        {}, {"command": "one", "args": "x"}, {"command": "one", "env": {"A": 1}}, None, {"type": "foo", "url": "https://a"},
        {"url": "https://a", "headers": {"A": 1}}, {"command": "one", "tools": "*"}, {"type": "local", "url": "https://a"},
        {"command": "one", "timeout": "x"}, {"command": ["one"]},
    ],
)  # fmt: skip
def test_a_bad_entry_is_left_out_alone(tmp_path: Path, raw: object) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {"mcpServers": {"good": ONE, "bad": raw}})
    assert fake.states(look(on)) == {("good", own): "effective", ("bad", own): "broken"}


@pytest.mark.parametrize(
    ("raw", "entry"),
    [
        (THREE, Entry(transport="http", url="https://a.example/mcp")),
        ({**THREE, "type": "sse"}, Entry(transport="sse", url="https://a.example/mcp")),
        ({**ONE, **THREE}, Entry(transport="stdio", command=("one",))),
        ({"type": "local", **TWO, "cwd": "/x"}, Entry(transport="stdio", command=("two", "-x"), cwd="/x")),
        ({**ONE, "tools": ["*"]}, Entry(transport="stdio", command=("one",))),
        ({**ONE, "tools": []}, Entry(transport="stdio", command=("one",), allow=())),
        (
            {**ONE, "tools": ["a"], "timeout": 5000},
            Entry(transport="stdio", command=("one",), allow=("a",), call_seconds=5),
        ),
        (
            {**THREE, "oauth": {"clientId": "q"}},
            Entry(transport="http", url="https://a.example/mcp", oauth={"clientId": "q"}),
        ),
    ],
)
def test_what_an_entry_asks_for(raw: dict[str, object], entry: Entry) -> None:
    assert fake.adapter("copilot-cli").read(raw) == entry


def test_a_workspaces_file_needs_no_root_key_and_the_users_does(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    trust(on)
    user(on, {"u": ONE})
    near = fake.put(on, on.join(on.folder, ".mcp.json"), {"p": ONE, "q": THREE})
    assert fake.states(look(on)) == {("p", near): "effective", ("q", near): "effective"}


@pytest.mark.parametrize(
    "content", ['{/* x */"mcpServers":{"a":{"command":"one",},}}', '\ufeff{"mcpServers":{"a":{"command":"one"}}}']
)
def test_liberties(tmp_path: Path, content: str) -> None:
    on = fake.machine(tmp_path)
    own = user(on, content)
    assert fake.states(look(on)) == {("a", own): "effective"}


def test_a_broken_workspace_file_takes_itself_down_and_a_broken_users_file_all(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    trust(on)
    own = user(on, {"mcpServers": {"a": ONE}})
    near = fake.put(on, on.join(on.folder, ".mcp.json"), "{bad")
    assert fake.states(look(on)) == {("a", own): "effective", ("", near): "broken"}
    user(on, "{\n  bad")
    project(on, {"p": ONE})
    reading = look(on)
    assert fake.states(reading) == {("", own): "broken", ("p", near): "broken"}
    assert next(each.spot for each in reading.declarations if each.file == own).line == 2


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("code/app/.vscode/mcp.json", "servers"), ("code/app/.vscode/mcp.json", "mcpServers"),
        ("code/app/.copilot/mcp-config.json", "mcpServers"), (".copilot/mcp.json", "mcpServers"),
        (".copilot/settings.json", "mcpServers"), (".copilot/mcp-config.json", "servers"), ("code/app/.mcp.json", "servers"),
    ],
)  # fmt: skip
def test_what_is_never_read(tmp_path: Path, path: str, key: str) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.user(*path.split("/")), {key: {"a": ONE}})
    fake.put(on, on.user(".copilot", "config.json"), "{}")
    reading = look(on)
    assert fake.states(reading) == {("a", file): "never-read"}
    assert reading.declarations[0].problems[0].todo
    # What another host rightly reads is worth no more than a word.
    assert reading.declarations[0].problems[0].severity == ("note" if ".vscode" in path else "problem")


@pytest.mark.parametrize("path", [".mcp.json", ".vscode/mcp.json"])
def test_other_hosts_files_are_looked_at_only_where_it_is(tmp_path: Path, path: str) -> None:
    on = fake.machine(tmp_path)
    project(on, {"a": ONE}, *path.split("/"))
    assert look(on).declarations == []


STDIO: dict[str, object] = {"type": "stdio", "command": "uvx", "args": ["issues-mcp"]}
WRITTEN: list[tuple[str, ServerConfig | None, dict[str, object], dict[str, bool]]] = [
    ("secrets by reference", fake.stdio(env=fake.TOKEN), {**STDIO, "env": {"TOKEN": "${TOKEN}", "LEVEL": "info"},
                                                          "tools": ["*"]}, {}),
    (
        "headers", fake.http(headers=fake.BEARER),
        {"type": "http", "url": "https://issues.example/mcp",
         "headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "a"}, "tools": ["*"]}, {},
    ),
    ("lists", fake.stdio(allow=("get", "put", "drop"), deny=("dr*",)), {**STDIO, "tools": ["get", "put"]}, {}),
    ("deny alone", fake.stdio(deny=("wipe",)), {**STDIO, "tools": ["*"]}, {"capability.tools.deny": True}),
    ("nothing allowed", fake.stdio(allow=()), {**STDIO, "tools": []}, {}),
    (
        "it runs what calls itself read-only", fake.stdio(
            policy=Policy(default_approval="prompt", tool_timeout_seconds=45), tools={"put": ToolOverride(approval="always")}
        ),
        {**STDIO, "tools": ["*"], "timeout": 45000}, {"policy.defaultApproval": True},
    ),
    (
        "the one entry of Interlock", None,
        {"type": "stdio", "command": "/opt/bin/interlock", "args": ["connect", "--host", "copilot-cli"],
         "env": {"TOKEN": "${TOKEN}"}, "tools": ["*"]}, {},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("about", "server", "entry", "losses"), WRITTEN, ids=[each[0] for each in WRITTEN])
def test_what_is_written(
    tmp_path: Path, about: str, server: ServerConfig | None, entry: dict[str, object], losses: dict[str, bool]
) -> None:
    made = fake.written("copilot-cli", server, fake.machine(tmp_path))
    assert made.entry == entry
    assert fake.lost(made) == losses


@pytest.mark.parametrize(
    ("scope", "file"),
    [("user", "/home/ada/.copilot/settings.json"), ("project", "/home/ada/code/app/.github/copilot/settings.json")],
)
def test_off_is_a_list_elsewhere_and_is_read_back(tmp_path: Path, scope: str, file: str) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, file, '{\n  // mine\n  "disabledMcpServers": ["x"]\n}\n')
    made = fake.written("copilot-cli", fake.stdio(enabled=False), on, scope=scope)
    (edits,) = made.edits
    after = fake.applied(on, edits)
    assert "// mine" in after
    fake.put(on, file, after)
    trust(on)
    user(on, {"mcpServers": {"issues": dict(made.entry)}})
    assert look(on).declarations[0].state == "disabled"
    assert json.loads(after.replace("// mine", ""))["disabledMcpServers"] == ["x", "issues"]


def test_complaints_name_the_field() -> None:
    with pytest.raises(BadEntry) as error:
        fake.adapter("copilot-cli").read({"command": "one", "env": {"A": 1}})
    assert error.value.field == "env.A"
