"""`interlock import` and `interlock adopt` as they are typed: six hosts, real servers, and back again byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.desk import Desk, desk_at

import interlock
from interlock.manifest.loading import load

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the home of this test is HOME")

SERVER = str(Path(__file__).with_name("small_server.py"))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return desk_at(tmp_path, monkeypatch, capsys)


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laying the home copy and starting the entries are for the tests that are about them."""
    monkeypatch.setattr("interlock.cli.home_copy.lay", lambda home: (None, None))
    monkeypatch.setattr("interlock.cli.adopt._Adopt._try", lambda self, plan, applied: 0)


@pytest.fixture
def running_interlock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Interlock that is tested in place of a home copy: laying one is tried once, with six hosts."""
    launcher = tmp_path / "interlock"
    source = Path(interlock.__file__).parents[1]
    launcher.write_text(f'#!/bin/sh\nPYTHONPATH="{source}" exec "{sys.executable}" -m interlock "$@"\n')
    launcher.chmod(0o755)
    monkeypatch.setattr("interlock.cli.home_copy.lay", lambda home: (None, None))
    monkeypatch.setattr("interlock.install.launcher.command", lambda home: [str(launcher)])


def words(*tools: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SERVER, *tools]}


def secret() -> str:
    return "gh" + "p_" + "Q" * 36


def six_hosts(desk: Desk) -> None:
    """Each with a mistake that people make."""
    home, token = desk.home, secret()
    digest = hashlib.sha256(token.encode()).hexdigest()
    desk.put(
        ".claude.json",
        json.dumps({
            "numStartups": 7,
            "mcpServers": {"clock": {"type": "stdio", **words("now", "zones"), "env": {}}},
            "projects": {str(desk.project): {"mcpServers": {"local": {"type": "stdio", **words("here")}}}},
        }, indent=2),
    )  # fmt: skip
    desk.put(
        ".codex/config.toml",
        f'# mine\nmodel = "gpt-5.5" # kept\n\n[mcp_servers.clock]\ncommand = "{sys.executable}"\nargs = ["{SERVER}", "now", "zones"]\n'
        f'\n[mcp_servers.keyed]\ncommand = "{sys.executable}"\nargs = ["{SERVER}", "open", "--needs", "API_TOKEN:{digest}"]\n'
        f'env = {{ API_TOKEN = "{token}" }}\n',
    )  # fmt: skip
    desk.put(
        ".cursor/mcp.json",
        "\ufeff" + json.dumps({"mcpServers": {"clock": words("now", "zones"), "relative": {"command": "./run.sh"}}}, indent=4)
        .replace("\n", "\r\n"),
    )  # fmt: skip
    desk.put(
        ".gemini/settings.json",
        '{\n  // look\n  "ui": {"theme": "x"},\n  "mcpServers": ' + json.dumps({"notes": {**words("read"), "trust": True}}) + "\n}\n",
    )  # fmt: skip
    desk.put(
        ".config/Code/User/mcp.json",
        '{\n\t"servers": {\n\t\t// the clock again\n\t\t"Clock": ' + json.dumps(words("now", "zones")) + ",\n\t},\n}\n",
    )  # fmt: skip
    desk.put(
        ".config/opencode/opencode.json",
        json.dumps({"mcp": {"off": {"type": "local", "command": [sys.executable, SERVER, "never"], "enabled": False}}}),
    )
    assert home.is_dir()


def listed(report: dict[str, Any]) -> dict[str, dict[str, int]]:
    return {each["host"]: each["tools"] for each in report["trial"]}


def test_six_hosts_are_adopted_tried_and_restored_byte_for_byte(desk: Desk) -> None:
    six_hosts(desk)
    before = desk.bytes()
    report: dict[str, Any] = desk.json("adopt", "--yes", "--move-secrets")
    assert report["exit"] == 0, report["trial"]
    # Through each host's one entry, started with what that host passes on, its servers list their tools.
    assert listed(report) == {
        "claude-code": {"clock": 2, "local": 1},
        "codex": {"clock": 2, "keyed": 1},
        "cursor": {"clock": 2},
        "gemini-cli": {"notes": 1},
        "vscode": {"clock": 2},
        "opencode": {},
    }
    stays = {each["server"] for host in report["hosts"] for each in host["stays"]}
    assert stays == {"relative"}
    for path, root in ((".claude.json", "mcpServers"), (".cursor/mcp.json", "mcpServers")):
        left = json.loads((desk.home / path).read_text("utf-8-sig"))[root]
        assert set(left) - {"relative"} == {"interlock"}
    assert desk.text(".codex/config.toml").startswith('# mine\nmodel = "gpt-5.5" # kept\n')
    moved = desk.home / ".interlock" / "secrets" / "keyed-api_token"
    assert moved.read_text() == f"{secret()}\n"
    assert stat.S_IMODE(moved.stat().st_mode) == 0o600
    assert stat.S_IMODE(moved.parent.stat().st_mode) == 0o700
    everything = json.dumps(report) + desk.out + desk.err + desk.text(".interlock/interlock.yaml")
    assert secret() not in everything
    assert not any(secret().encode() in content for content in desk.bytes().values())
    assert desk.type("adopt", "--yes") == 0
    assert "There is nothing to adopt." in desk.out
    assert desk.type("restore") == 0
    assert desk.bytes() == before
    assert not moved.exists()
    assert not (desk.home / ".interlock" / "interlock.yaml").exists()


@pytest.mark.usefixtures("running_interlock")
def test_a_server_that_does_not_answer_is_named_with_the_reason(desk: Desk) -> None:
    entries = {"good": words("a"), "bad": {"command": str(desk.home / "no-such-program")}}
    desk.put(".cursor/mcp.json", json.dumps({"mcpServers": entries}))
    before = desk.bytes()
    assert desk.type("adopt", "--yes") == 0  # nothing is worse than it was
    assert "good: 1 tool" in desk.out
    assert "bad does not answer" in desk.out
    assert "no-such-program" in desk.out.partition("bad does not answer")[2]
    assert "from ~/.cursor/mcp.json:1; started by itself, as it was, it does not answer either" in desk.out
    assert desk.type("restore") == 0
    assert desk.bytes() == before


def needing(desk: Desk) -> None:
    """A server that Cursor starts without its variable, and that Interlock does not."""
    entries = {"good": words("a"), "needs": {**words("b"), "env": {"LEVEL": "${env:LEVEL_UNSET}"}}}
    desk.put(".cursor/mcp.json", json.dumps({"mcpServers": entries}))


@pytest.mark.usefixtures("running_interlock")
def test_what_worked_before_and_does_not_now_is_named_as_worse(desk: Desk) -> None:
    needing(desk)
    report: dict[str, Any] = desk.json("adopt", "--yes")
    assert report["exit"] == 5
    (cursor,) = report["trial"]
    assert cursor["regressions"] == ["needs"]
    assert cursor["tools"] == {"good": 1, "needs": 0}
    assert desk.type("restore") == 0
    assert desk.type("adopt", "--yes") == 5
    assert "this got worse" in desk.out
    assert "not set here: LEVEL_UNSET. Set it where Cursor is started" in desk.out
    assert (
        f"`interlock restore {desk.out.partition('`interlock restore ')[2].partition('`')[0]}` undoes all." in desk.out
    )


@pytest.mark.parametrize(("answer", "undone"), [("y", True), ("n", False)])
@pytest.mark.usefixtures("running_interlock")
def test_a_person_may_undo_what_got_worse(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, answer: str, undone: bool
) -> None:
    needing(desk)
    before = desk.bytes()
    monkeypatch.setattr("interlock.cli.adopt._Adopt._is_person", lambda self: True)
    monkeypatch.setattr("builtins.input", lambda question: answer if "Undo everything?" in question else "y")
    assert desk.type("adopt") == 5
    assert (desk.bytes() == before) is undone
    assert ("Everything is as it was." in desk.out) is undone


def test_the_dry_run_ends_with_what_to_correct_and_the_command(desk: Desk) -> None:
    desk.put(".gemini/settings.json", '{\n  "mcpServers": {"g": {"command": "g"},}\n}\n')
    desk.put(".config/Code/User/mcp.json", json.dumps({"mcpServers": {"v": words("v")}}))
    desk.put(".cursor/mcp.json", json.dumps({"mcpServers": {"a": words("a")}}))
    assert desk.type("adopt", "--dry-run", "--move-secrets") == 0
    listed = desk.out.partition("Correct first, then adopt again:\n")[2].splitlines()
    assert listed == [
        "  ~/.gemini/settings.json:2 (g): Correct the file: it has a comma after the last member, which this host does not take.",
        "  ~/.config/Code/User/mcp.json:1 (v): Rename the key `mcpServers` to `servers`.",
        "Nothing was changed. `interlock adopt --move-secrets` does it.",
    ]
    head = desk.out.partition("--- ")[0]
    assert str(desk.home) not in head
    assert "~/.cursor/mcp.json:1" in head


@pytest.mark.parametrize("spoil", ["comma", "read-only"])
@pytest.mark.usefixtures("untried")
def test_a_file_that_cannot_be_changed_stops_no_other_host(desk: Desk, spoil: str) -> None:
    comma = "," if spoil == "comma" else ""
    file = desk.put(".claude.json", '{"mcpServers": {"c": {"type": "stdio", "command": "c"}' + comma + "}}")
    file.chmod(0o444 if spoil == "read-only" else 0o644)
    desk.put(".cursor/mcp.json", json.dumps({"mcpServers": {"a": words("a")}}))
    old = file.read_bytes()
    assert desk.type("adopt", "--yes") == 0
    assert file.read_bytes() == old
    assert list(json.loads(desk.text(".cursor/mcp.json"))["mcpServers"]) == ["interlock"]
    assert ".claude.json" in desk.out


def test_a_dry_run_shows_everything_and_changes_nothing(desk: Desk) -> None:
    six_hosts(desk)
    before = desk.bytes()
    assert desk.type("adopt", "--dry-run") == 0
    assert desk.bytes() == before
    assert not (desk.home / ".interlock").exists()
    for said in (
        "clock leaves", "+ interlock in", "-[mcp_servers.clock]", "keyed, env.API_TOKEN stays", "off (switched off)",
        "relative, command stays", "set the variable API_TOKEN", "The home copy", "Nothing was changed.",
    ):  # fmt: skip
        assert said in desk.out
    assert secret() not in desk.out + desk.err
    report: dict[str, Any] = desk.json("adopt", "--dry-run")
    assert {"hosts", "manifest", "secrets", "unsettled", "differences", "changes"} <= set(report)
    assert secret() not in json.dumps(report)
    assert desk.bytes() == before


def test_nothing_is_done_where_nobody_agrees(desk: Desk) -> None:
    six_hosts(desk)
    before = desk.bytes()
    assert desk.type("adopt") == 8
    assert "nobody agreed" in desk.err
    assert desk.bytes() == before


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 8), ("", 8)])
@pytest.mark.usefixtures("untried")
def test_a_person_is_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch, answer: str, code: int) -> None:
    desk.put(".cursor/mcp.json", json.dumps({"mcpServers": {"a": words("a")}}))
    before = desk.bytes()
    asked: list[str] = []
    monkeypatch.setattr("interlock.cli.adopt._Adopt._is_person", lambda self: True)
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or answer)
    assert desk.type("adopt") == code
    assert asked == ["Do this? [y/N] "]
    assert (desk.bytes() == before) is (code != 0)


@pytest.mark.usefixtures("untried")
def test_a_failure_after_the_change_says_what_undoes_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.put(".cursor/mcp.json", json.dumps({"mcpServers": {"a": words("a")}}))
    before = desk.bytes()

    def fails(self: object, plan: object, applied: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("interlock.cli.adopt._Adopt._try", fails)
    assert desk.type("adopt", "--yes") == 8
    assert "nothing was changed" not in desk.err
    assert "No space left on device" in desk.err
    undo = re.search(r"`interlock restore (\S+)` undoes it", desk.err)
    assert undo is not None
    assert desk.bytes() != before
    assert desk.type("restore", undo[1]) == 0
    assert desk.bytes() == before


def test_a_reader_that_leaves_early_is_no_failure(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.put(".cursor/mcp.json", json.dumps({"mcpServers": {"a": words("a")}}))

    def gone(self: object, line: str) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("interlock.cli.adopt._Adopt._say", gone)
    monkeypatch.setattr("interlock.cli.main._drop_output", lambda: None)
    assert desk.type("adopt", "--dry-run") == 0
    assert desk.err == ""


@pytest.mark.usefixtures("untried")
def test_what_was_shown_is_done_or_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the person reads the plan, a host writes its file."""
    desk.put(".cursor/mcp.json", json.dumps({"mcpServers": {"a": words("a")}}))
    later = json.dumps({"mcpServers": {"a": words("a"), "b": words("b")}})

    def answer(question: str) -> str:
        desk.put(".cursor/mcp.json", later)
        return "y"

    monkeypatch.setattr("interlock.cli.adopt._Adopt._is_person", lambda self: True)
    monkeypatch.setattr("builtins.input", answer)
    assert desk.type("adopt") == 8
    assert "changed meanwhile" in desk.err
    assert desk.text(".cursor/mcp.json") == later
    assert not (desk.home / ".interlock" / "interlock.yaml").exists()
    assert desk.type("adopt") == 0


