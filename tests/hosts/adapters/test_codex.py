from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine, Platform
from interlock.hosts.reading import BadEntry, Reading
from interlock.manifest.config import (
    EnvValue,
    HeaderValue,
    HttpTransport,
    OAuth,
    Policy,
    ServerConfig,
    TokenSource,
    ToolOverride,
)


def user(on: Machine, text: str, trusted: str | None = None) -> str:
    trust = f"\n[projects.'{trusted}']\ntrust_level = \"trusted\"\n" if trusted else ""
    return fake.put(on, on.user(".codex", "config.toml"), text + trust)


def project(on: Machine, text: str, *below: str) -> str:
    return fake.put(on, on.join(on.folder, *below, ".codex", "config.toml"), text)


def look(on: Machine) -> Reading:
    return fake.look("codex", on)


@pytest.mark.parametrize(
    ("platform", "system"),
    [
        ("linux", "/etc/codex/config.toml"),
        ("macos", "/etc/codex/config.toml"),
        ("windows", "C:\\ProgramData\\OpenAI\\Codex\\config.toml"),
    ],
)
def test_layers_are_merged_field_by_field(tmp_path: Path, platform: Platform, system: str) -> None:
    on = fake.machine(tmp_path, platform)
    low = fake.put(on, system, '[mcp_servers.a]\ncommand = "low"\ntool_timeout_sec = 9\nenv = { Z = "low" }\n')
    own = user(on, '[mcp_servers.a]\ncommand = "own"\nargs = ["-v"]\nenv = { X = "own", Y = "own" }\n', on.folder)
    near = project(on, '[mcp_servers.a]\ncommand = "near"\nenv = { X = "near" }\n')
    reading = look(on)
    assert fake.states(reading) == {("a", low): "shadowed", ("a", own): "shadowed", ("a", near): "effective"}
    winner = next(each for each in reading.declarations if each.state == "effective")
    assert winner.runs == Entry(
        transport="stdio", command=("near", "-v"), env={"X": "near", "Y": "own", "Z": "low"}, call_seconds=9
    )
    assert {name: (spot.file, spot.line) for name, spot in winner.origins.items()} == {
        "command": (near, 2), "args": (own, 3), "tool_timeout_sec": (low, 3), "env.X": (near, 3), "env.Y": (own, 4),
        "env.Z": (low, 4),
    }  # fmt: skip
    losers = {each.file: dict(each.shadowed_fields) for each in reading.declarations if each.state == "shadowed"}
    assert {name: spot.file for name, spot in losers[own].items()} == {"command": near, "env.X": near}
    assert {name: spot.file for name, spot in losers[low].items()} == {"command": near}


