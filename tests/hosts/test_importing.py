"""From hosts' files to manifest documents: each server once, differences shown, secrets by reference, nothing lost in silence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.adapters.fake import machine, put

from interlock.hosts import importing, inventory
from interlock.hosts.documents import Means, loaded
from interlock.hosts.importing import Import, Which
from interlock.hosts.machine import Machine
from interlock.manifest.config import HttpTransport, ServerConfig, StdioTransport

TARGET = Path("/home/ada/.interlock/interlock.yaml")
CURSOR = "/home/ada/.cursor/mcp.json"
DESKTOP = "/home/ada/.config/Claude/claude_desktop_config.json"
CODEX = "/home/ada/.codex/config.toml"
GEMINI = "/home/ada/.gemini/settings.json"
VSCODE = "/home/ada/.config/Code/User/mcp.json"
ZED = "/home/ada/.config/zed/settings.json"
GOOSE = "/home/ada/.config/goose/config.yaml"


def token(letter: str = "A") -> str:
    """A token of a known format that was never given out."""
    return "gh" + "p_" + letter * 36


def servers(entries: Mapping[str, object], root: str = "mcpServers") -> dict[str, object]:
    return {root: dict(entries)}


def take(
    on: Machine, which: Which = "user", existing: Mapping[str, ServerConfig] | None = None, means: Means | None = None
) -> Import:
    declarations = inventory.take(on, plugins=False).declarations
    return importing.take(declarations, on, target=TARGET, which=which, existing=existing, means=means)


def configs(made: Import, on: Machine) -> dict[str, ServerConfig]:
    """What the manifest's own loader makes of the text; it must find nothing wrong."""
    found, errors = loaded(made.text(), TARGET, "user", on.platform, on.environ)
    assert errors == []
    return {each.key: each for each in found}


def one(on: Machine, path: str, content: object, **more: Any) -> tuple[Import, ServerConfig]:
    put(on, path, content)
    made = take(on, **more)
    assert [each.why for each in made.left if each.problem] == []
    (config,) = configs(made, on).values()
    return made, config


def stdio(config: ServerConfig) -> StdioTransport:
    assert isinstance(config.transport, StdioTransport)
    return config.transport


def http(config: ServerConfig) -> HttpTransport:
    assert isinstance(config.transport, HttpTransport)
    return config.transport


def env(config: ServerConfig) -> dict[str, tuple[str | None, str | None]]:
    return {each.name: (each.source, each.literal) for each in stdio(config).env}


# One entry


def test_a_plain_entry(tmp_path: Path) -> None:
    on = machine(tmp_path)
    made, config = one(
        on, CURSOR, servers({"issues": {"command": "npx", "args": ["-y", "issue-server@2"], "env": {"LEVEL": "info"}}})
    )
    assert (config.key, config.integration_id, config.enabled) == ("issues", "local.issues", True)
    assert stdio(config).declared == ("npx", "-y", "issue-server@2")
    assert env(config) == {"LEVEL": (None, "info")}
    assert made.text().startswith("# From Cursor: ~/.cursor/mcp.json:3\n")


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        (CURSOR, servers({"s": {"command": "c", "env": {"A": "${env:B}"}}}), {"A": ("B", None)}),
        (GEMINI, servers({"s": {"command": "c", "env": {"A": "$B_C"}}}), {"A": ("B_C", None)}),
        (VSCODE, servers({"s": {"command": "c", "env": {"A": "${env:B}"}}}, "servers"), {"A": ("B", None)}),
        (CODEX, '[mcp_servers.s]\ncommand = "c"\nenv_vars = ["A", "B"]\n', {"A": ("A", None), "B": ("B", None)}),
        (
            GOOSE,
            "extensions:\n  s:\n    type: stdio\n    name: s\n    enabled: true\n    cmd: c\n    args: []\n    env_keys: [A]\n",
            {"A": ("A", None)},
        ),
        # A reference that its host passes on literally is still what its writer meant.
        (DESKTOP, servers({"s": {"command": "c", "env": {"A": "${B}"}}}), {"A": ("B", None)}),
    ],
    ids=["cursor", "gemini", "vscode", "codex", "goose", "claude-desktop"],
)
def test_variables_become_references(
    tmp_path: Path, path: str, content: object, expected: dict[str, tuple[str | None, str | None]]
) -> None:
    _made, config = one(machine(tmp_path), path, content)
    assert env(config) == expected


