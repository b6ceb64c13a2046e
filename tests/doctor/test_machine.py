"""What the machine itself shows: hosts' entries, the home copy, and bridges of others that hold no connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interlock.doctor import bridge, host_files, processes
from interlock.doctor.discover import foreign_bridges, home_copy
from interlock.doctor.finding import Finding
from interlock.doctor.processes import Process
from interlock.install.places import Places
from interlock.manifest.config import HeaderValue, HttpTransport, OAuth, Origin

if TYPE_CHECKING:
    from .conftest import Clinic

URL = "https://mcp.example.com/mcp"


def written(clinic: Clinic, file: str, content: object) -> Path:
    """`~/` is the user's home; anything else is in the working directory."""
    root = clinic.machine.user if file.startswith("~/") else clinic.machine.folder
    path = root / file.removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def seen(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(each.severity, f"{each.seen} {each.why} {each.todo}") for each in findings]


@pytest.mark.parametrize(
    ("host", "file", "content"),
    [
        ("claude-code", "~/.claude.json", {"mcpServers": {"x": {"type": "http", "url": URL}}}),
        ("claude-code", "~/.claude.json", {"projects": {"FOLDER": {"mcpServers": {"x": {"url": URL}}}}}),
        ("claude-code", ".mcp.json", {"mcpServers": {"x": {"url": URL}}}),
        ("codex", "~/.codex/config.toml", f'[mcp_servers.x]\nurl = "{URL}"\n'),
        ("cursor", "~/.cursor/mcp.json", {"mcpServers": {"x": {"url": URL}}}),
        ("gemini-cli", "~/.gemini/settings.json", {"mcpServers": {"x": {"httpUrl": URL}}}),
        ("antigravity", "~/.gemini/config/mcp_config.json", {"mcpServers": {"x": {"serverUrl": URL}}}),
        ("opencode", "~/.config/opencode/opencode.jsonc", f'{{"mcp": {{"x": {{"url": "{URL}",}}}}, // a comment\n}}'),
        ("opencode", "opencode.json", {"mcp": {"servers": {"x": {"url": URL}}}}),
        ("copilot-cli", "~/.copilot/mcp-config.json", {"mcpServers": {"x": {"url": URL}}}),
        ("vscode", ".vscode/mcp.json", {"servers": {"x": {"url": URL}}}),
        ("zed", "~/.config/zed/settings.json", {"context_servers": {"x": {"url": URL}}}),
        ("goose", "~/.config/goose/config.yaml", f"extensions:\n  x:\n    uri: {URL}\n"),
    ],
)
def test_every_host_s_file_is_read(clinic: Clinic, host: str, file: str, content: object) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    path = written(clinic, file, text.replace("FOLDER", str(clinic.machine.folder)))
    entries = host_files.entries(clinic.machine.user, clinic.machine.folder, clinic.environ)
    assert {(entry.file, entry.name, entry.url, entry.command) for entry in entries} == {(path, "x", URL, ())}
    assert host in {entry.host for entry in entries}  # some files are read by several


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "[1, 2]", '{"mcpServers": 3}', '{"mcpServers": {"x": 3}}', "\x00", "nul"]
)
@pytest.mark.parametrize("file", ["~/.claude.json", "~/.codex/config.toml", "~/.config/goose/config.yaml"])
def test_files_that_are_broken_are_left_out(clinic: Clinic, file: str, content: str) -> None:
    written(clinic, file, content)
    assert host_files.entries(clinic.machine.user, clinic.machine.folder, clinic.environ) == []


def launcher_of(clinic: Clinic) -> str:
    return program(clinic, os.path.relpath(Places(clinic.home).launcher, clinic.machine.user))


def program(clinic: Clinic, path: str) -> str:
    made = clinic.machine.user / path
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    return str(made)


async def test_an_entry_that_starts_the_launcher_is_right(clinic: Clinic) -> None:
    launcher = launcher_of(clinic)
    written(clinic, "~/.claude.json", {"mcpServers": {"x": {"command": launcher, "args": ["bridge", URL]}}})
    (finding,) = await clinic.examine(URL, "host-entries")
    assert (finding.severity, finding.where.startswith("claude-code: ")) == ("ok", True)


