"""`${projectRoot}` and `lossy`: what a manifest says for `interlock generate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interlock.manifest.config import EnvValue, StdioTransport

if TYPE_CHECKING:
    from conftest import Desk

HEAD = "schemaVersion: agent-routing/v1\nintegrationId: acme.notes\n"


def stdio(desk: Desk, fields: str, scope: str = "project") -> StdioTransport:
    desk.write(scope, f"{HEAD}transports:\n  stdio:\n    {fields}\n", "interlock.yaml")
    loaded = desk.load()
    assert loaded.errors == ()
    transport = loaded.gateway.servers["notes"].transport
    assert isinstance(transport, StdioTransport)
    return transport


def test_it_is_the_root_of_the_repository(desk: Desk) -> None:
    found = stdio(
        desk,
        'command: [node, "${projectRoot}/tools/x.js", "${projectRoot}"]\n    cwd: ${projectRoot}/tools\n'
        '    env: {CACHE: "${projectRoot}/.cache", MODE: quiet}',
    )
    root = desk.project
    assert found.command[1:] == (f"{root}/tools/x.js", str(root))
    assert found.declared == ("node", "${projectRoot}/tools/x.js", "${projectRoot}")
    assert found.cwd == root / "tools"
    assert found.declared_cwd == "${projectRoot}/tools"
    assert found.env == (
        EnvValue("CACHE", literal=f"{root}/.cache", logical="${projectRoot}/.cache"),
        EnvValue("MODE", literal="quiet"),
    )


def test_outside_of_a_repository_it_is_the_manifests_folder(desk: Desk) -> None:
    found = stdio(desk, 'command: [node, "${projectRoot}/x.js"]', "user")
    assert found.command[1] == f"{desk.home}/x.js"


def test_a_program_below_it_is_found(desk: Desk) -> None:
    program = desk.project / "run"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = stdio(desk, 'command: ["${projectRoot}/run"]')
    assert found.command == (str(program),)
    assert found.declared == ("${projectRoot}/run",)


def test_the_word_as_it_is_written_is_kept(desk: Desk) -> None:
    found = stdio(desk, "command: [node, x.js]")
    assert found.declared == ("node", "x.js")
    assert found.command[0].endswith("/bin/node")
    assert found.declared_cwd is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ('command: [node, "--root=${projectRoot}/x"]', "transports.stdio.command[1]"),
        ('command: [node, "${projectRoot}x"]', "transports.stdio.command[1]"),
        ('command: [node, "${projectRoot}/${projectRoot}"]', "transports.stdio.command[1]"),
        ("command: [node]\n    cwd: x/${projectRoot}", "transports.stdio.cwd"),
        ('command: [node]\n    env: {X: "a${projectRoot}"}', "transports.stdio.env.X"),
        ('command: [node]\n    env: {X: "${projectRoot}/${HOME}"}', "transports.stdio.env.X"),
        ('command: [node]\n    env: {X: "${HOME}/x"}', "transports.stdio.env.X"),
        ('commandByPlatform: {windows: [node, "x${projectRoot}"]}', "transports.stdio.commandByPlatform.windows[1]"),
    ],
)
def test_anywhere_else_it_is_refused(desk: Desk, fields: str, field: str) -> None:
    loaded = desk.load_text(f"{HEAD}transports:\n  stdio:\n    {fields}\n")
    assert [(each.code, each.field) for each in loaded.errors] == [("placeholder", field)]


def test_not_in_headers_nor_in_a_url(desk: Desk) -> None:
    loaded = desk.load_text(
        f"{HEAD}transports:\n  http:\n    endpoint: https://a.example.com/mcp\n    headers: "
        '{X: "${projectRoot}/x"}\n'
    )
    assert [each.code for each in loaded.errors] == ["placeholder"]


@pytest.mark.parametrize(("line", "expected"), [("", "error"), ("lossy: warn\n", "warn"), ("lossy: error\n", "error")])
def test_lossy(desk: Desk, line: str, expected: str) -> None:
    loaded = desk.load_text(f"{HEAD}{line}transports: {{stdio: {{command: [node]}}}}\n")
    assert loaded.gateway.servers["notes"].lossy == expected


def test_lossy_is_one_of_two_words(desk: Desk) -> None:
    loaded = desk.load_text(f"{HEAD}lossy: never\ntransports: {{stdio: {{command: [node]}}}}\n")
    assert [each.field for each in loaded.errors] == ["lossy"]
