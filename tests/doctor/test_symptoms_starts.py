"""`does-not-start` and `slow-first-call`: servers that are really started, each sick in one way, and a healthy one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from interlock.doctor.describe import list_time
from interlock.doctor.discover import start_time
from interlock.doctor.finding import Finding
from interlock.doctor.starting import Started, Target
from interlock.hosts.machine import Machine
from interlock.manifest.config import StdioTransport

from .ward import ROOT, SERVER, causes, wrong

if TYPE_CHECKING:
    from pathlib import Path

    from .ward import Ward


async def test_nothing_is_started_unasked(ward: Ward, tmp_path: Path) -> None:
    sign = tmp_path / "started"
    ward.manifest(f"integrationId: a.x\ntransports: {{stdio: {{command: [touch, '{sign}']}}}}\n")
    findings = await ward.complain("does-not-start")
    assert (causes(findings), sign.exists()) == ([], False)
    (start,) = [each for each in findings if each.check == "start"]
    assert (start.severity, start.todo) == ("unknown", "`interlock doctor does-not-start --server x` starts it once.")


async def test_a_healthy_server_starts(ward: Ward) -> None:
    ward.manifest(ward.server("good", "--tools", "3"))
    findings = await ward.complain("does-not-start", start=True, seconds=60)
    assert wrong(findings) == []
    (start,) = [each for each in findings if each.check == "start"]
    assert start.severity == "ok"
    assert start.seen.startswith("`good` starts and lists")


async def started(ward: Ward, entry: str, seconds: float = 60.0) -> Finding:
    """The only thing that is wrong with this server."""
    ward.manifest(entry)
    findings = wrong(await ward.complain("does-not-start", start=True, seconds=seconds))
    assert [each.check for each in findings] == ["start"], findings
    return findings[0]


async def test_what_it_printed_and_its_exit_code_are_shown(ward: Ward) -> None:
    finding = await started(ward, ward.server("bad", "--die", "3"))
    assert (finding.severity, finding.seen) == ("problem", "`bad` starts and ends again")
    assert "Exit code 3" in finding.why
    assert "fatal: this fixture was told to die" in finding.why
    assert finding.where.endswith("interlock.yaml:2")


async def test_a_missing_module_is_named(ward: Ward) -> None:
    entry = (
        f"integrationId: a.py\ntransports: {{stdio: {{command: ['{sys.executable}', -c, 'import no_such_module']}}}}\n"
    )
    assert "the Python module 'no_such_module' is not installed" in (finding := await started(ward, entry)).why
    assert finding.todo.startswith("Install 'no_such_module' for that Python")
    assert "run it by hand to see all that it says: `" in finding.todo


async def test_a_program_that_is_not_on_the_path(ward: Ward) -> None:
    ward.environ["PATH"] = "/nowhere/bin"
    finding = await started(ward, "integrationId: a.x\ntransports: {stdio: {command: [no-such-program]}}\n")
    assert finding.seen == "`x` does not start"
    assert "in none of the directories of PATH" in finding.why
    assert "/nowhere/bin" in finding.why
    assert "`command -v no-such-program`" in finding.todo


SCRIPTS = {
    "an interpreter that is not there": (b"#!/no/such/interpreter\n", "'/no/such/interpreter', does not exist"),
    "another architecture": (
        b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x02\0\xff\xff" + b"\0" * 44,
        "another kind of machine",
    ),
    "no first line": (b"echo\n", "has no `#!` line"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own words")
@pytest.mark.parametrize(("content", "words"), SCRIPTS.values(), ids=SCRIPTS)
async def test_programs_that_the_system_refuses(ward: Ward, content: bytes, words: str) -> None:
    program = ward.write("server", content)
    program.chmod(0o755)
    finding = await started(ward, f"integrationId: a.x\ntransports: {{stdio: {{command: ['{program}']}}}}\n")
    assert words in finding.why


async def test_windows_line_endings_are_found_without_a_start(ward: Ward) -> None:
    program = ward.write("server.sh", b"#!/bin/sh\r\nexit 0\r\n")
    program.chmod(0o755)
    ward.manifest(f"integrationId: a.x\ntransports: {{stdio: {{command: ['{program}']}}}}\n")
    (finding,) = wrong(await ward.complain("does-not-start"))
    assert (finding.check, finding.where) == ("line-endings", str(program))
    assert "sed -i" in finding.todo


async def test_what_it_prints_in_the_place_of_messages(ward: Ward) -> None:
    script = "'echo Listening for work; while read line; do :; done'"
    entry = f"integrationId: a.x\ntransports: {{stdio: {{command: [/bin/sh, -c, {script}]}}}}\n"
    finding = await started(ward, entry, seconds=4.0)
    assert finding.seen == "`x` starts and answers nothing that is a message"
    assert "Listening for work" in finding.why


async def test_a_server_that_says_nothing(ward: Ward) -> None:
    finding = await started(ward, ward.server("mute", "--hang"), seconds=2.0)
    assert finding.seen == "`mute` starts and does not get through the handshake"
    assert "within 2 s" in finding.why


async def test_a_variable_that_is_not_set_is_said_once_by_name(ward: Ward) -> None:
    ward.manifest("integrationId: a.x\ntransports: {stdio: {command: [/bin/true], envNames: [ACME_KEY]}}\n")
    findings = wrong(await ward.complain("does-not-start"))
    assert [each.check for each in findings] == ["variables"]
    assert "ACME_KEY" in findings[0].seen


async def test_no_secret_of_the_environment_is_in_what_is_shown(ward: Ward) -> None:
    ward.environ["ACME_KEY"] = secret = "plain-words-for-a-key"
    code = "import os, sys; sys.exit(os.environ['ACME_KEY'])"
    entry = f'integrationId: a.x\ntransports: {{stdio: {{command: ["{sys.executable}", -c, "{code}"], envNames: [ACME_KEY]}}}}\n'
    finding = await started(ward, entry)
    assert secret not in str(finding)
    assert "[redacted]" in finding.why


async def test_a_trust_that_is_missing_comes_before_any_start(ward: Ward) -> None:
    (ward.folder / "interlock.yaml").write_text("schemaVersion: agent-routing/v1\n" + ward.server("mine"))
    (finding,) = wrong(await ward.complain("does-not-start", start=True, seconds=60))
    assert (finding.check, finding.severity) == ("manifest", "problem")
    assert finding.todo == f"`interlock trust {ward.folder / 'interlock.yaml'}`"


# -- slow-first-call ---------------------------------------------------------------------------------------------------


async def test_a_fast_server_has_nothing_to_mend(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_time, "SLOW", 60.0)
    monkeypatch.setattr(list_time, "SLOW", 60.0)
    ward.manifest(ward.server("quick"))
    findings = await ward.complain("slow-first-call", start=True, seconds=60)
    assert wrong(findings) == []
    assert {each.check for each in findings if each.severity == "ok"} == {"start-time", "list-time", "start"}


async def test_the_part_that_takes_the_time_is_named(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_time, "SLOW", 0.5)
    ward.manifest(ward.server("late", "--start-delay", "0.6"))
    (finding,) = wrong(await ward.complain("slow-first-call", start=True, seconds=60))
    assert (finding.check, finding.stage) == ("start-time", "discover")
    assert "the time goes in DISCOVER" in finding.seen
    assert "-X importtime" in finding.todo
    assert "`start: always`" in finding.todo


def measured(*command: str, spawn: float = 0.1, handshake: float = 9.0) -> Started:
    return Started(Target("x", "f:1", StdioTransport(command, ROOT), {}), spawn, handshake, 0.1)


FETCHERS = {
    "npx": (("npx", "-y", "some-mcp@1.2.3"), "is not in npm's cache here", "`npm install --global some-mcp@1.2.3`"),
    "uvx": (("uvx", "some-mcp"), "makes an environment", "`uv tool install some-mcp`"),
    "docker": (("docker", "run", "-i", "--rm", "acme/mcp:2"), "the image `acme/mcp`", "`docker pull acme/mcp`"),
    "a program": (("/opt/acme", "serve"), "its own", "Let it answer the handshake first"),
}


@pytest.mark.parametrize(("command", "why", "todo"), FETCHERS.values(), ids=FETCHERS)
def test_who_fetches_the_server(tmp_path: Path, command: tuple[str, ...], why: str, todo: str) -> None:
    machine = Machine(platform="linux", home=str(tmp_path), folder=str(tmp_path), environ={})
    finding = start_time._of(measured(*command), machine)
    assert (finding.severity, finding.check) == ("problem", "start-time")
    assert why in finding.why
    assert finding.todo.startswith(todo)


def test_a_package_in_npm_s_cache_is_looked_up_all_the_same(tmp_path: Path) -> None:
    kept = tmp_path / ".npm" / "_npx" / "0a1b" / "node_modules" / "some-mcp" / "package.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    machine = Machine(platform="linux", home=str(tmp_path), folder=str(tmp_path), environ={})
    assert "looks up `some-mcp` at each start" in start_time._of(measured("npx", "-y", "some-mcp"), machine).why


LATE = "x: the server was not ready within 30 s; your request was not sent to it. policy.startupTimeoutSeconds sets the limit."


async def test_starts_that_failed_are_told_from_the_records(ward: Ward) -> None:
    ward.manifest(ward.server("x"))
    ward.called("x/a", "never_reached", slug="startup-timeout", discover=30.0, reason=LATE)
    (finding,) = wrong(await ward.complain("slow-first-call"))
    assert (finding.check, finding.stage) == ("recorded-starts", "discover")
    assert "not ready within 30 s" in finding.why
    assert "imeout" not in f"{finding.why} {finding.todo}"
    ward.called("x/a", execute=0.1)
    assert wrong(await ward.complain("slow-first-call")) == []


# -- as a host starts it -----------------------------------------------------------------------------------------------


async def test_a_host_s_own_entry_is_started_with_that_host_s_environment(ward: Ward) -> None:
    """Codex passes few variables on: what Interlock and a terminal have does not count."""
    ward.environ |= {"ACME_KEY": "set-in-the-terminal", "HOME": str(ward.user)}
    code = "import os, sys; sys.exit('Error: ACME_KEY is not set' if 'ACME_KEY' not in os.environ else 0)"
    ward.write("~/.codex/config.toml", f'[mcp_servers.own]\ncommand = "{SERVER[0]}"\nargs = ["-c", {code!r}]\n')
    findings = wrong(await ward.complain("does-not-start", start=True, host="codex"))
    assert [each.check for each in findings] == ["start"], findings
    assert (findings[0].server, findings[0].host) == ("own", "codex")
    assert "it needs the environment variable ACME_KEY" in findings[0].why
    assert findings[0].where == f"{ward.user / '.codex' / 'config.toml'}:1"


async def test_a_healthy_entry_of_a_host_starts(ward: Ward) -> None:
    entry = ward.native("--tools", "2")
    lines = [
        f"command = {entry['command']!r}",
        f"args = {entry['args']!r}",
        f"env = {{ PYTHONPATH = '{ROOT / 'src'}' }}",
    ]
    ward.write("~/.codex/config.toml", "[mcp_servers.own]\n" + "\n".join(lines) + "\n")
    findings = await ward.complain("does-not-start", start=True, host="codex")
    assert wrong(findings) == []
    assert [each.seen for each in findings if each.check == "start" and each.severity == "ok"]


async def test_a_slow_list_is_another_stage(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_time, "SLOW", 60.0)
    monkeypatch.setattr(list_time, "SLOW", 0.0)
    ward.manifest(ward.server("many", "--tools", "5"))
    (finding,) = wrong(await ward.complain("slow-first-call", start=True, seconds=60))
    assert (finding.check, finding.stage) == ("list-time", "describe")
    assert "the time goes in DESCRIBE" in finding.seen


async def test_a_host_from_the_desktop_has_another_path(ward: Ward) -> None:
    program = ward.write("~/tools/acme-server", "#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    ward.environ["PATH"] = f"{program.parent}:{ward.environ['PATH']}"
    ward.write("~/.config/Claude/claude_desktop_config.json", {"mcpServers": {"acme": {"command": "acme-server"}}})
    findings = wrong(await ward.complain("does-not-start", start=True, host="claude-desktop", seconds=60))
    assert {each.check for each in findings} == {"command-not-on-gui-path", "start"}
    (start,) = [each for each in findings if each.check == "start"]
    assert start.seen == "`acme` does not start (as claude-desktop starts it)"
    assert str(program.parent) not in start.why


async def test_no_secret_of_a_host_s_file_is_in_what_is_shown(ward: Ward) -> None:
    secret, other = "plain-words-" + "for-a-key", "other-words-" + "for-a-key"
    code = "import os, sys; sys.exit(os.environ['ACME_KEY'] + ' ' + sys.argv[2])"
    entry = {
        "command": SERVER[0],
        "args": ["-c", code, "--api-key", other, "--who", secret],
        "env": {"ACME_KEY": secret},
    }
    ward.write("~/.cursor/mcp.json", {"mcpServers": {"acme": entry}})
    findings = await ward.complain("does-not-start", start=True, host="cursor", seconds=60)
    assert [each.seen for each in findings if each.check == "start"] == [
        "`acme` starts and ends again (as cursor starts it)"
    ]
    assert secret not in str(findings)
    assert other not in str(findings)


async def test_interlock_itself_is_not_started(ward: Ward) -> None:
    """Its entry would start every server behind it."""
    sign = ward.user / "started"
    program = ward.write("~/bin/interlock", f"#!/bin/sh\ntouch '{sign}'\n")
    program.chmod(0o755)
    ward.write("~/.cursor/mcp.json", {"mcpServers": {"il": {"command": str(program), "args": ["connect"]}}})
    assert wrong(await ward.complain("does-not-start", start=True, seconds=60)) == []
    assert not sign.exists()
