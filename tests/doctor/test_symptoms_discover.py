"""`server-not-visible`, `one-broke-all`, `windows-not-wsl` and `old-plugin`: what hosts make of files that are laid out here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interlock.doctor import processes
from interlock.doctor.discover import plugin_versions
from interlock.doctor.processes import Process
from interlock.model.stage import Stage

from .ward import causes, tool, wrong

if TYPE_CHECKING:
    from .ward import Ward

CONNECT = '[mcp_servers.interlock]\ncommand = "/bin/true"\nargs = ["connect", "--host", "codex"]\n'
OURS = '[mcp_servers.il]\ncommand = "{0}"\nargs = ["connect", "--host", "codex"]\n'


def connected(ward: Ward) -> None:
    """Codex starts Interlock by a program that is there."""
    program = ward.write("~/bin/interlock", "#!/bin/sh\n")
    program.chmod(0o755)
    ward.write("~/.codex/config.toml", OURS.format(program))


async def test_a_healthy_machine(ward: Ward) -> None:
    ward.manifest(ward.server("notes"))
    connected(ward)
    for server in (None, "notes"):
        assert wrong(await ward.complain("server-not-visible", server=server)) == []
    assert wrong(await ward.complain("server-not-visible", host="codex")) == []


async def test_a_name_that_nobody_declares(ward: Ward) -> None:
    ward.manifest(ward.server("notes"))
    connected(ward)
    (finding,) = wrong(await ward.complain("server-not-visible", server="ntoes"))
    assert (finding.check, finding.severity, finding.todo) == ("declared", "problem", "Did you mean `notes`?")


async def test_a_manifest_with_an_error(ward: Ward) -> None:
    connected(ward)
    path = ward.manifest("integrationId: a.notes\ntransport: {stdio: {command: [x]}}\n")
    findings = wrong(await ward.complain("server-not-visible", server="notes"))
    assert {(each.check, each.stage) for each in findings} == {
        ("manifest", Stage.DISCOVER),
        ("declared", Stage.DISCOVER),
    }
    assert any(each.where == f"{path}:3" and "Write: " in each.todo for each in findings)


async def test_a_manifest_that_nobody_trusted(ward: Ward) -> None:
    connected(ward)
    path = ward.write("interlock.yaml", "schemaVersion: agent-routing/v1\n" + ward.server("notes"))
    (finding,) = wrong(await ward.complain("server-not-visible", server="notes"))
    assert (finding.check, finding.todo) == ("manifest", f"`interlock trust {path}`")


async def test_a_server_that_is_switched_off(ward: Ward) -> None:
    connected(ward)
    path = ward.manifest(ward.server("notes", more="enabled: false\n"))
    (finding,) = wrong(await ward.complain("server-not-visible", server="notes"))
    assert (finding.seen, finding.where) == ("`notes` is switched off", f"{path}:2")
    assert wrong(await ward.complain("server-not-visible")) == []  # somebody wanted it so


async def test_a_host_without_interlock(ward: Ward) -> None:
    ward.manifest(ward.server("notes"))
    ward.write("~/.codex/config.toml", 'model = "x"\n')
    (finding,) = wrong(await ward.complain("server-not-visible", server="notes", host="codex"))
    assert (finding.check, finding.host) == ("host-connects", "codex")
    assert finding.todo == "`interlock generate codex --write` makes the entry."


async def test_a_host_that_starts_the_server_by_itself(ward: Ward) -> None:
    ward.manifest(ward.server("notes"))
    ward.write("~/.codex/config.toml", '[mcp_servers.notes]\ncommand = "/bin/true"\n')
    assert wrong(await ward.complain("server-not-visible", server="notes", host="codex")) == []


async def test_an_entry_that_is_off_in_the_host(ward: Ward) -> None:
    path = ward.write("~/.codex/config.toml", '[mcp_servers.notes]\ncommand = "/bin/true"\nenabled = false\n')
    (finding,) = wrong(await ward.complain("server-not-visible", server="notes"))
    assert (finding.check, finding.severity, finding.where) == ("host-entry", "problem", f"{path}:1")
    assert "has `notes` switched off" in finding.seen
    assert f"{path}:3" in finding.seen
    assert wrong(await ward.complain("server-not-visible")) == []


async def test_a_project_that_the_host_does_not_trust(ward: Ward) -> None:
    (ward.folder / ".git").mkdir()
    ward.write(".codex/config.toml", '[mcp_servers.notes]\ncommand = "/bin/true"\n')
    ward.write("~/.codex/config.toml", 'model = "x"\n')
    (finding,) = wrong(await ward.complain("server-not-visible", server="notes"))
    assert (finding.check, finding.host) == ("host-entry", "codex")
    assert "does not let `notes` run" in finding.seen
    ward.write("~/.codex/config.toml", f'[projects."{ward.folder}"]\ntrust_level = "trusted"\n')
    assert wrong(await ward.complain("server-not-visible", server="notes")) == []


async def test_starts_that_failed_are_told(ward: Ward) -> None:
    connected(ward)
    ward.manifest(ward.server("notes"))
    ward.called(
        "notes/a",
        "never_reached",
        slug="server-exited",
        discover=0.2,
        reason="notes: exit code 1 right after its start.",
    )
    (finding,) = wrong(await ward.complain("server-not-visible", server="notes"))
    assert (finding.check, finding.server) == ("recorded-starts", "notes")
    assert "exit code 1" in finding.why


# -- one-broke-all -----------------------------------------------------------------------------------------------------


async def test_servers_that_leave_each_other_alone(ward: Ward) -> None:
    ward.write(
        "~/.codex/config.toml", '[mcp_servers.a]\ncommand = "/bin/true"\n[mcp_servers.b]\ncommand = "/bin/true"\n'
    )
    assert wrong(await ward.complain("one-broke-all")) == []


async def test_one_entry_takes_the_whole_host_down(ward: Ward) -> None:
    path = ward.write(
        "~/.codex/config.toml",
        '[mcp_servers.good]\ncommand = "/bin/true"\n[mcp_servers.bad]\ncommand = "x"\nurl = "https://mcp.example.com"\n',
    )
    (finding,) = wrong(await ward.complain("one-broke-all"))
    assert (finding.check, finding.stage, finding.severity, finding.host) == (
        "blast-radius",
        Stage.DISCOVER,
        "problem",
        "codex",
    )
    assert "`good`" in finding.seen
    assert finding.where.startswith(f"{path}:")
    assert "config.toml:5: `url` does not go with `command`." in finding.todo, "understood by itself"


async def test_one_malformed_tool_takes_its_server_down(ward: Ward) -> None:
    ward.write("~/.gemini/trustedFolders.json", {str(ward.folder): "TRUST_FOLDER"})
    entry = ward.native("--malformed")
    ward.write("~/.gemini/settings.json", {"mcpServers": {"odd": entry}})
    findings = wrong(await ward.complain("one-broke-all", start=True, host="gemini-cli"))
    assert [(each.check, each.severity, each.stage) for each in findings] == [
        ("tool-definitions", "problem", Stage.DESCRIBE)
    ]
    assert "gemini-cli drops ALL tools of a server" in findings[0].why


async def test_behind_interlock_one_malformed_tool_costs_itself_only(ward: Ward) -> None:
    ward.manifest(ward.server("odd"))
    ward.knows("odd", [tool("a"), {"name": "bad", "inputSchema": {"type": "string"}}])
    assert causes(await ward.complain("one-broke-all")) == [("tool-definitions", "warning")]


# -- windows-not-wsl ---------------------------------------------------------------------------------------------------


def wsl(ward: Ward, tmp_path: Path) -> Path:
    """A WSL below a folder of files, with the Windows around it. The Windows user's home."""
    ward.root, ward.surrounding, ward.logical_home = tmp_path / "machine", "wsl", "/home/ann"
    ward.environ = {"WSL_DISTRO_NAME": "Ubuntu", "PATH": "/usr/bin"}
    (ward.root / "home" / "ann").mkdir(parents=True)
    (ward.root / "usr" / "bin").mkdir(parents=True)
    for name in ("node", "uvx"):
        (ward.root / "usr" / "bin" / name).write_text("#!/bin/sh\n")
        (ward.root / "usr" / "bin" / name).chmod(0o755)
    home = ward.root / "mnt" / "c" / "Users" / "Ann"
    home.mkdir(parents=True)
    return home


