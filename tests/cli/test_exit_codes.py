"""Each exit code, produced for real, with the words that go with it (docs/exit-codes.md)."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from .conftest import Entry, Shell, tiny

BUILD = r"v\d"


class _Limited(BaseHTTPRequestHandler):
    """A modern server that is fine but for its calls, which come too often or change the subject."""

    protocol_version = "HTTP/1.1"
    status, headers_sent = 429, {"retry-after": "7"}

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if message["method"] == "tools/call":
            self._send(self.status, {}, self.headers_sent)
            return
        results = {
            "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]},
        }
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **results.get(message["method"], {})}
        self._send(200, {"jsonrpc": "2.0", "id": message.get("id"), "result": result}, {})

    def _send(self, status: int, value: object, headers: dict[str, str]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {**headers, "content-type": "application/json", "content-length": str(len(body))}.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@contextlib.contextmanager
def limited(status: int, headers: dict[str, str]) -> Iterator[Entry]:
    handler = type("Handler", (_Limited,), {"status": status, "headers_sent": headers})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield _remote(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()


def _remote(port: int) -> Entry:
    return {
        "schemaVersion": "agent-routing/v1",
        "integrationId": "test.remote",
        "key": "remote",
        "transports": {"http": {"endpoint": f"http://127.0.0.1:{port}/mcp"}},
        "policy": {"defaultApproval": "auto", "toolTimeoutSeconds": 1},
    }


def test_0_it_worked(shell: Shell) -> None:
    shell.declare(tiny())
    done = shell.run("call", "tiny/echo", '{"a": 1}')
    assert (done.code, done.out, done.err) == (0, '{"a": 1}\n', "")
    assert shell.calls == [{"a": 1}]


@pytest.mark.parametrize(("tool", "words"), [("fails", "it went wrong"), ("refuses", "error -31999: vendor says no")])
def test_1_the_tool_failed(shell: Shell, tool: str, words: str) -> None:
    shell.declare(tiny())
    done = shell.run("call", f"tiny/{tool}")
    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert "interlock trace" not in done.err  # nothing of ours went wrong


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["call", "tiny"], "write it as SERVER/TOOL"),
        (["call", "/x"], "write it as SERVER/TOOL"),
        (["call", "tiny/"], "write it as SERVER/TOOL"),
        (["call", "tiny/echo", "[1]"], "must be a JSON object"),
        (["call", "tiny/echo", "{"], "Expecting property name"),
        (["call", "tiny/echo", "{'a': 1}"], "Expecting property name"),
        (["call", "tiny/echo", '{"a": NaN}'], "NaN is no JSON"),
        (["call", "tiny/echo", '{"a": -Infinity}'], "-Infinity is no JSON"),
        (["call", "tiny/echo", '{"a":' * 20_000], "nested too deeply"),
        (["call", "tiny/echo", '{"a": "\udcff"}'], "not valid UTF-8"),
        (["call"], "required: SERVER/TOOL"),
        (["tools", "--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["no-such-command"], "invalid choice: 'no-such-command'"),
        ([], "usage: interlock"),
        (["up", "--port", "99999"], "0 to 65535"),
        (["up", "--port", "-1"], "0 to 65535"),
        (["up", "--port", "http"], "invalid int value: 'http'"),
        (["up", "--host", "0.0.0.0", "--no-credential"], "loopback only"),
        (["up", "--host", "::", "--no-credential"], "loopback only"),
        (["up", "--host", "example.com", "--no-credential"], "loopback only"),
        (["credential", "../x"], "not a usable name"),
        (["credential", "nobody", "--revoke"], "nobody has no credential"),
        (["trace", "no-such-id"], "no call whose id starts with"),
        (["trace", "x", "--last", "3"], "not both"),
        (["tools", "--trusted-hash", "nonsense"], "sha256:"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_2_the_command_line_was_wrong(shell: Shell, arguments: list[str], words: str) -> None:
    shell.declare(tiny())
    done = shell.run(*arguments)
    assert done.code == 2
    assert words in done.err + done.out
    assert "Traceback" not in done.err
    assert shell.calls == []


@pytest.mark.parametrize("tool", ["tiny/echo", "tiny/nothing-like-it", "other/echo", "off/echo"])
def test_3_denied_or_unknown(shell: Shell, tool: str) -> None:
    shell.declare(tiny(capability={"tools": {"deny": ["ech*"]}}), tiny("off", enabled=False))
    done = shell.run("call", tool)
    assert (done.code, done.out) == (3, "")
    words = {"other/echo": "there are: off, tiny", "off/echo": "off is switched off"}
    assert words.get(tool, f"{tool} was not called: it is denied here, or there is no such tool") in done.err
    assert shell.calls == []


@pytest.mark.parametrize(
    ("word", "flags", "code"),
    [
        ("prompt", [], 4),
        ("approve", [], 4),
        ("writes", [], 4),
        ("always", [], 4),
        ("host", [], 4),
        (None, [], 4),
        ("prompt", ["--yes"], 0),
        ("approve", ["--yes"], 0),
        ("writes", ["--yes"], 0),
        ("host", ["--yes"], 0),
        (None, ["--yes"], 0),
        ("always", ["--yes"], 4),  # only a person at hand may answer that
        ("host", ["--host", "claude-code"], 4),  # the host that would ask is not here
        ("auto", [], 0),
    ],
)
def test_4_needs_approval(shell: Shell, word: str | None, flags: list[str], code: int) -> None:
    shell.declare(tiny(policy={"defaultApproval": word} if word else {}))
    done = shell.run("call", "tiny/echo", "{}", *flags)
    assert done.code == code, done.err
    assert shell.calls == ([{}] if code == 0 else [])
    if code == 4:
        assert "tiny/echo was not called: it needs approval" in done.err
        assert ("--yes" in done.err) is (word != "always")
        assert "interlock trace " in done.err


@pytest.mark.parametrize(
    ("transport", "words"),
    [
        ({"stdio": {"command": ["no-such-program-anywhere"]}}, "no-such-program-anywhere"),
        ({"http": {"endpoint": "http://127.0.0.1:9/mcp"}}, "nothing listens at 127.0.0.1:9"),
        ({"http": {"endpointEnv": "NOT_SET_ANYWHERE"}}, "NOT_SET_ANYWHERE"),
    ],
)
def test_5_never_reached(shell: Shell, transport: Entry, words: str) -> None:
    shell.declare(tiny(transports=transport))
    done = shell.run("call", "tiny/echo")
    assert (done.code, done.out) == (5, "")
    assert words in done.err
    assert "interlock trace " in done.err


def test_6_wait(shell: Shell) -> None:
    with limited(429, {"retry-after": "7"}) as entry:
        shell.declare(entry)
        done = shell.run("call", "remote/act", "--json")
        assert done.code == 6
        meta = done.json["result"]["_meta"]  # type: ignore[index]
        assert (meta["verdict"], meta["wait_seconds"], meta["server"]) == ("wait", 7, "remote")
        assert "7 s" in shell.run("call", "remote/act").err


@pytest.mark.parametrize("how", ["dies", "hangs", "500"])
def test_7_outcome_unknown(shell: Shell, how: str) -> None:
    with limited(500, {}) as entry:
        if how == "500":
            shell.declare(entry)
            done = shell.run("call", "remote/act")
        else:
            shell.declare(tiny(policy={"defaultApproval": "auto", "toolTimeoutSeconds": 1}))
            done = shell.run("call", f"tiny/{how}")
    assert (done.code, done.out) == (7, "")
    assert "outcome_unknown" in done.err
    assert "may have taken effect: read the target again before a retry" in done.err


def test_8_configuration(shell: Shell) -> None:
    shell.declare({"schemaVersion": "agent-routing/v1", "integrationId": "x", "trnsports": {}})
    for command in (["check"], ["tools"], ["call", "x/y"], ["up", "--port", "0"]):
        done = shell.run(*command)
        assert done.code == 8, command
        assert "trnsports" in done.err + done.out
        assert "transports" in done.err + done.out  # the nearest known name


def test_8_not_trusted(shell: Shell) -> None:
    """A manifest of a project starts nothing until a person has trusted it."""
    file = shell.declare(tiny(), file=shell.folder / "interlock.yaml")
    for arguments in ([], ["--manifest", str(file)]):
        done = shell.run("call", "tiny/echo", *arguments)
        assert (done.code, shell.calls) == (8, [])
        assert "tiny/echo was not called: tiny may not run" in done.err
        assert "interlock trust" in done.err
    given = shell.run("trust", "--hash", str(file)).out.strip()
    assert shell.run("call", "tiny/echo", "--trusted-hash", given).code == 0
    assert shell.run("call", "tiny/echo", "--trusted-hash", "sha256:" + "0" * 64).code == 8


def test_a_person_who_stops_it(shell: Shell) -> None:
    import signal

    shell.declare(tiny())
    running = shell.start("call", "tiny/slow")
    running2 = shell.start("call", "tiny/hangs")
    assert running.process.wait(30) == 0
    assert running2.end(signal.SIGINT) == 130
    assert "Traceback" not in running2.err


def test_a_home_that_cannot_be_used(shell: Shell) -> None:
    (shell.folder / "file").write_text("x")
    done = shell.run("up", "--port", "0", "--home", str(shell.folder / "file" / "home"))
    assert done.code == 8
    assert "cannot hold Interlock's state" in done.err


def test_a_port_that_is_taken(shell: Shell) -> None:
    shell.declare(tiny())
    first = shell.start("up", "--port", "0", "--no-credential", "--no-socket")
    done = shell.run("up", "--port", str(first.port), "--no-credential", "--no-socket")
    assert done.code == 8
    assert f"cannot listen on 127.0.0.1:{first.port}" in done.err
    assert first.end() == 0
