"""`interlock demo` does what it says, on real servers; and its two own servers keep to their eras."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.lab.demo import issues, notes

_COMMAND = [sys.executable, "-m", "interlock", "demo"]
_MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
needs_servers = pytest.mark.skipif(
    importlib.util.find_spec("mcp_server_time") is None or importlib.util.find_spec("mcp_server_git") is None,
    reason="needs mcp-server-time and mcp-server-git: pip install 'interlock-gateway[demo]'",
)


@needs_servers
def test_demo_lists_calls_and_traces(child_environment: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(_COMMAND, env=child_environment, cwd=tmp_path, capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    for canonical, exposed in (("issues/search", "issues__search"), ("notes/search", "notes__search")):
        assert re.search(rf"^{canonical} +{exposed} +allowed +\d+$", shown, re.MULTILINE)
    assert not re.search(r"^issues/delete +issues__delete", shown, re.MULTILINE)
    assert re.search(r"^interlock: dead: .*interlock-demo-missing", shown, re.MULTILINE)
    assert "issues/search as issues__search, asked by a 2025-11-25 client\n  {" in shown
    assert "notes/search as notes__search, asked by a 2026-07-28 client\n  Signals:" in shown
    assert '"timezone": "Europe/Berlin"' in shown
    assert "Author: Interlock demo" in shown
    assert "error -32602: Unknown tool: issues__delete" in shown
    assert re.search(r"interlock v\S+: outcome_unknown: notes:", shown)
    assert re.findall(r"^  status  (\w+):", shown, re.MULTILINE) == ["ok", "denied", "outcome_unknown"]
    assert re.search(r"^  authorize  deny .*interlock\.yaml:\d+\)$", shown, re.MULTILINE)


@needs_servers
@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_served_demo_says_how_to_connect_and_ends_with_its_servers(
    child_environment: dict[str, str], tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [*_COMMAND, "--serve"], env=child_environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True, bufsize=1,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    with process:
        shown = ""
        for line in process.stdout:
            shown += line
            if line.startswith("Ctrl-C"):
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    assert "claude mcp add --transport http interlock http://127.0.0.1:" in shown
    assert "connect --host claude-code" in shown
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("initialize", {"protocolVersion": "2025-11-25"}, -32022),
        ("tools/list", {}, -32602),
        ("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}}, -32022),
        ("tools/call", {"name": "nothing", **_MODERN}, -32602),
        ("ping", _MODERN, -32601),
    ],
)
def test_issues_refuses_what_is_not_modern(method: str, params: dict[str, object], code: int) -> None:
    outcome = issues.answer(method, params)
    assert isinstance(outcome, tuple)
    assert outcome[0] == code


def test_notes_knows_only_the_handshake() -> None:
    refused = notes.answer("server/discover", {})
    assert isinstance(refused, tuple)
    assert refused[0] == -32601
    opened = notes.answer("initialize", {"protocolVersion": "2025-06-18"})
    assert isinstance(opened, dict)
    assert opened["protocolVersion"] == "2025-06-18"
