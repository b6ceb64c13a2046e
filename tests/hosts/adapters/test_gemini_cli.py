from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine, Platform
from interlock.hosts.reading import BadEntry, Reading
from interlock.manifest.config import HttpTransport, OAuth, Policy, ServerConfig, ToolOverride

ONE, TWO, THREE = {"command": "one"}, {"command": "two", "args": ["-x"]}, {"httpUrl": "https://a.example/mcp"}
OPEN = {"security": {"folderTrust": {"enabled": False}}}


def user(on: Machine, content: object) -> str:
    return fake.put(on, on.user(".gemini", "settings.json"), content)


def project(on: Machine, content: object) -> str:
    return fake.put(on, on.join(on.folder, ".gemini", "settings.json"), content)


def look(on: Machine) -> Reading:
    return fake.look("gemini-cli", on)


@pytest.mark.parametrize(
    ("platform", "system", "defaults"),
    [
        ("linux", "/etc/gemini-cli/settings.json", "/etc/gemini-cli/system-defaults.json"),
        (
            "macos", "/Library/Application Support/GeminiCli/settings.json",
            "/Library/Application Support/GeminiCli/system-defaults.json",
        ),
        ("windows", "C:\\ProgramData\\gemini-cli\\settings.json", "C:\\ProgramData\\gemini-cli\\system-defaults.json"),
    ],
)  # fmt: skip
def test_the_nearer_file_replaces_the_whole_entry(
    tmp_path: Path, platform: Platform, system: str, defaults: str
) -> None:
    on = fake.machine(tmp_path, platform)
    own = user(on, {**OPEN, "mcpServers": {"a": TWO, "u": ONE}})
    near = project(on, {"mcpServers": {"a": {"command": "three"}, "b": TWO}})
    fake.put(on, defaults, {"mcpServers": {"u": TWO, "d": ONE}})
    fake.put(on, system, {"mcpServers": {"b": THREE}})
    reading = look(on)
    assert fake.states(reading) == {
        ("a", near): "effective", ("a", own): "shadowed", ("b", near): "shadowed", ("b", system): "effective",
        ("u", own): "effective", ("u", defaults): "shadowed", ("d", defaults): "effective",
    }  # fmt: skip
    assert fake.runs(reading) == {"a": ("three",), "b": "https://a.example/mcp", "u": ("one",), "d": ("one",)}


def test_only_the_working_directorys_file_counts(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user(on, OPEN)
    project(on, {"mcpServers": {"a": ONE}})
    below = Machine(platform="linux", home=on.home, folder=on.join(on.folder, "sub"), environ={}, root=on.root)
    assert look(below).declarations == []


@pytest.mark.parametrize(
    ("settings", "rules", "state"),
    [
        ({}, None, "blocked"),  # folder trust is on by default
        ({}, {}, "blocked"),
        (OPEN, None, "effective"),
        (OPEN, {"{folder}": "DO_NOT_TRUST"}, "effective"),
        ({}, {"{folder}": "TRUST_FOLDER"}, "effective"),
        ({}, {"{folder}": "DO_NOT_TRUST"}, "blocked"),
        ({}, {"{folder}/sub": "TRUST_PARENT"}, "effective"),
        ({}, {"/home/ada/code": "TRUST_FOLDER"}, "effective"),
        ({}, {"/home/ada/code": "TRUST_FOLDER", "{folder}": "DO_NOT_TRUST"}, "blocked"),
        ({}, {"/home/ada/code": "DO_NOT_TRUST", "{folder}": "TRUST_FOLDER"}, "effective"),
        ({}, {"/home/ada/code/ap": "TRUST_FOLDER"}, "blocked"),
    ],
)
def test_an_untrusted_folder_has_no_servers_at_all(
    tmp_path: Path, settings: dict[str, object], rules: dict[str, str] | None, state: str
) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {**settings, "mcpServers": {"a": ONE}})
    near = project(on, {"mcpServers": {"b": ONE}})
    if rules is not None:
        trusted = {path.replace("{folder}", on.folder): level for path, level in rules.items()}
        fake.put(on, on.user(".gemini", "trustedFolders.json"), trusted)
    reading = look(on)
    assert fake.states(reading) == {("a", own): state, ("b", near): state}
    assert ("folder-untrusted" in fake.codes(reading)) is (state == "blocked")


