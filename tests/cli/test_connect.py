"""`interlock connect` as a host uses it: alone, beside a running `interlock up`, and when that one dies."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .conftest import SECONDS, Shell, tiny

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and signals")
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "h", "version": "1"},
}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
Message = dict[str, object]


@pytest.fixture
def shell(shell: Shell) -> Iterator[Shell]:
    """With a home whose path is short enough for a socket: those of tests are long."""
    with tempfile.TemporaryDirectory(prefix="il-") as folder:
        shell.home = Path(folder)
        shell.environment["INTERLOCK_HOME"] = folder
        yield shell
        shell.close()


def line(id: object, method: str, params: object = None) -> bytes:
    message: Message = {"jsonrpc": "2.0", "method": method}
    if id is not None:
        message["id"] = id
    if params is not None:
        message["params"] = params
    return json.dumps(message).encode() + b"\n"


@dataclass
class Host:
    """A host and the `connect` process that it started."""

    process: subprocess.Popen[bytes]
    seen: list[Message] = field(default_factory=list)
    _buffer: bytes = b""

    def send(self, id: object, method: str, params: object = None) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line(id, method, params))
        self.process.stdin.flush()

    def next(self, seconds: float = SECONDS) -> Message:
        """The next message. Raises EOFError where the process ended, TimeoutError where it says nothing."""
        assert self.process.stdout is not None
        end = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            if not select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"no message; seen so far: {self.seen}")
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            if not data:
                raise EOFError
            self._buffer += data
        one, _, self._buffer = self._buffer.partition(b"\n")
        message: Message = json.loads(one)
        self.seen.append(message)
        return message

    def answer(self, id: object) -> Message:
        """The answer to a request; what else comes is kept in `seen`."""
        while True:
            message = self.next()
            if message.get("id") == id and "method" not in message:
                return message

    def ask(self, id: object, method: str, params: object = None) -> Message:
        self.send(id, method, params)
        return self.answer(id)

    def call(self, id: object, tool: str, arguments: object = None) -> Message:
        return self.ask(id, "tools/call", {"name": f"tiny__{tool}", "arguments": arguments or {}})


def host(shell: Shell, *arguments: str, folder: Path | None = None) -> Host:
    process = subprocess.Popen(
        shell.command("connect", *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=open(shell.folder / "connect.err", "ab"),  # noqa: SIM115
        env=shell.environment,
        cwd=folder or shell.folder,
        bufsize=0,
    )
    shell._running.append(process)
    return Host(process)


def said(shell: Shell) -> str:
    return (shell.folder / "connect.err").read_text()


def text_of(message: Message) -> str:
    return message["result"]["content"][0]["text"]  # type: ignore[index,no-any-return]


# -- alone ---------------------------------------------------------------------------------------------------------------


def test_everything_in_one_pipe_is_answered(shell: Shell) -> None:
    """As in `printf ... | interlock connect`: the input ends before any server has started."""
    shell.declare(tiny())
    sent = b"".join(
        [
            line(1, "initialize", INITIALIZE),
            line(None, "notifications/initialized"),
            line(2, "tools/list"),
            line("three", "tools/call", {"name": "tiny__echo", "arguments": {"a": 1}}),
            line(4, "server/discover", {"_meta": META}),
            line(5, "tools/call", {"name": "tiny__echo", "arguments": {"b": 2}, "_meta": META}),
            line(6, "ping"),
            b"nonsense\n",
            line(7, "no/such/method"),
        ]
    )
    done = shell.run("connect", stdin=sent)
    assert done.code == 0
    messages = [json.loads(each) for each in done.out.splitlines()]
    answers = {message["id"]: message for message in messages if "id" in message and "method" not in message}
    assert set(answers) == {1, 2, "three", 4, 5, 6, 7}
    assert answers[1]["result"]["serverInfo"]["name"] == "interlock"
    assert [tool["name"] for tool in answers[2]["result"]["tools"]][:2] == ["tiny__echo", "tiny__fails"]
    assert text_of(answers["three"]) == '{"a": 1}'
    assert answers[4]["result"]["supportedVersions"][0] == "2026-07-28"
    assert answers[5]["result"]["resultType"] == "complete"
    assert [message["error"]["code"] for message in messages if "id" not in message and "error" in message] == [-32700]
    assert sorted(shell.calls, key=str) == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_a_host_is_greeted_whatever_the_servers_do(shell: Shell, method: str) -> None:
    hanging = {"stdio": {"command": [sys.executable, "-c", "import time; time.sleep(600)"]}}
    shell.declare(
        tiny(),
        tiny("hanging", transports=hanging),
        tiny("dead", transports={"stdio": {"command": ["no-such-program"]}}),
    )
    found = host(shell)
    params = INITIALIZE if method == "initialize" else {"_meta": META}
    began = time.monotonic()
    assert "result" in found.ask(1, method, params)
    greeted = time.monotonic() - began
    if method == "initialize":
        found.send(None, "notifications/initialized")
    assert text_of(found.call(2, "echo", {"a": 1})) == '{"a": 1}'
    assert time.monotonic() - began < 20
    assert greeted < 10  # and not after the hanging server's half a minute
    found.process.stdin.close()  # type: ignore[union-attr]
    assert found.process.wait(SECONDS) == 0


def test_broken_manifests_leave_the_others_served(shell: Shell) -> None:
    shell.declare(tiny(), {"schemaVersion": "agent-routing/v1", "integrationId": "x", "nonsense": 1})
    done = shell.run("connect", stdin=line(1, "ping") + line(2, "tools/call", {"name": "tiny__echo"}))
    assert [json.loads(each)["id"] for each in done.out.splitlines()] == [1, 2]
    assert "nonsense" in done.err


@on_posix
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_host_that_is_done_does_not_wait(shell: Shell, how: signal.Signals) -> None:
    """Hosts close our input, wait a moment, and then send a signal: also while a call hangs."""
    shell.declare(tiny())
    found = host(shell, "--alone")
    found.ask(1, "initialize", INITIALIZE)
    found.send(2, "tools/call", {"name": "tiny__hangs"})
    assert "result" in found.ask(3, "ping")
    found.process.stdin.close()  # type: ignore[union-attr]
    with pytest.raises(subprocess.TimeoutExpired):
        found.process.wait(0.5)  # what is open may still be answered
    began = time.monotonic()
    found.process.send_signal(how)
    assert found.process.wait(SECONDS) == 0
    assert time.monotonic() - began < 8


@on_posix
@pytest.mark.parametrize("source", ["file", "/dev/null"])
@pytest.mark.parametrize("target", ["file", "/dev/null"])
def test_input_and_output_may_be_files(shell: Shell, source: str, target: str, tmp_path: Path) -> None:
    shell.declare(tiny())
    given, taken = tmp_path / "in", tmp_path / "out"
    given.write_bytes(line(1, "initialize", INITIALIZE) + line(2, "tools/call", {"name": "tiny__echo"}))
    with (
        open(given if source == "file" else source, "rb") as stdin,
        open(taken if target == "file" else target, "wb") as stdout,
    ):
        done = subprocess.run(
            shell.command("connect"),
            stdin=stdin,
            stdout=stdout,
            env=shell.environment,
            cwd=shell.folder,
            timeout=SECONDS,
        )
    assert done.returncode == 0
    assert shell.calls == ([{}] if source == "file" else [])
    if (source, target) == ("file", "file"):
        assert [json.loads(each)["id"] for each in taken.read_text().splitlines()] == [1, 2]


@on_posix
def test_a_host_that_does_not_read_loses_notifications_and_no_answer(shell: Shell) -> None:
    shell.declare(tiny())
    found = host(shell, "--alone")
    found.ask(1, "initialize", INITIALIZE)
    big = "x" * 500_000
    for number in range(20):
        found.send(f"n{number}", "tools/call", {"name": "tiny__echo", "arguments": {"text": big}})
    time.sleep(0.5)
    ids = {found.next()["id"] for _ in range(20)}
    assert ids == {f"n{number}" for number in range(20)}


# -- beside a running `up` -----------------------------------------------------------------------------------------------


@on_posix
def test_connect_joins_a_running_up(shell: Shell) -> None:
    shell.declare(tiny())
    up = shell.start("up", "--port", "0", "--no-credential")
    assert up.port
    sockets = list((shell.home / "run").iterdir())
    assert [stat.S_ISSOCK(each.stat().st_mode) for each in sockets] == [True]
    assert stat.S_IMODE(sockets[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(sockets[0].parent.stat().st_mode) == 0o700
    one, two = host(shell, "--host", "claude-code"), host(shell)
    for each in (one, two):
        each.ask(1, "initialize", INITIALIZE)
        each.send(None, "notifications/initialized")
        assert text_of(each.call(2, "echo", {"a": 1})) == '{"a": 1}'
    end = time.monotonic() + SECONDS
    callers: set[str] = set()
    while callers != {"host:claude-code", "local"} and time.monotonic() < end:  # records follow the answers
        traces = shell.run("trace", "--json").json
        callers = {trace["principal"] for trace in traces if trace["name"] == "tiny/echo"}  # type: ignore[attr-defined]
    assert callers == {"host:claude-code", "local"}
    # The servers are the other process's: nothing was started here.
    children = subprocess.run(["pgrep", "-P", str(one.process.pid)], capture_output=True, text=True, check=False)
    assert children.stdout == ""
    one.process.stdin.close()  # type: ignore[union-attr]
    assert one.process.wait(SECONDS) == 0
    assert text_of(two.call(3, "echo", {"b": 1})) == '{"b": 1}'
    assert up.end() == 0
    assert not sockets[0].exists()


@on_posix
@pytest.mark.parametrize("difference", ["home", "manifest", "--alone", "trust", "mode", "stranger"])
def test_connect_joins_its_own_kind_only(shell: Shell, difference: str, tmp_path: Path) -> None:
    manifest = shell.declare(tiny(), file=tmp_path / "m.yaml")
    given = shell.run("trust", "--hash", str(manifest)).out.strip()
    arguments = ["--manifest", str(manifest), "--trusted-hash", given]
    up = shell.start("up", "--port", "0", "--no-credential", *arguments)
    assert up.port
    path = next((shell.home / "run").iterdir())
    if difference == "home":
        other = tmp_path / "other"
        other.mkdir()
        arguments += ["--home", str(other)]
    elif difference == "manifest":
        shell.declare(tiny(), tiny("second"), file=manifest)
        arguments[3] = shell.run("trust", "--hash", str(manifest)).out.strip()
    elif difference == "--alone":
        arguments.append("--alone")
    elif difference == "trust":
        arguments = arguments[:2]  # not trusted here: what runs elsewhere is not used through the back door
    elif difference == "mode":
        path.parent.chmod(0o777)  # somebody else could have put the socket there
    else:
        path.unlink()
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        server.listen()
        path.chmod(0o600)
        server.settimeout(SECONDS)
    found = host(shell, *arguments)
    if difference == "stranger":
        peer, _ = server.accept()
        peer.recv(65536)
        peer.send(b'{"ok":false}\n')
        peer.close()
    found.ask(1, "initialize", INITIALIZE)
    answer = found.call(2, "echo", {"a": 1})
    if difference == "trust":
        assert "error" in answer
    else:
        assert text_of(answer) == '{"a": 1}'
        children = subprocess.run(["pgrep", "-P", str(found.process.pid)], capture_output=True, text=True, check=False)
        assert children.stdout != ""  # it serves by itself


@on_posix
def test_a_home_with_a_long_path_has_its_socket_elsewhere(shell: Shell, tmp_path: Path) -> None:
    """Paths of Unix sockets end at about a hundred bytes."""
    home = tmp_path / ("x" * 100)
    runtime = shell.home / "runtime"
    for folder in (home, runtime):
        folder.mkdir(mode=0o700)
    shell.home = home
    shell.environment |= {"INTERLOCK_HOME": str(home), "XDG_RUNTIME_DIR": str(runtime)}
    shell.declare(tiny())
    up = shell.start("up", "--port", "0", "--no-credential")
    assert up.port
    assert [stat.S_IMODE(each.stat().st_mode) for each in runtime.iterdir()] == [0o600]
    found = host(shell)
    found.ask(1, "initialize", INITIALIZE)
    assert text_of(found.call(2, "echo")) == "{}"
    children = subprocess.run(["pgrep", "-P", str(found.process.pid)], capture_output=True, text=True, check=False)
    assert children.stdout == ""
    up.end(signal.SIGKILL)
    assert text_of(found.call(3, "echo")) == "{}"


@on_posix
def test_a_socket_left_behind_is_no_hindrance(shell: Shell) -> None:
    shell.declare(tiny())
    for _ in range(2):
        up = shell.start("up", "--port", "0", "--no-credential")
        assert up.port
        found = host(shell)
        found.ask(1, "initialize", INITIALIZE)
        assert text_of(found.call(2, "echo")) == "{}"
        assert "serves the host from here" not in said(shell)
        found.process.kill()
        up.end(signal.SIGKILL)
        assert list((shell.home / "run").iterdir())  # nobody tidied up
    found = host(shell)
    found.ask(1, "initialize", INITIALIZE)
    assert text_of(found.call(2, "echo")) == "{}"


@on_posix
def test_when_up_is_killed_the_host_is_served_on(shell: Shell) -> None:
    """Calls that may have run are answered with what is known; what only reads is asked again; nothing hangs."""
    shell.declare(tiny())
    up = shell.start("up", "--port", "0", "--no-credential")
    assert up.port
    found = host(shell)
    found.ask(1, "initialize", INITIALIZE)
    found.send(None, "notifications/initialized")
    found.ask("level", "logging/setLevel", {"level": "error"})
    assert text_of(found.call(2, "echo", {"n": 1})) == '{"n": 1}'
    found.send("open", "tools/call", {"name": "tiny__hangs"})
    found.send("modern", "tools/call", {"name": "tiny__hangs", "_meta": META})
    found.send("given up", "tools/call", {"name": "tiny__hangs"})
    found.send(None, "notifications/cancelled", {"requestId": "given up"})
    assert "result" in found.ask("sync", "ping")
    up.end(signal.SIGKILL)
    answers = {}
    while set(answers) < {"open", "modern"}:
        message = found.next()
        answers[message.get("id")] = message
    for id in ("open", "modern"):
        result = answers[id]["result"]
        assert result["isError"] is True  # type: ignore[index]
        assert result["_meta"]["verdict"] == "outcome_unknown"  # type: ignore[index]
        assert "interlock up" in result["content"][0]["text"]  # type: ignore[index]
    assert answers["modern"]["result"]["resultType"] == "complete"  # type: ignore[index]
    assert "resultType" not in answers["open"]["result"]  # type: ignore[operator]
    # The same session goes on, without another handshake.
    assert text_of(found.call(3, "echo", {"n": 2})) == '{"n": 2}'
    names = [tool["name"] for tool in found.ask(4, "tools/list")["result"]["tools"]]  # type: ignore[index]
    assert "tiny__echo" in names
    found.call(5, "logs")
    ids = [message.get("id") for message in found.seen]
    assert "given up" not in ids
    assert not [id for id in ids if str(id).startswith("interlock")]  # what was said anew was not the host's
    assert ids.count("level") == 1
    assert not [
        message for message in found.seen if message.get("method") == "notifications/message"
    ]  # the level holds
    assert "serves the host from here on" in said(shell)
    assert shell.calls == [{"n": 1}, {"n": 2}]
    found.process.stdin.close()  # type: ignore[union-attr]
    assert found.process.wait(SECONDS) == 0


@on_posix
def test_when_up_is_told_to_stop_calls_are_finished_first(shell: Shell) -> None:
    shell.declare(tiny())
    up = shell.start("up", "--port", "0", "--no-credential")
    assert up.port
    found = host(shell)
    found.ask(1, "initialize", INITIALIZE)
    found.call(2, "data")
    found.send(3, "tools/call", {"name": "tiny__slow"})
    assert "result" in found.ask("sync", "ping")
    up.process.send_signal(signal.SIGTERM)
    answer = found.answer(3)
    assert text_of(answer) == "slow"
    assert up.process.wait(SECONDS) == 0
    assert text_of(found.call(4, "echo", {"after": 1})) == '{"after": 1}'


@on_posix
def test_when_up_dies_and_the_host_is_done_connect_ends(shell: Shell) -> None:
    shell.declare(tiny())
    up = shell.start("up", "--port", "0", "--no-credential")
    assert up.port
    found = host(shell)
    found.ask(1, "initialize", INITIALIZE)
    found.send("open", "tools/call", {"name": "tiny__hangs"})
    assert "result" in found.ask("sync", "ping")
    found.process.stdin.close()  # type: ignore[union-attr]
    time.sleep(0.3)
    up.end(signal.SIGKILL)
    answer = found.answer("open")
    assert answer["result"]["_meta"]["verdict"] == "outcome_unknown"  # type: ignore[index]
    with pytest.raises(EOFError):
        found.next()
    assert found.process.wait(SECONDS) == 0


@on_posix
def test_a_connect_that_is_killed_leaves_nothing_running(shell: Shell) -> None:
    shell.declare(tiny())
    found = host(shell, "--alone")
    found.ask(1, "initialize", INITIALIZE)
    found.call(2, "echo")
    children = subprocess.run(["pgrep", "-P", str(found.process.pid)], capture_output=True, text=True, check=False)
    pids = [int(pid) for pid in children.stdout.split()]
    assert pids
    found.process.kill()
    end = time.monotonic() + 10
    while any(os.path.exists(f"/proc/{pid}") for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
