"""Plugins of each host: name, version, origin, who switched them on, and what they bring."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.hosts import reading, registry
from interlock.hosts.machine import Machine, Platform
from interlock.hosts.plugins import agent_plugin, finding, gemini, ranking
from interlock.hosts.plugins.plugin import Plugin

from .laid import machine, put

SERVER = {"command": "run", "args": ["x"]}
PLATFORMS: list[Platform] = ["linux", "macos", "windows"]


def _one(on: Machine, host: str) -> Plugin:
    (found,) = finding.found(on, [host])
    return found


def _claude(on: Machine, *, source: object, enabled: dict[str, object], version: str = "1.0.0") -> None:
    cache = on.user(".claude", "plugins", "cache", "market", "fine")
    put(on, "~/.claude/plugins/installed_plugins.json", {
        "version": 2,
        "plugins": {"fine@market": [{"scope": "user", "installPath": on.join(cache, version), "version": version}]},
    })  # fmt: skip
    put(on, "~/.claude/plugins/known_marketplaces.json", {"market": {"source": source}})
    put(on, "~/.claude/settings.json", {"enabledPlugins": enabled})
    for each in ("1.0.0", "0.9.0"):
        base = f"~/.claude/plugins/cache/market/fine/{each}"
        put(on, f"{base}/.claude-plugin/plugin.json", {"name": "fine", "version": each})
        put(on, f"{base}/.mcp.json", {"mcpServers": {"one": {"command": "${CLAUDE_PLUGIN_ROOT}/run", "args": [each]}}})
        put(on, f"{base}/hooks/hooks.json", {
            "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/x"}]}]}
        })  # fmt: skip
        put(on, f"{base}/skills/greet/SKILL.md", "---\nname: greet\ndescription: says hello\n---\n")
    put(on, "~/.claude/plugins/cache/market/fine/0.9.0/.orphaned_at", "1")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_claude_code_loads_the_installed_version_from_the_cache(tmp_path: Path, platform: Platform) -> None:
    on = machine(tmp_path, platform)
    _claude(on, source={"source": "github", "repo": "acme/market"}, enabled={"fine@market": True})
    plugin = _one(on, "claude-code")
    assert (plugin.name, plugin.version, plugin.origin) == ("fine", "1.0.0", "market (acme/market)")
    assert plugin.enabled is True
    assert plugin.decided_by is not None
    assert plugin.decided_by.file == on.user(".claude", "settings.json")
    (server,) = plugin.servers
    assert (server.server, server.scope, server.source, server.state) == (
        "plugin:fine:one", "plugin", "fine@1.0.0", "effective",
    )  # fmt: skip
    assert server.entry is not None
    assert server.entry.command == (f"{plugin.folder}/run", "1.0.0")
    (hook,) = plugin.hooks
    assert (hook.event, hook.matcher, hook.source) == ("PreToolUse", "Bash", "fine@1.0.0")
    assert [each.name for each in plugin.skills] == ["greet"]
    (copy,) = plugin.others
    assert copy.version == "0.9.0"
    assert "replaced by an update" in copy.why


def test_claude_code_loads_a_marketplace_folder_in_place_of_the_cache(tmp_path: Path) -> None:
    on = machine(tmp_path)
    _claude(on, source={"source": "directory", "path": "/home/ada/market"}, enabled={"fine@market": True})
    put(on, "~/market/.claude-plugin/marketplace.json", {"plugins": [{"name": "fine", "source": "./plugins/fine"}]})
    put(on, "~/market/plugins/fine/.claude-plugin/plugin.json", {"name": "fine", "version": "2.0.0"})
    plugin = _one(on, "claude-code")
    assert (plugin.folder, plugin.version, plugin.recorded_version) == (
        "/home/ada/market/plugins/fine",
        "2.0.0",
        "1.0.0",
    )
    assert {copy.version: copy.why.split(" ")[0] for copy in plugin.others} == {"1.0.0": "its", "0.9.0": "replaced"}


def test_claude_code_does_not_load_from_a_marketplace_that_is_gone(tmp_path: Path) -> None:
    on = machine(tmp_path)
    _claude(on, source={"source": "directory", "path": "/home/ada/gone"}, enabled={"fine@market": True})
    plugin = _one(on, "claude-code")
    assert plugin.enabled is False
    assert [each.code for each in plugin.problems] == ["plugin-missing"]
    assert {each.state for each in plugin.servers} == {"disabled"}


@pytest.mark.parametrize(
    ("user", "project", "local", "on_"),
    [(True, None, None, True), (False, None, None, False), (False, True, None, True), (True, True, False, False),
     (None, None, None, False)],
)  # fmt: skip
def test_claude_code_takes_the_nearest_switch(
    tmp_path: Path, user: bool | None, project: bool | None, local: bool | None, on_: bool
) -> None:
    on = machine(tmp_path)
    said = [each for each in ({"fine@market": user},) if user is not None]
    _claude(on, source={"source": "github", "repo": "a/b"}, enabled=dict(said[0]) if said else {})
    for name, value in (("settings.json", project), ("settings.local.json", local)):
        if value is not None:
            put(on, f"./.claude/{name}", {"enabledPlugins": {"fine@market": value}})
    plugin = _one(on, "claude-code")
    assert plugin.enabled is on_
    assert {each.state for each in plugin.servers} == {"effective" if on_ else "disabled"}


def test_claude_code_tells_of_a_plugin_that_is_on_and_not_there(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, "~/.claude/settings.json", {"enabledPlugins": {"lost@market": True}})
    (plugin,) = finding.found(on, ["claude-code"])
    assert (plugin.name, plugin.origin, [each.todo for each in plugin.problems]) == (
        "lost", "market", ["claude plugin install lost@market"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("base", "trusted", "switch", "state"),
    [
        ("~", False, None, "effective"), ("~", False, False, "disabled"), (".", False, None, "disabled"),
        (".", True, None, "blocked"),
    ],
)  # fmt: skip
def test_claude_code_loads_plugins_from_folders_of_skills(
    tmp_path: Path, base: str, trusted: bool, switch: bool | None, state: str
) -> None:
    on = machine(tmp_path)
    put(on, f"{base}/.claude/skills/tool/.claude-plugin/plugin.json", {"name": "tool", "version": "1"})
    put(on, f"{base}/.claude/skills/tool/.mcp.json", {"mcpServers": {"one": SERVER}})
    put(on, "~/.claude.json", {"projects": {"/home/ada/code": {"hasTrustDialogAccepted": trusted}}})
    if switch is not None:
        put(on, "~/.claude/settings.json", {"enabledPlugins": {"tool@skills-dir": switch}})
    plugin = _one(on, "claude-code")
    assert (plugin.source, plugin.origin) == ("tool@1", "skills-dir")
    assert [(each.server, each.state) for each in plugin.servers] == [("plugin:tool:one", state)]


CODEX = [
    (["1.9.0", "1.10.0", "1.2.0"], "1.10.0"), (["1.0.0", "local"], "local"), (["1.0.0-rc.1", "1.0.0"], "1.0.0"),
    (["abc123", "0.1.0"], "0.1.0"),
]  # fmt: skip


@pytest.mark.parametrize(("versions", "loaded"), CODEX)
def test_codex_loads_one_version_of_several(tmp_path: Path, versions: list[str], loaded: str) -> None:
    on = machine(tmp_path)
    for version in versions:
        base = f"~/.codex/plugins/cache/market/fine/{version}"
        put(on, f"{base}/.codex-plugin/plugin.json", {"name": "fine", "version": version, "mcpServers": "./.mcp.json"})
        put(on, f"{base}/.mcp.json", {"mcpServers": {"one": {"command": version}}})
    put(on, "~/.codex/config.toml", '[marketplaces.market]\nsource = "/m"\n\n[plugins."fine@market"]\n')
    plugin = _one(on, "codex")
    assert (plugin.recorded_version, plugin.enabled, plugin.origin) == (loaded, True, "market (/m)")
    assert plugin.servers[0].entry is not None
    assert plugin.servers[0].entry.command == (loaded,)
    assert {each.version for each in plugin.others} == set(versions) - {loaded}


@pytest.mark.parametrize(
    ("table", "on_", "line"), [("[plugins.\"fine@market\"]\nenabled = false\n", False, 2), ("", False, 0)]
)  # fmt: skip
def test_codex_switches(tmp_path: Path, table: str, on_: bool, line: int) -> None:
    on = machine(tmp_path)
    put(on, "~/.codex/plugins/cache/market/fine/1.0.0/.mcp.json", {"one": {"command": "x"}})
    put(on, "~/.codex/config.toml", table)
    plugin = _one(on, "codex")
    assert plugin.enabled is on_
    assert plugin.decided_by is not None
    assert plugin.decided_by.line == line
    assert [each.state for each in plugin.servers] == ["disabled"]


@pytest.mark.parametrize(
    ("config", "state", "rule"),
    [
        ("", "effective", "only-one"),
        ('[mcp_servers.one]\ncommand = "own"\n', "shadowed", "other-source"),
        ('[mcp_servers.one]\ncommand = "own"\nenabled = false\n', "disabled", "other-source"),
        ('[plugins."fine@market".mcp_servers.one]\nenabled = false\n', "disabled", "list-off"),
    ],
)  # fmt: skip
def test_codex_ranks_plugins_below_its_own_entries(tmp_path: Path, config: str, state: str, rule: str) -> None:
    on = machine(tmp_path)
    put(on, "~/.codex/plugins/cache/market/fine/1.0.0/.mcp.json", {"one": {"command": "x"}})
    put(on, "~/.codex/config.toml", '[plugins."fine@market"]\n' + config)
    adapter = registry.find("codex")
    assert adapter is not None
    read = reading.read(adapter, on)
    ranking.join(read, finding.found(on, ["codex"]))
    (server,) = [each for each in read.declarations if each.scope == "plugin"]
    assert (server.state, server.decided_by.rule) == (state, rule)


@pytest.mark.parametrize(("rank", "state"), [("same", "shadowed"), ("other", "effective")])
def test_claude_code_knows_a_plugin_server_by_what_it_runs(tmp_path: Path, rank: str, state: str) -> None:
    on = machine(tmp_path)
    _claude(on, source={"source": "github", "repo": "a/b"}, enabled={"fine@market": True})
    folder = "/home/ada/.claude/plugins/cache/market/fine/1.0.0"
    put(
        on,
        "~/.claude.json",
        {"mcpServers": {"mine": {"command": f"{folder}/run", "args": ["1.0.0" if rank == "same" else "z"]}}},
    )
    adapter = registry.find("claude-code")
    assert adapter is not None
    read = reading.read(adapter, on)
    ranking.join(read, finding.found(on, ["claude-code"]))
    assert [each.state for each in read.declarations if each.scope == "plugin"] == [state]


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [(".cursor-plugin/plugin.json", "mcp.json", "cursor"), ("plugin.json", "mcp.json", "agent-plugin")],
)  # fmt: skip
def test_cursor_local_plugins(tmp_path: Path, path: str, name: str, kind: str) -> None:
    on = machine(tmp_path)
    put(on, f"~/.cursor/plugins/local/fine/{path}", {"name": "fine", "version": "1.2.3"})
    put(on, f"~/.cursor/plugins/local/fine/{name}", {"mcpServers": {"one": {"type": "stdio", "command": "run"}}})
    plugin = _one(on, "cursor")
    assert (plugin.kind, plugin.source, plugin.enabled) == (kind, "fine@1.2.3", None)
    assert [each.server for each in plugin.servers] == ["one"]


def test_cursor_does_not_guess_between_two_cached_copies(tmp_path: Path) -> None:
    on = machine(tmp_path)
    for commit in ("aaa", "bbb"):
        put(on, f"~/.cursor/plugins/cache/market/fine/{commit}/.cursor-plugin/plugin.json", {"name": "fine"})
    plugin = _one(on, "cursor")
    assert (plugin.folder, [each.version for each in plugin.others]) == ("", ["aaa", "bbb"])


@pytest.mark.parametrize("base", ["~/.gemini/config/plugins", "./.agents/plugins"])
def test_antigravity_plugins(tmp_path: Path, base: str) -> None:
    on = machine(tmp_path)
    put(on, f"{base}/fine/plugin.json", {"version": "1"})
    put(on, f"{base}/fine/mcp_config.json", {"mcpServers": {"one": {"command": "run"}}})
    put(on, f"{base}/no-manifest/mcp_config.json", {"mcpServers": {"two": {"command": "run"}}})
    plugin = _one(on, "antigravity")
    assert (plugin.name, [each.server for each in plugin.servers]) == ("fine", ["one"])


@pytest.mark.parametrize("host", ["gemini-cli", "qwen-code"])
def test_extensions(tmp_path: Path, host: str) -> None:
    on = machine(tmp_path)
    word = host.partition("-")[0]
    base = f"~/.{word}/extensions/fine"
    put(on, f"{base}/{word}-extension.json", {
        "name": "fine", "version": "3", "mcpServers": {"one": {"command": "${extensionPath}${/}run"}},
    })  # fmt: skip
    put(on, f"{base}/.{word}-extension-install.json", {"source": "https://example/fine", "type": "git"})
    plugin = _one(on, host)
    assert (plugin.source, plugin.origin, plugin.enabled) == ("fine@3", "https://example/fine (git)", True)
    assert plugin.servers[0].scope == "extension"
    assert plugin.servers[0].entry is not None
    assert plugin.servers[0].entry.command == (f"/home/ada/.{word}/extensions/fine/run",)


def test_a_linked_extension_is_loaded_from_its_source(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, "~/src/gemini-extension.json", {"name": "fine", "version": "4"})
    put(on, "~/.gemini/extensions/fine/.gemini-extension-install.json", {"source": "/home/ada/src", "type": "link"})
    plugin = _one(on, "gemini-cli")
    assert (plugin.folder, plugin.version) == ("/home/ada/src", "4")


@pytest.mark.parametrize(
    ("overrides", "on_"),
    [
        ([], True), (["/home/ada/*"], True), (["!/home/ada/*"], False), (["!/home/ada/*", "/home/ada/code/*"], True),
        (["/home/ada/*", "!/home/ada/code/*"], False), (["!/home/bob/*"], True), (["!/home/ada/"], True),
        (["!/home/ada/code/"], False), (["!/home/adam/*"], True),
    ],
)  # fmt: skip
def test_the_last_pattern_that_fits_decides(tmp_path: Path, overrides: list[str], on_: bool) -> None:
    on = machine(tmp_path)
    put(on, "~/.gemini/extensions/fine/gemini-extension.json", {"name": "fine", "version": "1"})
    put(on, "~/.gemini/extensions/extension-enablement.json", {"fine": {"overrides": overrides}})
    assert _one(on, "gemini-cli").enabled is on_


def test_patterns_on_windows_have_either_slash(tmp_path: Path) -> None:
    on = machine(tmp_path, "windows")
    assert gemini.fits("C:\\Users\\Ada\\*", on)
    assert gemini.fits("c:/users/ada/*", on)
    assert not gemini.fits("C:\\Users\\Bob\\*", on)


def test_opencode_plugins(tmp_path: Path) -> None:
    on = machine(tmp_path)
    file = put(on, "./.opencode/plugin/mine.ts", "export const x = 1\n")
    put(on, "./.opencode/plugin/readme.md", "no plugin")
    config = put(
        on, "~/.config/opencode/opencode.json", {"plugin": ["@acme/fine@1.2.0", ["plain", {"a": 1}], "./local"]}
    )
    found = {each.name: each for each in finding.found(on, ["opencode"])}
    assert found.keys() == {"mine", "@acme/fine", "plain", "./local"}
    assert found["mine"].folder == file
    assert found["@acme/fine"].version == "1.2.0"
    assert found["./local"].folder == "/home/ada/.config/opencode/local"
    assert found["plain"].decided_by is not None
    assert found["plain"].decided_by.file == config


def test_copilot_plugins_of_a_folder_are_live_and_others_copied(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, "~/.copilot/settings.json", {
        "enabledPlugins": {"fine@market": True},
        "extraKnownMarketplaces": {"market": {"source": {"source": "directory", "path": "/home/ada/market"}}},
    })  # fmt: skip
    put(on, "~/market/.claude-plugin/marketplace.json", {"plugins": [{"name": "fine", "source": "./fine"}]})
    put(on, "~/market/fine/.claude-plugin/plugin.json", {"name": "fine", "version": "1.1.0"})
    put(on, "~/market/fine/.mcp.json", {"mcpServers": {"one": {"command": "${PLUGIN_ROOT}/run"}}})
    copied = "/home/ada/.copilot/installed-plugins/_direct/other"
    put(on, f"{copied}/.claude-plugin/plugin.json", {"name": "other", "version": "2"})
    put(on, "~/.copilot/config.json", "// managed\n" + (
        '{"installedPlugins": [{"name": "other", "marketplace": "", "enabled": false, '
        f'"cache_path": "{copied}"' "}]}"
    ))  # fmt: skip
    found = {each.name: each for each in finding.found(on, ["copilot-cli"])}
    assert (found["fine"].folder, found["fine"].enabled) == ("/home/ada/market/fine", True)
    assert found["fine"].servers[0].entry is not None
    assert found["fine"].servers[0].entry.command == ("/home/ada/market/fine/run",)
    assert (found["other"].enabled, found["other"].version) == (False, "2")


def test_a_manifest_may_hold_servers_and_name_files_but_only_inside(tmp_path: Path) -> None:
    on = machine(tmp_path)
    base = "~/.cursor/plugins/local"
    put(on, f"{base}/a/.cursor-plugin/plugin.json", {"name": "a", "mcpServers": {"inline": SERVER}})
    put(on, f"{base}/a/mcp.json", {"mcpServers": {"inline": {"command": "loses"}, "file": SERVER}})
    put(on, f"{base}/b/.cursor-plugin/plugin.json", {"name": "b", "mcpServers": "../../../../.ssh/config"})
    put(on, f"{base}/c/.cursor-plugin/plugin.json", "{ broken")
    a, b, c = finding.found(on, ["cursor"])
    assert [each.server for each in a.servers] == ["inline", "file"]
    assert a.servers[0].entry is not None
    assert a.servers[0].entry.command == ("run", "x")
    assert [each.code for each in b.problems] == ["plugin-path"]
    assert [each.code for each in c.problems] == ["plugin-manifest"]


AGENT = [
    ({"type": "stdio", "command": "x"}, None), ({"type": "streamable-http", "url": "https://a"}, None),
    ({"type": "sse", "url": "https://a", "headers": {}}, None), ({"command": "x"}, "`type` must be"),
    ({"type": "http", "url": "https://a"}, "`type` must be"), ({"type": "stdio", "url": "https://a"}, "no field of a stdio"),
    ({"type": "stdio"}, "`command` is missing"), ({"type": "stdio", "command": "x", "cwd": "/tmp"}, "`cwd`"),
    ({"type": "stdio", "command": "x", "env": {"PLUGIN_ROOT": "x"}}, "of the format itself"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "wrong"), AGENT)
def test_the_closed_format_of_agent_plugins(tmp_path: Path, raw: dict[str, object], wrong: str | None) -> None:
    on = machine(tmp_path)
    put(on, "~/fine/plugin.json", {"name": "fine"})
    put(on, "~/fine/mcp.json", {"$schema": "x", "mcpServers": {"one": raw}})
    seen = [each.seen for each in agent_plugin.faults(on, "/home/ada/fine")]
    assert seen == [] if wrong is None else len(seen) == 1 and wrong in seen[0]


def test_nothing_there_is_nothing_found(tmp_path: Path) -> None:
    for platform in PLATFORMS:
        assert finding.found(machine(tmp_path / platform, platform)) == []


def test_one_plugin_of_two_marketplaces_is_told_of_and_not_decided(tmp_path: Path) -> None:
    on = machine(tmp_path)
    installed = {}
    for market, version in (("first", "1.0.0"), ("second", "2.0.0")):
        base = f"~/.claude/plugins/cache/{market}/fine/{version}"
        put(on, f"{base}/.claude-plugin/plugin.json", {"name": "fine", "version": version})
        put(on, f"{base}/.mcp.json", {"mcpServers": {"one": SERVER}})
        folder = on.user(".claude", "plugins", "cache", market, "fine", version)
        installed[f"fine@{market}"] = [{"scope": "user", "installPath": folder, "version": version}]
    put(on, "~/.claude/plugins/installed_plugins.json", {"version": 2, "plugins": installed})
    put(on, "~/.claude/settings.json", {"enabledPlugins": dict.fromkeys(installed, True)})
    adapter = registry.find("claude-code")
    assert adapter is not None
    read = reading.read(adapter, on)
    ranking.join(read, finding.found(on, ["claude-code"]))
    told = {each.source: [problem.code for problem in each.problems] for each in read.declarations}
    assert {source: "precedence-unknown" in codes for source, codes in told.items()} == {
        "fine@1.0.0": True,
        "fine@2.0.0": True,
    }
