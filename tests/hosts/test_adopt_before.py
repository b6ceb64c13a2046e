"""Whether a server answered before it was adopted: its old entry started once, or its address asked once."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.hosts.adapters.fake import machine, put
from tests.hosts.test_importing import CODEX, CURSOR, servers

from interlock.cli.adopt_before import worked
from interlock.hosts import child_environment, reading, registry
from interlock.hosts.machine import Machine

SERVER = str(Path(__file__).with_name("small_server.py"))


def asked(on: Machine, host: str) -> bool | None:
    adapter = registry.find(host)
    assert adapter is not None
    (declaration,) = reading.read(adapter, on).declarations
    return worked(declaration, adapter, Machine(platform="linux", home=on.home, folder=".", environ=on.environ))


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        (sys.executable, [SERVER, "a"], True),
        (sys.executable, [SERVER], False),  # it lists no tool
        ("/no/such/program", [], False),
        (sys.executable, ["-c", "raise SystemExit(1)"], False),
    ],
    ids=["answers", "no tool", "no program", "ends"],
)
def test_a_program(tmp_path: Path, command: str, args: list[str], expected: bool) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"s": {"command": command, "args": args}}))
    assert asked(on, "cursor") is expected


class _Web(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        code = int(self.path.removeprefix("/"))
        if code == 200 and self.headers["X-Key"] != "k":
            code = 400
        self.send_response(code)
        self.send_header("Location", "/200")
        self.end_headers()
        if code == 200:
            self.wfile.write(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Web)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("code", "expected"), [(200, True), (401, None), (307, None), (404, False), (500, False)])
def test_an_address(tmp_path: Path, address: str, code: int, expected: bool | None) -> None:
    on = machine(tmp_path, environ={"KEY": "k"})
    put(on, CURSOR, servers({"s": {"url": f"{address}/{code}", "headers": {"X-Key": "${env:KEY}"}}}))
    assert asked(on, "cursor") is expected


def test_an_address_where_nobody_is(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"s": {"url": "http://127.0.0.1:1/mcp"}}))
    assert asked(on, "cursor") is False


@pytest.mark.parametrize(
    ("host", "path", "content", "expected"),
    [
        ("codex", CODEX, '[mcp_servers.s]\ncommand = "c"\nenv = { A = "${B}", C = "x" }\n', {"A": "${B}", "C": "x"}),
        ("cursor", CURSOR, servers({"s": {"command": "c", "env": {"A": "${env:B}", "C": "${B}"}}}), {"A": "b", "C": "${B}"}),
    ],
)  # fmt: skip
def test_a_server_gets_what_its_host_would_give_it(
    tmp_path: Path, host: str, path: str, content: object, expected: dict[str, str]
) -> None:
    on = machine(tmp_path)
    put(on, path, content)
    adapter = registry.find(host)
    assert adapter is not None
    (declaration,) = reading.read(adapter, on).declarations
    assert declaration.entry is not None
    made = child_environment.of_entry(adapter, declaration.entry, {"B": "b"})
    assert {name: made[name] for name in expected} == expected
