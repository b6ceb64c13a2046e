"""What `interlock call` says where it did not call: what is wrong, what to write, and where it is explained."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request

import pytest

from .conftest import SECONDS, Shell, tiny


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tiny/echo", "{a: 1}"], "the arguments are not JSON (Expecting property name"),
        (["tiny/echo", "a=1"], 'write them in single quotes, as in \'{"query": "x"}\''),
        (["tiny/echo", "[1]"], "the arguments must be a JSON object"),
        (["echo"], "'echo' is not a canonical name: write it as SERVER/TOOL; `interlock tools` lists them"),
        (["tiny__echo"], "`interlock tools` lists them"),
    ],
)
def test_a_wrong_command_line_says_what_to_write(shell: Shell, words: list[str], said: str) -> None:
    shell.declare(tiny())
    done = shell.run("call", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert shell.calls == []


def test_a_mistyped_tool_is_answered_with_the_nearest_one(shell: Shell) -> None:
    shell.declare(tiny())
    done = shell.run("call", "tiny/ecoh")
    assert done.code == 3
    assert "tiny/ecoh was not called" in done.err
    assert "Did you mean tiny/echo? `interlock tools`" in done.err
    assert "never_reached, see docs/errors.md#unknown-name; the route it took: interlock trace " in done.err


def test_a_denied_tool_is_never_the_one_that_was_meant(shell: Shell) -> None:
    shell.declare(tiny(capability={"tools": {"deny": ["echo"]}}))
    for tool in ("tiny/echo", "tiny/ecoh"):
        done = shell.run("call", tool)
        assert done.code == 3
        assert "Did you mean" not in done.err


def test_without_a_server_the_way_to_a_first_one_is_named(shell: Shell) -> None:
    for words in (["tools"], ["call", "tiny/echo"]):
        assert "`interlock check` shows a first" in shell.run(*words).err


def test_a_reason_names_its_server_once(shell: Shell) -> None:
    endpoint = {"http": {"endpointEnv": "NO_SUCH_URL"}}
    shell.declare({**tiny("far"), "transports": endpoint})
    lines = shell.run("tools").err.splitlines()
    assert lines == [
        "interlock: far: the environment variable NO_SUCH_URL, which holds the server's URL, is not set. The server did not get "
        "the request. Set it in the environment of Interlock (or of the AI host that starts Interlock) and try again."
    ]


def test_an_address_that_is_taken_or_not_ours_says_which(shell: Shell) -> None:
    shell.declare(tiny())
    port = shell.start("up", "--port", "0", "--no-credential", "--no-socket").port
    taken = shell.run("up", "--port", str(port), "--no-socket")
    assert (taken.code, taken.out) == (8, "")
    assert (
        f"cannot listen on 127.0.0.1:{port}: Address already in use. Stop the program that listens there" in taken.err
    )
    foreign = shell.run("up", "--host", "192.0.2.1", "--port", "0", "--no-socket")
    assert foreign.code == 8
    assert "Give one of this machine's own addresses as --host." in foreign.err


def test_the_trace_tells_its_owner_what_the_caller_does_not_learn(shell: Shell) -> None:
    file = shell.declare(tiny(), file=shell.folder / "interlock.yaml")
    port = shell.start("up", "--port", "0", "--no-credential", "--no-socket").port
    refused = _call(port, "tiny__echo")
    assert refused["error"]["message"] == "Unknown tool: tiny__echo"
    assert "trust" not in json.dumps(refused)
    end = time.monotonic() + SECONDS
    while not (recorded := shell.run("trace", "--json").json):
        assert time.monotonic() < end
    discover = recorded[0]["stages"][0]
    assert (discover["stage"], discover["decision"]) == ("discover", "blocked")
    assert discover["reason"] == f"tiny: its manifest is not trusted yet: look at it with `interlock trust {file}`"
    assert discover["rule"].startswith(f"{file}:")


def _call(port: int, tool: str) -> dict[str, dict[str, object]]:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {}, "_meta": meta},
    }
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", json.dumps(message).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)
