"""Which variables reach a server through a host's entry."""

from __future__ import annotations

import pytest
from tests.hosts.adapters.fake import adapter

from interlock.hosts.child_environment import of_entry
from interlock.hosts.entry import Entry

ENVIRON = {"PATH": "/bin", "HOME": "/home/ada", "A_TOKEN": "t", "OTHER": "o"}


@pytest.mark.parametrize(
    ("host", "entry", "expected"),
    [
        ("claude-code", Entry(transport="stdio"), {"PATH", "HOME", "A_TOKEN", "OTHER"}),
        ("codex", Entry(transport="stdio"), {"PATH", "HOME"}),
        ("codex", Entry(transport="stdio", env_names=("A_TOKEN", "UNSET")), {"PATH", "HOME", "A_TOKEN"}),
        ("gemini-cli", Entry(transport="stdio"), {"PATH", "HOME", "OTHER"}),
        ("gemini-cli", Entry(transport="stdio", env={"A_TOKEN": "$A_TOKEN"}), {"PATH", "HOME", "OTHER", "A_TOKEN"}),
        ("cursor", Entry(transport="stdio", env={"X": "${env:A_TOKEN}", "Y": "${env:UNSET}", "Z": "z"}), {"X", "Z"}),
    ],
)
def test_reached(host: str, entry: Entry, expected: set[str]) -> None:
    found = of_entry(adapter(host), entry, ENVIRON)
    assert expected <= set(found)
    assert set(found) <= expected | {"PATH", "HOME"}
    if "X" in found:
        assert found["X"] == "t"
