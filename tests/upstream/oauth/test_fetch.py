"""The HTTP client for authorization servers, against real servers on loopback: good, hostile, slow and gone."""

from __future__ import annotations

import asyncio
import base64
import gzip
import secrets
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import AsyncIterator
from email.utils import formatdate
from pathlib import Path

import pytest

from interlock.upstream.oauth.fetch import MAX_BODY, Answer, Fetcher, FetchFailed

from .peer import Peer, Say, peer


@pytest.fixture
async def server() -> AsyncIterator[Peer]:
    async with peer() as running:
        yield running


@pytest.fixture
async def fetch() -> AsyncIterator[Fetcher]:
    fetcher = Fetcher(
        user_agent="interlock/test", environ={"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    )
    yield fetcher
    await fetcher.close()


async def test_get(server: Peer, fetch: Fetcher) -> None:
    server.routes["/a"] = Say(200, {"x": 1}, {"X-Two": "1", "date": formatdate(time.time() + 1800, usegmt=True)})
    answer = await fetch.get(f"{server.root}/a?q=%2F", 5)
    assert (answer.status, answer.json(), answer.url) == (200, {"x": 1}, f"{server.root}/a?q=%2F")
    assert answer.skew == pytest.approx(1800, abs=3)
    request = server.seen[0]
    assert (request.method, request.path) == ("GET", "/a?q=%2F")
    assert request.headers["user-agent"] == "interlock/test"
    assert request.headers["accept"] == "application/json"
    assert "authorization" not in request.headers


async def test_post_form_with_basic(server: Peer, fetch: Fetcher) -> None:
    server.routes["/token"] = Say(400, {"error": "invalid_grant"})
    word = secrets.token_urlsafe(8)
    answer = await fetch.post_form(
        f"{server.root}/token", {"a": "b c&d=é", "e": ""}, 5, ("id:with/signs", f"{word}: %")
    )
    assert (answer.status, answer.json()) == (400, {"error": "invalid_grant"})
    request = server.seen[0]
    assert request.form() == {"a": ["b c&d=é"], "e": [""]}
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    pair = base64.b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
    assert pair == f"id%3Awith%2Fsigns:{word}%3A+%25"


async def test_post_json(server: Peer, fetch: Fetcher) -> None:
    server.routes["/register"] = Say(201, {"client_id": "x"})
    answer = await fetch.post_json(f"{server.root}/register", {"a": ["é"]}, 5)
    assert answer.status == 201
    assert server.seen[0].json() == {"a": ["é"]}
    assert server.seen[0].headers["content-type"] == "application/json"


async def test_each_request_has_a_connection_of_its_own_and_no_cookie_comes_back(server: Peer, fetch: Fetcher) -> None:
    server.routes["/a"] = Say(200, {}, {"set-cookie": "a=b; Path=/"})
    for _ in range(3):
        await fetch.get(f"{server.root}/a", 5)
    assert server.connections == 3
    assert all("cookie" not in each.headers for each in server.seen)


@pytest.mark.parametrize("location", ["/b", "b", "{root}/b"])
async def test_redirects_within_the_origin_are_followed(server: Peer, fetch: Fetcher, location: str) -> None:
    server.routes["/a"] = Say(302, b"", {"location": location.format(root=server.root)})
    server.routes["/b"] = Say(200, {"here": True})
    answer = await fetch.get(f"{server.root}/a", 5)
    assert (answer.url, answer.json()) == (f"{server.root}/b", {"here": True})


async def test_other_redirects_are_the_answer(server: Peer, fetch: Fetcher) -> None:
    async with peer() as other:
        for location in (
            f"{other.root}/b",
            "https://a.example/",
            "javascript:alert(1)",
            "//127.0.0.1:1/x",
            "http://[",
            "",
        ):
            server.routes["/a"] = Say(302, b"", {"location": location})
            assert (await fetch.get(f"{server.root}/a", 5)).status == 302
        assert other.seen == []


async def test_a_loop_of_redirects_ends(server: Peer, fetch: Fetcher) -> None:
    server.routes["/a"] = Say(301, b"", {"location": "/a"})
    assert (await fetch.get(f"{server.root}/a", 5)).status == 301
    assert len(server.seen) == 4


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_post_is_never_redirected(server: Peer, fetch: Fetcher, status: int) -> None:
    server.routes["/a"] = Say(status, b"", {"location": "/b"})
    assert (await fetch.post_form(f"{server.root}/a", {}, 5)).status == status
    assert server.paths() == ["/a"]


async def test_bodies_have_a_limit(server: Peer, fetch: Fetcher) -> None:
    server.routes["/fits"] = Say(200, b" " * (MAX_BODY - 2) + b"{}")
    server.routes["/large"] = Say(200, b" " * (MAX_BODY + 1))
    endless = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"10000\r\n" + b" " * 65536 + b"\r\n"
    server.routes["/endless"] = Say(raw=endless + (b"10000\r\n" + b" " * 65536 + b"\r\n") * 20)
    assert (await fetch.get(f"{server.root}/fits", 10)).json() == {}
    for path in ("/large", "/endless"):
        with pytest.raises(FetchFailed, match="more than") as caught:
            await fetch.get(server.root + path, 10)
        assert (caught.value.sent, caught.value.timeout) == (True, False)


async def test_encodings_that_were_not_asked_for(server: Peer, fetch: Fetcher) -> None:
    server.routes["/gzip"] = Say(200, gzip.compress(b'{"a": 1}'), {"content-encoding": "gzip"})
    server.routes["/deflate"] = Say(200, zlib.compress(b'{"a": 2}'), {"content-encoding": "deflate"})
    server.routes["/bomb"] = Say(200, gzip.compress(b" " * (200 * MAX_BODY), 9), {"content-encoding": "gzip"})
    server.routes["/lie"] = Say(200, b'{"a": 3}', {"content-encoding": "gzip"})
    server.routes["/other"] = Say(200, b"xyz", {"content-encoding": "br"})
    assert (await fetch.get(f"{server.root}/gzip", 5)).json() == {"a": 1}
    assert (await fetch.get(f"{server.root}/deflate", 5)).json() == {"a": 2}
    for path in ("/bomb", "/lie", "/other"):
        with pytest.raises(FetchFailed) as caught:
            await fetch.get(server.root + path, 20)
        assert caught.value.sent
    assert all(each.headers["accept-encoding"] == "identity" for each in server.seen)


async def test_a_silent_server_costs_no_more_than_the_deadline(server: Peer, fetch: Fetcher) -> None:
    server.routes["/a"] = Say(hang=True)
    server.routes["/half"] = Say(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
    with pytest.raises(FetchFailed) as caught:
        await fetch.post_form(f"{server.root}/a", {"refresh_token": "x"}, 0.3)
    assert (caught.value.sent, caught.value.timeout) == (True, True)
    with pytest.raises(FetchFailed) as caught:
        await fetch.get(f"{server.root}/half", 5)
    assert (caught.value.sent, caught.value.timeout) == (True, False)


async def test_no_time_is_no_request(server: Peer, fetch: Fetcher) -> None:
    for seconds in (0, -5):
        with pytest.raises(FetchFailed) as caught:
            await fetch.get(f"{server.root}/a", seconds)
        assert (caught.value.sent, caught.value.timeout) == (False, True)
    assert server.seen == []


async def test_one_deadline_covers_all_redirects(server: Peer, fetch: Fetcher) -> None:
    server.routes["/a"] = Say(302, b"", {"location": "/b"})
    server.routes["/b"] = Say(hang=True)
    with pytest.raises(FetchFailed) as caught:
        await fetch.get(f"{server.root}/a", 0.4)
    assert (caught.value.sent, caught.value.timeout) == (True, True)


async def test_a_handshake_that_never_ends_has_sent_nothing(server: Peer, fetch: Fetcher) -> None:
    # The server waits for an HTTP head and gets a TLS hello: no byte of the request has left.
    with pytest.raises(FetchFailed) as caught:
        await fetch.get(server.root.replace("http:", "https:") + "/a", 0.5)
    assert not caught.value.sent


async def test_nobody_listens(fetch: Fetcher) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/x"
        with pytest.raises(FetchFailed, match="nothing listens") as caught:
            await fetch.get(url, 5)
    assert (caught.value.sent, caught.value.timeout) == (False, False)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_not_http(server: Peer, fetch: Fetcher, raw: bytes) -> None:
    server.routes["/a"] = Say(raw=raw)
    with pytest.raises(FetchFailed) as caught:
        await fetch.get(f"{server.root}/a", 5)
    assert (caught.value.sent, caught.value.timeout) == (True, False)


@pytest.mark.parametrize(
    "url", ["http://a.example/x", "javascript:alert(1)", "https://u:hunter@a.example/", "", "http://["]
)
async def test_addresses_that_may_not_be_called(fetch: Fetcher, url: str) -> None:
    with pytest.raises(FetchFailed, match="was not called") as caught:
        await fetch.get(url, 5)
    assert not caught.value.sent
    assert "hunter" not in caught.value.what


async def test_a_secret_is_in_no_error_and_no_repr(server: Peer, fetch: Fetcher) -> None:
    word = secrets.token_urlsafe(16)
    server.routes["/a"] = Say(hang=True)
    server.routes["/b"] = Say(raw=b"nonsense\r\n\r\n")
    server.routes["/c"] = Say(200, {"access_token": word})
    for path in ("/a", "/b"):
        with pytest.raises(FetchFailed) as caught:
            await fetch.post_form(f"{server.root}{path}?key={word}", {"refresh_token": word}, 0.3, ("id", word))
        linked: BaseException | None = caught.value
        while linked is not None:
            assert word not in repr(linked) + str(linked)
            assert not hasattr(linked, "request")
            linked = linked.__cause__ or linked.__context__
    assert word not in repr(await fetch.get(f"{server.root}/c", 5))


async def test_being_cancelled_is_no_failure_of_the_server(server: Peer, fetch: Fetcher) -> None:
    server.routes["/a"] = Say(hang=True)
    task = asyncio.create_task(fetch.get(f"{server.root}/a", 30))
    async with asyncio.timeout(10):
        await server.arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_remote_address_goes_through_the_proxy_that_the_environment_names(server: Peer) -> None:
    fetcher = Fetcher(user_agent="x", environ={"https_proxy": server.root, "no_proxy": "direct.invalid"})
    try:
        with pytest.raises(FetchFailed) as caught:
            await fetcher.get("https://a.invalid/x", 5)
        assert not caught.value.sent  # what left was the proxy's CONNECT
        assert [(each.method, each.path) for each in server.seen] == [("CONNECT", "a.invalid:443")]
        with pytest.raises(FetchFailed, match="does not resolve"):
            await fetcher.get("https://direct.invalid/x", 5)
        assert len(server.seen) == 1
    finally:
        await fetcher.close()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b"", None),
        (b"[]", None),
        (b'"x"', None),
        (b"null", None),
        (b"<html>", None),
        (b'{"a": NaN}', None),
        (b'{"a": "\xff"}', None),
        (b"[" * 200_000, None),
        (b'{"a":' * 100_000, None),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, None),
    ],
)
def test_json(body: bytes, expected: dict[str, object] | None) -> None:
    assert Answer(200, {}, body, "https://a.example", None).json() == expected


def test_nothing_here_imports_the_http_library_before_it_is_needed(child_environment: dict[str, str]) -> None:
    folder = Path(__file__).resolve().parents[3] / "src" / "interlock" / "upstream" / "oauth"
    names = sorted(f"interlock.upstream.oauth.{each.stem}" for each in folder.glob("*.py") if each.stem != "__init__")
    program = (
        f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
        "print([each for each in ('httpx2', 'httpcore2', 'filelock') if each in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=child_environment, capture_output=True, text=True, timeout=50
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
