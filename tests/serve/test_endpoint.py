"""Who may reach the endpoint, and what it says to requests that are wrong before they mean anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .desk import LEGACY, MODERN, Desk, running
from .wire import Answer, request

PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
LIST = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        },
    }
).encode()
HEADERS = {"content-type": "application/json", "mcp-protocol-version": MODERN, "mcp-method": "tools/list"}


async def listed(desk: Desk, **more: str) -> Answer:
    return await desk.send(request("POST", "/mcp", LIST, HEADERS | desk.head(), **more))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:7420", 200),
        ("LOCALHOST:1", 200),
        ("localhost.", 200),  # the same name, written in full
        ("localhost.:80", 200),
        ("127.0.0.1", 200),
        ("127.0.0.1:65535", 200),
        ("[::1]", 200),
        ("[::1]:7420", 200),
        ("gateway.example:443", 200),  # given by --allow-name
        ("Gateway.Example", 200),
        ("localhost:", 200),  # an empty port is allowed (RFC 9110, 7.2)
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("evil.example:localhost", 421),
        ("localhost@evil.example", 421),
        ("evil.example@localhost", 421),
        ("localhost:80@evil.example", 421),
        ("localhost:80:80", 421),
        ("localhost/evil", 421),
        ("localhost, evil.example", 421),
        ("localhost:1, evil.example", 421),
        ("localhost..", 421),
        ("[::1]evil.example", 421),
        ("[::1", 421),
        ("::1", 421),
        ("[::2]", 421),
        ("127.0.0.2", 421),
        ("2130706433", 421),  # 127.0.0.1 as a number
        ("0x7f.1", 421),
        ("127.1", 421),
        ("loc\u00e4lhost", 421),
        (" ", 421),
    ],
)
async def test_host(tmp_path: Path, host: str, status: int) -> None:
    async with running(tmp_path, own_names=frozenset({"gateway.example"})) as desk:
        assert (await listed(desk, host=host)).status == status
        # The same for what needs no credential.
        assert (await desk.send(request("GET", "/healthz", host=host))).status == status


async def test_a_known_host_does_not_open_the_door_for_the_next(desk: Desk) -> None:
    for host, status in (("localhost", 200), ("evil.example", 421), ("localhost", 200), ("evil.example", 421)):
        assert (await listed(desk, host=host)).status == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost", 200),
        ("http://localhost:3000", 200),
        ("https://LOCALHOST", 200),
        ("http://127.0.0.1:7420", 200),
        ("http://[::1]:7420", 200),
        ("http://localhost.", 200),
        ("null", 403),  # a sandboxed frame, a file, a redirect across sites
        ("", 200),  # none: no browser
        ("http://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("http://evil.example#localhost", 403),
        ("http://localhost@evil.example", 403),
        ("http://localhost:80@evil.example", 403),
        ("file://localhost", 403),
        ("chrome-extension://localhost", 403),
        ("localhost", 403),
        ("//localhost", 403),
        ("http://", 403),
        ("http://localhost http://evil.example", 403),
        ("http://localhost, http://evil.example", 403),
    ],
)
async def test_origin(desk: Desk, origin: str, status: int) -> None:
    answer = await listed(desk, origin=origin)
    assert answer.status == status
    if status == 403:
        assert answer.json == {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Origin not allowed"}}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("text/plain; application/json", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("", 415),
    ],
)
async def test_a_page_cannot_send_what_needs_no_preflight(open_desk: Desk, kind: str, status: int) -> None:
    """A page of another local server has our name in its Origin; a browser asks us before it sends JSON from there."""
    assert (await listed(open_desk, origin="http://localhost:3000", content_type=kind)).status == status
    assert (await listed(open_desk, content_type=kind)).status == 200  # no browser, no such check


async def test_a_preflight_is_not_answered_kindly(open_desk: Desk) -> None:
    answer = await open_desk.send(
        request("OPTIONS", "/mcp", origin="http://localhost:3000", access_control_request_method="POST")
    )
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("Bearer {}", 200),
        ("bearer {}", 200),
        ("BEARER   {}", 200),
        ("", 401),
        ("Bearer", 401),
        ("Bearer  ", 401),
        ("Bearer {}x", 401),
        ("Bearer x{}", 401),
        ("Basic {}", 401),
        ("{}", 401),
        ("Bearer {}, Bearer {}", 401),
        ("Bearer \xff\xfe", 401),
    ],
)
async def test_credential(desk: Desk, authorization: str, status: int) -> None:
    answer = await listed(desk, authorization=authorization.replace("{}", desk.token))
    assert answer.status == status
    if status == 401:
        assert answer.headers["www-authenticate"] == 'Bearer realm="interlock"'
        assert desk.token not in answer.body.decode()


@pytest.mark.parametrize(
    ("method", "path", "with_credential", "without"),
    [
        ("GET", "/healthz", 200, 200),
        ("HEAD", "/healthz", 200, 200),
        ("GET", "/readyz", 200, 200),
        ("GET", "/", 404, 404),
        ("GET", "/mcp/x", 404, 404),
        ("GET", "/mcp", 405, 401),
        ("GET", "/mcp/", 405, 401),
        ("DELETE", "/mcp", 405, 401),
        ("PUT", "/mcp", 405, 401),
        ("HEAD", "/mcp", 405, 401),
        ("OPTIONS", "/mcp", 405, 401),
        ("PATCH", "/mcp", 405, 401),
        ("GET", "/healthz?x=1", 200, 200),
        ("GET", "//mcp", 404, 404),
        ("GET", "/%6dcp", 404, 404),
        ("GET", "/healthz/../mcp", 404, 404),
    ],
)
async def test_paths_and_methods(desk: Desk, method: str, path: str, with_credential: int, without: int) -> None:
    for headers, status in ((desk.head(), with_credential), ({}, without)):
        async with desk.wire() as client:
            client.send(request(method, path, b"", headers))
            answer = await client.answer(head_only=method == "HEAD")
            assert answer.status == status
            if status == 405:
                assert "POST" in answer.headers["allow"]


@pytest.mark.parametrize(
    ("body", "status", "code", "id"),
    [
        (b"", 400, -32700, None),
        (b"{", 400, -32700, None),
        (b"nonsense", 400, -32700, None),
        (b"\xff\xfe", 400, None, None),
        (b"null", 400, -32600, None),
        (b"17", 400, -32600, None),
        (b"[]", 400, -32600, None),
        (b"[" * 5000, 400, None, None),
        (b"{}", 400, -32600, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', 400, -32600, 7),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400, -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', 400, -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400, -32600, None),
        (b'{"jsonrpc":"2.0","id":7,"method":7}', 400, -32600, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[1]}', 400, -32602, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":7}}', 400, -32602, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}', 400, -32600, 7),  # no session
        (b'{"jsonrpc":"2.0","id":7,"result":{}}', 400, -32600, None),  # an answer outside a session
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":' + b'{"a":' * 300 + b"1" + b"}" * 301, 400, -32600, 7),
    ],
)  # fmt: skip
async def test_bodies_that_are_no_request(desk: Desk, body: bytes, status: int, code: int | None, id: object) -> None:
    answer = await desk.send(request("POST", "/mcp", body, {"content-type": "application/json"} | desk.head()))
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    error = answer.json["error"]
    assert isinstance(error, dict)
    if code is not None:
        assert error["code"] == code
    assert answer.json.get("id") == id


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"mcp-protocol-version": ""}, -32020),
        ({"mcp-protocol-version": "2026-07-27"}, -32020),
        ({"mcp-protocol-version": LEGACY}, -32020),
        ({"mcp-method": ""}, -32020),
        ({"mcp-method": "tools/call"}, -32020),
        ({"mcp-method": "Tools/List"}, -32020),
    ],
)
async def test_headers_must_say_what_the_body_says(desk: Desk, headers: dict[str, str], code: int) -> None:
    answer = await desk.send(request("POST", "/mcp", LIST, HEADERS | desk.head() | headers))
    assert answer.status == 400
    error = answer.json["error"]
    assert isinstance(error, dict)
    assert (error["code"], answer.json["id"]) == (code, 1)


async def test_readiness_is_told_by_status_and_text(tmp_path: Path) -> None:
    async with running(tmp_path) as desk:
        state = (True, "ready")
        desk.endpoint._ready = lambda: state
        for each, status in (((True, "ready"), 200), ((False, "required servers are down: lab"), 503)):
            state = each
            answer = await desk.send(request("GET", "/readyz"))
            assert (answer.status, answer.body) == (status, each[1].encode() + b"\n")