@pytest.mark.parametrize(
    "path",
    ["apps/interlock-0.3.1/0.3.1/bin/interlock", ".cache/uv/x/interlock", "lib/python3/site-packages/bin/interlock"],
)
async def test_an_entry_into_a_path_that_goes_away(clinic: Clinic, path: str) -> None:
    written(
        clinic, "~/.claude.json", {"mcpServers": {"x": {"command": program(clinic, path), "args": ["bridge", URL]}}}
    )
    ((severity, text),) = seen(await clinic.examine(URL, "host-entries"))
    assert severity == "warning"
    assert "from a path that an upgrade takes away" in text
    assert Places(clinic.home).launcher in text


async def test_an_entry_whose_program_is_gone(clinic: Clinic) -> None:
    written(
        clinic, "~/.codex/config.toml", f'[mcp_servers.x]\ncommand = "/nowhere/interlock"\nargs = ["bridge", "{URL}"]\n'
    )
    ((severity, text),) = seen(await clinic.examine(URL, "host-entries"))
    assert severity == "problem"
    assert "the program does not exist: /nowhere/interlock" in text


async def test_an_entry_of_the_gateway_counts_for_servers_of_manifests_only(clinic: Clinic) -> None:
    launcher = launcher_of(clinic)
    written(clinic, "~/.claude.json", {"mcpServers": {"x": {"command": launcher, "args": ["connect", "--host", "a"]}}})
    assert "no AI host" in seen(await clinic.examine(URL, "host-entries"))[0][1]
    clinic.declared = Origin(Path("interlock.yaml"), 1)
    ((severity, text),) = seen(await clinic.examine(URL, "host-entries"))
    assert (severity, "interlock connect" in text) == ("ok", True)


@pytest.mark.parametrize(("binds", "severity"), [(True, "warning"), (False, "note")])
async def test_a_native_entry_beside_the_bridge(clinic: Clinic, binds: bool, severity: str) -> None:
    written(clinic, "~/.cursor/mcp.json", {"mcpServers": {"x": {"url": URL + "/"}}})
    headers = (HeaderValue("X-Agent", literal="a"),) if binds else ()
    clinic.transport = HttpTransport(oauth=OAuth(), session_headers=headers)
    ((found, text),) = seen(await clinic.examine(URL, "host-entries"))
    assert found == severity
    assert ("no session binding" in text) is binds


async def test_a_credential_in_a_host_s_file_is_pointed_out_and_not_repeated(clinic: Clinic) -> None:
    value = "Bearer not-for-anybody"
    written(clinic, "~/.cursor/mcp.json", {"mcpServers": {"x": {"url": URL, "headers": {"Authorization": value}}}})
    findings = seen(await clinic.examine(URL, "host-entries"))
    assert findings[-1][0] == "warning"
    assert "the value of Authorization stands in the host's file" in findings[-1][1]
    assert "not-for-anybody" not in str(findings)
    written(
        clinic,
        "~/.cursor/mcp.json",
        {"mcpServers": {"x": {"url": URL, "headers": {"Authorization": "Bearer ${env:T}"}}}},
    )
    clinic.machine._entries = None
    assert len(await clinic.examine(URL, "host-entries")) == 1


async def test_another_bridge_in_a_host_s_file(clinic: Clinic) -> None:
    written(
        clinic, "~/.cursor/mcp.json", {"mcpServers": {"x": {"command": "npx", "args": ["-y", "mcp-remote@0.1", URL]}}}
    )
    ((severity, text),) = seen(await clinic.examine(URL, "host-entries"))
    assert (severity, "reaches it through mcp-remote" in text) == ("note", True)


BRIDGES = {
    "the bridge below npm and a shell": (
        [
            Process(10, 1, ("npm exec mcp-remote https://a.example/mcp",)),
            Process(11, 10, ("sh", "-c", "mcp-remote https://a.example/mcp")),
            Process(12, 11, ("node", "/x/_npx/1/node_modules/.bin/mcp-remote", "https://a.example/mcp")),
        ],
        [12],
    ),
    "by its script": ([Process(5, 1, ("/usr/bin/node", "/n/node_modules/mcp-remote/dist/proxy.js", "https://a"))], [5]),
    "a worker of it": (
        [
            Process(5, 1, ("node", "/n/mcp-remote/dist/proxy.js")),
            Process(6, 5, ("node", "/n/mcp-remote/dist/proxy.js")),
        ],
        [6],
    ),
    "an editor": ([Process(5, 1, ("vim", "/n/mcp-remote/README.md"))], []),
    "a search": ([Process(5, 1, ("grep", "-r", "mcp-remote", "."))], []),
    "another script": ([Process(5, 1, ("node", "server.js", "--name", "remote"))], []),
    "nothing": ([Process(5, 1, ()), Process(6, 1, ("",))], []),
}


