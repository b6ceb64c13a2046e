"""`interlock generate` as it is typed: shown first, written when asked, read back, and undone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hosts.desk import DOCS, TIME, Desk, desk_at

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the home of this test is HOME")

CODEX = 'model = "x" # mine\n\n[mcp_servers.other]\ncommand = "other"\n'
CODEX_TIME = """
[mcp_servers.time]
command = "uvx"
args = ["mcp-server-time"]
env_vars = ["TIME_TOKEN"]
disabled_tools = ["convert_time"]

[mcp_servers.time.tools.get_current_time]
approval_mode = "prompt"
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    found = desk_at(tmp_path, monkeypatch, capsys)
    found.manifest(TIME)
    found.put(".codex/config.toml", CODEX)
    found.put(".claude.json", '{\n  "theme": "dark"\n}\n')
    return found


@pytest.fixture
def no_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laying the home copy is tested where it is made."""
    monkeypatch.setattr("interlock.cli.home_copy.lay", lambda home: (f"Laid a copy in {home}.", None))


def test_without_write_nothing_changes_and_everything_is_said(desk: Desk) -> None:
    before = desk.bytes()
    assert desk.type("generate", "codex", "--direct") == 0
    assert desk.bytes() == before
    assert not (desk.home / ".interlock" / "generated.json").exists()
    for said in ("would add time", "+[mcp_servers.time]", '+disabled_tools = ["convert_time"]', "Nothing was changed."):
        assert said in desk.out
    assert "Not set here: TIME_TOKEN" in desk.out


def test_the_exact_files_of_three_hosts(desk: Desk) -> None:
    desk.put(".gemini/settings.json", '{\n\t// mine\n\t"ui": {},\n}\n'.replace(",\n}", "\n}"))
    assert desk.type("generate", "codex", "claude", "gemini", "--direct", "--write") == 0
    assert desk.text(".codex/config.toml") == CODEX + CODEX_TIME
    assert json.loads(desk.text(".claude.json")) == {
        "theme": "dark",
        "mcpServers": {
            "time": {
                "type": "stdio", "command": "uvx", "args": ["mcp-server-time"], "env": {"TIME_TOKEN": "${TIME_TOKEN}"},
            }
        },
    }  # fmt: skip
    assert json.loads(desk.text(".claude/settings.json")) == {
        "permissions": {"deny": ["mcp__time__convert_time"], "ask": ["mcp__time__get_current_time"]}
    }
    gemini = desk.text(".gemini/settings.json")
    assert gemini.startswith('{\n\t// mine\n\t"ui": {},\n\t"mcpServers": {\n\t\t"time": {')
    assert '"excludeTools": [\n\t\t\t\t"convert_time"\n\t\t\t]' in gemini
    assert "read back: time is effective" in desk.out


def test_twice_changes_nothing_and_restore_gives_the_bytes_back(desk: Desk) -> None:
    before = desk.bytes()
    assert desk.type("generate", "codex", "claude-code", "--direct", "--write") == 0
    after = desk.bytes()
    assert after != before
    ledger = desk.text(".interlock/generated.json")
    assert desk.type("generate", "codex", "claude-code", "--direct", "--write") == 0
    assert "Nothing to do" in desk.out
    assert "has already time" in desk.out
    assert desk.bytes() == after
    assert desk.text(".interlock/generated.json") == ledger
    assert desk.type("restore") == 0
    assert desk.bytes() == before
    # And what was undone is not taken for ours any more.
    assert "time" not in (json.loads(desk.text(".interlock/generated.json")) if Path(
        desk.home / ".interlock/generated.json").exists() else {})  # fmt: skip


@pytest.mark.usefixtures("no_copy")
def test_the_one_entry_that_starts_interlock(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIME_TOKEN", "x")
    assert desk.type("generate", "codex", "--write") == 0
    launcher = desk.home / ".interlock" / "bin" / "interlock"
    assert desk.text(".codex/config.toml") == (
        CODEX + f'\n[mcp_servers.interlock]\ncommand = "{launcher}"\nargs = ["connect", "--host", "codex"]\n'
        'env_vars = ["TIME_TOKEN"]\n'
    )
    assert "Laid a copy" in desk.out
    assert "not set" not in desk.out


@pytest.mark.usefixtures("no_copy")
def test_from_one_kind_to_the_other(desk: Desk) -> None:
    desk.type("generate", "codex", "claude-code", "--direct", "--write")
    assert desk.type("generate", "codex", "claude-code", "--write") == 0
    assert "removed time" in desk.out
    assert "mcp_servers.time" not in desk.text(".codex/config.toml")
    assert list(json.loads(desk.text(".claude.json"))["mcpServers"]) == ["interlock"]
    assert "time" not in desk.text(".claude/settings.json")
    assert "[mcp_servers.other]" in desk.text(".codex/config.toml")


def test_a_projects_file_holds_nothing_of_this_machine(desk: Desk) -> None:
    assert desk.type("generate", "claude-code", "codex", "--scope", "project", "--write") == 0
    assert json.loads((desk.project / ".mcp.json").read_text())["mcpServers"]["interlock"]["command"] == "interlock"
    for file in (desk.project / ".mcp.json", desk.project / ".codex" / "config.toml"):
        assert str(desk.home) not in file.read_text()
    deep = desk.project / "a" / "b"
    deep.mkdir(parents=True)
    os.chdir(deep)
    assert desk.type("generate", "claude-code", "codex", "--scope", "project", "--write") == 0
    assert "Nothing to do" in desk.out


def test_a_file_above_the_project_is_not_the_projects(desk: Desk) -> None:
    desk.put(".mcp.json", "{}")
    desk.type("generate", "claude-code", "--scope", "project", "--write")
    assert desk.text(".mcp.json") == "{}"
    assert (desk.project / ".mcp.json").exists()


def test_local_scope(desk: Desk) -> None:
    assert desk.type("generate", "claude-code", "--direct", "--scope", "local", "--write") == 0
    assert list(json.loads(desk.text(".claude.json"))["projects"]) == [str(desk.project)]
    assert desk.type("generate", "codex", "--direct", "--scope", "local") == 8
    assert "local scope" in desk.out


def test_no_secret_of_a_foreign_line_is_shown(desk: Desk) -> None:
    secret = "gh" + "p_" + "A" * 36
    word = "hunter" + "2hunter"
    desk.put(
        ".codex/config.toml",
        f'[mcp_servers.other]\ncommand = "other"\nargs = ["--token", "{word}"]\n# was {secret}\n'
        f'env = {{ API_TOKEN = "{word}", X = "{secret}" }}\n',
    )
    assert desk.type("generate", "codex", "--direct") == 0
    assert secret not in desk.out + desk.err
    assert word not in desk.out + desk.err
    assert desk.out.count("****") == 3
    assert "[mcp_servers.other]" not in desk.out or 'command = "other"' in desk.out


def test_what_is_refused_is_refused_by_name_and_the_rest_goes(desk: Desk) -> None:
    desk.manifest(TIME.replace("envNames: [TIME_TOKEN]", "env: {TIME_TOKEN: {fromEnv: OTHER}}"), DOCS)
    assert desk.type("generate", "codex", "--direct", "--write") == 8
    assert "refused: time: Codex cannot express all of it: `transports.stdio.env.TIME_TOKEN`" in desk.out
    assert "[mcp_servers.docs]" in desk.text(".codex/config.toml")
    assert "[mcp_servers.time]" not in desk.text(".codex/config.toml")
    assert desk.type("generate", "codex", "--direct", "--lossy", "warn", "--write") == 0
    assert "added time (lossy)" in desk.out
    assert "lossy: time: `transports.stdio.env.TIME_TOKEN`" in desk.out


def test_a_foreign_entry_needs_replace(desk: Desk) -> None:
    desk.put(".codex/config.toml", '[mcp_servers.time]\ncommand = "mine"\n')
    assert desk.type("generate", "codex", "--direct", "--write") == 8
    assert "--replace" in desk.out
    assert desk.text(".codex/config.toml") == '[mcp_servers.time]\ncommand = "mine"\n'
    assert desk.type("generate", "codex", "--direct", "--write", "--replace") == 0
    assert "took over time" in desk.out
    assert 'command = "uvx"' in desk.text(".codex/config.toml")


def test_servers_that_nobody_trusted_are_not_generated(desk: Desk) -> None:
    (desk.project / "interlock.yaml").write_text(DOCS)
    assert desk.type("generate", "codex", "--direct") == 0
    assert "Not generated: docs: its manifest is not trusted yet" in desk.out
    assert "mcp_servers.docs" not in desk.out


def test_what_the_entry_does_not_lead_to_yet_is_told(desk: Desk) -> None:
    (desk.project / "interlock.yaml").write_text(DOCS)
    assert desk.type("generate", "codex") == 0
    assert "Not served through the entry yet: docs: its manifest is not trusted yet" in desk.out
    (desk.project / "interlock.yaml").unlink()
    (desk.home / ".interlock" / "interlock.yaml").unlink()
    assert desk.type("generate", "codex") == 0
    assert "would add interlock" in desk.out
    assert "no manifest declares a server here, and Interlock's entry leads to no tool until one does" in desk.err


def test_a_manifest_with_errors_removes_nothing(desk: Desk) -> None:
    desk.type("generate", "codex", "--direct", "--write")
    desk.manifest(TIME.replace("transports", "transport"))
    assert desk.type("generate", "codex", "--direct", "--write") == 8
    assert "[mcp_servers.time]" in desk.text(".codex/config.toml")


def test_only_one_server(desk: Desk) -> None:
    desk.manifest(TIME, DOCS)
    desk.type("generate", "codex", "--direct", "--write")
    desk.put(".codex/config.toml", desk.text(".codex/config.toml").replace("uvx", "npx"))
    assert desk.type("generate", "codex", "--direct", "--server", "docs", "--write") == 0
    assert 'command = "npx"' in desk.text(".codex/config.toml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("generate", "emacs"), "no host that Interlock knows"),
        (("generate", "codex", "--direct", "--server", "nope"), "no manifest declares 'nope'"),
        (("generate", "codex", "--server", "time"), "--server goes with --direct"),
        (("generate", "plugin"), "needs `--to DIR`"),
        (("generate", "codex", "--to", "x"), "goes with `interlock generate plugin`"),
    ],
)
def test_words_that_make_no_sense(desk: Desk, words: tuple[str, ...], said: str) -> None:
    assert desk.type(*words) == 2
    assert said in desk.err


def test_for_machines(desk: Desk) -> None:
    desk.manifest(TIME, DOCS)
    found = desk.json("generate", "codex", "--direct", "--write")
    (host,) = found["hosts"]  # type: ignore[misc]
    assert (found["written"], found["scope"], found["kind"]) == (True, "user", "direct")
    assert host["file"] == str(desk.home / ".codex" / "config.toml")
    assert {(each["server"], each["state"]) for each in host["entries"]} == {("docs", "new"), ("time", "new")}
    assert host["read_back"] == {"docs": "effective", "time": "effective"}
    assert host["unset"] == ["TIME_TOKEN"]
    assert isinstance(found["change"], str)


@pytest.mark.parametrize(
    ("content", "said"),
    [('{"mcpServers": {', "cannot be read"), ('{"a": 1 // mine\n}', "has a comment"), ("[]", "hold an object")],
)
def test_a_file_that_cannot_be_changed_stops_no_other(desk: Desk, content: str, said: str) -> None:
    file = desk.put(".claude.json", content)
    assert desk.type("generate", "claude-code", "codex", "--direct", "--write") == 8
    assert f"refused: {file}" in desk.out
    assert said in desk.out
    assert file.read_text() == content
    assert not (desk.home / ".claude" / "settings.json").exists()
    assert "[mcp_servers.time]" in desk.text(".codex/config.toml")


def test_runs_at_one_time_lose_nothing_of_each_other(desk: Desk) -> None:
    keys = [f"s{number}" for number in range(6)]
    desk.manifest(*(TIME.replace("acme.time", f"acme.{key}") for key in keys))
    words = [sys.executable, "-m", "interlock", "generate", "claude-code", "codex", "--direct", "--write", "--server"]
    source = Path(__file__).resolve().parents[2] / "src"
    environ = {**os.environ, "PYTHONPATH": str(source)}
    running = [subprocess.Popen([*words, key], env=environ, stdout=subprocess.DEVNULL) for key in keys]
    assert [each.wait(timeout=100) for each in running] == [0] * len(keys)
    assert sorted(json.loads(desk.text(".claude.json"))["mcpServers"]) == keys
    rules = json.loads(desk.text(".claude/settings.json"))["permissions"]
    assert sorted(rules["deny"]) == [f"mcp__{key}__convert_time" for key in keys]
    assert all(f"[mcp_servers.{key}]" in desk.text(".codex/config.toml") for key in keys)
    assert desk.type("diff", "claude-code", "codex", "--direct") == 0


def test_what_goes_beside_an_entry_goes_into_its_file(desk: Desk) -> None:
    desk.put(".config/opencode/opencode.json", "{}")
    assert desk.type("generate", "opencode", "--direct", "--write") == 0
    assert json.loads(desk.text(".config/opencode/opencode.json"))["permission"]["time_convert_time"] == "deny"
    assert not (desk.home / ".config" / "opencode" / "opencode.jsonc").exists()
    assert desk.type("generate", "opencode", "--direct", "--write") == 0
    assert "Nothing to do" in desk.out
    assert not (desk.home / ".config" / "opencode" / "opencode.jsonc").exists()


@pytest.mark.parametrize(
    ("there", "written"),
    [
        ([], ".config/devin/mcp_config.json"),
        ([".codeium/windsurf/mcp_config.json"], ".codeium/windsurf/mcp_config.json"),
        ([".codeium/windsurf/mcp_config.json", ".config/devin/mcp_config.json"], ".config/devin/mcp_config.json"),
    ],
)
def test_an_older_versions_file_is_written_where_only_that_is_there(
    desk: Desk, no_copy: None, there: list[str], written: str
) -> None:
    for file in there:
        desk.put(file, '{"mcpServers": {}}')
    assert desk.type("generate", "windsurf", "--write") == 0
    assert "interlock" in json.loads(desk.text(written))["mcpServers"]
    files = [".codeium/windsurf/mcp_config.json", ".config/devin/mcp_config.json"]
    assert [file for file in files if (desk.home / file).exists()] == sorted({*there, written})
    assert ("which of the two the version here reads is not known" in desk.out) is bool(there)