@pytest.mark.parametrize(("answer", "moved"), [("y", True), ("n", False)])
@pytest.mark.usefixtures("untried")
def test_moving_secrets_is_a_question(desk: Desk, monkeypatch: pytest.MonkeyPatch, answer: str, moved: bool) -> None:
    entries = {"a": words("a"), "s": {**words("s"), "env": {"API_TOKEN": secret()}}}
    desk.put(".cursor/mcp.json", json.dumps({"mcpServers": entries}))
    monkeypatch.setattr("interlock.cli.adopt._Adopt._is_person", lambda self: True)
    monkeypatch.setattr("builtins.input", lambda question: answer if "Move them" in question else "y")
    assert desk.type("adopt") == 0
    assert (desk.home / ".interlock" / "secrets" / "s-api_token").exists() is moved
    assert ("s" in json.loads(desk.text(".cursor/mcp.json"))["mcpServers"]) is not moved


@pytest.mark.usefixtures("untried")
def test_only_the_named_host(desk: Desk) -> None:
    six_hosts(desk)
    before = desk.bytes()
    assert desk.type("adopt", "codex", "--yes") == 0
    after = desk.bytes()
    assert [name for name in before if before[name] != after[name]] == [".codex/config.toml"]
    assert desk.type("adopt", "no-such-host", "--yes") == 2


