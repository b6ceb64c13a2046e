"""What `interlock generate --direct` writes is taken by the real host: it lists the servers, and starts them with the secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from interlock.hosts.oracles.asked import Asked
from interlock.hosts.oracles.asking import compare

from .programs import NAMES
from .stage import Stage

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(180)]

MANIFEST = """\
schemaVersion: agent-routing/v1
integrationId: test.small
transports: {stdio: {command: ["@PY@", "@SERVER@", "log=@HOME@/log"], envNames: [SMALL_FLAVOUR]}}
capability: {tools: {deny: [wipe]}}
tools: {echo: {approval: prompt}}
lossy: warn
---
schemaVersion: agent-routing/v1
integrationId: test.web
transports:
  http:
    endpoint: "@URL@"
    headers: {Authorization: {fromEnv: WEB_FLAVOUR, prefix: "Bearer "}}
lossy: warn
"""
FLAVOURS = {"SMALL_FLAVOUR": "pepper" + "mint" * 4, "WEB_FLAVOUR": "spear" + "mint" * 4}
FOUND_IN = {
    "codex": "~/.codex/config.toml",
    "claude-code": "~/.claude.json",
    "gemini-cli": "~/.gemini/settings.json",
    "qwen-code": "~/.qwen/settings.json",
    "opencode": "~/.config/opencode/opencode.jsonc",
    "copilot-cli": "~/.copilot/mcp-config.json",
}


@pytest.mark.parametrize("host", NAMES)
def test_the_host_takes_what_generate_writes(
    host: str, set_stage: Callable[[str, Mapping[str, str]], Stage], web: tuple[str, list[dict[str, str]]]
) -> None:
    stage = set_stage(host, FLAVOURS)
    home = Path(stage.machine.home)
    stage.put({"~/.interlock/interlock.yaml": MANIFEST})
    if host == "gemini-cli":
        stage.put({"~/.gemini/trustedFolders.json": '{"@PROJECT@": "TRUST_FOLDER"}'})
    assert _generate(stage, host) is not None
    written = _texts(home)
    assert not [name for name, text in written.items() if any(value in text for value in FLAVOURS.values())]
    assert _generate(stage, host) is None
    assert {name: text for name, text in _texts(home).items() if ".interlock" not in name} == {
        name: text for name, text in written.items() if ".interlock" not in name
    }
    web[1].clear()
    read = stage.read(host)
    asked = stage.ask(read)
    assert asked.trouble is None
    assert compare(read, asked) == []
    expected = "connected" if asked.live else "enabled"
    assert {name: says.state for name, says in asked.servers.items()} == {"small": expected, "web": expected}
    if asked.live:
        assert json.loads((home / "log").read_text()) == {"SMALL_FLAVOUR": FLAVOURS["SMALL_FLAVOUR"]}
        sent = [headers.get("Authorization") or headers.get("authorization") for headers in web[1]]
        assert f"Bearer {FLAVOURS['WEB_FLAVOUR']}" in sent
    _lists_and_rules(host, home, asked, stage)


def _generate(stage: Stage, host: str) -> str | None:
    """Id of the change; None where nothing was changed."""
    environ = {
        **stage.machine.environ, "PYTHONPATH": os.pathsep.join(sys.path), "INTERLOCK_HOME": f"{stage.machine.home}/.interlock",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "generate", host, "--direct", "--write", "--json"],
        cwd=stage.machine.folder, env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    change: str | None = json.loads(done.stdout)["change"]
    return change


def _texts(home: Path) -> dict[str, str]:
    return {
        str(path.relative_to(home)): path.read_text(errors="replace")
        for path in sorted(home.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def _lists_and_rules(host: str, home: Path, asked: Asked, stage: Stage) -> None:
    """The deny list and the approval, in the host's own words, where it has words for them."""
    text = Path(stage.path(FOUND_IN[host])).read_text()
    if host == "codex":
        assert asked.servers["small"].tools == ("echo",)
        assert 'approval_mode = "prompt"' in text
    elif host == "claude-code":
        permissions = json.loads((home / ".claude/settings.json").read_text())["permissions"]
        assert "mcp__small__wipe" in permissions["deny"]
        assert "mcp__small__echo" in permissions["ask"]
    elif host in ("gemini-cli", "qwen-code"):
        assert json.loads(text)["mcpServers"]["small"]["excludeTools"] == ["wipe"]
    elif host == "opencode":
        permission = json.loads(text).get("permission", {})
        assert permission.get("small_wipe") == "deny" or json.loads(text).get("tools", {}).get("small_wipe") is False