def cursor(home: Path, servers: object) -> Path:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}, indent=2))
    return path


NODE = {"command": "node", "args": ["server.js"]}


async def test_a_wsl_that_has_what_windows_has(ward: Ward, tmp_path: Path) -> None:
    windows = wsl(ward, tmp_path)
    cursor(windows, {"notes": NODE})
    ward.write("~/.cursor/mcp.json", {"mcpServers": {"notes": NODE}})
    assert wrong(await ward.complain("windows-not-wsl", host="cursor")) == []


async def test_the_entry_stands_in_the_other_home(ward: Ward, tmp_path: Path) -> None:
    path = cursor(wsl(ward, tmp_path), {"notes": NODE})
    (finding,) = wrong(await ward.complain("windows-not-wsl", host="cursor"))
    assert (finding.check, finding.stage, finding.server) == ("other-home", Stage.DISCOVER, "notes")
    assert "in the home of Windows" in finding.seen
    assert finding.where.startswith(f"{path}:")


async def test_a_path_of_windows_in_the_wsl(ward: Ward, tmp_path: Path) -> None:
    wsl(ward, tmp_path)
    entry = {"command": "node", "args": ["C:\\Users\\Ann\\server.js"]}
    ward.write("~/.cursor/mcp.json", {"mcpServers": {"notes": entry}})
    assert causes(await ward.complain("windows-not-wsl", host="cursor")) == [("foreign-path", "warning")]


