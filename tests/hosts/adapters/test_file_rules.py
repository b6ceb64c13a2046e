"""Rules that a host keeps beside its servers: what they forbid and allow is part of what the host runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters.fake import adapter, machine, put

from interlock.hosts.reading import read

ZED = "/home/ada/.config/zed/settings.json"
ANTIGRAVITY = "/home/ada/.gemini/config/mcp_config.json"
RULES = "/home/ada/.gemini/antigravity-cli/settings.json"
GOOSE = "/home/ada/.config/goose/config.yaml"
EXTENSION = "extensions:\n  My S:\n    type: stdio\n    name: My S\n    enabled: true\n    cmd: c\n    args: []\nGOOSE_MODE: {}\n"


def zed_rule(word: str) -> dict[str, object]:
    return {"default": word}


@pytest.mark.parametrize(
    ("host", "files", "deny", "approvals"),
    [
        (
            "zed",
            {ZED: {
                "context_servers": {"s": {"command": "c", "args": []}},
                "agent": {"tool_permissions": {"tools": {
                    "mcp:s:drop": zed_rule("deny"), "mcp:s:get": zed_rule("allow"), "mcp:s:put": zed_rule("confirm"),
                    "mcp:other:x": zed_rule("deny"), "terminal": zed_rule("deny"),
                }}},
            }},
            ("drop",), {"get": "auto", "put": "prompt"},
        ),
        (
            "antigravity",
            {ANTIGRAVITY: {"mcpServers": {"s": {"command": "c", "disabledTools": ["own"]}}},
             RULES: {"permissions": {"deny": ["mcp(s/drop)", "mcp(other/x)", "run(rm)"], "ask": ["mcp(s/get)"],
                                     "allow": ["mcp(s/get)", "mcp(s/*)"]}}},
            ("own", "drop"), {"get": "prompt", "*": "auto"},
        ),
        (
            "goose",
            {GOOSE: EXTENSION.format("approve"),
             "/home/ada/.config/goose/permission.yaml":
                 "user:\n  always_allow: [mys__get]\n  ask_before: [mys__put, other__x]\n  never_allow: [mys__drop]\n"},
            ("drop",), {"get": "auto", "put": "prompt"},
        ),
        (
            "goose",
            {GOOSE: EXTENSION.format("auto"),
             "/home/ada/.config/goose/permission.yaml": "user: {never_allow: [mys__drop], always_allow: [], ask_before: []}\n"},
            (), {},
        ),
        ("zed", {ZED: {"context_servers": {"s": {"command": "c", "args": []}}, "agent": {"tool_permissions": 3}}}, (), {}),
    ],
    ids=["zed", "antigravity", "goose", "goose-auto", "nonsense"],
)  # fmt: skip
def test_rules(
    tmp_path: Path, host: str, files: dict[str, object], deny: tuple[str, ...], approvals: dict[str, str]
) -> None:
    on = machine(tmp_path)
    for path, content in files.items():
        put(on, path, content)
    (declaration,) = [each for each in read(adapter(host), on).declarations if each.state == "effective"]
    assert declaration.runs is not None
    assert (declaration.runs.deny, dict(declaration.runs.approvals)) == (deny, approvals)
