"""`generate plugin`: exact files of each kind of plugin, what is refused and why, and whose files are never touched."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from tests.hosts.desk import DOCS, TIME, Desk, desk_at
from tests.hosts.tiny import gateway

from interlock.hosts import registry
from interlock.hosts.packing import FORMATS, KINDS, Packed, PluginKind, pack
from interlock.manifest.config import LossyPolicy

CLOCK = "integrationId: a.clock\ntransports: {stdio: {command: [uvx, clock, --zone, UTC], env: {MODE: quiet}}}\n"
WEB = 'integrationId: a.web\ntransports: {http: {endpoint: "https://x.example.com/mcp", headers: {X-Team: red}}}\n'
HOSTS = {"claude": "claude-code", "codex": "codex"}

SERVER = {
    "oneOf": [
        {
            "properties": {
                "type": {"const": "stdio"}, "command": {"type": "string", "pattern": r"^(?:\./.+|[^/\\]+)$"},
                "args": {"type": "array", "items": {"type": "string"}},
                "env": {"type": "object", "propertyNames": {"not": {"enum": ["PLUGIN_ROOT", "PLUGIN_DATA"]}},
                        "additionalProperties": {"type": "string"}},
                "cwd": {"type": "string", "pattern": r"^(?:\./|\$\{PLUGIN_ROOT\}|\$\{PLUGIN_DATA\})"},
            },
            "required": ["type", "command"], "additionalProperties": False,
        },
        {
            "properties": {
                "type": {"enum": ["streamable-http", "sse"]}, "url": {"type": "string", "minLength": 1},
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "required": ["type", "url"], "additionalProperties": False,
        },
    ],
}  # fmt: skip
"""The closed forms of an entry in Agent Plugins 1.0.0, in this test's own words."""


def packed(
    kind: PluginKind, folder: Path, *documents: str, connect: bool = False, lossy: LossyPolicy | None = None
) -> Packed:
    servers = list(gateway(folder, *documents).servers.values())
    adapter = registry.find(HOSTS[kind]) if kind in HOSTS else None
    return pack(kind, "team-tools", servers, adapter, connect=connect, lossy=lossy)


def values(made: Packed) -> dict[str, dict[str, object]]:
    return {path: json.loads(content) for path, content in made.files.items()}


def test_an_agent_plugin(tmp_path: Path) -> None:
    made = packed("agent", tmp_path, CLOCK, WEB)
    found = values(made)
    assert found == {
        "plugin.json": {
            "$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json",
            "name": "team-tools",
            "version": made.version,
            "description": "MCP servers: clock, web.",
        },
        "mcp.json": {
            "$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
            "mcpServers": {
                "clock": {
                    "type": "stdio", "command": "uvx", "args": ["clock", "--zone", "UTC"], "env": {"MODE": "quiet"},
                },
                "web": {
                    "type": "streamable-http", "url": "https://x.example.com/mcp", "headers": {"X-Team": "red"},
                },
            },
        },
    }  # fmt: skip
    validator = Draft202012Validator(SERVER)
    for entry in found["mcp.json"]["mcpServers"].values():  # type: ignore[attr-defined]
        validator.validate(entry)
    assert made.refused == ()


def test_a_claude_code_plugin(tmp_path: Path) -> None:
    made = packed("claude", tmp_path, CLOCK, WEB)
    found = values(made)
    assert found[".claude-plugin/plugin.json"] == {
        "name": "team-tools", "version": made.version, "description": "MCP servers: clock, web.",
    }  # fmt: skip
    assert found[".mcp.json"] == {
        "mcpServers": {
            "clock": {"type": "stdio", "command": "uvx", "args": ["clock", "--zone", "UTC"], "env": {"MODE": "quiet"}},
            "web": {"type": "http", "url": "https://x.example.com/mcp", "headers": {"X-Team": "red"}},
        }
    }


