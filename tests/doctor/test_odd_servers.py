"""Servers that misbehave while they are looked at, hosts whose rules stand elsewhere, and fixes that are understood alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .ward import wrong

if TYPE_CHECKING:
    from .ward import Ward

SERVER = """\
import json, os, subprocess, sys
{before}
for line in sys.stdin:
    message = json.loads(line)
    answer = {{"jsonrpc": "2.0", "id": message.get("id")}}
    if message.get("method") == "initialize":
        answer["result"] = {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}},
            "serverInfo": {{"name": "x", "version": "1"}}}}
    elif message.get("method") == "tools/list":
        answer{listed}
    else:
        continue
    print(json.dumps(answer), flush=True)
"""
TOOLS = '["result"] = {{"tools": [{{"name": name, "inputSchema": {{"type": "object"}}}} for name in {names!r}]}}'


def _entry(
    ward: Ward, name: str, *, before: str = "", listed: str | None = None, names: tuple[str, ...] = ("ping",)
) -> dict[str, object]:
    script = ward.write(f"{name}.py", SERVER.format(before=before, listed=listed or TOOLS.format(names=names)))
    return {"command": sys.executable, "args": [str(script)]}


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _claude(ward: Ward, entry: object) -> None:
    ward.write("~/.claude.json", {"mcpServers": {"notes": entry}})


async def test_what_stands_on_its_output_besides_messages_is_told_though_it_starts(ward: Ward) -> None:
    _claude(ward, _entry(ward, "loud", before="print('Welcome', flush=True)"))
    (finding,) = wrong(await ward.complain("does-not-start", server="notes", start=True, seconds=30))
    assert (finding.check, finding.severity) == ("stdout-noise", "warning")
    assert "Welcome" in finding.why


@pytest.mark.skipif(sys.platform != "linux", reason="found by /proc")
async def test_nothing_that_it_started_is_left(ward: Ward) -> None:
    note = ward.folder / "child"
    sleeper = "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)"
    _claude(ward, _entry(ward, "leaves", before=f"{sleeper}\nopen({str(note)!r}, 'w').write(str(child.pid))"))
    assert wrong(await ward.complain("does-not-start", server="notes", start=True, seconds=30)) == []
    assert not _runs(note.read_text())


async def test_an_error_in_the_place_of_a_list(ward: Ward) -> None:
    _claude(ward, _entry(ward, "none", listed='["error"] = {"code": -32601, "message": "no"}'))
    (finding,) = wrong(await ward.complain("tool-missing", server="notes", start=True, seconds=30))
    assert (finding.check, finding.severity) == ("tool-list", "problem")
    assert "with an error" in finding.seen


async def test_the_variable_that_it_asks_for_is_in_the_fix(ward: Ward) -> None:
    _claude(ward, _entry(ward, "needs", before="sys.exit('Error: NOTES_TOKEN is not set')"))
    (finding,) = wrong(await ward.complain("does-not-start", server="notes", start=True, seconds=30))
    assert finding.todo.startswith(
        "Name NOTES_TOKEN in the server's `env` in the entry. If that is not it: run it by hand"
    )


async def test_a_program_that_may_not_be_executed(ward: Ward) -> None:
    program = ward.write("tools/notes", "#!/bin/sh\n")
    _claude(ward, {"command": str(program)})
    findings = wrong(await ward.complain("does-not-start", server="notes", start=True, seconds=30))
    assert [each.check for each in findings] == ["command-not-found", "start"]
    assert all(f"chmod +x {program}" in each.todo for each in findings)


# Hosts' rules


@pytest.mark.parametrize(
    ("rule", "tool"), [("mcp__notes__ping", "ping"), ("mcp__notes", "ping"), ("mcp__notes__pi", None)]
)
async def test_a_rule_in_another_file_is_shown_where_it_stands(ward: Ward, rule: str, tool: str | None) -> None:
    settings = ward.write("~/.claude/settings.json", {"permissions": {"deny": ["Bash", rule]}})
    _claude(ward, _entry(ward, "good", names=("ping", "pi")))
    findings = wrong(await ward.complain("tool-missing", server="notes", tool="ping", start=True, seconds=30))
    assert [(each.check, each.where) for each in findings] == ([("host-tool-lists", f"{settings}:5")] if tool else [])


async def test_a_rule_that_allows_is_shown_where_it_stands(ward: Ward) -> None:
    settings = ward.write("~/.claude/settings.json", {"permissions": {"allow": ["mcp__notes"]}})
    _claude(ward, {"command": sys.executable})
    (finding,) = wrong(await ward.complain("no-approval"))
    assert (finding.check, finding.where) == ("host-approval", f"{settings}:4")
    assert "`notes`" in finding.todo


async def test_an_empty_list_of_tools(ward: Ward) -> None:
    entry = {"type": "local", **_entry(ward, "good"), "tools": []}
    ward.write("~/.copilot/mcp-config.json", {"mcpServers": {"notes": entry}})
    (finding,) = wrong(await ward.complain("tool-missing", server="notes", start=True, seconds=30))
    assert finding.check == "host-tool-lists"
    assert "no tool of `notes` at all" in finding.seen


async def test_two_names_that_meet_where_server_and_tool_are_joined(ward: Ward) -> None:
    ward.write("~/.copilot/mcp-config.json", {"mcpServers": {
        "a-b": {"type": "local", **_entry(ward, "one", names=("ping",)), "tools": ["*"]},
        "a": {"type": "local", **_entry(ward, "two", names=("b-ping",)), "tools": ["*"]},
    }})  # fmt: skip
    findings = [
        each for each in wrong(await ward.complain("wrong-tool", start=True, seconds=30)) if each.check == "tool-names"
    ]
    assert len(findings) == 1
    assert "`a-b/ping`, `a/b-ping` would both be `a-b-ping`" in findings[0].seen


# The fix says whom it is about


FIXES = {
    "a list": ("~/.claude.json", {"mcpServers": {"notes": {"command": "x"}}, "projects": {"FOLDER": {"disabledMcpServers": ["notes"]}}},
               "Take `notes` out of disabledMcpServers at "),
    "a project's file": (".mcp.json", {"mcpServers": {"notes": {"command": "x"}}}, "Approve `notes` when Claude Code asks for it."),
    "an untrusted project": (".codex/config.toml", '[mcp_servers.notes]\ncommand = "x"\n', 'Add [projects."FOLDER"] with trust_level'),
    "a mark": ("~/.gemini/settings.json", b'\xef\xbb\xbf{"mcpServers": {"notes": {"command": "x"}}}', ".gemini/settings.json:1"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "content", "words"), FIXES.values(), ids=FIXES)
async def test_a_fix_is_understood_by_itself(ward: Ward, file: str, content: object, words: str) -> None:
    folder = str(ward.folder)
    if isinstance(content, dict) and "projects" in content:
        content = {**content, "projects": {folder: content["projects"]["FOLDER"]}}
    ward.write(file, content)
    finding = next(
        each for each in wrong(await ward.complain("server-not-visible", server="notes")) if each.check == "host-entry"
    )
    assert words.replace("FOLDER", folder) in finding.todo


async def test_a_file_of_which_nothing_can_be_read_is_a_fault_that_takes_all_down(ward: Ward) -> None:
    path = ward.write("~/.config/goose/config.yaml", "extensions:\n  a:\n    type: stdio\n   cmd: x\n")
    (finding,) = [each for each in wrong(await ward.complain("one-broke-all")) if each.check == "blast-radius"]
    assert finding.seen == "one fault takes a whole file of goose down"
    assert finding.where.startswith(f"{path}:")
    assert str(path) in finding.todo


@pytest.mark.skipif(sys.platform == "win32", reason="there it is no foreign path")
async def test_a_program_of_windows_is_no_mere_doubt(ward: Ward) -> None:
    _claude(ward, {"command": "C:\\Program Files\\nodejs\\node", "args": ["C:\\x\\server.js"]})
    findings = [each for each in wrong(await ward.complain("windows-not-wsl")) if each.check == "foreign-path"]
    assert [each.severity for each in findings] == ["problem", "warning"]


@pytest.mark.skipif(sys.platform == "win32", reason="there `cmd` is at home")
async def test_a_shim_of_windows_is_taken_out_and_not_installed(ward: Ward) -> None:
    _claude(ward, {"command": "cmd", "args": ["/c", "npx", "-y", "x@1.0.0"]})
    (finding,) = [each for each in wrong(await ward.complain("windows-not-wsl")) if each.check == "command-not-found"]
    assert finding.todo.startswith("Take `cmd` and `/c` out")
