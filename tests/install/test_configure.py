"""Entries in hosts' files: by the host's own command or by hand, and never at another entry's cost."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from pathlib import Path

import pytest
from tests.install.written import config_file

from interlock.hosts import reading, registry
from interlock.hosts.changes import recording
from interlock.hosts.changes.restoring import restore
from interlock.hosts.machine import Machine, Platform
from interlock.install import configure, entries, hosts
from interlock.install.configure import Job, Refused
from interlock.install.hosts import Host

URL = "https://mcp.example.com/mcp"
COMMAND = ("/home/u/.interlock/bin/interlock", "bridge", URL, "--host", "x")
FILE_HOSTS = [host for host in hosts.HOSTS if host.adapter is not None]


def host(name: str) -> Host:
    found = hosts.find(name)
    assert found is not None
    return found


def job(
    where: Machine, name: str, *, entry_name: str = "example", names: tuple[str, ...] = (), native: bool = False
) -> Job:
    one = host(name)
    own = None if native else hosts.bridge(one, where, entry_name, COMMAND, names)
    rendered = own or hosts.native(one, where, entry_name, URL)
    assert rendered is not None
    return Job(
        one, where, os.path.join(where.home, ".interlock"), entry_name, rendered, None if native else COMMAND, URL
    )


@pytest.fixture
def where(tmp_path: Path) -> Machine:
    """A machine with nothing on it, not even programs."""
    environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    return Machine(platform="linux", home=str(tmp_path), folder=str(tmp_path / "work"), environ=environ)


def file_of(where: Machine, name: str) -> Path:
    path = config_file(host(name), where)
    assert path is not None
    return Path(path)


def stands(where: Machine, name: str, entry_name: str = "example") -> dict[str, object]:
    """The raw entry in the host's file."""
    one = host(name)
    found = hosts.place(one, where)
    assert found is not None
    place, file = found
    content = reading.read_bytes(where, file)
    document = reading.parse(content or b"", place.format)
    held = {each: raw for each, raw, _ in reading.entries_of(document, place.tables[:1], where, listed=place.listed)}
    entry = held[entry_name]
    assert isinstance(entry, dict)
    return entry


