"""A person's home and project on this machine, and commands typed there, for tests of whole commands."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from interlock.cli.main import main

TIME = """\
schemaVersion: agent-routing/v1
integrationId: acme.time
transports: {stdio: {command: [uvx, mcp-server-time], envNames: [TIME_TOKEN]}}
capability: {tools: {deny: [convert_time]}}
tools: {get_current_time: {approval: prompt}}
"""
DOCS = """\
schemaVersion: agent-routing/v1
integrationId: acme.docs
transports: {http: {endpoint: "https://docs.example.com/mcp"}}
"""


@dataclass
class Desk:
    home: Path
    project: Path
    capsys: pytest.CaptureFixture[str]
    out: str = ""
    err: str = ""

    def manifest(self, *documents: str) -> None:
        self.put(".interlock/interlock.yaml", "---\n".join(documents))

    def put(self, path: str, content: str) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode())
        return file

    def text(self, path: str) -> str:
        return (self.home / path).read_text()

    def type(self, *words: str) -> int:
        """Type `interlock WORDS`; what it says is in `out` and `err`."""
        code = main(list(words))
        self.out, self.err = self.capsys.readouterr()
        return code

    def json(self, *words: str) -> dict[str, object]:
        self.type(*words, "--json")
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    def bytes(self) -> dict[str, bytes]:
        """Every file of the person's, without Interlock's home."""
        return {
            str(path.relative_to(self.home)): path.read_bytes()
            for path in sorted(self.home.rglob("*"))
            if path.is_file() and ".interlock" not in path.parts
        }


def desk_at(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    home = folder / "home"
    project = home / "code"
    (project / ".git").mkdir(parents=True)
    for name in list(os.environ):
        if name.startswith(("INTERLOCK_", "XDG_", "CODEX_", "CLAUDE_", "GEMINI_", "COPILOT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.delenv("TIME_TOKEN", raising=False)
    monkeypatch.chdir(project)
    return Desk(home, project, capsys)
