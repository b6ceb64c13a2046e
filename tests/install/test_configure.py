"""Entries in hosts' files: by the host's own command or by hand, and never at another entry's cost."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from pathlib import Path

import pytest

from interlock.install import configure, entries, hosts
from interlock.install.configure import Job, Refused
from interlock.install.hosts import Host, Where

URL = "https://mcp.example.com/mcp"
COMMAND = ("/home/u/.interlock/bin/interlock", "bridge", URL, "--host", "x")
FILE_HOSTS = [host for host in hosts.HOSTS if host.format != "paste"]


def host(name: str) -> Host:
    found = hosts.find(name)
    assert found is not None
    return found


def job(
    where: Where, name: str, *, entry_name: str = "example", names: tuple[str, ...] = (), native: bool = False
) -> Job:
    one = host(name)
    if native:
        assert one.native is not None
        return Job(one, where, os.path.join(where.home, ".interlock"), entry_name, one.native(URL), None, URL)
    assert one.bridge is not None
    entry = one.bridge(COMMAND, names)
    return Job(one, where, os.path.join(where.home, ".interlock"), entry_name, entry, COMMAND, URL)


@pytest.fixture
def where(tmp_path: Path) -> Where:
    """A machine with nothing on it, not even programs."""
    return Where(str(tmp_path), {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}, "linux")


def file_of(where: Where, name: str) -> Path:
    path = hosts.config_file(host(name), where)
    assert path is not None
    return Path(path)


def given(where: Where, name: str, text: str) -> Path:
    path = file_of(where, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("one", FILE_HOSTS, ids=lambda one: one.id)
def test_every_host_gets_an_entry_that_reads_as_ours(where: Where, one: Host) -> None:
    written = configure.write(job(where, one.id))
    assert (written.how, written.backup) == ("file", None)
    found = [entry for entry in entries.of_host(one, where) if entry.name == "example"]
    assert [(entry.way, entry.url) for entry in found] == [("interlock", URL)]
    assert entries.words(found[0].entry) == list(COMMAND)
    again = configure.write(job(where, one.id))
    assert again.how == "unchanged"
    assert stat.S_IMODE(os.stat(written.file).st_mode) == 0o600


@pytest.mark.parametrize("one", [one for one in FILE_HOSTS if one.native is not None], ids=lambda one: one.id)
def test_native_entries_read_as_native(where: Where, one: Host) -> None:
    configure.write(job(where, one.id, native=True))
    assert [(found.way, found.url) for found in entries.of_host(one, where)] == [("native", URL)]


def test_what_the_documentation_says_of_the_files() -> None:
    """The facts themselves, so that a slip in the table is seen."""
    linux = Where("/home/u", {}, "linux")
    mac = Where("/Users/u", {}, "darwin")
    windows = Where("C:\\Users\\u", {"APPDATA": "C:\\Users\\u\\AppData\\Roaming"}, "win32")
    told = {one.id: one.files(linux)[:1] for one in hosts.HOSTS}
    assert told == {
        "claude-code": ("/home/u/.claude.json",),
        "codex": ("/home/u/.codex/config.toml",),
        "opencode": ("/home/u/.config/opencode/opencode.json",),
        "cursor": ("/home/u/.cursor/mcp.json",),
        "gemini-cli": ("/home/u/.gemini/settings.json",),
        "vscode": ("/home/u/.config/Code/User/mcp.json",),
        "copilot-cli": ("/home/u/.copilot/mcp-config.json",),
        "claude-desktop": ("/home/u/.config/Claude/claude_desktop_config.json",),
        "windsurf": ("/home/u/.config/devin/mcp_config.json",),
        "zed": ("/home/u/.config/zed/settings.json",),
        "antigravity": ("/home/u/.gemini/config/mcp_config.json",),
        "cline": ("/home/u/.cline/data/settings/cline_mcp_settings.json",),
        "kiro": ("/home/u/.kiro/settings/mcp.json",),
        "junie": ("/home/u/.junie/mcp/mcp.json",),
        "goose": ("/home/u/.config/goose/config.yaml",),
        "claude-ai": (),
    }
    assert host("vscode").files(mac) == ("/Users/u/Library/Application Support/Code/User/mcp.json",)
    assert host("claude-desktop").files(windows)[0].startswith("C:\\Users\\u\\AppData\\Roaming")
    moved = Where("/home/u", {"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d", "XDG_CONFIG_HOME": "/x"}, "linux")
    assert [host(name).files(moved)[0] for name in ("codex", "claude-code", "zed")] == [
        "/c/config.toml", "/d/.claude.json", "/x/zed/settings.json",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("codex", {"env_vars": ["TOK"]}),
        ("cursor", {"env": {"TOK": "${env:TOK}"}}),
        ("gemini-cli", {"env": {"TOK": "$TOK"}}),
        ("copilot-cli", {"env": {"TOK": "${TOK}"}}),
        ("claude-code", {"env": {}}),
    ],
)
def test_a_variable_is_passed_by_reference_where_the_host_needs_it(
    where: Where, name: str, wanted: dict[str, object]
) -> None:
    entry = job(where, name, names=("TOK",)).entry
    assert {key: entry[key] for key in wanted} == wanted


def test_other_entries_and_the_files_looks_stay(where: Where) -> None:
    text = '{\n\t"mcpServers": {\n\t\t"mine": {"command": "x",  "env": {"A": "1"}}\n\t},\n\t"theme": 1\n}\n'
    path = given(where, "cursor", text)
    os.chmod(path, 0o640)
    written = configure.write(job(where, "cursor"))
    assert written.backup is not None
    assert Path(written.backup).read_text() == text
    assert stat.S_IMODE(os.stat(written.backup).st_mode) == 0o600
    changed = path.read_text()
    assert '"mine": {"command": "x",  "env": {"A": "1"}}' in changed
    assert json.loads(changed)["theme"] == 1
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640


def test_comments_stay_where_the_host_reads_them(where: Where) -> None:
    path = given(where, "zed", '// mine\n{\n  "theme": "x", // dark\n}\n')
    configure.write(job(where, "zed"))
    assert path.read_text().startswith('// mine\n{\n  "theme": "x"')
    assert "// dark" in path.read_text()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("claude-code", '{"mcpServers": {} // mine\n}', "comment in line 1"),
        ("cursor", '{"mcpServers": {', "not valid JSON .line 1, column 17."),
        ("cursor", '{"mcpServers": []}', "not an object"),
        ("codex", "a = [", "not valid TOML"),
        ("gemini-cli", "[]", "does not hold an object"),
        ("antigravity", "\ufeff{}", "byte order mark"),
    ],
)
def test_a_file_that_is_not_safe_is_left_and_the_snippet_printed(
    where: Where, name: str, text: str, words: str
) -> None:
    path = given(where, name, text)
    with pytest.raises(Refused, match=words) as caught:
        configure.write(job(where, name))
    assert path.read_text() == text
    snippet = caught.value.snippet
    assert snippet is not None
    parsed = tomllib.loads(snippet) if name == "codex" else json.loads(snippet)
    assert entries.at(parsed, host(name).root)["example"] == job(where, name).entry


def test_bytes_that_are_no_text_are_left(where: Where) -> None:
    path = given(where, "cursor", "")
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(Refused, match="not UTF-8"):
        configure.write(job(where, "cursor"))
    assert path.read_bytes() == b'{"a": "\xff"}'


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "npx", "args": ["mcp-remote", URL]},
        {"command": "npx", "args": ["-y", "something"]},
        {"url": URL},
        {"command": "/x/interlock", "args": ["bridge", "https://elsewhere.example/mcp"]},
        {"command": "/x/interlock", "args": ["connect"]},
    ],
)
def test_anothers_entry_keeps_its_name(where: Where, entry: dict[str, object]) -> None:
    text = json.dumps({"mcpServers": {"example": entry}})
    path = given(where, "cursor", text)
    with pytest.raises(Refused, match="--name"):
        configure.write(job(where, "cursor"))
    assert path.read_text() == text
    assert configure.write(job(where, "cursor", entry_name="other")).how == "file"


def test_our_own_entry_is_renewed_and_keeps_what_a_person_added(where: Where) -> None:
    old = {"command": "/old/interlock", "args": ["bridge", URL + "/"], "timeout": 5, "env": {"A": "${env:A}"}}
    path = given(where, "cursor", json.dumps({"mcpServers": {"example": old}}))
    assert configure.write(job(where, "cursor", names=("TOK",))).how == "file"
    entry = json.loads(path.read_text())["mcpServers"]["example"]
    assert entries.words(entry) == list(COMMAND)
    assert entry["timeout"] == 5
    assert entry["env"] == {"A": "${env:A}", "TOK": "${env:TOK}"}


def test_what_is_replaced_is_told(where: Where) -> None:
    """What a person typed the last time does not vanish in silence; a secret that they wrote there is not shown."""
    secret = "sk-" + "a1B2" * 8
    old = {"command": COMMAND[0], "args": [*COMMAND[1:], "--timeout", "60", "--x", secret], "env": {"A": "hunter2"}}
    given(where, "cursor", json.dumps({"mcpServers": {"example": {**old, "type": "stdio"}}}))
    plan = configure.planned(job(where, "cursor", names=("TOK",)))
    written = configure.write(job(where, "cursor", names=("TOK",)))
    assert written.replaced
    assert written.changes == (
        f"- args: bridge {URL} --host x --timeout 60 --x [redacted]", f"+ args: bridge {URL} --host x", "- env: A", "+ env: A, TOK",
    )  # fmt: skip
    assert all(line in plan for line in written.changes)
    assert 'replaces the entry "example"' in plan
    assert (written.replaced, configure.write(job(where, "cursor", names=("TOK",))).how) == (True, "unchanged")
    assert "has this entry already" in configure.planned(job(where, "cursor"))


def test_a_new_entry_replaces_nothing(where: Where) -> None:
    written = configure.write(job(where, "cursor"))
    assert (written.replaced, written.changes) == (False, ())


def test_a_variable_that_went_missing_is_written_again(where: Where) -> None:
    configure.write(job(where, "cursor", names=("TOK",)))
    path = file_of(where, "cursor")
    value = json.loads(path.read_text())
    del value["mcpServers"]["example"]["env"]
    path.write_text(json.dumps(value))
    assert configure.write(job(where, "cursor", names=("TOK",))).how == "file"
    assert json.loads(path.read_text())["mcpServers"]["example"]["env"] == {"TOK": "${env:TOK}"}


def test_a_link_to_the_file_stays_a_link(where: Where, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    link = file_of(where, "cursor")
    link.parent.mkdir()
    link.symlink_to(real)
    configure.write(job(where, "cursor"))
    assert link.is_symlink()
    assert "example" in json.loads(real.read_text())["mcpServers"]


def test_without_a_home_the_backup_lies_beside_the_file(where: Where) -> None:
    path = given(where, "cursor", "{}")
    Path(where.home, ".interlock").write_text("not a folder")
    written = configure.write(job(where, "cursor"))
    assert written.backup is not None
    assert (Path(written.backup).parent, Path(written.backup).read_text()) == (path.parent, "{}")


def test_no_backup_no_change(where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = given(where, "cursor", "{}")
    monkeypatch.setattr(configure.shutil, "copyfileobj", full)
    with pytest.raises(Refused, match="no backup"):
        configure.write(job(where, "cursor"))
    assert path.read_text() == "{}"


def test_a_full_disk_leaves_the_file_whole(where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = given(where, "cursor", '{"theme": 1}')
    monkeypatch.setattr(configure.os, "fsync", full)
    with pytest.raises(Refused, match="cannot be written: No space left"):
        configure.write(job(where, "cursor"))
    assert path.read_text() == '{"theme": 1}'
    assert sorted(os.listdir(path.parent)) == ["mcp.json"]


_CLI = """#!{python}
import json, os, sys
sys.stderr.write("noise\\n")
with open(os.path.join(os.environ["HOME"], "calls.jsonl"), "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
{body}
"""
_WRITES = """
path = os.path.join(os.environ["HOME"], ".claude.json")
value = json.load(open(path)) if os.path.exists(path) else {}
servers = value.setdefault("mcpServers", {})
if sys.argv[2] == "remove":
    del servers[sys.argv[5]]
elif sys.argv[5] in servers:
    sys.exit("it exists already")
else:
    name, (command, *args) = sys.argv[5], sys.argv[7:]
    servers[name] = {"type": "stdio", "command": command, "args": args, "env": {}}
json.dump(value, open(path, "w"))
"""


def program(where: Where, name: str, body: str) -> None:
    path = Path(where.environ["PATH"]) / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(_CLI.format(python=sys.executable, body=body))
    path.chmod(0o755)


def calls(where: Where) -> list[list[str]]:
    path = Path(where.home, "calls.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_the_hosts_own_command_is_used(where: Where) -> None:
    program(where, "claude", _WRITES)
    given(where, "claude-code", json.dumps({"mcpServers": {"mine": {"command": "x"}}, "userID": "u"}))
    written = configure.write(job(where, "claude-code"))
    assert written.how == "command"
    assert written.backup is not None
    assert calls(where) == [["mcp", "add", "-s", "user", "example", "--", *COMMAND]]
    value = json.loads(file_of(where, "claude-code").read_text())
    assert value["mcpServers"]["mine"] == {"command": "x"}
    assert entries.words(value["mcpServers"]["example"]) == list(COMMAND)


def test_it_makes_room_for_a_renewed_entry(where: Where) -> None:
    program(where, "claude", _WRITES)
    old = {"command": "/old/interlock", "args": ["bridge", URL]}
    given(where, "claude-code", json.dumps({"mcpServers": {"example": old}}))
    assert configure.write(job(where, "claude-code")).how == "command"
    assert [call[1] for call in calls(where)] == ["remove", "add"]


@pytest.mark.parametrize("body", ["print('Added example')", "sys.exit('cannot: token=hunter2hunter2')"])
def test_a_command_that_writes_nothing_is_not_believed(where: Where, body: str) -> None:
    program(where, "claude", body)
    written = configure.write(job(where, "claude-code"))
    assert written.how == "file"
    assert "did not write the entry" in written.remarks[0]
    assert "hunter2" not in str(written)
    assert (
        entries.at(json.loads(Path(written.file).read_text()), ("mcpServers",))["example"]
        == job(where, "claude-code").entry
    )


def test_entries_that_a_command_removed_are_named(where: Where) -> None:
    program(where, "claude", _WRITES.replace("json.dump(value", "servers.pop('mine', None); json.dump(value"))
    given(where, "claude-code", json.dumps({"mcpServers": {"mine": {"command": "x"}}}))
    written = configure.write(job(where, "claude-code"))
    assert "removed mine" in written.remarks[0]


def test_codexs_command_is_passed_over_where_it_would_drop_comments(where: Where) -> None:
    program(where, "codex", "sys.exit('not to be called')")
    path = given(where, "codex", '# mine\nmodel = "x"\n')
    written = configure.write(job(where, "codex"))
    assert (written.how, calls(where)) == ("file", [])
    assert "comments" in written.remarks[0]
    assert path.read_text().startswith('# mine\nmodel = "x"\n')


def test_a_reference_to_a_variable_is_written_by_hand(where: Where) -> None:
    program(where, "codex", "sys.exit('not to be called')")
    written = configure.write(job(where, "codex", names=("TOK",)))
    assert (written.how, calls(where)) == ("file", [])
    assert tomllib.loads(Path(written.file).read_text())["mcp_servers"]["example"]["env_vars"] == ["TOK"]


def test_the_plan_says_the_command_and_changes_nothing(where: Where) -> None:
    program(where, "claude", _WRITES)
    assert "mcp add -s user example -- " + " ".join(COMMAND) in configure.planned(job(where, "claude-code"))
    assert configure.planned(job(where, "cursor")).startswith(f"write into {file_of(where, 'cursor')}")
    assert sorted(os.listdir(where.home)) == ["bin"]


def test_goose_is_left_to_the_person(where: Where) -> None:
    with pytest.raises(Refused) as caught:
        configure.write(job(where, "goose"))
    assert caught.value.snippet is not None
    assert "extensions:\n  example:\n" in caught.value.snippet


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (URL, URL + "/", True), ("https://MCP.example.com:443/mcp", URL, True), ("http://mcp.example.com/mcp", URL, False),
        (URL + "?a=1", URL, False), ("https://mcp.example.com/MCP", URL, False), (None, URL, False),
        ("https://[bad", URL, False),
    ],
)  # fmt: skip
def test_when_two_urls_are_the_same(one: str | None, other: str, same: bool) -> None:
    assert entries.same_url(one, other) is same


def test_a_plugin_that_carries_the_bridge_is_found(where: Where) -> None:
    folder = Path(where.home, ".claude", "plugins", "cache", "m", "p", "1.0")
    folder.mkdir(parents=True)
    (folder / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"a": {"command": "/x/interlock", "args": ["bridge", URL]}}})
    )
    (folder / "plugin.json").write_text("{ damaged")
    found = entries.plugin_with_bridge(host("claude-code"), where, URL + "/")
    assert found is not None
    assert (found.name, found.file) == ("a", str(folder / ".mcp.json"))
    assert entries.plugin_with_bridge(host("claude-code"), where, "https://elsewhere.example/mcp") is None
    assert entries.plugin_with_bridge(host("cursor"), where, URL) is None
