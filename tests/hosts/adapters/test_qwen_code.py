from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Machine
from interlock.hosts.reading import Reading
from interlock.manifest.config import Policy, ServerConfig, ToolOverride

ONE, TWO = {"command": "one"}, {"command": "two", "args": ["-x"]}


def user(on: Machine, content: object) -> str:
    return fake.put(on, on.user(".qwen", "settings.json"), content)


def project(on: Machine, content: object) -> str:
    return fake.put(on, on.join(on.folder, ".qwen", "settings.json"), content)


def look(on: Machine) -> Reading:
    return fake.look("qwen-code", on)


def test_the_project_replaces_the_users_entry(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own, near = user(on, {"mcpServers": {"a": TWO, "u": ONE}}), project(on, {"mcpServers": {"a": ONE}})
    reading = look(on)
    assert fake.states(reading) == {("a", near): "effective", ("a", own): "shadowed", ("u", own): "effective"}
    assert fake.runs(reading)["a"] == ("one",)


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ({"url": "https://a"}, "sse"),
        ({"url": "https://a", "type": "http"}, "sse"),
        ({"httpUrl": "https://a"}, "http"),
        ({"httpUrl": "https://a", "url": "https://b"}, "http"),
    ],
)
def test_a_url_means_sse_whatever_its_type_says(raw: dict[str, object], kind: str) -> None:
    assert fake.adapter("qwen-code").read(raw).transport == kind


@pytest.mark.parametrize(
    ("content", "state"),
    [
        ('{"mcpServers": {"b": {"command": "one"},}}', "broken"),
        ('\ufeff{"mcpServers": {"b": {"command": "one"}}}', "effective"),
        ('{/* x */ "mcpServers": {"b": {"command": "one"}}}', "effective"),
    ],
)
def test_a_broken_file_takes_only_itself_down(tmp_path: Path, content: str, state: str) -> None:
    on = fake.machine(tmp_path)
    own, near = user(on, {"mcpServers": {"a": ONE}}), project(on, content)
    assert fake.states(look(on)) == {("a", own): "effective", ("b", near): state}


@pytest.mark.parametrize(
    ("settings", "rules", "state"),
    [
        ({}, {"{folder}": "DO_NOT_TRUST"}, "effective"),  # folder trust is off by default
        ({"security": {"folderTrust": {"enabled": True}}}, {"{folder}": "DO_NOT_TRUST"}, "blocked"),
        ({"security": {"folderTrust": {"enabled": True}}}, {"/home/ada": "DO_NOT_TRUST"}, "effective"),
        ({"security": {"folderTrust": {"enabled": True}}}, {}, "effective"),
        (
            {"security": {"folderTrust": {"enabled": True}}}, {"{folder}": "DO_NOT_TRUST", "/home/ada": "TRUST_FOLDER"},
            "effective",
        ),
    ],
)  # fmt: skip
def test_an_untrusted_folder_loses_its_own_servers_only(
    tmp_path: Path, settings: dict[str, object], rules: dict[str, str], state: str
) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {**settings, "mcpServers": {"a": ONE, "b": TWO}})
    near = project(on, {"mcpServers": {"b": ONE}})
    trusted = {path.replace("{folder}", on.folder): level for path, level in rules.items()}
    fake.put(on, on.user(".qwen", "trustedFolders.json"), trusted)
    reading = look(on)
    assert fake.states(reading)[("b", near)] == state
    assert fake.states(reading)[("a", own)] == "effective"
    # What does not count hides nothing.
    assert fake.states(reading)[("b", own)] == ("effective" if state == "blocked" else "shadowed")


@pytest.mark.parametrize(
    ("mine", "theirs", "states"),
    [
        ({"excluded": ["a"]}, {}, ("blocked", "effective")),
        ({"excluded": ["A"]}, {}, ("effective", "effective")),
        ({"excluded": ["a"]}, {"excluded": ["b"]}, ("blocked", "blocked")),
        ({"allowed": ["a"]}, {}, ("effective", "blocked")),
        ({"allowed": ["a"]}, {"allowed": ["b"]}, ("effective", "effective")),
        ({"allowed": []}, {}, ("blocked", "blocked")),
        ({"allowed": ["a", "b"], "excluded": ["b"]}, {}, ("effective", "blocked")),
    ],
)
def test_lists_of_servers(
    tmp_path: Path, mine: dict[str, object], theirs: dict[str, object], states: tuple[str, str]
) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {"mcpServers": {"a": ONE, "b": ONE}, "mcp": mine})
    project(on, {"mcp": theirs})
    assert fake.states(look(on)) == {("a", own): states[0], ("b", own): states[1]}


def test_its_home_moves(tmp_path: Path) -> None:
    on = fake.machine(tmp_path, environ={"QWEN_HOME": "/srv/qwen"})
    file = fake.put(on, "/srv/qwen/settings.json", {"mcpServers": {"a": ONE}})
    assert fake.states(look(on)) == {("a", file): "effective"}


WRITTEN: list[tuple[str, ServerConfig | None, dict[str, object], dict[str, bool]]] = [
    (
        "secrets by reference", fake.stdio(env=fake.TOKEN),
        {"command": "uvx", "args": ["issues-mcp"], "env": {"TOKEN": "$TOKEN", "LEVEL": "info"}}, {},
    ),
    (
        "headers", fake.http(headers=fake.BEARER),
        {"httpUrl": "https://issues.example/mcp", "headers": {"Authorization": "Bearer $TOKEN", "X-Team": "a"}}, {},
    ),
    (
        "it runs what calls itself read-only", fake.stdio(
            policy=Policy(default_approval="prompt"), tools={"get": ToolOverride(approval="auto", read=True)}
        ),
        {"command": "uvx", "args": ["issues-mcp"]}, {"policy.defaultApproval": True, "tools.get.approval": False},
    ),
    (
        "one tool asked for", fake.stdio(tools={"put": ToolOverride(approval="always")}),
        {"command": "uvx", "args": ["issues-mcp"]}, {"tools.put.approval": True},
    ),
    (
        "the one entry of Interlock", None,
        {"command": "/opt/bin/interlock", "args": ["connect", "--host", "qwen-code"]}, {},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("about", "server", "entry", "losses"), WRITTEN, ids=[each[0] for each in WRITTEN])
def test_what_is_written(
    tmp_path: Path, about: str, server: ServerConfig | None, entry: dict[str, object], losses: dict[str, bool]
) -> None:
    made = fake.written("qwen-code", server, fake.machine(tmp_path))
    assert made.entry == entry
    assert fake.lost(made) == losses
    assert "trust" not in made.entry


def test_files_and_keys_that_are_never_read(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {"mcp_servers": {"a": ONE}})
    file = fake.put(on, on.join(on.folder, ".qwen", "mcp.json"), {"mcpServers": {"b": ONE}})
    assert fake.states(look(on)) == {("a", own): "never-read", ("b", file): "never-read"}
