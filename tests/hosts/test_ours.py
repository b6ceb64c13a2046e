"""Interlock's own entries are told from all others."""

from __future__ import annotations

import pytest

from interlock.hosts.entry import Entry
from interlock.hosts.ours import ours


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("interlock", "connect", "--host", "codex"), "connect"),
        (("/home/ann/.interlock/bin/interlock", "connect"), "connect"),
        (("cmd", "/c", "C:\\Users\\Ann\\.interlock\\bin\\interlock.cmd", "connect"), "connect"),
        (("C:\\x\\Interlock.exe", "bridge", "https://mcp.example.com/mcp"), "bridge"),
        (("python3", "-P", "-m", "interlock", "bridge", "https://mcp.example.com/mcp"), "bridge"),
        (("uvx", "--from", "interlock-gateway", "interlock", "connect"), "connect"),
        (("interlock", "up"), None),
        (("interlock",), None),
        (("connect", "interlock"), None),
        (("interlock-server", "connect"), None),
        (("npx", "interlocking", "connect"), None),
        (("/opt/interlock/server", "connect"), None),
        ((), None),
    ],
)
def test_ours(command: tuple[str, ...], expected: str | None) -> None:
    assert ours(Entry(transport="stdio", command=command)) == expected
