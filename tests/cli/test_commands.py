"""The other commands from outside: shapes for machines, the words for people, and streams that close."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.cli.main import COMMANDS

from .conftest import Shell, tiny

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX streams")


def test_version_names_the_installed_files(shell: Shell, tmp_path: Path) -> None:
    version = shell.run("--version")
    assert version.code == 0
    assert re.fullmatch(r"v\d+\.\d+\.\d+\+[0-9a-f]{12}\n", version.out)
    assert shell.run("--version").out == version.out
    # Another build of the same version is another build, wherever it lies.
    source = Path(shell.environment["PYTHONPATH"]) / "interlock"
    copy = tmp_path / "copy"
    shutil.copytree(source, copy / "interlock", ignore=shutil.ignore_patterns("__pycache__"))
    assert shell.run("--version", PYTHONPATH=str(copy)).out == version.out
    (copy / "interlock" / "lab" / "demo" / "interlock.yaml").open("a").write("# changed\n")
    assert shell.run("--version", PYTHONPATH=str(copy)).out != version.out


def test_every_command_explains_itself(shell: Shell) -> None:
    whole = shell.run("--help")
    assert whole.code == 0
    for name in COMMANDS:
        assert re.search(rf"^ +{name} +\w+", whole.out, re.MULTILINE)
    for name in ("up", "call"):
        shown = shell.run(name, "--help")
        assert shown.code == 0
        for flag in ("--manifest", "--home", "--json", "--trusted-hash"):
            assert flag in shown.out


def test_tools_for_machines(shell: Shell) -> None:
    shell.declare(
        tiny(capability={"tools": {"deny": ["dies"]}}, tools={"hangs": {"approval": "prompt"}}),
        tiny("dead", transports={"stdio": {"command": ["no-such-program"]}}),
    )
    done = shell.run("tools", "--json")
    rows = done.json
    assert isinstance(rows, list)
    by_name = {row["canonical"]: row for row in rows}
    echo = by_name["tiny/echo"]
    assert (echo["exposed"], echo["server"], echo["state"]) == ("tiny__echo", "tiny", "allowed")
    assert isinstance(echo["tokens"], int)
    assert 0 < echo["tokens"] < 200
    assert by_name["tiny/hangs"]["state"] == "asks"
    assert "tiny/dies" not in by_name
    assert re.search(r"^interlock: dead: .*no-such-program", done.err, re.MULTILINE)
    assert done.code == 0
    everything = {row["canonical"]: row for row in shell.run("tools", "--json", "--all").json}  # type: ignore[attr-defined]
    assert everything["tiny/dies"]["state"] == "denied"
    assert everything["tiny/dies"]["rule"].endswith("interlock.yaml:1")


def test_tools_are_named_for_the_host(shell: Shell) -> None:
    shell.declare(tiny("my.server"))
    plain = {row["canonical"]: row["exposed"] for row in shell.run("tools", "--json").json}  # type: ignore[attr-defined]
    for host in ("claude-code", "codex", "cursor", "no-such-host"):
        named = {row["canonical"]: row["exposed"] for row in shell.run("tools", "--json", "--host", host).json}  # type: ignore[attr-defined]
        assert set(named) == set(plain)
        assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", name) for name in named.values())


def test_tools_for_people(shell: Shell) -> None:
    shell.declare(tiny())
    done = shell.run("tools")
    assert re.search(r"^tiny/echo +tiny__echo +allowed +\d+$", done.out, re.MULTILINE)
    assert re.search(r"^10 tools of 1 server, about \d+ tokens", done.out, re.MULTILINE)
    assert done.err == ""


def test_nothing_is_declared(shell: Shell) -> None:
    assert shell.run("tools", "--json").json == []
    shown = shell.run("check")
    assert (shown.code, "schemaVersion: agent-routing/v1" in shown.out) == (0, True)
    done = shell.run("call", "x/y")
    assert (done.code, "there are: none" in done.err) == (8, True)
    running = shell.start("up", "--port", "0", "--no-credential", "--no-socket")
    running.until("no manifest declares a server here")
    assert running.port
    assert running.end() == 0


# -- trust and what is not enforced --------------------------------------------------------------------------------------


def test_check_tells_the_state_of_trust(shell: Shell) -> None:
    file = shell.declare(tiny(), file=shell.folder / "interlock.yaml")
    done = shell.run("check", "--json")
    checked = done.json
    assert isinstance(checked, dict)
    server = checked["servers"][0]
    assert (server["key"], server["state"]) == ("tiny", "blocked")
    assert "interlock trust" in server["blocked"]
    assert [(trust["file"], trust["trusted"]) for trust in checked["trust"]] == [(str(file), False)]
    given = checked["trust"][0]["hash"]
    assert given == shell.run("trust", "--hash", str(file)).out.strip()
    trusted = shell.run("check", "--json", "--trusted-hash", given).json
    assert trusted["servers"][0]["state"] == "ready"  # type: ignore[index]
    # A person trusts it, then it changes.
    assert shell.run("trust", str(file)).code != 0  # no terminal, no trust
    shell.declare(tiny(transports={"stdio": {"command": ["other"]}}), file=file)
    changed = shell.run("check", "--json", "--trusted-hash", given).json
    assert changed["servers"][0]["state"] == "blocked"  # type: ignore[index]
    people = shell.run("check")
    assert "tiny does not start" in people.out


def test_a_user_file_needs_no_trust(shell: Shell) -> None:
    shell.declare(tiny())
    checked = shell.run("check", "--json").json
    assert [server["state"] for server in checked["servers"]] == ["ready"]  # type: ignore[index]


def test_a_deny_of_the_users_holds_against_a_project(shell: Shell) -> None:
    shell.declare(tiny(capability={"tools": {"deny": ["echo"]}}))
    file = shell.declare(tiny(), file=shell.folder / "interlock.yaml")
    given = shell.run("trust", "--hash", str(file)).out.strip()
    done = shell.run("call", "tiny/echo", "--trusted-hash", given)
    assert (done.code, shell.calls) == (3, [])
    assert shell.run("call", "tiny/data", "--trusted-hash", given).code == 0


def test_up_and_connect_say_aloud_what_will_not_happen(shell: Shell) -> None:
    shell.declare(
        tiny(isolation={"allowNetwork": ["api.example.com"]}),
    )
    file = shell.declare(tiny("project"), file=shell.folder / "interlock.yaml")
    running = shell.start("up", "--port", "0", "--no-credential", "--no-socket")
    running.until(r"interlock: project will not run: .*interlock trust")
    running.until(r"interlock: tiny: accepted but not enforced (in|by) this release: .*isolation.allowNetwork")
    running.until("WARNING: --no-credential")
    assert running.end() == 0
    connected = shell.run("connect", "--alone")
    assert connected.code == 0
    assert "project will not run" in connected.err
    assert "isolation.allowNetwork" in connected.err
    checked = shell.run("check", "--json").json
    assert "isolation.allowNetwork" in {field for each in checked["servers"] for field in each["unenforced"]}  # type: ignore[index]
    assert file.exists()


def test_check_names_the_line_that_would_end_the_asking(shell: Shell) -> None:
    shell.declare(tiny(policy={}))
    assert any("defaultApproval" in hint for hint in shell.run("check", "--json").json["hints"])  # type: ignore[index]
    shell.declare(tiny())
    assert shell.run("check", "--json").json["hints"] == []  # type: ignore[index]


# -- credentials and traces ----------------------------------------------------------------------------------------------


def test_credentials(shell: Shell) -> None:
    assert "no credentials yet" in shell.run("credential").out
    token = shell.run("credential", "codex").out.strip()
    assert len(token) >= 43
    assert shell.run("credential", "codex").out.strip() == token
    listed = shell.run("credential", "--json")
    assert listed.json == ["codex"]
    assert token not in listed.out
    revoked = shell.run("credential", "codex", "--revoke")
    assert (revoked.code, token in revoked.err + revoked.out) == (0, False)
    assert shell.run("credential", "codex").out.strip() != token
    (shell.home / "credentials.json").write_text("{")
    damaged = shell.run("credential", "codex")
    assert (damaged.code, "credentials.json" in damaged.err) == (8, True)


def test_traces_of_calls(shell: Shell) -> None:
    assert shell.run("trace", "--json").json == []
    shell.declare(tiny(capability={"tools": {"deny": ["data"]}}))
    for tool in ("echo", "fails", "data"):
        shell.run("call", f"tiny/{tool}", '{"password": "hunter2"}')
    traces = shell.run("trace", "--json").json
    assert isinstance(traces, list)
    assert [(trace["name"], trace["status"]) for trace in traces] == [
        ("tiny/data", "denied"), ("tiny/fails", "tool_error"), ("tiny/echo", "ok"),
    ]  # fmt: skip
    assert [trace["name"] for trace in shell.run("trace", "--status", "denied", "--json").json] == ["tiny/data"]  # type: ignore[attr-defined]
    denied = shell.run("trace", traces[0]["id"])
    assert "denied by 'data'" in denied.out
    assert f"{shell.home}/interlock.yaml:1" in denied.out
    kept = b"".join(file.read_bytes() for file in shell.home.rglob("*") if file.is_file())
    assert b"hunter2" not in kept  # no arguments without being told to


# -- streams -------------------------------------------------------------------------------------------------------------


@on_posix
@pytest.mark.parametrize("command", [["tools"], ["tools", "--json"], ["check"], ["trace"], ["schema"], ["--help"]])
def test_a_reader_that_has_seen_enough(shell: Shell, command: list[str]) -> None:
    """As in `interlock tools | head -1`."""
    shell.declare(*(tiny(f"tiny{number}") for number in range(3)))
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        shell.command(*command),
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=shell.environment,
        cwd=shell.folder,
        timeout=30,
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


@on_posix
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_closed_from_the_start(shell: Shell, closed: str) -> None:
    """As some service managers start a program: the next file must not become its output."""
    shell.declare(tiny())
    command = " ".join(shell.command("call", "tiny/echo", "'{\"a\":1}'"))
    done = subprocess.run(
        ["sh", "-c", f"{command} {closed}"], capture_output=True, env=shell.environment, cwd=shell.folder, timeout=30
    )
    assert (done.returncode, shell.calls) == (0, [{"a": 1}])
    assert b"Traceback" not in done.stderr


@on_posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk(shell: Shell) -> None:
    shell.declare(tiny())
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            shell.command("tools", "--json"),
            stdout=full,
            stderr=subprocess.PIPE,
            env=shell.environment,
            cwd=shell.folder,
            timeout=30,
        )
    assert done.returncode == 8
    assert done.stderr.decode() == "interlock: cannot go on: No space left on device\n"


def test_the_schema_is_one(shell: Shell) -> None:
    schema = json.loads(shell.run("schema").out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
