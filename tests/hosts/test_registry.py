from __future__ import annotations

import pytest

from interlock.hosts import registry


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("codex", "codex"), ("Claude Code", "claude-code"), ("claude_code", "claude-code"), (" claude ", "claude-code"),
        ("gemini", "gemini-cli"), ("qwen", "qwen-code"), ("copilot", "copilot-cli"), ("VS-Code", "vscode"),
        ("roo", "roo-code"), ("agy", "antigravity"), ("devin", "windsurf"), ("continue", "continue"),
    ],
)  # fmt: skip
def test_a_host_by_any_of_its_names(name: str, id: str) -> None:
    found = registry.find(name)
    assert found is not None
    assert found.id == id


@pytest.mark.parametrize("name", ["", "claudes", "../codex", "codex.toml", "fact"])
def test_nothing_else_is_a_host(name: str) -> None:
    assert registry.find(name) is None


def test_every_host_is_there_once_and_under_its_own_id() -> None:
    found = [adapter.id for adapter in registry.every()]
    assert tuple(found) == registry.IDS
    assert len({adapter.label for adapter in registry.every()}) == len(found)
