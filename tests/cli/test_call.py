"""`interlock call`: what goes where, and asking a person at a terminal."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from .conftest import SECONDS, Done, Shell, tiny

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX terminal")


def test_json_holds_the_answer_as_it_came(shell: Shell) -> None:
    shell.declare(tiny())
    done = shell.run("call", "tiny/echo", '{"a": 1}', "--json", "--trace")
    shown = done.json
    assert isinstance(shown, dict)
    assert shown["result"]["content"] == [{"type": "text", "text": '{"a": 1}'}]
    trace = shown["trace"]
    assert [stage["stage"] for stage in trace["stages"]] == [
        "discover", "describe", "select", "authorize", "execute", "validate", "observe",
    ]  # fmt: skip
    assert (trace["name"], trace["status"], trace["method"]) == ("tiny/echo", "ok", "tools/call")
    assert all(isinstance(stage["micros"], int) for stage in trace["stages"])
    # The same trace, from the records.
    again = shell.run("trace", trace["id"], "--json").json
    assert again["stages"] == trace["stages"]  # type: ignore[index]


def test_json_of_an_error(shell: Shell) -> None:
    shell.declare(tiny())
    done = shell.run("call", "tiny/refuses", "--json")
    assert (done.code, done.json) == (1, {"error": {"code": -31999, "message": "vendor says no"}})
    denied = shell.run("call", "tiny/no-such-tool", "--json")
    assert denied.code == 3
    data = denied.json["error"]["data"]  # type: ignore[index]
    assert set(data) >= {"interlock", "error", "server", "stage", "verdict", "retry"}
    assert data["interlock"] == shell.run("--version").out.strip()


def test_the_trace_goes_to_standard_error(shell: Shell) -> None:
    shell.declare(tiny())
    done = shell.run("call", "tiny/echo", "--trace")
    assert done.out == "{}\n"
    for stage in ("discover", "describe", "select", "authorize", "execute", "validate", "observe"):
        assert re.search(rf"^ *{stage} ", done.err, re.MULTILINE), stage


def test_arguments_from_standard_input(shell: Shell) -> None:
    shell.declare(tiny())
    big = json.dumps({"text": "x" * 300_000})  # more than an argument may hold
    assert shell.run("call", "tiny/echo", "-", stdin=big).code == 0
    assert shell.calls == [json.loads(big)]
    assert shell.run("call", "tiny/echo", "-", stdin="").code == 2


def test_numbers_are_passed_as_they_were_written(shell: Shell) -> None:
    shell.declare(tiny())
    shell.run("call", "tiny/echo", '{"big": 12345678901234567890, "f": 1.50, "u": "\\u00e9"}')
    assert shell.calls == [{"big": 12345678901234567890, "f": 1.5, "u": "\u00e9"}]


@pytest.mark.parametrize(
    ("tool", "out", "err"),
    [("nothing", "", ""), ("data", '{\n  "n": 1\n}\n', ""), ("logs", "logged\n", "[tiny] a word")],
)
def test_what_is_shown(shell: Shell, tool: str, out: str, err: str) -> None:
    shell.declare(tiny())
    done = shell.run("call", f"tiny/{tool}")
    assert (done.code, done.out) == (0, out)
    assert err in done.err
    assert "\x1b" not in done.err  # a log message may not colour our lines


def test_a_pipe_gets_the_text_as_it_is(shell: Shell) -> None:
    shell.declare(tiny())
    done = shell.run("call", "tiny/rude")
    assert done.out == "\x1b]0;title\x07\x1b[2Jhidden \ufffd \u2028 end\n"  # half a character cannot be written at all
    assert shell.run("call", "tiny/rude", PYTHONIOENCODING="ascii").code == 0


# -- at a terminal -------------------------------------------------------------------------------------------------------


def at_terminal(
    shell: Shell, *arguments: str, answer: str | Callable[[subprocess.Popen[bytes]], None] = "", out_too: bool = False
) -> tuple[Done, str]:
    """Run with a terminal as standard input and error, and output too where told; answer when asked."""
    import pty
    import termios

    ours, theirs = pty.openpty()
    attributes = termios.tcgetattr(theirs)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    process = subprocess.Popen(
        shell.command(*arguments),
        stdin=theirs,
        stdout=theirs if out_too else subprocess.PIPE,
        stderr=theirs,
        env={**shell.environment, "TERM": "dumb", "COLUMNS": "200"},
        cwd=shell.folder,
        start_new_session=True,
    )
    os.close(theirs)
    seen, asked, end = b"", False, time.monotonic() + SECONDS
    while time.monotonic() < end:
        ready, _, _ = select.select([ours], [], [], 0.05)
        if ready:
            try:
                data = os.read(ours, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        if not asked and b"[y/N] " in seen:
            asked = True
            if callable(answer):
                answer(process)
            else:
                os.write(ours, answer.encode())
        if not ready and process.poll() is not None:
            break
    os.close(ours)
    out = process.stdout.read().decode() if process.stdout is not None else ""
    if process.stdout is not None:
        process.stdout.close()
    code = process.wait(SECONDS)
    return Done(code, out, seen.decode(errors="replace").replace("\r\n", "\n")), "asked" if asked else "not asked"


@on_posix
@pytest.mark.parametrize(
    ("answer", "code"),
    [("y\n", 0), ("YES\n", 0), ("n\n", 3), ("\n", 3), ("yess\n", 3), ("\x04", 3)],
    ids=["y", "YES", "n", "nothing", "yess", "Ctrl-D"],
)
def test_a_person_is_asked(shell: Shell, answer: str, code: int) -> None:
    shell.declare(tiny(policy={"defaultApproval": "always"}))
    done, asked = at_terminal(shell, "call", "tiny/echo", '{"text": "\\u001b[2J"}', "--yes", answer=answer)
    assert asked == "asked"  # also with --yes: the manifest says `always`
    assert (done.code, shell.calls) == (code, [{"text": "\x1b[2J"}] if code == 0 else [])
    assert 'tiny/echo with {"text": "\\u001b[2J"}' in done.err
    assert "(`always` for the server)" in done.err
    assert "\x1b[2J" not in done.err.partition("[y/N]")[0]  # arguments cannot hide the question
    assert "[y/N]" not in done.out  # a pipe behind us gets the answer and nothing else
    if code:
        assert "a person declined the call of tiny/echo" in done.err


@on_posix
def test_a_person_is_not_asked_where_the_flag_answers(shell: Shell) -> None:
    shell.declare(tiny(policy={"defaultApproval": "prompt"}))
    done, asked = at_terminal(shell, "call", "tiny/echo", "--yes")
    assert (done.code, asked, shell.calls) == (0, "not asked", [{}])


@on_posix
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_person_who_walks_away_from_the_question(shell: Shell, how: signal.Signals) -> None:
    shell.declare(tiny(policy={"defaultApproval": "prompt"}))
    began = time.monotonic()
    done, asked = at_terminal(shell, "call", "tiny/echo", answer=lambda process: process.send_signal(how))
    assert (asked, shell.calls) == ("asked", [])
    assert done.code == (130 if how is signal.SIGINT else -signal.SIGTERM)
    assert "Traceback" not in done.err
    assert time.monotonic() - began < SECONDS / 2


@on_posix
def test_a_terminal_is_not_moved_about_by_a_server(shell: Shell) -> None:
    shell.declare(tiny())
    done, _ = at_terminal(shell, "call", "tiny/rude", out_too=True)
    assert done.code == 0
    assert "\\x1b]0;title\\x07\\x1b[2Jhidden" in done.err
    assert "\x1b" not in done.err