def test_a_codex_plugin(tmp_path: Path) -> None:
    held = CLOCK.replace("env: {MODE: quiet}", "envNames: [CLOCK_TOKEN]")
    made = packed("codex", tmp_path, held + "capability: {tools: {deny: [set]}}\n", WEB)
    found = values(made)
    assert found[".codex-plugin/plugin.json"] == {
        "name": "team-tools", "version": made.version, "description": "MCP servers: clock, web.",
        "mcpServers": "./.mcp.json",
    }  # fmt: skip
    assert found[".mcp.json"] == {
        "mcpServers": {
            "clock": {
                "command": "uvx", "args": ["clock", "--zone", "UTC"], "env_vars": ["CLOCK_TOKEN"],
                "disabled_tools": ["set"],
            },
            "web": {"url": "https://x.example.com/mcp", "http_headers": {"X-Team": "red"}},
        }
    }  # fmt: skip
    assert made.unset == ("CLOCK_TOKEN",)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_servers_give_the_same_bytes_and_others_another_version(tmp_path: Path, kind: PluginKind) -> None:
    first = packed(kind, tmp_path / "a", CLOCK, WEB)
    assert packed(kind, tmp_path / "b", CLOCK, WEB).files == first.files
    assert packed(kind, tmp_path / "c", CLOCK).version != first.version


@pytest.mark.parametrize("kind", KINDS)
def test_interlocks_own_entry(tmp_path: Path, kind: PluginKind) -> None:
    made = packed(kind, tmp_path, CLOCK, connect=True)
    entry = values(made)["mcp.json" if kind == "agent" else ".mcp.json"]["mcpServers"]["interlock"]  # type: ignore[index]
    assert entry["command"] == "interlock"
    assert entry["args"] == ["connect", *(["--host", HOSTS[kind]] if kind in HOSTS else [])]
    assert made.servers == ("interlock",)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (CLOCK.replace("env: {MODE: quiet}", "env: {K: {fromEnv: K}}"), "transports.stdio.env.K"),
        (CLOCK.replace("env: {MODE: quiet}", "envNames: [K]"), "transports.stdio.env.K"),
        (WEB.replace("red", '{fromEnv: K, prefix: "Bearer "}'), "transports.http.headers.X-Team"),
        ("integrationId: a.web\ntransports: {http: {endpointEnv: URL}}\n", "transports.http.endpointEnv"),
        (WEB.replace("https:", "http:"), "transports.http.endpoint"),
        (
            'integrationId: a.web\ntransports: {http: {endpoint: "https://x.example.com", auth: token, token: '
            "{fromEnv: T}}}\n",
            "transports.http.token",
        ),
        (CLOCK.replace("MODE: quiet", "PLUGIN_ROOT: x"), "transports.stdio.env.PLUGIN_ROOT"),
    ],
)
def test_an_agent_plugin_has_no_words_for_a_secret(tmp_path: Path, document: str, field: str) -> None:
    for lossy in ("error", "warn"):
        made = packed("agent", tmp_path / lossy, document, CLOCK.replace("a.clock", "a.other"), lossy=lossy)
        (refused,) = made.refused
        assert f"`{field}`" in refused.why
        assert "--connect" in refused.todo
        assert made.servers == ("other",)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "stdio",
    [
        "command: [/opt/tools/clock]",
        'command: [node, "${projectRoot}/x.js"]',
        "command: [node, ./x.js]",
        "command: [node, there.js]",
        "command: [tools/clock]",
        "command: [clock], cwd: tools",
        'command: [clock], env: {D: "${projectRoot}/d"}',
        "command: [clock], env: {K: {fromFile: secret}}",
    ],
)
def test_what_is_on_this_machine_only_is_refused(tmp_path: Path, kind: PluginKind, stdio: str) -> None:
    (tmp_path / "there.js").write_text("")
    made = packed(kind, tmp_path, f"integrationId: a.clock\ntransports: {{stdio: {{{stdio}}}}}\n", lossy="warn")
    assert made.files == {}
    assert [each.server for each in made.refused] == ["clock"]
    assert str(tmp_path) not in made.refused[0].why


