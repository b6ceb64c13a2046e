"""A text with a dollar sign is literal in a manifest; where a host would fill it in, that is said, and refused unless asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.tiny import gateway, machine

from interlock.hosts import registry
from interlock.hosts.generating import plan
from interlock.hosts.machine import Platform
from interlock.hosts.wanting import candidates, direct

STDIO = (
    "integrationId: a.notes\ntransports: {stdio: {command: [notes, '$HOME/x', 'a${X}b', '{env:X}', '%USER%'], "
    "env: {A: 'p$x', B: 'q{env:X}', C: '!date', D: '100%', E: '5$', T: {fromEnv: TOKEN}}}}\n"
)
HTTP = (
    'integrationId: a.docs\ntransports: {http: {endpoint: "https://docs.example.com/$X/%USER%", headers: {X-A: "v$x", '
    'Authorization: {fromEnv: TOKEN, prefix: "Bearer "}}}}\n'
)
ONE, TWO, THREE, FOUR = (f"transports.stdio.command[{index}]" for index in range(1, 5))
A, B, C = (f"transports.stdio.env.{name}" for name in "ABC")
URL, HEADER = "transports.http.endpoint", "transports.http.headers.X-A"
FILLED: dict[str, tuple[set[str], set[str]]] = {
    "claude-code": ({TWO}, set()),
    "codex": (set(), set()),
    "cursor": ({TWO}, set()),
    "gemini-cli": ({ONE, TWO, A}, {URL, HEADER}),
    "qwen-code": ({ONE, TWO, A}, {URL, HEADER}),
    "copilot-cli": ({ONE, TWO, A}, {URL, HEADER}),
    "opencode": ({THREE, B}, set()),
    "vscode": ({TWO}, set()),
    "goose": (set(), {URL, HEADER}),
    "pi": ({B, C}, set()),
    "claude-desktop": (set(), set()),
}


def _lost(tmp_path: Path, host: str, manifest: str, platform: Platform = "linux") -> set[str]:
    adapter = registry.find(host)
    assert adapter is not None
    here = machine(tmp_path / "machine", r"C:\code" if platform == "windows" else "/home/ada/code", platform)
    (config,) = candidates(gateway(tmp_path / "m", manifest))[0]
    losses = direct(config, adapter, here, "user", None).losses
    return {loss.field for loss in losses if loss.weakens and "literally" in loss.why}


@pytest.mark.parametrize("host", FILLED)
def test_fields_that_the_host_would_fill_in(tmp_path: Path, host: str) -> None:
    stdio, http = FILLED[host]
    assert _lost(tmp_path / "stdio", host, STDIO) == stdio
    assert _lost(tmp_path / "http", host, HTTP) == http


def test_percent_signs_are_variables_on_windows_only(tmp_path: Path) -> None:
    assert FOUR in _lost(tmp_path / "windows", "gemini-cli", STDIO, "windows")
    assert FOUR not in _lost(tmp_path / "linux", "gemini-cli", STDIO)


@pytest.mark.parametrize("scope", ["user", "project"])
def test_the_root_of_the_project_is_filled_in_by_interlock(tmp_path: Path, scope: str) -> None:
    text = (
        "integrationId: a.notes\ntransports: {stdio: {command: [notes, '${projectRoot}/x'], cwd: '${projectRoot}'}}\n"
    )
    for host in FILLED:
        assert _lost(tmp_path / host / scope, host, text) == set()


def test_it_is_refused_unless_losses_are_accepted(tmp_path: Path) -> None:
    adapter = registry.find("gemini-cli")
    assert adapter is not None
    here = machine(tmp_path / "machine", "/home/ada/code", "linux")
    found = [direct(each, adapter, here, "user", None) for each in candidates(gateway(tmp_path / "m", STDIO))[0]]
    refused = plan(adapter, here, found, "error")
    assert ([each.server for each in refused.refused], refused.edits) == (["notes"], ())
    assert "literally" in refused.refused[0].why
    written = plan(adapter, here, found, "warn")
    assert written.refused == ()
    assert [each.server for each in written.entries] == ["notes"]
