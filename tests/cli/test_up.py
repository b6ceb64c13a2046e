"""`interlock up` as a process: what it listens on, whom it lets in, and how it stops."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from .conftest import SECONDS, Background, Shell, tiny

on_posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
Answer = tuple[int, dict[str, str], bytes]
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


class Client:
    """A modern client on one keep-alive connection."""

    def __init__(self, up: Background, token: str = "", address: str = "127.0.0.1", host: str = "") -> None:
        self.connection = http.client.HTTPConnection(address, up.port, timeout=SECONDS)
        self.token = token
        self.host = host

    def ask(self, method: str, params: dict[str, object] | None = None) -> Answer:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": META}})
        headers = {"content-type": "application/json", "mcp-protocol-version": "2026-07-28", "mcp-method": method}
        if params and "name" in params:
            headers["mcp-name"] = str(params["name"])
        return self.send("POST", "/mcp", body, headers)

    def send(self, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None) -> Answer:
        headers = dict(headers or {})
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        if self.host:
            headers["host"] = self.host
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def call(self, tool: str, **arguments: object) -> dict[str, object]:
        status, _, body = self.ask("tools/call", {"name": f"tiny__{tool}", "arguments": arguments})
        assert status == 200, body
        found = json.loads(body)
        assert isinstance(found, dict)
        return found


def up(shell: Shell, *arguments: str) -> Background:
    running = shell.start("up", "--port", "0", "--no-socket", *arguments)
    assert running.port
    return running


def test_a_host_is_let_in_by_its_credential(shell: Shell) -> None:
    shell.declare(tiny())
    running = up(shell)
    running.until("no host has a credential yet")
    assert Client(running).ask("tools/list")[0] == 401
    token = shell.run("credential", "codex").out.strip()  # made while it runs
    client = Client(running, token)
    assert client.call("echo", a=1)["result"]
    status, headers, _ = Client(running, token[:-1] + "x").ask("tools/list")
    assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="interlock"')
    assert Client(running).send("GET", "/healthz")[::2] == (200, b"ok\n")
    assert Client(running).send("GET", "/readyz")[::2] == (200, b"ready\n")
    assert shell.run("credential", "codex", "--revoke").code == 0
    time.sleep(0.3)
    assert client.ask("tools/list")[0] == 401
    assert token not in running.err
    assert running.end() == 0


def test_readiness_follows_the_required_servers(shell: Shell) -> None:
    missing = {"stdio": {"command": ["no-such-program"]}}
    shell.declare(tiny(), tiny("needed", transports=missing, required=True), tiny("optional", transports=missing))
    running = up(shell, "--no-credential")
    client = Client(running)
    client.ask("tools/list")
    status, _, body = client.send("GET", "/readyz")
    assert (status, body) == (503, b"required servers are down: needed\n")
    assert client.send("GET", "/healthz")[0] == 200
    assert client.call("echo")["result"]  # the others are served all the same
    assert running.end() == 0


@pytest.mark.parametrize(
    ("arguments", "address", "host", "status"),
    [
        (["--host", "::1"], "::1", "[::1]", 200),
        (["--host", "::1"], "::1", "localhost", 200),
        (["--host", "localhost"], "localhost", "localhost", 200),
        (["--allow-name", "Gateway.Example."], "127.0.0.1", "gateway.example:443", 200),
        (["--allow-name", "gateway.example"], "127.0.0.1", "other.example", 421),
        ([], "127.0.0.1", "gateway.example", 421),
        (["--host", "127.0.0.2"], "127.0.0.2", "127.0.0.2", 200),
        (["--host", "127.0.0.2"], "127.0.0.2", "127.0.0.3", 421),
    ],
)
def test_addresses_and_names(shell: Shell, arguments: list[str], address: str, host: str, status: int) -> None:
    if address == "::1" and not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    running = up(shell, "--no-credential", *arguments)
    assert Client(running, address=address, host=host).ask("tools/list")[0] == status
    assert running.end() == 0


@on_posix
def test_what_is_open_is_finished_and_what_is_new_is_told_to_wait(shell: Shell) -> None:
    shell.declare(tiny(), tiny("other"))
    running = up(shell, "--no-credential")
    first, second = Client(running), Client(running)
    assert second.ask("tools/list")[0] == 200  # connected before the end is near
    answers: list[dict[str, object]] = []
    calling = threading.Thread(target=lambda: answers.append(first.call("slow")))
    calling.start()
    time.sleep(0.15)
    running.process.send_signal(signal.SIGTERM)
    running.until("stopping")
    status, _, body = second.ask("tools/call", {"name": "tiny__echo", "arguments": {}})
    error = json.loads(body)["error"]
    assert status == 200
    assert (error["data"]["verdict"], error["data"]["error"]) == ("wait", "draining")
    assert error["data"]["wait_seconds"] > 0
    assert second.send("GET", "/readyz")[::2] == (503, b"draining\n")
    calling.join(SECONDS)
    assert answers[0]["result"]["content"][0]["text"] == "slow"  # type: ignore[index]
    assert running.process.wait(SECONDS) == 0
    assert shell.calls == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", running.port), 1).close()


@on_posix
def test_a_second_signal_ends_it_at_once(shell: Shell) -> None:
    """The open call is not left without a word: what is known of it is said."""
    shell.declare(tiny())
    running = up(shell, "--no-credential")
    client = Client(running)
    client.ask("tools/list")
    answers: list[Answer] = []
    params = {"name": "tiny__hangs", "arguments": {}}
    calling = threading.Thread(target=lambda: answers.append(client.ask("tools/call", params)))
    calling.start()
    time.sleep(0.3)
    running.process.send_signal(signal.SIGINT)
    running.until("stopping")
    began = time.monotonic()
    assert running.end(signal.SIGINT) == 0
    assert time.monotonic() - began < 8  # and not ten seconds of patience
    calling.join(SECONDS)
    answer = json.loads(answers[0][2])
    facts = answer["error"]["data"] if "error" in answer else answer["result"]["_meta"]
    assert facts["verdict"] == "outcome_unknown"


@on_posix
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_server_outlives_it(shell: Shell, how: signal.Signals) -> None:
    shell.declare(tiny(start="always"), tiny("second"))
    running = up(shell, "--no-credential")
    Client(running).call("echo")
    listed = subprocess.run(["pgrep", "-P", str(running.process.pid)], capture_output=True, text=True, check=False)
    pids = listed.stdout.split()
    assert len(pids) >= 2
    running.end(how)
    end = time.monotonic() + 10
    while time.monotonic() < end and any(os.path.exists(f"/proc/{pid}") for pid in pids):
        time.sleep(0.05)
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