def test_what_a_host_asks_a_person_for_becomes_a_variable_with_a_note(tmp_path: Path) -> None:
    entry = {"command": "c", "env": {"KEY": "${input:api-key}"}}
    made, config = one(machine(tmp_path), VSCODE, {"servers": {"s": entry}, "inputs": [{"id": "api-key"}]})
    assert env(config) == {"KEY": ("API_KEY", None)}
    assert "API_KEY" in made.notes[0][2].text


@pytest.mark.parametrize(
    ("environ", "expected"), [({}, (None, "debug")), ({"LEVEL": "info"}, ("LEVEL", None))], ids=["unset", "set"]
)
def test_a_default_is_decided_now_and_said(
    tmp_path: Path, environ: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    on = machine(tmp_path, environ=environ)
    made, config = one(on, GEMINI, servers({"s": {"command": "c", "env": {"LOG": "${LEVEL:-debug}"}}}))
    assert env(config)["LOG"] == expected
    assert "default" in made.notes[0][2].text


def test_headers_in_variables(tmp_path: Path) -> None:
    text = (
        '[mcp_servers.s]\nurl = "https://mcp.example.com/mcp"\nbearer_token_env_var = "TOK"\n'
        'env_http_headers = { "X-Team" = "TEAM" }\nhttp_headers = { "X-Kind" = "plain" }\n'
    )
    _made, config = one(machine(tmp_path), CODEX, text)
    assert {each.name: (each.source, each.literal, each.prefix) for each in http(config).headers} == {
        "Authorization": ("TOK", None, "Bearer "),
        "X-Team": ("TEAM", None, ""),
        "X-Kind": (None, "plain", ""),
    }
    assert http(config).oauth is None


def test_a_remote_server_may_be_signed_in_to_as_before(tmp_path: Path) -> None:
    on = machine(tmp_path)
    entries = {"far": {"url": "https://mcp.example.com/mcp"}, "near": {"url": "http://localhost:9/mcp"}}
    put(on, CURSOR, servers(entries))
    found = configs(take(on), on)
    assert http(found["far"]).oauth is not None
    assert http(found["near"]).oauth is None


def test_lists_approvals_times_and_switch(tmp_path: Path) -> None:
    text = """\
[mcp_servers.s]
command = "c"
enabled = false
enabled_tools = ["get", "find"]
disabled_tools = ["drop"]
default_tools_approval_mode = "prompt"
startup_timeout_sec = 45
tool_timeout_sec = 90
cwd = "/srv/data"

[mcp_servers.s.tools.get]
approval_mode = "approve"
"""
    made, config = one(machine(tmp_path), CODEX, text)
    assert config.enabled is False
    assert [rule.glob for rule in config.allow or ()] == ["get", "find"]
    assert [rule.glob for rule in config.deny] == ["drop"]
    assert config.policy.default_approval == "prompt"
    assert config.tools["get"].approval is not None
    assert (config.policy.startup_timeout_seconds, config.policy.tool_timeout_seconds) == (45.0, 90.0)
    assert stdio(config).declared_cwd == "/srv/data"
    assert made.servers[0].document["enabled"] is False


def test_cmd_is_for_windows_alone(tmp_path: Path) -> None:
    on = machine(tmp_path, "windows")
    put(on, "C:\\Users\\ada\\.cursor\\mcp.json", servers({"s": {"command": "cmd", "args": ["/c", "npx", "-y", "a@1"]}}))
    made = take(on)
    words = ["npx", "-y", "a@1"]
    assert made.servers[0].document["transports"] == {
        "stdio": {"commandByPlatform": {"windows": words, "linux": words, "macos": words}}
    }


@pytest.mark.parametrize(
    ("entry", "field", "words"),
    [
        ({"command": "c", "args": ["--token", "SECRET"]}, "args.1", "secret stands in its command"),
        ({"command": "c", "args": ["${env:X}"]}, "args.0", "fills in none there"),
        ({"command": "./run.sh"}, "command", "relative to the folder"),
        ({"command": "c", "args": ["${workspaceFolder}/x"]}, "args.0", "the folder that the host is opened in"),
        ({"command": "c", "env": {"A": "x-${env:X}"}}, "env.A", "longer text"),
        ({"url": "https://${env:HOST}/mcp"}, "url", "endpointEnv"),
    ],
)
def test_what_a_manifest_cannot_say_is_left_where_it_is(
    tmp_path: Path, entry: dict[str, Any], field: str, words: str
) -> None:
    on = machine(tmp_path)
    secret = token()
    if "args" in entry:
        entry = {**entry, "args": [secret if each == "SECRET" else each for each in entry["args"]]}
    put(on, CURSOR, servers({"s": entry}))
    made = take(on)
    assert made.servers == []
    (left,) = made.left
    assert (left.server, left.host, left.field) == ("s", "cursor", field)
    assert words in left.why
    assert secret not in repr(made)


# Secrets


def with_header(name: str, value: str) -> dict[str, object]:
    return {"url": "https://h.example/mcp", "headers": {name: value}}


@pytest.mark.parametrize(
    ("entry", "field", "variable"),
    [
        (lambda secret: {"command": "c", "env": {"API_KEY": secret}}, "env.API_KEY", "API_KEY"),
        (lambda secret: with_header("Authorization", f"Bearer {secret}"), "headers.Authorization", "MY_S_TOKEN"),
        (lambda secret: with_header("X-Api-Key", secret), "headers.X-Api-Key", "MY_S_X_API_KEY"),
        (lambda secret: {"url": f"https://h.example/mcp?token={secret}"}, "url", "MY_S_URL"),
        (lambda secret: {"command": "docker", "args": ["run", "-e", f"API_KEY={secret}", "img"]}, "env.API_KEY", "API_KEY"),
        (lambda secret: {"command": "docker", "args": ["run", f"--env=API_KEY={secret}", "img"]}, "env.API_KEY", "API_KEY"),
    ],
    ids=["env", "bearer", "header", "url", "docker", "docker-long"],
)  # fmt: skip
def test_a_literal_secret_becomes_a_reference_with_an_instruction(
    tmp_path: Path, entry: Any, field: str, variable: str
) -> None:
    on = machine(tmp_path)
    secret = token()
    made, config = one(on, CURSOR, servers({"my s": entry(secret)}))
    (found,) = made.secrets
    assert (found.server, found.field, found.variable, found.is_set) == ("my s", field, variable, False)
    assert found.spot is not None
    assert f"{CURSOR}:{found.spot.line}" in found.todo
    assert secret not in made.text()
    assert secret not in repr(made)
    assert secret not in repr(config)
    assert variable in made.text()


def test_a_variable_that_holds_it_already_is_used(tmp_path: Path) -> None:
    secret = token()
    on = machine(tmp_path, environ={"GITHUB_PAT": secret})
    made, config = one(on, CURSOR, servers({"s": {"command": "c", "env": {"TOKEN": secret}}}))
    assert env(config) == {"TOKEN": ("GITHUB_PAT", None)}
    assert [(each.variable, each.is_set, each.settled) for each in made.secrets] == [("GITHUB_PAT", True, True)]


def test_two_secrets_never_share_a_variable(tmp_path: Path) -> None:
    on = machine(tmp_path, environ={"TOKEN": "something else"})
    entries = {
        "a": {"command": "a", "env": {"KEY_TOKEN": token("A"), "TOKEN": token("C")}},
        "b": {"command": "b", "env": {"KEY_TOKEN": token("B")}},
        "c": {"command": "c", "env": {"KEY_TOKEN": token("A")}},
    }
    put(on, CURSOR, servers(entries))
    made = take(on)
    assert {(each.server, each.field): each.variable for each in made.secrets} == {
        ("a", "env.KEY_TOKEN"): "KEY_TOKEN",
        ("a", "env.TOKEN"): "A_TOKEN",
        ("b", "env.KEY_TOKEN"): "B_KEY_TOKEN",
        ("c", "env.KEY_TOKEN"): "KEY_TOKEN",
    }


def test_secrets_can_be_moved_into_files(tmp_path: Path) -> None:
    on = machine(tmp_path)
    secret = token()
    put(on, CURSOR, servers({"s": {"command": "c", "env": {"API_KEY": secret}}}))
    folder = Path("/home/ada/.interlock/secrets")
    made = take(on, means=Means(environ={}, secrets=folder, secrets_shown="~/.interlock/secrets"))
    assert made.servers[0].document["transports"] == {
        "stdio": {"command": ["c"], "env": {"API_KEY": {"fromFile": "~/.interlock/secrets/s-api_key"}}}
    }
    assert [(each.file, each.value) for each in made.secrets] == [(folder / "s-api_key", secret)]
    assert secret not in repr(made)


# Several hosts


def test_one_server_in_many_hosts_is_one_with_its_differences(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"issues": {"command": "npx", "args": ["-y", "s@1"], "env": {"A": "x", "MODE": "one"}}}))
    put(
        on, DESKTOP, servers({"issues": {"command": "/usr/bin/npx", "args": ["s@1"], "env": {"A": "x", "MODE": "two"}}})
    )
    put(
        on, CODEX,
        '[mcp_servers.tickets]\ncommand = "npx"\nargs = ["s@1"]\nenabled_tools = ["get", "put"]\ntool_timeout_sec = 9\n'
        'disabled_tools = ["drop"]\n[mcp_servers.tickets.env]\nB = "y"\n',
    )  # fmt: skip
    put(
        on, GEMINI,
        servers({"issues": {"command": "npx", "args": ["s@1"], "includeTools": ["get", "find"], "excludeTools": ["wipe"]}}),
    )  # fmt: skip
    made = take(on)
    (config,) = configs(made, on).values()
    assert env(config) == {"A": (None, "x"), "B": (None, "y"), "MODE": (None, "one")}
    assert [rule.glob for rule in config.allow or ()] == ["get"]
    assert {rule.glob for rule in config.deny} == {"drop", "wipe"}
    assert config.policy.tool_timeout_seconds == 9
    assert {source.declaration.host for source in made.servers[0].sources} == {
        "cursor", "claude-desktop", "codex", "gemini-cli"
    }  # fmt: skip
    fields = {each.field: each for each in made.differences}
    assert {"key", "command", "env.MODE", "env.A", "env.B", "capability.tools.allow", "capability.tools.deny"} <= set(
        fields
    )
    shown = {host: text for host, _spot, text in fields["env.MODE"].values}
    assert (shown["cursor"], shown["claude-desktop"], shown["codex"]) == ("one", "two", "(nothing)")
    spots = {host: spot for host, spot, _text in fields["env.MODE"].values}
    assert (spots["cursor"].file, spots["cursor"].line > 3) == (CURSOR, True)
    assert all(each.server == config.key for each in made.differences)