@pytest.mark.usefixtures("untried")
def test_what_the_manifest_holds_already_stays(desk: Desk) -> None:
    mine = "# mine\nschemaVersion: agent-routing/v1\nintegrationId: acme.own\ntransports: {stdio: {command: [own]}}\n"
    file = desk.put(".interlock/interlock.yaml", mine)
    desk.put(".cursor/mcp.json", json.dumps({"mcpServers": {"a": words("a")}}))
    assert desk.type("adopt", "--yes") == 0
    assert file.read_text().startswith(mine)
    assert set(load(manifests=[], home=desk.home / ".interlock", project_root=None).gateway.servers) == {"own", "a"}
    assert desk.type("restore") == 0
    assert file.read_text() == mine


@pytest.mark.usefixtures("untried")
def test_a_projects_files(desk: Desk) -> None:
    user = desk.put(".cursor/mcp.json", json.dumps({"mcpServers": {"mine": words("a")}})).read_bytes()
    (desk.project / ".cursor").mkdir()
    file = desk.project / ".cursor" / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"ours": words("a", "b")}}))
    assert desk.type("adopt", "--scope", "project", "--yes") == 0
    entry = json.loads(file.read_text())["mcpServers"]
    assert list(entry) == ["interlock"]
    assert entry["interlock"]["command"] == "interlock"
    assert (desk.home / ".cursor" / "mcp.json").read_bytes() == user
    loaded = load(manifests=[], home=desk.home / ".interlock", project_root=desk.project)
    assert loaded.gateway.servers["ours"].blocked is None
    assert str(desk.home) not in file.read_text()


