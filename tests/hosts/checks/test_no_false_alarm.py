"""A right entry in every host's own words: nothing is wrong with it, so nothing may be said to be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import lay, machine, program

from interlock.hosts import registry
from interlock.hosts.declaration import Problem
from interlock.hosts.inventory import take

NPX = {"command": "npx", "args": ["-y", "@scope/server@1.2.3", "--stdio"]}


def _env(reference: str) -> dict[str, object]:
    return {**NPX, "env": {"API_TOKEN": reference, "LOG_LEVEL": "info"}}


def _remote(reference: str, key: str = "url", **more: object) -> dict[str, object]:
    return {key: "https://mcp.example.com/v1", "headers": {"Authorization": f"Bearer {reference}"}, **more}


def _servers(*entries: dict[str, object], table: str = "mcpServers") -> str:
    return json.dumps({table: dict(zip(("issues", "notes"), entries, strict=False))}, indent=2)


RIGHT = {
    "claude-code": ("~/.claude.json", _servers(_env("${API_TOKEN}"), _remote("${API_TOKEN}", type="http"))),
    "codex": (
        "~/.codex/config.toml",
        '[mcp_servers.issues]\ncommand = "npx"\nargs = ["-y", "@scope/server@1.2.3"]\nenv_vars = ["API_TOKEN"]\n'
        'enabled_tools = ["search"]\n\n[mcp_servers.notes]\nurl = "https://mcp.example.com/v1"\n'
        'bearer_token_env_var = "API_TOKEN"\n',
    ),
    "cursor": (
        "~/.cursor/mcp.json",
        _servers({**_env("${env:API_TOKEN}"), "args": ["-y", "@scope/server@1.2.3", "${workspaceFolder}"]}, _remote("${env:KEY}")),
    ),
    "antigravity": ("~/.gemini/config/mcp_config.json", _servers(NPX, {"serverUrl": "https://mcp.example.com/v1"})),
    "gemini-cli": ("~/.gemini/settings.json", _servers(_env("$API_TOKEN"), _remote("$API_TOKEN", "httpUrl"))),
    "vscode": (
        "~/.config/Code/User/mcp.json",
        _servers(
            {**_env("${input:token}"), "type": "stdio"}, _remote("${env:API_TOKEN}", type="http"), table="servers"
        ),
    ),
    "copilot-cli": ("~/.copilot/mcp-config.json", _servers({**_env("${API_TOKEN}"), "type": "local", "tools": ["*"]})),
    "claude-desktop": ("~/.config/Claude/claude_desktop_config.json", _servers(NPX)),
    "windsurf": ("~/.config/devin/mcp_config.json", _servers(_env("${env:API_TOKEN}"), _remote("${env:API_TOKEN}", "serverUrl"))),
    "zed": ("~/.config/zed/settings.json", _servers(NPX, {"url": "https://mcp.example.com/v1"}, table="context_servers")),
    "opencode": (
        "~/.config/opencode/opencode.json",
        _servers(
            {"type": "local", "command": ["npx", "-y", "@scope/server@1.2.3"], "environment": {"API_TOKEN": "{env:API_TOKEN}"}},
            {**_remote("{env:API_TOKEN}"), "type": "remote"},
            table="mcp",
        ),
    ),
    "goose": (
        "~/.config/goose/config.yaml",
        "extensions:\n  issues:\n    type: stdio\n    name: issues\n    enabled: true\n    cmd: npx\n"
        "    args: [-y, '@scope/server@1.2.3']\n    env_keys: [API_TOKEN]\n    timeout: 300\n"
        "  developer:\n    type: builtin\n    name: developer\n    enabled: true\n",
    ),
    "cline": ("~/.cline/data/settings/cline_mcp_settings.json", _servers({**NPX, "disabled": False, "autoApprove": []})),
    "roo-code": ("shop/.roo/mcp.json", _servers({**_env("${env:API_TOKEN}"), "alwaysAllow": [], "disabled": False})),
    "continue": (
        "shop/.continue/mcpServers/issues.yaml",
        "name: Issues\nversion: 0.0.1\nschema: v1\nmcpServers:\n  - name: issues\n    command: npx\n"
        "    args: ['-y', '@scope/server@1.2.3']\n    env:\n      API_TOKEN: ${{ secrets.API_TOKEN }}\n",
    ),
    "jetbrains": ("~/.junie/mcp/mcp.json", _servers(NPX)),
    "pi": ("~/.pi/agent/mcp.json", _servers(_env("${API_TOKEN}"))),
    "qwen-code": ("~/.qwen/settings.json", _servers(_env("$API_TOKEN"))),
    "kiro": ("~/.kiro/settings/mcp.json", _servers({**NPX, "disabled": False, "autoApprove": []})),
}  # fmt: skip


@pytest.mark.parametrize("host", registry.IDS)
def test_a_right_entry_gets_neither_problem_nor_warning(tmp_path: Path, host: str) -> None:
    made = machine(tmp_path, environ={"PATH": "/usr/bin:/bin", "API_TOKEN": "set", "KEY": "set"})
    program(made, "/usr/bin/npx")
    path, content = RIGHT[host]
    lay(made, path.replace("shop/", f"{made.folder}/"), content, 0o600)
    lay(made, "~/.gemini/trustedFolders.json", json.dumps({made.folder: "TRUST_FOLDER"}), 0o600)
    inventory = take(made, [host])
    entries = [
        each
        for each in inventory.declarations
        if each.server is not None and each.server.lower() in ("issues", "notes")
    ]
    assert entries
    for each in entries:
        assert each.state == "effective", each.decided_by
    said: list[Problem] = [problem for each in inventory.declarations for problem in each.problems]
    said += [problem for read in inventory.readings for problem in read.problems] + inventory.problems
    assert [f"{each.code}: {each.seen}" for each in said if each.severity != "note"] == []