def test_the_strictest_approval_holds(tmp_path: Path) -> None:
    on = machine(tmp_path)
    entry = '[mcp_servers.s]\ncommand = "c"\ndefault_tools_approval_mode = "{}"\n'
    put(on, CODEX, entry.format("prompt"))
    put(on, GEMINI, servers({"s": {"command": "c", "trust": True}}))
    made = take(on)
    (config,) = configs(made, on).values()
    assert config.policy.default_approval == "prompt"


@pytest.mark.parametrize("keys", [("work", "home"), ("a", "b")])
def test_one_command_with_two_accounts_is_two_servers(tmp_path: Path, keys: tuple[str, str]) -> None:
    on = machine(tmp_path)
    first, second = ({"command": "c", "env": {"ACCOUNT": each}} for each in ("one", "two"))
    put(on, CURSOR, servers({keys[0]: first, keys[1]: second}))
    found = configs(take(on), on)
    assert {key: env(config)["ACCOUNT"][1] for key, config in found.items()} == {keys[0]: "one", keys[1]: "two"}


def test_one_command_under_two_keys_of_one_host_is_one_server(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"a": {"command": "c"}, "b": {"command": "c"}}))
    made = take(on)
    assert list(configs(made, on)) == ["a"]
    assert [each.field for each in made.differences] == ["key"]


