"""The call that setup ends with: every way a started program can behave gets a true answer in time."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from interlock.cli import setup_outcome
from interlock.install import proof
from interlock.upstream.oauth.timing import Timing

_SERVER = """
import json, os, sys
answers = json.loads(os.environ["ANSWERS"])
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    print("not json, as a careless server writes", flush=True)
    answer = answers.get(message["method"])
    if answer is None:
        sys.exit(9)
    if answer != "silence":
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
_HELLO = {"result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}}
_NONE = {"result": {"tools": []}}
_TWO = {"result": {"tools": [{"name": "a"}, {"name": "b"}]}}
_UNKNOWN = {"error": {"code": -32602, "message": "Unknown tool"}}
_NO_TOOLS = {"error": {"code": -32601, "message": "Method not found"}}
_TOOL_ERROR = {
    "result": {"content": [{"type": "text", "text": "what is that?"}], "isError": True, "_meta": {"verdict": "odd"}}
}


def _fault(verdict: str, error: str, **more: object) -> dict[str, object]:
    data = {"interlock": "v1", "error": error, "verdict": verdict, **more}
    return {"error": {"code": 41211, "message": f"{verdict}: why", "data": data}}


def _failed(verdict: str, error: str, **more: object) -> dict[str, object]:
    content = [{"type": "text", "text": f"{verdict}: why"}]
    facts = {"interlock": "v1", "error": error, "verdict": verdict, **more}
    return {"result": {"content": content, "isError": True, "_meta": facts}}


_LOGIN = {"authorize_url": "https://as.example/authorize?x"}


@pytest.mark.parametrize(
    ("answers", "kind", "more"),
    [
        ({"tools/list": _TWO, "tools/call": _UNKNOWN}, "tools", {"tools": ("a", "b"), "server": "s"}),
        ({"tools/list": _TWO, "tools/call": _TOOL_ERROR}, "tools", {"tools": ("a", "b")}),
        ({"tools/list": _TWO, "tools/call": _NO_TOOLS}, "tools", {}),
        ({"tools/list": _TWO, "tools/call": _fault("never_reached", "unknown-name")}, "tools", {}),
        ({"tools/list": _NONE, "tools/call": _UNKNOWN}, "tools", {"tools": ()}),
        # A list may be remembered, so it proves nothing: the call says what is so.
        ({"tools/list": _TWO, "tools/call": _failed("never_reached", "unreachable")}, "refused",
         {"verdict": "never_reached", "said": "never_reached: why"}),
        ({"tools/list": _TWO, "tools/call": _failed("wait", "login-needed", **_LOGIN)}, "login", _LOGIN),
        ({"tools/list": _TWO, "tools/call": _fault("wait", "login-needed", **_LOGIN)}, "login", _LOGIN),
        ({"tools/list": _TWO, "tools/call": _failed("wait", "grant-refused")}, "wait", {"verdict": "wait"}),
        ({"tools/list": _TWO, "tools/call": _failed("outcome_unknown", "timeout")}, "refused", {"verdict": "outcome_unknown"}),
        ({"tools/list": _fault("outcome_unknown", "timeout"), "tools/call": _UNKNOWN}, "refused", {"verdict": "outcome_unknown"}),
        ({"initialize": {"error": {"code": -32603, "message": "no"}}}, "refused", {"said": "no", "verdict": None}),
        ({"tools/list": _TWO}, "not_started", {}),
        ({"initialize": None}, "not_started", {}),
    ],
)  # fmt: skip
def test_what_it_says(answers: dict[str, object], kind: str, more: dict[str, object]) -> None:
    environ = {**os.environ, "ANSWERS": json.dumps({"initialize": _HELLO, **answers})}
    outcome = proof.call([sys.executable, "-c", _SERVER], environ)
    assert outcome.kind == kind, outcome
    assert {name: getattr(outcome, name) for name in more} == more


def test_silence_ends_in_time() -> None:
    environ = {**os.environ, "ANSWERS": json.dumps({"initialize": _HELLO, "tools/call": "silence"})}
    begun = time.monotonic()
    outcome = proof.call([sys.executable, "-c", _SERVER], environ, seconds=1.0)
    assert (outcome.kind, "tools/call" in outcome.said) == ("silent", True)
    assert time.monotonic() - begun < 20


def test_a_program_that_is_not_there() -> None:
    outcome = proof.call(["/nonexistent/interlock", "bridge"], {})
    assert outcome.kind == "not_started"
    assert "/nonexistent/interlock" in outcome.said


def test_last_words_are_told() -> None:
    code = "import sys; sys.stderr.write('first\\ninterlock: the home copy is gone\\n'); sys.exit(8)"
    outcome = proof.call([sys.executable, "-c", code], dict(os.environ))
    assert outcome.kind == "not_started"
    assert "exit code 8" in outcome.said
    assert "the home copy is gone" in outcome.said


def test_the_environment_is_that_of_the_strictest_host(tmp_path: Path) -> None:
    environ = {
        "HOME": "/h",
        "PATH": "/p",
        "TOK": "t",
        "OTHER": "o",
        "PYTHONPATH": "/x",
        "INTERLOCK_HOME": "/y",
        "LANG": "C",
    }
    assert proof.clean_environment(environ) == {"HOME": "/h", "PATH": "/p", "LANG": "C"}
    assert proof.clean_environment(environ, ["TOK", "ABSENT"]) == {"HOME": "/h", "PATH": "/p", "LANG": "C", "TOK": "t"}


def test_the_page_is_waited_for_as_long_as_it_is_said() -> None:
    assert Timing().linger_seconds == setup_outcome.WAITED_SECONDS
    said = setup_outcome.told(
        proof.Outcome("login", authorize_url="https://as.example/a?scope=x,y"), "https://x.example/mcp?a b"
    )
    assert "  https://as.example/a?scope=x,y\n" in said, "on a line of its own, with nothing behind it"
    assert "It works" not in said
    assert "during the next 2 minutes" in said
    assert said.endswith("  interlock login 'https://x.example/mcp?a b'")