def test_the_nearest_of_a_projects_files_wins(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user(on, "", on.folder)
    root = project(on, '[mcp_servers.a]\ncommand = "root"\nargs = ["-r"]\n')
    deep = project(on, '[mcp_servers.a]\ncommand = "deep"\n', "sub")
    below = replace(on, folder=on.join(on.folder, "sub"))
    reading = look(below)
    assert fake.states(reading) == {("a", deep): "effective", ("a", root): "shadowed"}
    assert fake.runs(reading) == {"a": ("deep", "-r")}


def test_a_layer_may_be_incomplete(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, "[mcp_servers.a]\nenabled = false\n", on.folder)
    near = project(on, '[mcp_servers.a]\ncommand = "one"\n')
    reading = look(on)
    assert fake.states(reading) == {("a", own): "shadowed", ("a", near): "disabled"}
    switched = next(each for each in reading.declarations if each.state == "disabled")
    assert switched.decided_by.rule == "entry-off"
    assert switched.decided_by.spot is not None
    assert (switched.decided_by.spot.file, switched.decided_by.spot.line) == (own, 2)


def test_two_right_files_can_be_wrong_together(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, '[mcp_servers.a]\ncommand = "one"\n\n[mcp_servers.other]\ncommand = "two"\n', on.folder)
    near = project(on, '[mcp_servers.a]\nurl = "https://a.example/mcp"\n')
    reading = look(on)
    assert fake.states(reading) == {("a", own): "broken", ("a", near): "broken", ("other", own): "broken"}
    assert "merge-invalid" in fake.codes(reading)
    other = next(each for each in reading.declarations if each.server == "other")
    assert other.decided_by.rule == "host-broken"
    problem = next(problem for each in reading.declarations for problem in each.problems)
    assert problem.spot is not None
    assert (problem.field, problem.spot.file, problem.spot.line) == ("url", near, 2)


def test_what_is_wrong_in_one_layer_may_be_replaced_by_another(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user(on, '[mcp_servers.a]\ncommand = "one"\ndefault_tools_approval_mode = "bad"\n', on.folder)
    near = project(on, '[mcp_servers.a]\ndefault_tools_approval_mode = "auto"\n')
    assert fake.states(look(on))[("a", near)] == "effective"


FATAL: list[tuple[str, str]] = [
    ('command = "a"\nurl = "https://a"', "url"),
    ('command = "a"\nbearer_token = "x"', "bearer_token"),
    ('url = "https://a"\nbearer_token = "x"', "bearer_token"),
    ('command = "a"\nhttp_headers = { A = "b" }', "http_headers"),
    ('command = "a"\nenv_http_headers = { A = "b" }', "env_http_headers"),
    ('command = "a"\nbearer_token_env_var = "X"', "bearer_token_env_var"),
    ('command = "a"\noauth = { client_id = "q" }', "oauth"),
    ('url = "https://a"\nenv = { A = "b" }', "env"),
    ('url = "https://a"\ncwd = "/"', "cwd"),
    ('url = "https://a"\nargs = ["x"]', "args"),
    ('url = "https://a"\nenv_vars = ["X"]', "env_vars"),
    ('url = "https://a"\nauth = "wrong"', "auth"),
    ('command = "a"\ndefault_tools_approval_mode = "never"', "default_tools_approval_mode"),
    ('command = "a"\ntools.t.approval_mode = "bad"', "tools.t.approval_mode"),
    ('command = "a"\nenv_vars = [{ name = "A", source = "elsewhere" }]', "env_vars.0"),
    ('command = "a"\nenv = { A = 1 }', "env.A"),
    ('command = ["a"]', "command"),
    ('command = "a"\nargs = "b"', "args"),
    ('command = "a"\nargs = [1]', "args"),
    ('command = "a"\nenabled = "no"', "enabled"),
    ('command = "a"\nstartup_timeout_sec = "10"', "startup_timeout_sec"),
    ('command = "a"\nstartup_timeout_sec = -1', "startup_timeout_sec"),
    ('command = "a"\nenabled_tools = "a"', "enabled_tools"),
    ("enabled = true", ""),
]


@pytest.mark.parametrize(
    ("text", "field"), FATAL, ids=[f"{field or 'nothing'}-{index}" for index, (_, field) in enumerate(FATAL)]
)
def test_one_entry_that_makes_no_sense_takes_all_down(tmp_path: Path, text: str, field: str) -> None:
    on = fake.machine(tmp_path)
    own = user(on, f'[mcp_servers.good]\ncommand = "good"\n\n[mcp_servers.bad]\n{text}\n')
    reading = look(on)
    assert fake.states(reading) == {("good", own): "broken", ("bad", own): "broken"}
    by = {each.server: each for each in reading.declarations}
    assert [problem.field for problem in by["bad"].problems] == [field]
    assert by["good"].decided_by.rule == "host-broken"
    assert by["good"].decided_by.spot == by["bad"].decided_by.spot
    assert by["bad"].decided_by.spot is not None
    assert by["bad"].decided_by.spot.line >= 4


def test_a_token_in_the_file_is_not_in_what_is_said_about_it(tmp_path: Path) -> None:
    secret = "gh" + "p_" + "A" * 36
    on = fake.machine(tmp_path)
    user(on, f'[mcp_servers.bad]\nurl = "https://a"\nbearer_token = "{secret}"\n')
    reading = look(on)
    assert secret not in repr([(each.problems, each.decided_by) for each in reading.declarations])


@pytest.mark.parametrize(
    ("text", "line"), [("x = 1\na = ]\n", 2), ('[mcp_servers.a]\ncommand = "a"\ncommand = "b"\n', 3)]
)
def test_a_file_that_cannot_be_read_takes_all_down(tmp_path: Path, text: str, line: int) -> None:
    on = fake.machine(tmp_path)
    own = user(on, '[mcp_servers.a]\ncommand = "one"\n', on.folder)
    near = project(on, text)
    reading = look(on)
    assert fake.states(reading) == {("", near): "broken", ("a", own): "broken"}
    spot = next(each.spot for each in reading.declarations if each.server is None)
    assert spot.line == line


def test_a_byte_order_mark_and_windows_line_ends_are_taken(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, '\ufeff[mcp_servers.a]\r\ncommand = "one"\r\n')
    assert fake.states(look(on)) == {("a", own): "effective"}


@pytest.mark.parametrize(
    "text", ["a = [\n", '[mcp_servers.a]\nurl = "x"\ncommand = "y"\n', '[mcp_servers.a]\ncommand = "near"\n']
)
def test_an_untrusted_projects_file_does_neither_good_nor_harm(tmp_path: Path, text: str) -> None:
    on = fake.machine(tmp_path)
    own = user(on, '[mcp_servers.a]\ncommand = "one"\n')
    project(on, text)
    reading = look(on)
    assert fake.states(reading)[("a", own)] == "effective"
    blocked = next(each for each in reading.declarations if each.scope == "project")
    assert (blocked.state, blocked.decided_by.rule) == ("blocked", "untrusted")
    assert [problem.code for problem in blocked.problems] == ["project-untrusted"]
    assert f'[projects."{on.folder}"]' in blocked.problems[0].todo


@pytest.mark.parametrize(
    ("rules", "root", "deep"),
    [
        ({"": "trusted"}, "effective", "effective"),
        ({"sub": "trusted"}, "blocked", "effective"),
        ({"": "trusted", "sub": "untrusted"}, "effective", "blocked"),
        ({"": "untrusted"}, "blocked", "blocked"),
        ({"..": "trusted"}, "blocked", "blocked"),
    ],
)
def test_trust_is_asked_of_the_folder_then_of_the_root(
    tmp_path: Path, rules: dict[str, str], root: str, deep: str
) -> None:
    on = fake.machine(tmp_path)
    keys = {on.paths.normpath(on.join(on.folder, part)): level for part, level in rules.items()}
    user(on, "".join(f'[projects."{key}"]\ntrust_level = "{level}"\n' for key, level in keys.items()))
    first = project(on, '[mcp_servers.r]\ncommand = "r"\n')
    second = project(on, '[mcp_servers.d]\ncommand = "d"\n', "sub")
    assert fake.states(look(replace(on, folder=on.join(on.folder, "sub")))) == {("r", first): root, ("d", second): deep}


def test_disabled_does_nothing(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, '[mcp_servers.a]\ncommand = "one"\ndisabled = true\ntype = "http"\nheaders = { A = "b" }\n')
    reading = look(on)
    assert fake.states(reading) == {("a", own): "effective"}
    assert reading.declarations[0].entry is not None
    assert set(reading.declarations[0].entry.ignored) == {"disabled", "type", "headers"}


@pytest.mark.parametrize(
    ("name", "state"), [("my server", "broken"), ("größe", "broken"), ("a:b@c/d.e-f_1", "effective")]
)
def test_names_that_never_start(tmp_path: Path, name: str, state: str) -> None:
    on = fake.machine(tmp_path)
    own = user(on, f'[mcp_servers."{name}"]\ncommand = "one"\n\n[mcp_servers.b]\ncommand = "two"\n')
    # The host is not broken by it: only this server is missing.
    assert fake.states(look(on)) == {(name, own): state, ("b", own): "effective"}


@pytest.mark.parametrize(
    ("rules", "a", "b"),
    [
        ('[mcp_servers.a.identity]\ncommand = "one"\n', "effective", "blocked"),
        ('[mcp_servers.a.identity]\ncommand = "two"\n', "blocked", "blocked"),
        ("[mcp_servers]\n", "blocked", "blocked"),
        ('[mcp_servers.b.identity]\nurl = "https://b"\n', "blocked", "effective"),
        ("other = 1\n", "effective", "effective"),
    ],
)
def test_requirements_name_the_servers_that_may_run(tmp_path: Path, rules: str, a: str, b: str) -> None:
    on = fake.machine(tmp_path)
    own = user(on, '[mcp_servers.a]\ncommand = "one"\n\n[mcp_servers.b]\nurl = "https://b"\n')
    fake.put(on, "/etc/codex/requirements.toml", rules)
    assert fake.states(look(on)) == {("a", own): a, ("b", own): b}


def test_other_tables_and_files_are_never_read(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    own = user(on, '[mcpServers.a]\ncommand = "one"\n\n[mcp.servers.b]\ncommand = "two"\n')
    file = fake.put(on, on.user(".codex", "mcp.json"), {"mcpServers": {"c": {"command": "three"}}})
    reading = look(on)
    assert fake.states(reading) == {("a", own): "never-read", ("b", own): "never-read", ("c", file): "never-read"}
    assert all("[mcp_servers.NAME]" in each.problems[-1].todo for each in reading.declarations)


def test_everything_that_an_entry_says(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user(
        on,
        '[mcp_servers.a]\nurl = "https://a"\nbearer_token_env_var = "TOKEN"\nenv_http_headers = { X = "XVAR" }\n'
        'http_headers = { Y = "y" }\nenabled_tools = ["get"]\ndisabled_tools = ["wipe"]\n'
        'default_tools_approval_mode = "prompt"\nstartup_timeout_ms = 5000\nstartup_timeout_sec = 7\n'
        'scopes = ["r", "w"]\noauth_resource = "res"\n[mcp_servers.a.oauth]\nclient_id = "cli"\ncallback_port = 3\n'
        '[mcp_servers.a.tools.get]\napproval_mode = "approve"\n',
    )
    assert look(on).declarations[0].runs == Entry(
        transport="http", url="https://a", headers={"Y": "y"},
        header_names={"X": ("", "XVAR"), "Authorization": ("Bearer ", "TOKEN")}, allow=("get",), deny=("wipe",),
        approvals={"*": "prompt", "get": "auto"}, startup_seconds=7,
        oauth={"scopes": "r w", "resource": "res", "clientId": "cli", "callbackPort": "3"},
    )  # fmt: skip


STDIO: dict[str, object] = {"command": "uvx", "args": ["issues-mcp"]}
WRITTEN: list[tuple[str, ServerConfig | None, dict[str, object], dict[str, bool]]] = [
    ("secrets by name", fake.stdio(env=fake.TOKEN), {**STDIO, "env": {"LEVEL": "info"}, "env_vars": ["TOKEN"]}, {}),
    (
        "a variable cannot change its name", fake.stdio(env=(EnvValue("TOKEN", source="ACME_TOKEN"),)), STDIO,
        {"transports.stdio.env.TOKEN": True},
    ),
    (
        "headers", fake.http(headers=fake.BEARER),
        {"url": "https://issues.example/mcp", "bearer_token_env_var": "TOKEN", "http_headers": {"X-Team": "a"}}, {},
    ),
    (
        "more headers", fake.http(
            headers=(HeaderValue("X-Key", source="KEY"), HeaderValue("X-Auth", source="KEY", prefix="Token "))
        ),
        {"url": "https://issues.example/mcp", "env_http_headers": {"X-Key": "KEY"}}, {"transports.http.headers.X-Auth": True},
    ),
    (
        "lists", fake.stdio(allow=("get", "put", "drop"), deny=("dr*", "wipe")),
        {**STDIO, "enabled_tools": ["get", "put"], "disabled_tools": ["wipe"]}, {},
    ),
    ("nothing allowed", fake.stdio(allow=()), STDIO, {}),
    (
        "globs", fake.stdio(allow=("get*",), deny=("admin*", "wipe")), {**STDIO, "disabled_tools": ["wipe"]},
        {"capability.tools.allow": True, "capability.tools.deny": True},
    ),
    (
        "approvals", fake.stdio(
            policy=Policy(default_approval="prompt"),
            tools={"get": ToolOverride(approval="auto", read=True), "put": ToolOverride(approval="always")},
        ),
        {**STDIO, "default_tools_approval_mode": "prompt", "tools": {"get": {"approval_mode": "approve"}}}, {},
    ),
    (
        "writes are what the manifest calls so, not the server", fake.stdio(
            policy=Policy(default_approval="writes"), tools=fake.READ_TOOL
        ),
        {**STDIO, "default_tools_approval_mode": "prompt", "tools": {"get": {"approval_mode": "approve"}}}, {},
    ),
    (
        "one tool asked for", fake.stdio(policy=Policy(default_approval="auto"), tools={"put": ToolOverride(approval="prompt")}),
        {**STDIO, "default_tools_approval_mode": "approve", "tools": {"put": {"approval_mode": "prompt"}}}, {},
    ),
    (
        "times in seconds", fake.stdio(policy=Policy(startup_timeout_seconds=10, tool_timeout_seconds=45)),
        {**STDIO, "startup_timeout_sec": 10, "tool_timeout_sec": 45}, {},
    ),
    ("off", fake.stdio(enabled=False), {**STDIO, "enabled": False}, {}),
    (
        "the one entry of Interlock", None,
        {"command": "/opt/bin/interlock", "args": ["connect", "--host", "codex"], "env_vars": ["TOKEN"]}, {},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("about", "server", "entry", "losses"), WRITTEN, ids=[each[0] for each in WRITTEN])
def test_what_is_written(
    tmp_path: Path, about: str, server: ServerConfig | None, entry: dict[str, object], losses: dict[str, bool]
) -> None:
    made = fake.written("codex", server, fake.machine(tmp_path))
    assert made.entry == ({**entry, "enabled_tools": []} if about == "nothing allowed" else entry)
    assert fake.lost(made) == losses
    assert fake.adapter("codex").read(dict(made.entry)).ignored == ()


def remote(**more: object) -> ServerConfig:
    server = fake.http()
    assert isinstance(server.transport, HttpTransport)
    return replace(server, transport=replace(server.transport, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("server", "entry", "losses"),
    [
        (
            remote(oauth=OAuth(client_id="cli", scopes=("r", "w"), resource="res", callback_port=3, client_secret_env="S")),
            {
                "url": "https://issues.example/mcp", "oauth": {"client_id": "cli", "callback_port": 3}, "scopes": ["r", "w"],
                "oauth_resource": "res",
            },
            {"transports.http.oauth.clientSecretEnv": True},
        ),
        (remote(token=TokenSource(env="PAT")), {"url": "https://issues.example/mcp", "bearer_token_env_var": "PAT"}, {}),
        (
            remote(token=TokenSource(file=Path("/run/pat"))), {"url": "https://issues.example/mcp"},
            {"transports.http.token": True},
        ),
        (remote(endpoint=None, endpoint_env="URL"), {}, {"transports.http.endpointEnv": True}),
        (remote(kind="sse"), {}, {"transports.http": True}),
    ],
)  # fmt: skip
def test_remote_servers(
    tmp_path: Path, server: ServerConfig, entry: dict[str, object], losses: dict[str, bool]
) -> None:
    made = fake.written("codex", server, fake.machine(tmp_path))
    assert made.entry == entry
    assert fake.lost(made) == losses


def test_what_is_written_is_read_back_the_same(tmp_path: Path) -> None:
    from interlock.hosts.text.editing import edited
    from interlock.hosts.writing import Edit, FileEdits

    on = fake.machine(tmp_path)
    server = fake.http(
        headers=fake.BEARER, allow=("get",), deny=("wipe",), tools={"put": ToolOverride(approval="prompt")},
        policy=Policy(default_approval="prompt", tool_timeout_seconds=45),
    )  # fmt: skip
    made = fake.written("codex", server, on)
    own = user(on, "# mine\n[mcp_servers.other]\ncommand = 'x' # keep\n")
    edits = FileEdits(
        file=own, format="toml", comments=True, edits=(Edit(("mcp_servers", "issues"), dict(made.entry)),)
    )
    after = edited(Path(on.real(own)).read_bytes(), edits)
    Path(on.real(own)).write_bytes(after)
    assert b"# mine" in after
    assert b"# keep" in after
    found = {each.server: each.runs for each in look(on).declarations}
    assert found["issues"] == fake.back("codex", made)
    assert found["issues"] == Entry(
        transport="http", url="https://issues.example/mcp", headers={"X-Team": "a"},
        header_names={"Authorization": ("Bearer ", "TOKEN")}, allow=("get",), deny=("wipe",), approvals={"*": "prompt"},
        call_seconds=45,
    )  # fmt: skip


def test_the_complaint_about_headers(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    user(on, '[mcp_servers.a]\nurl = "https://a"\nheaders = { A = "b" }\n')
    reading = look(on)
    check = fake.adapter("codex").entry_problems
    assert check is not None
    assert [problem.code for problem in check(reading.declarations[0], on)] == ["headers-ignored"]


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        (
            {"env_vars": ["A", {"name": "B", "source": "local"}, {"name": "C"}, {"name": "D", "source": "remote"}]},
            ("A", "B", "C"),
        )
    ],
)
def test_variables_of_another_machine_are_not_this_ones(raw: dict[str, object], names: tuple[str, ...]) -> None:
    assert fake.adapter("codex").read({"command": "a", **raw}).env_names == names
    with pytest.raises(BadEntry):
        fake.adapter("codex").read({"command": "a", "env_vars": [1]})
