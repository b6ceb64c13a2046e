"""Transports that the host does not speak, unencrypted ways to other machines, and loopback inside of containers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import NOTHING_KNOWN, TINY, codes, machine, problems

from interlock.hosts.adapter import Adapter
from interlock.hosts.fact import Fact

OURS = {"transport-unsupported", "plain-http", "loopback-in-container", "sse-legacy"}
STDIO = replace(TINY, transports=Fact(frozenset(("stdio",)), "O"))
RUN = ["run", "-i", "--rm"]


@pytest.mark.parametrize(
    ("entry", "adapter", "expected"),
    [
        ({"url": "https://example.com/mcp"}, TINY, set()),
        ({"url": "http://example.com/mcp"}, TINY, {"plain-http"}),
        ({"url": "HTTP://192.168.1.5:8080/mcp"}, TINY, {"plain-http"}),
        ({"url": "http://localhost:8080/mcp"}, TINY, set()),
        ({"url": "http://127.0.0.1:8080/mcp"}, TINY, set()),
        ({"url": "http://[::1]:8080/mcp"}, TINY, set()),
        ({"url": "http://host.docker.internal:8080/mcp"}, TINY, set()),
        ({"url": "http://${HOST}/mcp"}, TINY, set()),
        ({"url": "https://example.com/sse", "type": "sse"}, TINY, {"sse-legacy"}),
        ({"url": "https://example.com/mcp"}, STDIO, {"transport-unsupported"}),
        ({"url": "https://example.com/sse", "type": "sse"}, STDIO, {"transport-unsupported"}),
        ({"command": "x"}, STDIO, set()),
        ({"url": "https://example.com/mcp"}, NOTHING_KNOWN, set()),
        ({"url": "http://example.com/mcp", "enabled": False}, TINY, set()),
        ({"command": "docker", "args": [*RUN, "-e", "URL=http://localhost:3000", "a/b:1"]}, TINY, {"loopback-in-container"}),
        ({"command": "docker", "args": [*RUN, "a/b:1", "--url", "http://127.0.0.1"]}, TINY, {"loopback-in-container"}),
        ({"command": "docker", "args": [*RUN, "-e", "URL", "a/b:1"], "env": {"URL": "http://localhost:1"}}, TINY,
         {"loopback-in-container"}),
        ({"command": "docker", "args": [*RUN, "a/b:1"], "env": {"URL": "http://localhost:1"}}, TINY, set()),
        ({"command": "docker", "args": [*RUN, "--network=host", "-e", "URL=http://localhost:1", "a/b:1"]}, TINY, set()),
        ({"command": "docker", "args": [*RUN, "--net", "host", "-e", "URL=http://localhost:1", "a/b:1"]}, TINY, set()),
        ({"command": "docker", "args": [*RUN, "localhost:5000/b:1"]}, TINY, set()),
        ({"command": "docker", "args": [*RUN, "-e", "URL=http://localhost.example.com", "a/b:1"]}, TINY, set()),
        ({"command": "node", "args": ["--url", "http://localhost:3000"]}, TINY, set()),
    ],
)  # fmt: skip
def test_found(tmp_path: Path, entry: dict[str, object], adapter: Adapter, expected: set[str]) -> None:
    assert codes(machine(tmp_path), entry, adapter) & OURS == expected


def test_in_a_container_loopback_is_the_container(tmp_path: Path) -> None:
    made = machine(tmp_path, surrounding="container")
    (found,) = [each for each in problems(made, {"url": "http://localhost:8080/mcp"}) if each.code in OURS]
    assert (found.code, found.severity) == ("loopback-in-container", "note")


def test_a_host_without_http_is_shown_the_bridge(tmp_path: Path) -> None:
    found = problems(machine(tmp_path), {"url": "https://example.com/mcp"}, STDIO)
    assert [each.todo for each in found] == [
        "Start `interlock bridge URL` in its place, which speaks stdio to the host."
    ]
