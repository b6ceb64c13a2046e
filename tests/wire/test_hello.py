"""What Interlock says of itself, in both eras."""

from __future__ import annotations

import pytest

from interlock import __version__
from interlock.wire import hello

INFO = {"name": "interlock", "version": __version__, "title": "Interlock"}
CORE = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}


@pytest.mark.parametrize(
    ("extra", "instructions", "expected"),
    [
        ({}, None, {"protocolVersion": "2025-06-18", "capabilities": CORE, "serverInfo": INFO}),
        (
            {"experimental": {"a": {}}}, "text",
            {
                "protocolVersion": "2025-06-18", "capabilities": {**CORE, "experimental": {"a": {}}}, "serverInfo": INFO,
                "instructions": "text",
            },
        ),
    ],
)  # fmt: skip
def test_the_answer_to_initialize(
    extra: dict[str, object], instructions: str | None, expected: dict[str, object]
) -> None:
    assert hello.initialize_result("2025-06-18", extra, instructions) == expected


def test_the_answer_to_discover() -> None:
    """2026-07-28, server/discover: the revisions, what is offered, and the hints of a result that may be cached."""
    assert hello.discover_result({"extensions": {"x/y": {}}}, "text") == {
        "supportedVersions": ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"],
        "capabilities": {**CORE, "extensions": {"x/y": {}}},
        "instructions": "text",
        "resultType": "complete",
        "ttlMs": 60_000,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
    }
    assert "instructions" not in hello.discover_result({}, None)