def given(where: Machine, name: str, text: str) -> Path:
    path = file_of(where, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_every_host_with_a_file_is_one_of_setup() -> None:
    assert [one.id for one in FILE_HOSTS] == list(registry.IDS)
    assert [one.id for one in hosts.HOSTS if one.adapter is None] == ["claude-ai"]


@pytest.mark.parametrize("one", FILE_HOSTS, ids=lambda one: one.id)
def test_every_host_gets_an_entry_that_reads_as_ours(where: Machine, one: Host) -> None:
    written = configure.write(job(where, one.id))
    assert (written.how, written.backup) == ("file", None)
    found = [entry for entry in entries.of_host(one, where) if entry.name == "example"]
    assert [(entry.way, entry.url, entry.command) for entry in found] == [("interlock", URL, COMMAND)]
    again = configure.write(job(where, one.id))
    assert (again.how, again.undo) == ("unchanged", None)
    assert stat.S_IMODE(os.stat(written.file).st_mode) == 0o600


@pytest.mark.parametrize(
    ("entry", "counts"),
    [({"type": "http", "url": URL}, True), ({"url": URL}, False)],
    ids=["runs", "broken"],
)
def test_an_entry_that_starts_nothing_leads_nowhere(where: Machine, entry: dict[str, object], counts: bool) -> None:
    Path(where.home, ".claude.json").write_text(json.dumps({"mcpServers": {"other": entry}}))
    assert [found.name for found in entries.of_host(host("claude-code"), where)] == (["other"] if counts else [])


@pytest.mark.parametrize("one", [one for one in FILE_HOSTS if one.takes_urls], ids=lambda one: one.id)
def test_native_entries_read_as_native(where: Machine, one: Host) -> None:
    configure.write(job(where, one.id, native=True))
    assert [(found.way, found.url) for found in entries.of_host(one, where)] == [("native", URL)]


@pytest.mark.parametrize("one", FILE_HOSTS, ids=lambda one: one.id)
def test_restore_takes_the_entry_back(where: Machine, one: Host) -> None:
    """Of a file that was there byte for byte, and one that was not is gone."""
    home = Path(where.home, ".interlock")
    path = file_of(where, one.id)
    configure.write(job(where, one.id))
    restore(home, where, None, force=False)
    assert not path.exists()
    configure.write(job(where, one.id, entry_name="first"))
    before = path.read_bytes()
    written = configure.write(job(where, one.id))
    assert written.backup is not None
    assert Path(written.backup).read_bytes() == before
    assert stat.S_IMODE(os.stat(written.backup).st_mode) == 0o600
    assert written.undo == f"interlock restore {Path(written.backup).parent.name}"
    restore(home, where, None, force=False)
    assert path.read_bytes() == before


def test_what_was_changed_since_stays_when_an_entry_is_taken_back(where: Machine) -> None:
    old = {"command": "/old/interlock", "args": ["bridge", URL], "timeout": 5}
    path = given(where, "cursor", json.dumps({"mcpServers": {"example": old}}))
    configure.write(job(where, "cursor", names=("TOK",)))
    value = json.loads(path.read_text())
    value["mcpServers"]["example"]["timeout"] = 7
    path.write_text(json.dumps({**value, "theme": 1}))
    restore(Path(where.home, ".interlock"), where, None, force=False)
    assert json.loads(path.read_text()) == {"mcpServers": {"example": {**old, "timeout": 7}}, "theme": 1}


def test_what_the_documentation_says_of_the_files() -> None:
    """The facts themselves, so that a slip in the adapters is seen."""

    def machine(platform: Platform, home: str, **environ: str) -> Machine:
        return Machine(platform=platform, home=home, folder=home, environ=environ, root=os.devnull)

    linux = machine("linux", "/home/u")
    mac = machine("macos", "/Users/u")
    windows = machine("windows", "C:\\Users\\u", APPDATA="C:\\Users\\u\\AppData\\Roaming")
    told = {one.id: config_file(one, linux) for one in hosts.HOSTS}
    assert told == {
        "claude-code": "/home/u/.claude.json",
        "codex": "/home/u/.codex/config.toml",
        "cursor": "/home/u/.cursor/mcp.json",
        "antigravity": "/home/u/.gemini/config/mcp_config.json",
        "gemini-cli": "/home/u/.gemini/settings.json",
        "vscode": "/home/u/.config/Code/User/mcp.json",
        "copilot-cli": "/home/u/.copilot/mcp-config.json",
        "claude-desktop": "/home/u/.config/Claude/claude_desktop_config.json",
        "windsurf": "/home/u/.config/devin/mcp_config.json",
        "zed": "/home/u/.config/zed/settings.json",
        "opencode": "/home/u/.config/opencode/opencode.jsonc",
        "goose": "/home/u/.config/goose/config.yaml",
        "cline": "/home/u/.cline/data/settings/cline_mcp_settings.json",
        "roo-code": "/home/u/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        "continue": "/home/u/.continue/config.yaml",
        "jetbrains": "/home/u/.junie/mcp/mcp.json",
        "pi": "/home/u/.config/mcp/mcp.json",
        "qwen-code": "/home/u/.qwen/settings.json",
        "kiro": "/home/u/.kiro/settings/mcp.json",
        "claude-ai": None,
    }
    assert config_file(host("vscode"), mac) == "/Users/u/Library/Application Support/Code/User/mcp.json"
    desktop = config_file(host("claude-desktop"), windows)
    assert desktop is not None
    assert desktop.startswith("C:\\Users\\u\\AppData\\Roaming")
    moved = machine("linux", "/home/u", CODEX_HOME="/c", CLAUDE_CONFIG_DIR="/d", XDG_CONFIG_HOME="/x")
    assert [config_file(host(name), moved) for name in ("codex", "claude-code", "zed")] == [
        "/c/config.toml", "/d/.claude.json", "/x/zed/settings.json",
    ]  # fmt: skip


def test_the_file_of_an_older_version_is_written_where_only_that_is_there(where: Machine) -> None:
    older = Path(where.home, ".codeium", "windsurf", "mcp_config.json")
    older.parent.mkdir(parents=True)
    older.write_text("{}")
    written = configure.write(job(where, "windsurf"))
    assert written.file == str(older)
    assert any("which of the two the version here reads is not known" in each for each in written.remarks)
    newer = Path(where.home, ".config", "devin", "mcp_config.json")
    newer.parent.mkdir(parents=True)
    newer.write_text("{}")
    assert configure.write(job(where, "windsurf")).file == str(newer)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("codex", {"env_vars": ["TOK"]}),
        ("cursor", {"env": {"TOK": "${env:TOK}"}}),
        ("gemini-cli", {"env": {"TOK": "$TOK"}}),
        ("copilot-cli", {"env": {"TOK": "${TOK}"}}),
        ("roo-code", {"env": {"TOK": "${env:TOK}"}}),
        ("kiro", {"env": {"TOK": "${TOK}"}}),
        ("claude-code", {"env": None}),  # it has the host's whole environment
        ("goose", {"env_keys": None}),
    ],
)
def test_a_variable_is_passed_by_reference_where_the_host_needs_it(
    where: Machine, name: str, wanted: dict[str, object]
) -> None:
    entry = job(where, name, names=("TOK",)).rendered.entry
    assert {key: entry.get(key) for key in wanted} == wanted
    assert hosts.passes_variables(host(name), where)