def test_a_project_cannot_declare_itself_trusted(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    near = project(on, {**OPEN, "mcpServers": {"b": ONE}})
    assert fake.states(look(on)) == {("b", near): "blocked"}


@pytest.mark.parametrize(
    ("name", "state"), [("GEMINI_CLI_TRUST_WORKSPACE", "effective"), ("GEMINI_RESTRICTED_MODE", "blocked")]
)
def test_variables_settle_trust(tmp_path: Path, name: str, state: str) -> None:
    on = fake.machine(tmp_path, environ={name: "true"})
    own = user(on, {"mcpServers": {"a": ONE}})
    assert fake.states(look(on)) == {("a", own): state}


@pytest.mark.parametrize(
    ("mine", "theirs", "states"),
    [
        ({"excluded": ["A"]}, {}, ("blocked", "effective")),
        ({"excluded": ["a"]}, {"excluded": ["b"]}, ("blocked", "blocked")),
        ({"allowed": ["a"]}, {}, ("effective", "blocked")),
        ({"allowed": ["a"]}, {"allowed": ["b"]}, ("blocked", "blocked")),
        ({"allowed": []}, {}, ("blocked", "blocked")),
        ({"allowed": ["a", "b"], "excluded": ["b"]}, {}, ("effective", "blocked")),
    ],
)
def test_lists_of_servers(
    tmp_path: Path, mine: dict[str, object], theirs: dict[str, object], states: tuple[str, str]
) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {**OPEN, "mcpServers": {"a": ONE, "b": ONE}, "mcp": mine})
    project(on, {"mcp": theirs})
    assert fake.states(look(on)) == {("a", own): states[0], ("b", own): states[1]}