# import


def test_import_prints_a_manifest_that_loads(desk: Desk) -> None:
    six_hosts(desk)
    before = desk.bytes()
    assert desk.type("import") == 0
    assert desk.bytes() == before
    file = desk.home / "made.yaml"
    file.write_text(desk.out)
    loaded = load(manifests=[file], home=desk.home / ".interlock", project_root=None)
    assert loaded.errors == ()
    assert set(loaded.gateway.servers) == {"clock", "keyed", "local", "notes", "off"}
    for said in ("Differences", "Secrets:", "set the variable API_TOKEN", "Not carried over:", "relative, command"):
        assert said in desk.err
    assert secret() not in desk.out + desk.err


def test_import_adds_to_the_manifest_and_only_once(desk: Desk) -> None:
    six_hosts(desk)
    assert desk.type("import", "codex", "--write") == 0
    first = desk.text(".interlock/interlock.yaml")
    assert "local.clock" in first
    assert desk.type("import", "codex", "--write") == 0
    assert desk.text(".interlock/interlock.yaml") == first
    assert "In the manifest already" in desk.err
    assert desk.type("import", "--write") == 0
    assert desk.text(".interlock/interlock.yaml").startswith(first)
    assert set(load(manifests=[], home=desk.home / ".interlock", project_root=None).gateway.servers) == {
        "clock", "keyed", "local", "notes", "off"
    }  # fmt: skip
    assert desk.type("restore") == 0
    assert desk.text(".interlock/interlock.yaml") == first


def test_import_to_a_file(desk: Desk) -> None:
    six_hosts(desk)
    file = desk.project / "new.yaml"
    assert desk.type("import", "gemini", "--to", str(file)) == 0
    assert "local.notes" in file.read_text()
    assert desk.type("import", "gemini", "--to", str(file)) == 8
    assert os.fspath(file) in desk.err


def test_import_for_machines(desk: Desk) -> None:
    six_hosts(desk)
    report: dict[str, Any] = desk.json("import")
    assert {each["key"] for each in report["servers"]} == {"clock", "keyed", "local", "notes", "off"}
    assert {each["server"] for each in report["left"] if each["problem"]} == {"relative"}
    assert report["secrets"][0]["variable"] == "API_TOKEN"
    assert report["written"] is None
    assert secret() not in desk.out