def test_two_servers_under_one_key_get_two_keys(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"docs": {"command": "one"}}))
    put(on, DESKTOP, servers({"Docs": {"command": "two"}}))
    found = configs(take(on), on)
    assert {key: stdio(config).declared for key, config in found.items()} == {
        "docs": ("one",), "Docs-claude-desktop": ("two",)
    }  # fmt: skip


def test_a_set_reference_goes_before_a_secret_in_a_file(tmp_path: Path) -> None:
    secret = token()
    on = machine(tmp_path, environ={"ISSUES": "value of the variable"})
    put(on, CURSOR, servers({"s": {"command": "c", "env": {"TOKEN": secret}}}))
    put(on, GEMINI, servers({"s": {"command": "c", "env": {"TOKEN": "${ISSUES}"}}}))
    made = take(on)
    (config,) = configs(made, on).values()
    assert env(config) == {"TOKEN": ("ISSUES", None)}
    (difference,) = made.differences
    assert {text for _host, _spot, text in difference.values} == {"****", "${ISSUES}"}


@pytest.mark.parametrize(
    ("name", "key"), [("a/b", "a-b"), ("  spaced  ", "spaced"), ("tab\there", "tab-here"), ("x" * 80, "x" * 64)]
)
def test_names_become_valid_keys(tmp_path: Path, name: str, key: str) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({name: {"command": "c"}}))
    assert list(configs(take(on), on)) == [key]