@pytest.mark.parametrize("name", ["claude-desktop", "zed", "antigravity", "cline", "jetbrains", "claude-ai"])
def test_hosts_that_are_not_known_to_pass_a_variable(where: Machine, name: str) -> None:
    assert not hosts.passes_variables(host(name), where)


def test_other_entries_and_the_files_looks_stay(where: Machine) -> None:
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


def test_comments_stay_where_the_host_reads_them(where: Machine) -> None:
    path = given(where, "zed", '// mine\n{\n  "theme": "x", // dark\n}\n')
    configure.write(job(where, "zed"))
    assert path.read_text().startswith('// mine\n{\n  "theme": "x"')
    assert "// dark" in path.read_text()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("claude-code", '{"mcpServers": {} // mine\n}', ":1:19: it is left as it is: it has a comment"),
        ("cline", '{"mcpServers": {},}', "a comma after the last member"),
        ("cursor", '{"mcpServers": {', ":1:17: it is left as it is: the file ends, and the `{` of line 1, column 16"),
        ("cursor", '{"mcpServers": []}', "mcpServers is no object"),
        ("codex", "a = [", ":1:6: it is left as it is: a value is missing"),
        ("gemini-cli", "[]", "does not hold an object"),
        ("gemini-cli", '{"mcpServers": {},}', "a comma after the last member"),
        ("antigravity", "\ufeff{}", "byte order mark"),
        ("goose", "extensions: [a]\n", "extensions is no object"),
        ("continue", "mcpServers:\n  a: {command: x}\n", ":1:1: it is left as it is: mcpServers is no list"),
    ],
)
def test_a_file_that_is_not_safe_is_left_and_the_snippet_printed(
    where: Machine, name: str, text: str, words: str
) -> None:
    path = given(where, name, text)
    with pytest.raises(Refused, match=words) as caught:
        configure.write(job(where, name))
    assert path.read_text() == text
    assert caught.value.snippet is not None
    path.write_text(caught.value.snippet)
    assert stands(where, name) == job(where, name).rendered.entry
    path.write_text(text)
    with pytest.raises(Refused, match=words):
        configure.planned(job(where, name))


def test_comments_stay_where_nobody_knows_whether_the_host_reads_them(where: Machine) -> None:
    """They are there already: it is not this change that does harm."""
    path = given(where, "cursor", '{"mcpServers": {} // mine\n}')
    configure.write(job(where, "cursor"))
    assert "// mine" in path.read_text()
    assert entries.words(stands(where, "cursor")) == list(COMMAND)


def test_bytes_that_are_no_text_are_left(where: Machine) -> None:
    path = given(where, "cursor", "")
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(Refused, match="no UTF-8"):
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
def test_anothers_entry_keeps_its_name(where: Machine, entry: dict[str, object]) -> None:
    text = json.dumps({"mcpServers": {"example": entry}})
    path = given(where, "cursor", text)
    with pytest.raises(Refused, match="--name"):
        configure.write(job(where, "cursor"))
    assert path.read_text() == text
    assert configure.write(job(where, "cursor", entry_name="other")).how == "file"


def test_our_own_entry_is_renewed_and_keeps_what_a_person_added(where: Machine) -> None:
    old = {"command": "/old/interlock", "args": ["bridge", URL + "/"], "timeout": 5, "env": {"A": "${env:A}"}}
    path = given(where, "cursor", json.dumps({"mcpServers": {"example": old}}))
    assert configure.write(job(where, "cursor", names=("TOK",))).how == "file"
    entry = json.loads(path.read_text())["mcpServers"]["example"]
    assert entries.words(entry) == list(COMMAND)
    assert entry["timeout"] == 5
    assert entry["env"] == {"A": "${env:A}", "TOK": "${env:TOK}"}


def test_what_is_replaced_is_told(where: Machine) -> None:
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


def test_a_new_entry_replaces_nothing(where: Machine) -> None:
    written = configure.write(job(where, "cursor"))
    assert (written.replaced, written.changes) == (False, ())


