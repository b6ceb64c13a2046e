"""Secrets that a server was given do not come back in what Interlock says of it, whatever the server puts them into."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from interlock.manifest.config import EnvValue, HeaderValue, HttpTransport, StdioTransport
from interlock.upstream import evidence
from interlock.upstream.contract import Caller
from interlock.upstream.known_secrets import masker
from interlock.wire.messages import RawMap

from .reaching import LEGACY_ANN, reaching
from .scripted import Out, Script, Seen, legacy, scripted

ENVIRON = {
    "KEY": "hunter7 plain/word",
    "SHORT": "prod",
    "URL": "https://user:passw0rd@mcp.example/v1/tok-abcdefgh/mcp?key=querysecret&v=1",
    "UNNAMED": "nobodynamedthis",
}
CHILD = StdioTransport(
    ("x",), Path("/"), (EnvValue("K", "KEY"), EnvValue("M", "SHORT"), EnvValue("L", literal="literal-value"))
)
REMOTE = HttpTransport("http", endpoint_env="URL", headers=(HeaderValue("x-key", "KEY", prefix="Bearer "),))


@pytest.mark.parametrize(
    ("transport", "text", "shown"),
    [
        (CHILD, "bad key hunter7 plain/word!", "bad key [redacted]!"),
        (CHILD, "bad key hunter7%20plain%2Fword!", "bad key [redacted]!"),
        (CHILD, "in prod, literal-value", "in prod, literal-value"),
        (CHILD, "nobodynamedthis", "nobodynamedthis"),
        (REMOTE, "Bearer hunter7 plain/word refused", "Bearer [redacted] refused"),
        (REMOTE, "no such path /v1/tok-abcdefgh/mcp?key=querysecret&v=1", "no such path /v1/[redacted]/mcp?key=[redacted]&v=1"),
        (REMOTE, "login of user:passw0rd failed", "login of user:[redacted] failed"),
    ],
)  # fmt: skip
def test_what_is_masked(transport: StdioTransport | HttpTransport, text: str, shown: str) -> None:
    assert masker(transport, ENVIRON)(text) == shown


@pytest.mark.parametrize("url", ["", "not a url", "http://[broken", "https://host"])
def test_a_useless_url_masks_nothing(url: str) -> None:
    assert masker(HttpTransport("http", endpoint_env="URL"), {"URL": url})("some text") == "some text"


async def _error(seen: Seen, out: Out) -> None:
    out.error(seen, -32000, message=f"bad key {seen.headers.get('x-key')} at {seen.path}")


async def _version(seen: Seen, out: Out) -> None:
    out.result(seen, {"protocolVersion": "v" * 30 + str(seen.headers.get("x-key")), "capabilities": {}})


@pytest.mark.parametrize("answer", [_error, _version])
async def test_a_handshake_that_repeats_the_key(answer: Script) -> None:
    async def script(seen: Seen, out: Out) -> None:
        if seen.rpc == "initialize":
            await answer(seen, out)
        elif seen.rpc == "server/discover":
            out.error(seen, -32601)
        else:
            out.send(405)

    async with scripted(script) as there:
        environ = {"URL": f"{there.url}/tok-abcdefgh1", "KEY": "hunter7secret"}
        transport = HttpTransport("http", endpoint_env="URL", headers=(HeaderValue("x-key", "KEY"),))
        async with reaching(transport, environ=environ) as reached:
            fault = await reached.fault(LEGACY_ANN)
            assert fault.slug == "handshake-failed"
            assert "[redacted]" in fault.message or "hunter" not in fault.message
            # Not even a part of it, where the text was cut.
            assert not any(part in fault.message for part in ("hunter", "tok-abc"))


@pytest.mark.parametrize("status", [200, 500])
async def test_an_error_that_repeats_the_key_is_masked_and_a_result_stays_as_it_is(status: int) -> None:
    said: list[RawMap] = []

    async def script(seen: Seen, out: Out) -> None:
        key, id = seen.headers["x-key"], seen.message["id"]
        if b"result" in seen.body:
            note = {"level": "error", "data": {"h": f"with {key}"}}
            out.begin_events()
            out.event({"jsonrpc": "2.0", "method": "notifications/message", "params": note})
            out.event({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": f"sent {key}"}]}})
            out.end_events()
        else:
            error = {"code": -32000, "message": f"bad {key}", "data": {"h": [key, quote(key, safe="")], "n": 1e3}}
            out.json({"jsonrpc": "2.0", "id": id, "error": error}, status)

    async with scripted(legacy(script)) as there:
        transport = HttpTransport("http", there.url, headers=(HeaderValue("x-key", "KEY"),))
        async with reaching(transport, environ={"KEY": "hunter7/secret"}) as reached:

            def noted(server: str, binding: str, caller: Caller | None, method: str, params: RawMap) -> None:
                said.append(params)

            reached.heard.notification = noted  # type: ignore[method-assign]
            answer = await reached.call(LEGACY_ANN, kind="error")
            assert answer.is_error
            assert json.loads(answer.body) == {
                "code": -32000, "message": "bad [redacted]", "data": {"h": ["[redacted]", "[redacted]"], "n": 1e3}
            }  # fmt: skip
            answer = await reached.call(LEGACY_ANN, kind="result")
            assert b"sent hunter7/secret" in answer.body
            assert [json.loads(bytes(params["data"])) for params in said] == [{"h": "with [redacted]"}]


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        (b"https://user:pw@there.example/mcp?token=1#x", "https://there.example/mcp"),
        (b"//user@there.example/a@b", "//there.example/a@b"),
        (b"/mcp/", "/mcp/"),
        (b"https://there.example", "https://there.example"),
    ],
)
def test_a_redirect_is_shown_without_its_secrets(location: bytes, shown: str) -> None:
    fault = evidence.http_refusal("srv", 307, {b"location": location})
    assert f"points to {shown}: if it moved there" in fault.message