# What is not imported


def test_what_is_not_read_or_is_interlocks_own_is_named(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(
        on, CURSOR,
        servers({"interlock": {"command": "/x/interlock", "args": ["connect"]}, "bad": {"args": []}, "ok": {"command": "c"}}),
    )  # fmt: skip
    made = take(on)
    assert list(configs(made, on)) == ["ok"]
    told = {each.server: (each.why, each.problem) for each in made.left}
    assert told["interlock"] == ("it is Interlock's own (`interlock connect`)", False)
    assert "cannot read it" in told["bad"][0]


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, '{"mcpServers": {')
    (left,) = take(on).left
    assert (left.server, left.host, left.problem) == ("", "cursor", True)


def test_scopes_are_kept_apart(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"mine": {"command": "c"}}))
    put(on, on.join(on.folder, ".cursor", "mcp.json"), servers({"ours": {"command": "./run.sh"}}))
    assert [each.key for each in take(on, "user").servers] == ["mine"]
    project = take(on, "project")
    assert project.servers[0].document["transports"] == {
        "stdio": {"command": ["${projectRoot}/run.sh"], "cwd": "${projectRoot}"}
    }
    everything = {each.key: each.document["transports"] for each in take(on, "all").servers}
    assert everything["ours"] == {"stdio": {"command": [f"{on.folder}/run.sh"], "cwd": on.folder}}


# With a manifest that is there


def existing(text: str, on: Machine) -> dict[str, ServerConfig]:
    found, errors = loaded(text, TARGET, "user", on.platform, on.environ)
    assert errors == []
    return {each.key: each for each in found}


DOCUMENT = "schemaVersion: agent-routing/v1\nintegrationId: acme.{key}\ntransports: {{stdio: {{command: {command}}}}}\n"


def test_what_the_manifest_has_is_not_written_twice(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"s": {"command": "npx", "args": ["-y", "a@1"]}, "new": {"command": "c"}}))
    made = take(on, existing=existing(DOCUMENT.format(key="other", command="[npx, a@1]"), on))
    assert [each.key for each in made.servers] == ["new"]
    assert [(each.key, each.sources[0].name) for each in made.present] == [("other", "s")]


def test_another_server_under_a_key_that_is_there_is_named(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"s": {"command": "one"}}))
    made = take(on, existing=existing(DOCUMENT.format(key="s", command="[two]"), on))
    assert (made.servers, made.present) == ([], [])
    assert f"{TARGET}:2" in made.left[0].why


def test_importing_again_adds_nothing(tmp_path: Path) -> None:
    on = machine(tmp_path, environ={"T": "value"})
    put(
        on, CURSOR,
        servers({
            "a": {"command": "npx", "args": ["-y", "a@1"], "env": {"TOKEN": "${env:T}", "L": "1"}},
            "b": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer ${env:T}"}},
            "c": {"url": "${env:T}"},
        }),
    )  # fmt: skip
    first = take(on)
    assert len(first.servers) == 3
    again = take(on, existing=configs(first, on))
    assert again.servers == []
    assert sorted(each.key for each in again.present) == ["a", "b", "c"]
    assert again.differences == []


def test_rules_for_groups_of_tools_never_loosen(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, "/home/ada/.claude.json", servers({"s": {"type": "stdio", "command": "c"}}))
    rules = {"allow": ["mcp__s__get_*"], "ask": ["mcp__s__put_*"], "deny": ["mcp__s__drop_*"]}
    put(on, "/home/ada/.claude/settings.json", {"permissions": rules})
    made = take(on)
    (config,) = configs(made, on).values()
    assert config.policy.default_approval == "prompt"
    assert config.tools == {}
    assert [rule.glob for rule in config.deny] == ["drop_*"]
    assert {note.field for _key, _host, note in made.notes} == {"approval of get_*", "approval of put_*"}