def test_a_variable_that_went_missing_is_written_again(where: Machine) -> None:
    configure.write(job(where, "cursor", names=("TOK",)))
    path = file_of(where, "cursor")
    value = json.loads(path.read_text())
    del value["mcpServers"]["example"]["env"]
    path.write_text(json.dumps(value))
    assert configure.write(job(where, "cursor", names=("TOK",))).how == "file"
    assert json.loads(path.read_text())["mcpServers"]["example"]["env"] == {"TOK": "${env:TOK}"}


def test_a_link_to_the_file_stays_a_link(where: Machine, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    link = file_of(where, "cursor")
    link.parent.mkdir()
    link.symlink_to(real)
    configure.write(job(where, "cursor"))
    assert link.is_symlink()
    assert "example" in json.loads(real.read_text())["mcpServers"]


def test_without_a_home_the_original_lies_beside_the_file(where: Machine) -> None:
    path = given(where, "cursor", "{}")
    Path(where.home, ".interlock").write_text("not a folder")
    written = configure.write(job(where, "cursor"))
    assert written.backup is not None
    assert Path(written.backup).is_relative_to(path.parent)
    assert Path(written.backup).read_text() == "{}"
    assert written.undo is not None
    assert written.undo.endswith(f" --home {path.parent}/.interlock")
    restore(path.parent / ".interlock", where, None, force=False)
    assert path.read_text() == "{}"


def test_no_record_no_change(where: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = given(where, "cursor", "{}")
    monkeypatch.setattr(recording, "write_file", full)
    with pytest.raises(Refused, match="cannot be recorded, so nothing is changed: No space left"):
        configure.write(job(where, "cursor"))
    assert path.read_text() == "{}"


def test_a_full_disk_leaves_the_file_whole(where: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = given(where, "cursor", '{"theme": 1}')
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(Refused, match="No space left"):
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


def program(where: Machine, name: str, body: str) -> None:
    path = Path(where.environ["PATH"]) / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(_CLI.format(python=sys.executable, body=body))
    path.chmod(0o755)


def calls(where: Machine) -> list[list[str]]:
    path = Path(where.home, "calls.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_the_hosts_own_command_is_used(where: Machine) -> None:
    program(where, "claude", _WRITES)
    before = json.dumps({"mcpServers": {"mine": {"command": "x"}}, "userID": "u"})
    given(where, "claude-code", before)
    written = configure.write(job(where, "claude-code"))
    assert written.how == "command"
    assert written.backup is not None
    assert json.loads(Path(written.backup).read_text())["mcpServers"] == {"mine": {"command": "x"}}
    assert calls(where) == [["mcp", "add", "-s", "user", "example", "--", *COMMAND]]
    value = json.loads(file_of(where, "claude-code").read_text())
    assert value["mcpServers"]["mine"] == {"command": "x"}
    assert entries.words(value["mcpServers"]["example"]) == list(COMMAND)
    restore(Path(where.home, ".interlock"), where, None, force=False)
    assert file_of(where, "claude-code").read_text() == before


def test_it_makes_room_for_a_renewed_entry(where: Machine) -> None:
    program(where, "claude", _WRITES)
    old = {"command": "/old/interlock", "args": ["bridge", URL]}
    given(where, "claude-code", json.dumps({"mcpServers": {"example": old}}))
    assert configure.write(job(where, "claude-code")).how == "command"
    assert [call[1] for call in calls(where)] == ["remove", "add"]


def test_a_command_that_would_lose_what_a_person_added_is_passed_over(where: Machine) -> None:
    program(where, "claude", "sys.exit('not to be called')")
    old = {"command": "/old/interlock", "args": ["bridge", URL], "timeout": 60000}
    given(where, "claude-code", json.dumps({"mcpServers": {"example": old}}))
    assert configure.write(job(where, "claude-code")).how == "file"
    assert calls(where) == []
    assert stands(where, "claude-code")["timeout"] == 60000


@pytest.mark.parametrize("body", ["print('Added example')", "sys.exit('cannot: token=hunter2hunter2')"])
def test_a_command_that_writes_nothing_is_not_believed(where: Machine, body: str) -> None:
    program(where, "claude", body)
    written = configure.write(job(where, "claude-code"))
    assert written.how == "file"
    assert "did not write the entry" in written.remarks[0]
    assert "hunter2" not in str(written)
    assert stands(where, "claude-code") == job(where, "claude-code").rendered.entry


def test_entries_that_a_command_removed_are_named(where: Machine) -> None:
    program(where, "claude", _WRITES.replace("json.dump(value", "servers.pop('mine', None); json.dump(value"))
    given(where, "claude-code", json.dumps({"mcpServers": {"mine": {"command": "x"}}}))
    written = configure.write(job(where, "claude-code"))
    assert "removed mine" in written.remarks[0]


def test_codexs_command_is_passed_over_where_it_would_drop_comments(where: Machine) -> None:
    program(where, "codex", "sys.exit('not to be called')")
    path = given(where, "codex", '# mine\nmodel = "x"\n')
    written = configure.write(job(where, "codex"))
    assert (written.how, calls(where)) == ("file", [])
    assert "comments" in written.remarks[0]
    assert path.read_text().startswith('# mine\nmodel = "x"\n')


def test_a_reference_to_a_variable_is_written_by_hand(where: Machine) -> None:
    program(where, "codex", "sys.exit('not to be called')")
    written = configure.write(job(where, "codex", names=("TOK",)))
    assert (written.how, calls(where)) == ("file", [])
    assert tomllib.loads(Path(written.file).read_text())["mcp_servers"]["example"]["env_vars"] == ["TOK"]


def test_the_plan_says_the_command_and_changes_nothing(where: Machine) -> None:
    program(where, "claude", _WRITES)
    assert "mcp add -s user example -- " + " ".join(COMMAND) in configure.planned(job(where, "claude-code"))
    assert configure.planned(job(where, "cursor")).startswith(f"write into {file_of(where, 'cursor')}")
    assert sorted(os.listdir(where.home)) == ["bin"]


def test_gooses_file_is_written_with_its_comments(where: Machine) -> None:
    path = given(
        where, "goose", "# mine\nGOOSE_MODE: auto # fast\nextensions:\n  other: {type: builtin, enabled: true}\n"
    )
    configure.write(job(where, "goose"))
    text = path.read_text()
    assert text.startswith("# mine\nGOOSE_MODE: auto # fast\nextensions:\n  other: {type: builtin, enabled: true}\n")
    entry = stands(where, "goose")
    assert (entry["name"], entry["enabled"], [entry["cmd"], *entry["args"]]) == ("example", True, list(COMMAND))  # type: ignore[misc]


def test_the_name_that_a_host_takes_for_the_same_is_the_same_entry(where: Machine) -> None:
    """VS Code makes no difference between capital and small letters."""
    old = {"type": "stdio", "command": "/old/interlock", "args": ["bridge", URL]}
    path = given(where, "vscode", json.dumps({"servers": {"Example": old}}))
    assert configure.write(job(where, "vscode")).replaced
    assert list(json.loads(path.read_text())["servers"]) == ["Example"]
    path.write_text(json.dumps({"servers": {"Example": {"command": "npx"}}}))
    with pytest.raises(Refused, match="--name"):
        configure.write(job(where, "vscode"))


def test_a_native_entry_takes_the_place_of_a_bridge_whole(where: Machine) -> None:
    configure.write(job(where, "cursor"))
    assert configure.write(job(where, "cursor", native=True)).how == "file"
    assert stands(where, "cursor") == {"url": URL}


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


def test_a_plugin_that_carries_the_bridge_is_found(where: Machine) -> None:
    base = Path(where.home, ".claude")
    folder = base / "plugins" / "cache" / "m" / "p" / "1.0"
    folder.mkdir(parents=True)
    (folder / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"a": {"command": "/x/interlock", "args": ["bridge", URL]}}})
    )
    one = host("claude-code")
    assert entries.plugin_with_bridge(one, where, URL) is None, "it lies there, and is not installed"
    installed = {"version": 2, "plugins": {"p@m": [{"scope": "user", "installPath": str(folder), "version": "1.0"}]}}
    (base / "plugins" / "installed_plugins.json").write_text(json.dumps(installed))
    settings = base / "settings.json"
    settings.write_text(json.dumps({"enabledPlugins": {"p@m": True}}))
    found = entries.plugin_with_bridge(one, where, URL + "/")
    assert found is not None
    assert (found.name, found.file) == ("plugin:p:a", str(folder / ".mcp.json"))
    assert entries.plugin_with_bridge(one, where, "https://elsewhere.example/mcp") is None
    assert entries.plugin_with_bridge(host("cursor"), where, URL) is None
    settings.write_text(json.dumps({"enabledPlugins": {"p@m": False}}))
    assert entries.plugin_with_bridge(one, where, URL) is None
