"""`interlock diff`: nothing, then every kind of drift, by field and with secrets masked."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.hosts.desk import DOCS, TIME, Desk, desk_at

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the home of this test is HOME")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    found = desk_at(tmp_path, monkeypatch, capsys)
    found.manifest(TIME, DOCS)
    found.put(".codex/config.toml", '[mcp_servers.other]\ncommand = "other"\n')
    found.put(".claude.json", "{}\n")
    assert found.type("generate", "codex", "claude-code", "--direct", "--write") == 0
    return found


def kinds(desk: Desk, *words: str) -> list[tuple[str, str, str, str]]:
    found = desk.json("diff", *words)
    return [
        (host["host"], each["server"], each["kind"], each["field"])
        for host in found["hosts"]  # type: ignore[attr-defined]
        for each in host["drift"]
    ]


def test_none(desk: Desk) -> None:
    assert desk.type("diff") == 0
    assert desk.out.count("as the manifest says") == 2
    assert kinds(desk) == []


def test_a_field_that_says_otherwise(desk: Desk) -> None:
    text = desk.text(".codex/config.toml").replace('"uvx"', '"npx"').replace('["convert_time"]', "[]")
    desk.put(".codex/config.toml", text)
    assert desk.type("diff") == 1
    assert kinds(desk) == [("codex", "time", "changed", "command"), ("codex", "time", "changed", "disabled_tools")]
    desk.type("diff", "codex")
    assert 'time: changed: `command` is "npx", and the manifest says "uvx"' in desk.out
    assert f"{desk.home}/.codex/config.toml:" in desk.out


def test_an_entry_that_is_missing_one_that_is_extra_and_a_rule_that_is_gone(desk: Desk) -> None:
    desk.manifest(TIME)
    desk.put(".claude.json", "{}\n")
    desk.put(".claude/settings.json", '{"permissions": {"deny": []}}')
    assert desk.type("diff") == 1
    assert kinds(desk) == [
        ("claude-code", "time", "missing", ""),
        ("claude-code", "docs", "extra", "") if "docs" in desk.text(".claude.json") else
        ("claude-code", "", "rules", "permissions.deny"),
        ("claude-code", "", "rules", "permissions.ask"),
        ("codex", "docs", "extra", ""),
    ]  # fmt: skip


def test_an_entry_that_is_switched_off(desk: Desk) -> None:
    desk.put(
        ".codex/config.toml",
        desk.text(".codex/config.toml").replace("[mcp_servers.docs]", "[mcp_servers.docs]\nenabled = false"),
    )
    assert kinds(desk, "codex") == [("codex", "docs", "off", "")]
    assert desk.type("diff", "codex") == 1
    assert "switched off" in desk.out


def test_an_entry_that_another_scope_overrides(desk: Desk) -> None:
    value = json.loads(desk.text(".claude.json"))
    value["projects"] = {str(desk.project): {"mcpServers": {"time": {"type": "stdio", "command": "mine"}}}}
    desk.put(".claude.json", json.dumps(value))
    assert kinds(desk, "claude-code") == [("claude-code", "time", "unseen", "")]


def test_a_name_that_is_another_s(desk: Desk) -> None:
    (desk.home / ".interlock" / "generated.json").unlink()
    desk.put(".codex/config.toml", '[mcp_servers.time]\ncommand = "mine"\n')
    assert desk.type("diff", "codex", "--direct", "--server", "time") == 1
    assert "taken" in desk.out


def test_what_was_never_generated_is_missing(desk: Desk) -> None:
    desk.put(".gemini/settings.json", "{}")
    assert kinds(desk, "gemini-cli", "--direct") == [
        ("gemini-cli", "docs", "missing", ""), ("gemini-cli", "time", "missing", ""),
    ]  # fmt: skip
    assert [each for each in kinds(desk) if each[0] == "gemini-cli"] == []


def test_no_secret_is_shown(desk: Desk) -> None:
    secret, word = "gh" + "p_" + "B" * 36, "hunter" + "2hunter"
    value = json.loads(desk.text(".claude.json"))
    value["mcpServers"]["time"]["env"]["TIME_TOKEN"] = word
    value["mcpServers"]["time"]["args"] = ["--x", secret]
    desk.put(".claude.json", json.dumps(value))
    assert desk.type("diff", "claude-code") == 1
    assert "****" in desk.out
    assert secret not in desk.out
    assert word not in desk.out
    desk.type("diff", "claude-code", "--json")
    assert secret not in desk.out
    assert word not in desk.out


def test_it_changes_nothing(desk: Desk) -> None:
    desk.put(".codex/config.toml", "")
    before, ledger = desk.bytes(), desk.text(".interlock/generated.json")
    assert desk.type("diff") == 1
    assert desk.bytes() == before
    assert desk.text(".interlock/generated.json") == ledger
