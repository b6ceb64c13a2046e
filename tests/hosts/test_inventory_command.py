"""`interlock inventory` and `interlock hosts` as they are run, on a home with real-looking files and an old mistake in each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

SECRET = "gh" + "p_" + "Q7w3" * 9
HOSTS = ("claude-code", "codex", "cursor", "gemini-cli", "zed")
KEYS = {
    "host", "scope", "file", "line", "column", "server", "state", "decided_by", "problems", "findings", "transport", "command",
    "url", "env", "headers", "enabled", "stages", "tools", "shadowedFields", "origins", "source", "machine",
}  # fmt: skip


@dataclass(frozen=True)
class Home:
    path: Path
    environment: Mapping[str, str]

    def run(self, *words: str, folder: str = "shop") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "interlock", *words], cwd=self.path / folder, env=dict(self.environment), capture_output=True,
            text=True, encoding="utf-8", timeout=60, check=False,
        )  # fmt: skip

    def entries(self, *words: str) -> dict[tuple[str, str, str | None], dict[str, object]]:
        done = self.run("inventory", *HOSTS, "--machine", "here", "--json", *words)
        assert (done.returncode, done.stderr) == (0, "")
        return {(each["host"], each["scope"], each["server"]): each for each in json.loads(done.stdout)}


def _lay(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8")


@pytest.fixture
def laid(tmp_path: Path, child_environment: dict[str, str]) -> Home:
    home = tmp_path / "home"
    shop = home / "shop"
    (shop / ".git").mkdir(parents=True)
    tools = tmp_path / "bin"
    for name in ("npx", "uvx"):
        _lay(tools / name, "#!/bin/sh\n")
        (tools / name).chmod(0o755)
    github = {"command": "npx", "args": ["-y", "@scope/server-github"], "env": {"GITHUB_TOKEN": SECRET}}
    claude = {
        "mcpServers": {
            "github": github,
            "issues": {"type": "http", "url": "https://issues.example.com/mcp"},
            "off": {"command": "uvx", "args": ["mcp-server-time==1.0.0"], "disabled": True},
        },
        "projects": {str(shop): {"enabledMcpjsonServers": ["issues"], "hasTrustDialogAccepted": True}},
    }
    _lay(home / ".claude.json", claude)
    _lay(
        shop / ".mcp.json",
        {
            "mcpServers": {
                "issues": {
                    "type": "http",
                    "url": "https://issues.example.com/v2?key=wonder",
                    "headers": {"X-A": "land"},
                }
            }
        },
    )
    _lay(
        home / ".codex" / "config.toml",
        '[mcp_servers.github]\ncommand = "npx"\nargs = ["-y", "@scope/server-github@1.0.0"]\n\n'
        '[mcp_servers.github.env]\nLEVEL = "${LEVEL}"\n',
    )
    _lay(
        home / ".cursor" / "mcp.json",
        {"mcpServers": {"github": {"command": "npx", "args": ["-y", "@scope/server-github@2.0.0"]}}},
    )
    _lay(
        home / ".gemini" / "settings.json",
        '{\n  "mcpServers": {\n    "time": {"command": "uvx", "args": ["x==1.0"]},\n  }\n}\n',
    )
    _lay(
        home / ".config" / "zed" / "settings.json",
        '{\n  // mine\n  "context_servers": {"fs": {"command": "~/bin/fs"}}\n}\n',
    )
    environment = {
        **child_environment,
        "PATH": f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "PYTHONIOENCODING": "utf-8",
    }
    return Home(home, environment)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="lays out the files of a Linux home")


def test_json_has_one_object_for_each_entry(laid: Home) -> None:
    entries = laid.entries()
    assert all(set(each) == KEYS for each in entries.values())
    assert {key: each["state"] for key, each in entries.items()} == {
        ("claude-code", "project", "issues"): "effective",
        ("claude-code", "user", "github"): "effective",
        ("claude-code", "user", "issues"): "shadowed",
        ("claude-code", "user", "off"): "effective",
        ("codex", "user", "github"): "effective",
        ("cursor", "user", "github"): "effective",
        ("gemini-cli", "user", "time"): "broken",
        ("zed", "user", "fs"): "effective",
    }
    codes = {key: set(each["problems"]) for key, each in entries.items()}  # type: ignore[call-overload]
    assert "literal-secret" in codes["claude-code", "user", "github"]
    assert "unpinned-package" in codes["claude-code", "user", "github"]
    assert "switch-ignored" in codes["claude-code", "user", "off"]
    assert "unpinned-package" not in codes["claude-code", "user", "off"]
    assert "variable-literal" in codes["codex", "user", "github"]
    assert "literal-secret" not in codes["codex", "user", "github"]
    assert "file-unreadable" in codes["gemini-cli", "user", "time"]
    assert "duplicate-server" in codes["cursor", "user", "github"]


def test_each_finding_has_its_place(laid: Home) -> None:
    entry = laid.entries()["claude-code", "user", "off"]
    findings = entry["findings"]
    assert isinstance(findings, list)
    (found,) = [each for each in findings if each["code"] == "switch-ignored"]
    lines = (laid.path / ".claude.json").read_text().splitlines()
    assert '"disabled": true' in lines[found["line"] - 1]
    assert found["file"] == str(laid.path / ".claude.json")
    assert found["severity"] == "problem"


def test_what_settled_a_state_is_named(laid: Home) -> None:
    entry = laid.entries()["claude-code", "user", "issues"]
    project = str(laid.path / "shop" / ".mcp.json")
    decided = entry["decided_by"]
    assert isinstance(decided, dict)
    assert (decided["rule"], decided["file"], decided["line"]) == ("higher-scope", project, 3)
    assert entry["shadowedFields"] == {"type": f"{project}:3", "url": f"{project}:3"}


def test_stages_are_kept_apart(laid: Home) -> None:
    entries = laid.entries()
    broken, works = entries["gemini-cli", "user", "time"]["stages"], entries["claude-code", "user", "github"]["stages"]
    assert isinstance(broken, dict)
    assert isinstance(works, dict)
    assert list(works) == ["configured", "parsed", "allowed", "trusted", "connected", "toolsVisible"]
    assert (works["configured"], works["parsed"], works["connected"], works["toolsVisible"]) == (True, True, None, None)
    assert (broken["configured"], broken["parsed"], broken["allowed"]) == (True, False, None)


@pytest.mark.parametrize(
    "words", [(), ("--all",), ("--json",), ("--problems",), ("--plugins",), ("--json", "--plugins")]
)
def test_no_value_of_a_variable_or_header_is_shown(laid: Home, words: tuple[str, ...]) -> None:
    done = laid.run("inventory", *HOSTS, "--machine", "here", *words)
    assert done.returncode == 0
    for value in (SECRET, "wonder", "land"):
        assert value not in done.stdout + done.stderr


def test_the_table_fits_a_terminal_and_says_what_to_do(laid: Home) -> None:
    done = laid.run("inventory", *HOSTS, "--machine", "here")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "Claude Code (claude-code)" in lines
    assert "  ✓ github    user     ~/.claude.json:3" in lines
    assert "  ↓ issues    user     ~/.claude.json:13  shadowed by project .mcp.json:3" in lines
    text = " ".join(done.stdout.split())
    assert "`disabled: true` is ignored: the server STILL STARTS." in text
    assert 'Use `env_vars = ["LEVEL"]`.' in text
    assert "broken ~/.gemini/settings.json:3" in text
    assert "8 entries in 5 hosts: 6 effective, 1 shadowed, 1 broken." in text
    assert "In several hosts: github (claude-code, codex, cursor)." in text
    assert "Next: `interlock adopt --dry-run`" in text
    assert "\x1b" not in done.stdout


def test_without_utf8_the_marks_are_ascii(laid: Home) -> None:
    home = Home(laid.path, {**laid.environment, "PYTHONIOENCODING": "ascii"})
    lines = home.run("inventory", "claude-code", "--machine", "here").stdout.splitlines()
    assert "  + github    user     ~/.claude.json:3" in lines
    assert "  v issues    user     ~/.claude.json:13  shadowed by project .mcp.json:3" in lines


def test_problems_only(laid: Home) -> None:
    text = laid.run("inventory", "claude-code", "--machine", "here", "--problems").stdout
    assert "✓ github" in text
    assert "↓ issues" not in text


@pytest.mark.parametrize(("hosts", "code"), [(("claude-code",), 1), (("cursor",), 0)])
def test_check_is_for_scripts(laid: Home, hosts: tuple[str, ...], code: int) -> None:
    assert laid.run("inventory", *hosts, "--machine", "here", "--check").returncode == code
    assert laid.run("inventory", *hosts, "--machine", "here").returncode == 0


def test_an_alias_is_enough_and_a_wrong_name_is_told(laid: Home) -> None:
    assert "Gemini CLI (gemini-cli)" in laid.run("inventory", "gemini", "--machine", "here").stdout
    done = laid.run("inventory", "nobody")
    assert done.returncode == 2
    assert "no host is called nobody. Known are claude-code, codex," in done.stderr
    wrong = laid.run("inventory", "--machine", "mars")
    assert wrong.returncode == 2
    assert "no machine is called mars" in wrong.stderr


def test_a_named_host_without_a_file_says_where_it_was_looked_for(laid: Home) -> None:
    text = laid.run("inventory", "roo-code", "--machine", "here").stdout
    assert "no file here" in text
    assert ".roo/mcp.json" in text


def test_a_server_behind_interlock_that_also_stands_alone(laid: Home) -> None:
    path = laid.path / ".cursor" / "mcp.json"
    content = json.loads(path.read_text())
    content["mcpServers"]["interlock"] = {"command": "interlock", "args": ["connect", "--host", "cursor"]}
    path.write_text(json.dumps(content))
    _lay(
        Path(laid.environment["INTERLOCK_HOME"]) / "interlock.yaml",
        "schemaVersion: agent-routing/v1\nintegrationId: example.github\n"
        "transports:\n  stdio:\n    command: [npx, -y, '@scope/server-github@1.0.0']\n",
    )
    entries = laid.entries()
    assert "also-direct" in entries["cursor", "user", "github"]["problems"]  # type: ignore[operator]
    assert "also-direct" not in entries["claude-code", "user", "github"]["problems"]  # type: ignore[operator]
    assert "also-direct" not in entries["cursor", "user", "interlock"]["problems"]  # type: ignore[operator]


def test_nothing_here(tmp_path: Path, child_environment: dict[str, str]) -> None:
    (tmp_path / "home" / "shop").mkdir()
    home = Home(tmp_path / "home", child_environment)
    assert home.run("inventory", "cursor", "zed", "--machine", "here").stdout.splitlines()[-2:] == [
        "No host's file on this machine declares an MCP server.",
        "`interlock hosts` lists the hosts that are looked for.",
    ]
    assert json.loads(home.run("inventory", "cursor", "zed", "--machine", "here", "--json").stdout) == []


def test_a_name_cannot_move_the_cursor(laid: Home) -> None:
    _lay(laid.path / ".cursor" / "mcp.json", {"mcpServers": {"a\x1b[2Jb\n": {"command": "npx"}}})
    text = laid.run("inventory", "cursor", "--machine", "here").stdout
    assert "\x1b" not in text
    assert "a\\x1b[2Jb\\n" in text


def test_hosts_are_listed_with_the_files_that_are_here(laid: Home) -> None:
    lines = laid.run("hosts").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    (cursor,) = [number for number, line in enumerate(lines) if line.startswith("cursor ")]
    of_cursor = lines[cursor : next(number for number, line in enumerate(lines) if line.startswith("antigravity "))]
    assert [line.strip() for line in of_cursor].count("~/.cursor/mcp.json") == 1
    assert not [line for line in lines if line.endswith("...")]
    (goose,) = [number for number, line in enumerate(lines) if line.startswith("goose ")]
    following = next(line for line in lines[goose + 1 :] if not line.startswith(" ") or "/" in line)
    assert following.startswith("cline ")  # no file of it is here
    listed = {each["id"]: each for each in json.loads(laid.run("hosts", "--json").stdout)}
    assert listed["cursor"]["files"] == [str(laid.path / ".cursor" / "mcp.json")]
    assert listed["codex"]["seen"] == "0.171.0"


def test_every_fact_of_a_host_is_shown_with_how_it_is_known(laid: Home) -> None:
    done = laid.run("hosts", "show", "codex")
    text = " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "a leading `~` is filled in: no [observed by running the host]" in text
    assert "Not known" in done.stdout.splitlines()
    assert "Sources" in done.stdout.splitlines()
    shown = json.loads(laid.run("hosts", "show", "codex", "--json").stdout)
    (home,) = [each for each in shown["facts"] if each["name"] == "a leading `~` is filled in"]
    assert (home["value"], home["evidence"], home["how"]) == ("no", "O", ["observed by running the host"])
    assert any(each["value"] is None and "U" in each["evidence"] for each in shown["facts"])


@pytest.mark.parametrize("words", [("nonsense",), ("show",), ("show", "nobody")])
def test_a_wrong_way_to_ask_is_told(laid: Home, words: tuple[str, ...]) -> None:
    done = laid.run("hosts", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("interlock: ")


_HEAVY = ("rich", "ruamel.yaml", "tomlkit", "asyncio", "jsonschema", "sqlite3", "subprocess", "ssl", "httpx2")


def test_nothing_heavy_is_imported_without_need(laid: Home) -> None:
    """It reads 400 entries within a second on a busy machine; an import of that size would be most of it."""
    code = (
        "import sys, interlock.cli.main as main; main.main(sys.argv[1:]);"
        f"sys.stderr.write(repr([name for name in {_HEAVY!r} if name in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "inventory", *HOSTS, "--machine", "here"], cwd=laid.path / "shop", env=dict(laid.environment),
        capture_output=True, text=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    assert done.stderr == "[]"
