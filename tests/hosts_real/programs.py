"""Where the real hosts are: in INTERLOCK_TEST_HOSTS (a folder of programs), else in node_modules beside this file."""

from __future__ import annotations

import os
from pathlib import Path

from tests.conformance import programs

HERE = Path(__file__).resolve().parent
HOW = "run `make test-hosts` (or `make test-hosts-small`), or set INTERLOCK_TEST_HOSTS to a folder that has it"
NAMES = {
    "codex": "codex",
    "claude-code": "claude",
    "gemini-cli": "gemini",
    "qwen-code": "qwen",
    "opencode": "opencode",
    "copilot-cli": "copilot",
}


def folder() -> Path:
    named = os.environ.get("INTERLOCK_TEST_HOSTS")
    return Path(named) if named else HERE / "node_modules/.bin"


def missing(host: str) -> str | None:
    """Why this host cannot be run here, and how to get it."""
    found = folder() / NAMES[host]
    if not found.exists() and not found.with_suffix(".cmd").exists():
        return f"{NAMES[host]} is not in {folder()}: {HOW}"
    try:
        programs.node()
    except programs.Missing as error:
        return str(error)
    return None


def path() -> str:
    """The hosts, Node.js, and what a server needs."""
    return os.pathsep.join([str(folder()), str(programs.node().parent), "/usr/local/bin", "/usr/bin", "/bin"])