def test_gemini_mcp_disable(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user(on, {**OPEN, "mcpServers": {"a": ONE}})
    file = fake.put(on, on.user(".gemini", "mcp-server-enablement.json"), {"a": {"enabled": False}})
    (found,) = look(on).declarations
    assert (found.state, found.decided_by.rule) == ("disabled", "list-off")
    assert found.decided_by.spot is not None
    assert found.decided_by.spot.file == file


def test_disabled_in_an_entry_does_nothing(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {**OPEN, "mcpServers": {"a": {**ONE, "disabled": True}}})
    reading = look(on)
    assert fake.states(reading) == {("a", own): "effective"}
    assert reading.declarations[0].entry is not None
    assert reading.declarations[0].entry.ignored == ("disabled",)


@pytest.mark.parametrize(
    ("content", "at"),
    [
        ('{\n  "mcpServers": {"a": {"command": "one"},}\n}', (2, 41)),
        ('\ufeff{"mcpServers": {"a": {"command": "one"}}}', (1, 1)),
        ('{\n  "mcpServers": {\n', (1, 1)),
        ("", (1, 1)),
    ],
)
def test_one_fault_in_a_file_and_it_does_not_start(tmp_path: Path, content: str, at: tuple[int, int]) -> None:
    on = fake.machine(tmp_path)
    user(on, {**OPEN, "mcpServers": {"u": ONE}})
    project(on, content)
    reading = look(on)
    assert {each.state for each in reading.declarations} == {"broken"}
    other = next(each for each in reading.declarations if each.server == "u")
    assert other.decided_by.rule == "host-broken"
    fault = next(each.fault for each in reading.seen if each.fault is not None)
    assert fault.spot is not None
    if at != (1, 1) or content.startswith("\ufeff"):
        assert (fault.spot.line, fault.spot.column) == at


def test_comments_are_taken(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(
        on,
        '// mine\n{"security": {"folderTrust": {"enabled": false}}, /* x */ "mcpServers": {"a": {"command": "one"}}}',
    )
    assert fake.states(look(on)) == {("a", own): "effective"}


def test_an_extensions_entry_gives_way_but_its_lists_stay(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user(
        on,
        {**OPEN, "mcpServers": {"a": {**ONE, "env": {"X": "mine"}, "includeTools": ["p", "q"], "excludeTools": ["z"]}}},
    )
    extension = {
        "command": "ext", "env": {"X": "its", "Y": "its"}, "includeTools": ["q", "r"], "excludeTools": ["y"],
    }  # fmt: skip
    file = fake.put(
        on, on.user(".gemini", "extensions", "e", "gemini-extension.json"), {"mcpServers": {"a": extension, "e": ONE}}
    )
    reading = look(on)
    assert fake.states(reading)[("a", file)] == "shadowed"
    assert fake.states(reading)[("e", file)] == "effective"
    winner = next(each for each in reading.declarations if each.server == "a" and each.state == "effective")
    assert winner.runs is not None
    assert winner.runs.command == ("one",)
    assert winner.runs.env == {"X": "mine", "Y": "its"}
    assert winner.runs.allow == ("q",)
    assert winner.runs.deny == ("z", "y")


@pytest.mark.parametrize(
    "raw",
    [{}, {"command": ["one"]}, {"command": "one", "args": "x"}, {"command": "one", "timeout": "5"},
     {"command": "one", "env": {"PORT": 8080}}, {"command": "one", "includeTools": "a"}],
)  # fmt: skip
def test_entries_that_make_no_sense(raw: dict[str, object]) -> None:
    with pytest.raises(BadEntry):
        fake.adapter("gemini-cli").read(raw)


@pytest.mark.parametrize(
    ("raw", "kind", "address"),
    [
        ({"url": "https://a"}, "http", "https://a"),
        ({"url": "https://a", "type": "sse"}, "sse", "https://a"),
        ({"url": "https://a", "type": "stdio"}, "http", "https://a"),
        ({"url": "https://a", "type": "pigeon"}, "http", "https://a"),
        ({"url": "https://a", "httpUrl": "https://b"}, "http", "https://b"),
        ({"command": "one", "url": "https://a"}, "http", "https://a"),
        ({"tcp": "127.0.0.1:1"}, "ws", "127.0.0.1:1"),
        ({"command": "one"}, "stdio", None),
    ],
)
def test_what_an_address_is_spoken_to(raw: dict[str, object], kind: str, address: str | None) -> None:
    read = fake.adapter("gemini-cli").read(raw)
    assert (read.transport, read.url) == (kind, address)


WRITTEN: list[tuple[str, ServerConfig | None, dict[str, object], dict[str, bool]]] = [
    (
        "secrets by reference", fake.stdio(env=fake.TOKEN),
        {"command": "uvx", "args": ["issues-mcp"], "env": {"TOKEN": "$TOKEN", "LEVEL": "info"}}, {},
    ),
    (
        "headers", fake.http(headers=fake.BEARER),
        {"type": "http", "url": "https://issues.example/mcp", "headers": {"Authorization": "Bearer $TOKEN", "X-Team": "a"}}, {},
    ),
    (
        "lists", fake.stdio(allow=("get", "put", "drop"), deny=("dr*", "wipe")),
        {"command": "uvx", "args": ["issues-mcp"], "includeTools": ["get", "put"], "excludeTools": ["wipe"]}, {},
    ),
    (
        "globs", fake.stdio(allow=("get*",), deny=("admin*", "wipe")),
        {"command": "uvx", "args": ["issues-mcp"], "excludeTools": ["wipe"]},
        {"capability.tools.allow": True, "capability.tools.deny": True},
    ),
    (
        "times", fake.stdio(policy=Policy(startup_timeout_seconds=10, tool_timeout_seconds=45)),
        {"command": "uvx", "args": ["issues-mcp"], "timeout": 45000}, {"policy.startupTimeoutSeconds": False},
    ),
    (
        "approvals: it asks for everything", fake.stdio(
            policy=Policy(default_approval="prompt"), tools={"get": ToolOverride(approval="auto", read=True)}
        ),
        {"command": "uvx", "args": ["issues-mcp"]}, {"tools.get.approval": False},
    ),
    ("off", fake.stdio(enabled=False), {"command": "uvx", "args": ["issues-mcp"]}, {"enabled": True}),
    (
        "the one entry of Interlock", None,
        {"command": "/opt/bin/interlock", "args": ["connect", "--host", "gemini-cli"], "env": {"TOKEN": "$TOKEN"}}, {},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("about", "server", "entry", "losses"), WRITTEN, ids=[each[0] for each in WRITTEN])
def test_what_is_written(
    tmp_path: Path, about: str, server: ServerConfig | None, entry: dict[str, object], losses: dict[str, bool]
) -> None:
    made = fake.written("gemini-cli", server, fake.machine(tmp_path))
    assert made.entry == entry
    assert fake.lost(made) == losses
    assert "trust" not in made.entry


def test_a_sign_in_names_its_secret_and_does_not_hold_it(tmp_path: Path) -> None:
    oauth = OAuth(client_id="cli", client_secret_env="SECRET", scopes=("read", "write"))
    server = fake.http()
    assert isinstance(server.transport, HttpTransport)
    from dataclasses import replace

    made = fake.written(
        "gemini-cli", replace(server, transport=replace(server.transport, oauth=oauth)), fake.machine(tmp_path)
    )
    assert made.entry["oauth"] == {
        "enabled": True, "clientId": "cli", "clientSecret": "$SECRET", "scopes": ["read", "write"],
    }  # fmt: skip
    assert made.losses == ()


def test_what_is_written_is_read_back_the_same(tmp_path: Path) -> None:
    server = fake.http(headers=fake.BEARER, allow=("get",), deny=("wipe",), policy=Policy(tool_timeout_seconds=45))
    assert fake.back("gemini-cli", fake.written("gemini-cli", server, fake.machine(tmp_path))) == Entry(
        transport="http", url="https://issues.example/mcp", headers={"Authorization": "Bearer $TOKEN", "X-Team": "a"},
        allow=("get",), deny=("wipe",), call_seconds=45,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["mcp.json", "mcp_config.json"])
def test_files_that_are_never_read(tmp_path: Path, name: str) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.join(on.folder, ".gemini", name), {"mcpServers": {"a": ONE}})
    reading = look(on)
    assert fake.states(reading) == {("a", file): "never-read"}
    assert "settings.json" in reading.declarations[0].problems[0].todo


def test_other_keys_are_never_read(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, {"mcp_servers": {"a": ONE}, "mcp": {"servers": {"b": ONE}}, "servers": {"c": ONE}})
    assert fake.states(look(on)) == {(name, own): "never-read" for name in "abc"}