async def test_a_loopback_that_is_not_shared(ward: Ward, tmp_path: Path) -> None:
    wsl(ward, tmp_path)
    ward.write("~/.cursor/mcp.json", {"mcpServers": {"notes": {"url": "http://127.0.0.1:9/mcp"}}})
    (finding,) = wrong(await ward.complain("windows-not-wsl", host="cursor"))
    assert (finding.check, finding.server) == ("loopback", "notes")
    assert "this WSL, and not the Windows around it" in finding.seen
    assert "networkingMode=mirrored" in finding.todo


async def test_a_shim_on_windows(ward: Ward, tmp_path: Path) -> None:
    ward.root, ward.platform, ward.logical_home = tmp_path / "machine", "windows", "C:\\Users\\Ann"
    ward.environ = {"PATH": "C:\\node", "PATHEXT": ".EXE;.CMD"}
    shim = ward.root / "c" / "node" / "npx.cmd"
    shim.parent.mkdir(parents=True)
    shim.write_text("@echo off\n")
    ward.write("~/.cursor/mcp.json", {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "some-mcp@1.0.0"]}}})
    findings = wrong(await ward.complain("windows-not-wsl", host="cursor"))
    assert [each.check for each in findings] == ["shim-without-cmd"]
    assert "`/c`" in findings[0].todo


# -- old-plugin --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("older", "newer"),
    [("1.9.3", "1.10.0"), ("2.0.0-rc1", "2.0.0"), ("2.0.0", "2.0.0.1"), ("", "0.1"), ("2.0.0-a1", "2.0.0-b0")],
)
def test_versions_in_their_order(older: str, newer: str) -> None:
    assert plugin_versions._order(older) < plugin_versions._order(newer)


def claude_plugin(ward: Ward, loaded: str, *versions: str, written: str | None = None) -> Path:
    """One plugin of Claude Code, installed as `loaded`, with these versions in its cache. The cache's folder."""
    cache = ward.user / ".claude" / "plugins" / "cache" / "market" / "acme"
    for version in versions:
        ward.write(
            f"~/.claude/plugins/cache/market/acme/{version}/.claude-plugin/plugin.json",
            {"name": "acme", "version": version},
        )
    record = {"version": written or loaded, "installPath": str(cache / loaded), "scope": "user"}
    ward.write("~/.claude/plugins/installed_plugins.json", {"version": 2, "plugins": {"acme@market": [record]}})
    ward.write("~/.claude/settings.json", {"enabledPlugins": {"acme@market": True}})
    ward.write("~/.claude.json", {"mcpServers": {}})
    return cache


async def test_the_newest_version_is_loaded(ward: Ward) -> None:
    claude_plugin(ward, "1.10.0", "1.10.0", "1.9.0")
    findings = await ward.complain("old-plugin", host="claude-code")
    assert wrong(findings) == []
    assert [each.check for each in findings] == ["plugin-version"]  # a note


async def test_a_newer_version_lies_beside_the_one_that_is_loaded(ward: Ward) -> None:
    cache = claude_plugin(ward, "1.9.0", "1.9.0", "1.10.0")
    (finding,) = wrong(await ward.complain("old-plugin", host="claude-code"))
    assert (finding.check, finding.stage, finding.severity) == ("plugin-version", Stage.DISCOVER, "problem")
    assert "loads version 1.9.0 of the plugin `acme`, and 1.10.0 lies beside it" in finding.seen
    assert (finding.where, finding.host) == (str(cache / "1.9.0"), "claude-code")


async def test_an_older_version_still_runs(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = claude_plugin(ward, "1.10.0", "1.10.0", "1.9.0")
    process = Process(4321, 1, ("node", str(cache / "1.9.0" / "server.js")))
    monkeypatch.setattr(
        processes, "running", lambda: [process, Process(4322, 1, ("node", str(cache / "1.10.0" / "server.js")))]
    )
    (finding,) = wrong(await ward.complain("old-plugin", host="claude-code"))
    assert finding.check == "plugin-running"
    assert "version 1.9.0 of the plugin `acme` still runs (process 4321)" in finding.seen


async def test_what_is_written_down_and_what_is_loaded(ward: Ward) -> None:
    claude_plugin(ward, "1.9.0", "1.9.0", written="2.0.0")
    (finding,) = wrong(await ward.complain("old-plugin", host="claude-code"))
    assert "has version 2.0.0 of the plugin `acme` written down and loads 1.9.0" in finding.seen


async def test_a_secret_is_told_wherever_it_stands(ward: Ward) -> None:
    token = "gh" + "p_" + "A1b2" * 9
    entry = {"command": "/bin/true", "env": {"GITHUB_TOKEN": token}}
    broken = ward.write("~/.claude.json", {"mcpServers": {"a": {"url": "x", **entry}}})
    misplaced = ward.write("~/.config/Code/User/mcp.json", {"mcpServers": {"b": entry}})
    found = [each for each in await ward.everything() if each.check == "literal-secret"]
    assert {each.where.rpartition(":")[0] for each in found} == {str(broken), str(misplaced)}
    assert not any(token in f"{each.seen}{each.why}{each.todo}" for each in found)
