"""Secrets that a server was given do not come back in what Interlock says of it, whatever the server puts them into."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.manifest.config import EnvValue, HeaderValue, HttpTransport, StdioTransport
from interlock.upstream import evidence
from interlock.upstream.known_secrets import masker

from .reaching import LEGACY_ANN, reaching
from .scripted import Out, Script, Seen, scripted

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