@pytest.mark.parametrize(("found", "pids"), BRIDGES.values(), ids=BRIDGES)
def test_which_processes_are_foreign_bridges(found: list[Process], pids: list[int]) -> None:
    assert [process.pid for process in foreign_bridges.bridges_among(found)] == pids


@contextlib.contextmanager
def pretended(folder: Path, code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like mcp-remote: named `node`, with its script."""
    script = folder / "node_modules" / "mcp-remote" / "dist" / "proxy.js"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(code + "\nprint('ready', flush=True)\nimport sys; sys.stdin.read()\n")
    runtime = folder / "node"
    runtime.symlink_to(os.path.realpath(sys.executable))
    words = [str(runtime), str(script), "https://mcp.example.com/mcp?secret=not-shown"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not processes.can_tell(), reason="processes cannot be looked at here")
async def test_a_half_dead_bridge_is_reported_and_lives_on(
    clinic: Clinic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_bridges, "YOUNG_SECONDS", 0.0)

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()

    async with await asyncio.start_server(hold, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        connects = f"import socket; kept = socket.create_connection(('127.0.0.1', {port}))"
        with pretended(tmp_path / "a", "") as dead, pretended(tmp_path / "b", connects) as live:
            findings = [each for each in await foreign_bridges.check(clinic.machine) if str(dead.pid) in each.where]
            alive = [each for each in await foreign_bridges.check(clinic.machine) if str(live.pid) in each.where]
            assert [(each.severity, each.where) for each in findings] == [
                ("warning", f"process {dead.pid}, for https://mcp.example.com/mcp")
            ]
            assert f"kill {dead.pid}" in findings[0].todo
            assert [each.severity for each in alive] == ["ok"]
            assert (dead.poll(), live.poll()) == (None, None)


async def test_no_home_copy(clinic: Clinic, snapshot: Callable[[Path], Mapping[str, object]]) -> None:
    before = snapshot(clinic.home)
    (finding,) = await home_copy.check(clinic.machine)
    assert (finding.severity, finding.seen) == ("note", "there is no home copy")
    assert snapshot(clinic.home) == before


def lay_badly(places: Places) -> None:
    os.makedirs(places.lib("v0.0.1+abc"))
    Path(places.current).write_text(f"v0.0.1+abc\ncpython-311\n{sys.executable}\n")


async def test_a_home_copy_that_is_not_as_it_was_laid(clinic: Clinic) -> None:
    lay_badly(Places(clinic.home))
    (finding,) = await home_copy.check(clinic.machine)
    assert finding.severity == "problem"
    assert "record.json" in finding.seen


async def test_the_machine_s_checks_are_all_there(clinic: Clinic) -> None:
    findings = await bridge.of_machine(clinic.machine, 5)
    assert {"build", "home-copy", "foreign-bridges"} == {each.check for each in findings}
    assert findings[0].seen.startswith("interlock v")


async def test_a_second_bridge_for_the_same_server(clinic: Clinic) -> None:
    launcher = launcher_of(clinic)
    one = f'[mcp_servers.a]\ncommand = "{launcher}"\nargs = ["bridge", "{URL}"]\n'
    path = written(clinic, "~/.codex/config.toml", one)
    assert [each.severity for each in await clinic.examine(URL, "host-entries")] == ["ok"]
    written(clinic, "~/.codex/config.toml", one + one.replace("mcp_servers.a", "mcp_servers.b").replace(URL, URL + "/"))
    clinic.machine._entries = None
    warnings = [each for each in await clinic.examine(URL, "host-entries") if each.severity == "warning"]
    assert [each.seen for each in warnings] == ["2 entries of codex start a bridge for it"]
    assert warnings[0].where == f"`a` ({path}:1), `b` ({path}:4)"