def test_rules_that_the_format_has_not(tmp_path: Path) -> None:
    ruled = CLOCK + "capability: {tools: {deny: [set]}}\n"
    for kind in ("agent", "claude"):
        assert "capability.tools" in packed(kind, tmp_path / kind, ruled).refused[0].why
        made = packed(kind, tmp_path / f"{kind}2", "lossy: warn\n" + ruled)
        assert made.servers == ("clock",)
        assert [each.loss.weakens for each in made.losses] == [True]


@pytest.mark.parametrize(
    ("kind", "name", "right"),
    [
        ("agent", "a", True), ("agent", "acme.tools-2", True), ("agent", "A", False), ("agent", "a--b", False),
        ("agent", "-a", False), ("agent", "a" * 64, True), ("agent", "a" * 65, False), ("agent", "", False),
        ("claude", "acme-tools", True), ("claude", "acme.tools", False), ("claude", "2a", False),
        ("codex", "acme-tools", True), ("codex", "acme_tools", False),
    ],
)  # fmt: skip
def test_names(tmp_path: Path, kind: PluginKind, name: str, right: bool) -> None:
    servers: Sequence = list(gateway(tmp_path, CLOCK).servers.values())  # type: ignore[type-arg]
    adapter = registry.find(HOSTS[kind]) if kind in HOSTS else None
    made = pack(kind, name, servers, adapter, connect=False)
    assert bool(made.files) is right
    assert bool(made.refused) is not right


def test_every_format_says_how_it_is_known() -> None:
    assert set(FORMATS) == set(KINDS)
    assert all(fact.known and fact.source for fact in FORMATS.values())


# The command


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    found = desk_at(tmp_path, monkeypatch, capsys)
    found.manifest(DOCS, TIME)
    return found


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the home of this test is HOME")


def test_all_kinds_in_one_folder(desk: Desk) -> None:
    assert desk.type("generate", "plugin", "--to", "out/Team Tools") == 8  # the Agent Plugin cannot hold `time`
    root = desk.project / "out" / "Team Tools"
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()) == [
        "agent/mcp.json", "agent/plugin.json", "claude/.claude-plugin/plugin.json", "claude/.mcp.json",
        "codex/.codex-plugin/plugin.json", "codex/.mcp.json",
    ]  # fmt: skip
    assert json.loads((root / "agent" / "plugin.json").read_text())["name"] == "team-tools"
    assert "refused: time" in desk.out


def test_twice_is_nothing_to_do_and_restore_takes_it_away(desk: Desk) -> None:
    words = ("generate", "plugin", "--to", "out", "--kind", "codex", "--name", "tools")
    assert desk.type(*words) == 0
    before = desk.bytes()
    assert desk.type(*words) == 0
    assert "Nothing to do" in desk.out
    assert desk.bytes() == before
    desk.manifest(DOCS)
    assert desk.type(*words) == 0
    assert list(json.loads((desk.project / "out" / ".mcp.json").read_text())["mcpServers"]) == ["docs"]
    assert desk.type("restore") == 0
    assert desk.bytes() == before


def test_never_over_foreign_files(desk: Desk) -> None:
    file = desk.put("code/out/.mcp.json", '{"mine": 1}')
    assert desk.type("generate", "plugin", "--to", "out", "--kind", "claude", "--lossy", "warn") == 8
    assert "not Interlock's" in desk.err
    assert file.read_text() == '{"mine": 1}'
    assert not (desk.project / "out" / ".claude-plugin").exists()


def test_a_file_that_was_changed_by_hand_is_foreign(desk: Desk) -> None:
    words = ("generate", "plugin", "--to", "out", "--kind", "codex", "--name", "tools")
    desk.type(*words)
    file = desk.project / "out" / ".codex-plugin" / "plugin.json"
    file.write_text("{}")
    assert desk.type(*words) == 8
    assert file.read_text() == "{}"
