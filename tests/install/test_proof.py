"""The call that setup ends with: every way a started program can behave gets a true answer in time."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from interlock.install import proof

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


def _fault(verdict: str, error: str, **more: object) -> dict[str, object]:
    data = {"interlock": "v1", "error": error, "verdict": verdict, **more}
    return {"error": {"code": 41211, "message": f"{verdict}: why", "data": data}}


def _failed(verdict: str, error: str, **more: object) -> dict[str, object]:
    content = [{"type": "text", "text": f"{verdict}: why"}]
    return {"result": {"content": content, "isError": True, "_meta": {"error": error, "verdict": verdict, **more}}}


_LOGIN = {"authorize_url": "https://as.example/authorize?x"}


@pytest.mark.parametrize(
    ("answers", "kind", "more"),
    [
        ({"initialize": _HELLO, "tools/list": {"result": {"tools": [{"name": "a"}, {"name": "b"}]}}}, "tools",
         {"tools": ("a", "b"), "server": "s"}),
        ({"initialize": _HELLO, "tools/list": _NONE, "tools/call": _fault("never_reached", "unknown-name")}, "tools", {"tools": ()}),
        ({"initialize": _HELLO, "tools/list": _NONE, "tools/call": _failed("wait", "login-needed", **_LOGIN)}, "login", _LOGIN),
        ({"initialize": _HELLO, "tools/list": _fault("wait", "login-needed", **_LOGIN)}, "login", _LOGIN),
        ({"initialize": _HELLO, "tools/list": _NONE, "tools/call": _failed("wait", "grant-refused")}, "wait", {"verdict": "wait"}),
        ({"initialize": _HELLO, "tools/list": _NONE, "tools/call": _failed("never_reached", "unreachable")}, "refused",
         {"verdict": "never_reached", "said": "never_reached: why"}),
        ({"initialize": _HELLO, "tools/list": _fault("outcome_unknown", "timeout")}, "refused", {"verdict": "outcome_unknown"}),
        ({"initialize": {"error": {"code": -32603, "message": "no"}}}, "refused", {"said": "no", "verdict": None}),
        ({"initialize": _HELLO}, "not_started", {}),
        ({}, "not_started", {}),
    ],
)  # fmt: skip
def test_what_it_says(answers: dict[str, object], kind: str, more: dict[str, object]) -> None:
    environ = {**os.environ, "ANSWERS": json.dumps(answers)}
    outcome = proof.call([sys.executable, "-c", _SERVER], environ)
    assert outcome.kind == kind, outcome
    assert {name: getattr(outcome, name) for name in more} == more


def test_silence_ends_in_time() -> None:
    environ = {**os.environ, "ANSWERS": json.dumps({"initialize": _HELLO, "tools/list": "silence"})}
    begun = time.monotonic()
    outcome = proof.call([sys.executable, "-c", _SERVER], environ, seconds=1.0)
    assert (outcome.kind, "tools/list" in outcome.said) == ("silent", True)
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
