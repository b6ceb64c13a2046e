"""The HTTP+SSE transport of 2024-11-05 behind the lab's authorization server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.upstream.authorized import Reached, reaching
from tests.upstream.oauth.machine import QUICK, machine
from tests.upstream.scripted import INITIALIZED, TEXT, Out, Scripted, Seen, eventually, scripted

from interlock.lab.auth import AuthLab
from interlock.manifest.config import OAuth
from interlock.model.verdict import Verdict

PRM = "/.well-known/oauth-protected-resource/mcp"


@dataclass
class OldServer:
    """One SSE stream, and POSTs that answer on it; every request needs a token that the lab has issued."""

    lab: AuthLab
    challenge: bool = True
    acted: list[str] = field(default_factory=list)
    statuses: list[tuple[str, int]] = field(default_factory=list)
    stream: Out | None = None
    port: int = 0

    async def script(self, seen: Seen, out: Out) -> None:
        if seen.path == PRM:
            out.json({"resource": f"http://127.0.0.1:{self.port}/mcp", "authorization_servers": [self.lab.issuer]})
            return
        token = seen.headers.get("authorization", "").removeprefix("Bearer ")
        if self.lab.families.refusal(token) is not None:
            self.statuses.append((seen.rpc or seen.method, 401))
            out.send(401, headers={"www-authenticate": 'Bearer error="invalid_token"'} if self.challenge else {})
        elif seen.method == "GET":
            self.stream = out
            out.raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            self.event("endpoint", "/mcp?session=1")
        else:
            out.send(202)
            self.statuses.append((seen.rpc, 202))
            if "id" in seen.message:
                self.acted.append(seen.rpc)
                result = INITIALIZED | {"protocolVersion": "2024-11-05"} if seen.rpc == "initialize" else TEXT
                self.event("message", json.dumps({"jsonrpc": "2.0", "id": seen.message["id"], "result": result}))

    def event(self, kind: str, data: str) -> None:
        assert self.stream is not None
        line = f"event: {kind}\ndata: {data}\n\n".encode()
        self.stream.raw(b"%x\r\n%b\r\n" % (len(line), line))


@asynccontextmanager
async def old_server(home: Path, *, settings: OAuth | None = None) -> AsyncIterator[tuple[OldServer, Reached]]:
    async with machine(home, signed_in=False, settings=settings) as one:
        old = OldServer(one.lab)

        async def script(seen: Seen, out: Out) -> None:
            await old.script(seen, out)

        async with scripted(script) as there:
            await _use(one, old, there)
            async with reaching(one, url=there.url, kind="sse") as reached:
                yield old, reached


async def _use(one, old: OldServer, there: Scripted) -> None:  # type: ignore[no-untyped-def]
    """The machine has a grant for the old server."""
    old.port = there.port
    one.lab.behave.resource = there.url
    one.lab.url = there.url
    one.lab.families._resource = there.url
    if one.settings.client_id is not None:
        await one.sign_in()


async def test_stream_and_posts_carry_the_token(tmp_path: Path) -> None:
    async with old_server(tmp_path) as (old, reached):
        assert b"done" in (await reached.call()).body
        assert old.acted == ["initialize", "tools/call"]
        assert not [each for each in old.statuses if each[1] == 401]


async def test_a_token_that_dies_before_the_stream_opens_is_renewed(tmp_path: Path) -> None:
    async with old_server(tmp_path) as (old, reached):
        old.lab.revoke_access()
        assert b"done" in (await reached.call()).body
        assert old.statuses[0] == ("GET", 401)
        assert old.lab.counts["refreshes_ok"] == 1


async def test_a_call_refused_with_a_challenge_goes_out_once_more(tmp_path: Path) -> None:
    async with old_server(tmp_path) as (old, reached):
        await reached.call()
        old.lab.revoke_access()
        await asyncio.gather(*(reached.call() for _ in range(5)))
        assert old.acted.count("tools/call") == 6
        assert old.lab.counts["refreshes_ok"] == 1


async def test_a_call_refused_without_a_challenge_does_not_and_the_next_is_good(tmp_path: Path) -> None:
    async with old_server(tmp_path) as (old, reached):
        await reached.call()
        old.challenge = False
        old.lab.revoke_access()
        fault = await reached.fault()
        assert fault.verdict is Verdict.OUTCOME_UNKNOWN
        assert old.acted.count("tools/call") == 1
        assert b"done" in (await reached.call()).body
        assert old.lab.counts["refreshes_ok"] == 1


async def test_a_silent_authorization_server_is_told_within_the_calls_own_time(tmp_path: Path) -> None:
    async with old_server(tmp_path) as (old, reached):
        await reached.call()
        await reached.one.expire()
        reached.process.auth._known.look()
        old.lab.behave.as_silent = True
        faults = await asyncio.gather(*(reached.fault(seconds=1.0) for _ in range(5)))
        assert {(each.slug, each.verdict) for each in faults} == {("auth-unreachable", Verdict.WAIT)}
        assert old.acted.count("tools/call") == 1
        await old.lab.auth_listener.down()


async def test_without_a_grant_the_login_is_offered_and_nothing_is_sent(tmp_path: Path) -> None:
    async with old_server(tmp_path, settings=OAuth()) as (old, reached):
        fault = await reached.fault()
        assert (fault.slug, fault.verdict) == ("login-needed", Verdict.WAIT)
        assert fault.authorize_url is not None
        assert old.acted == []


async def test_an_outage_offers_no_login(tmp_path: Path) -> None:
    async with old_server(tmp_path) as (old, reached):
        await reached.one.expire()
        reached.process.auth._known.look()
        old.lab.mishap("token", "status", status=503)
        assert (await reached.fault()).slug == "auth-unreachable"
        old.lab.behave.mishaps.clear()
        await asyncio.sleep(QUICK.knock_seconds + 0.1)
        assert b"done" in (await reached.call()).body
        assert not reached.process.browser


@pytest.mark.parametrize("times", [1, 3])
async def test_a_call_that_is_given_up_while_it_waits_is_never_sent(tmp_path: Path, times: int) -> None:
    async with old_server(tmp_path) as (old, reached):
        await reached.call()
        await reached.one.expire()
        reached.process.auth._known.look()
        old.lab.mishap("token", "delay", seconds=0.5, times=1)
        callers = [asyncio.ensure_future(reached.call()) for _ in range(times)]
        await eventually(lambda: old.lab.counts["refreshes_ok"])
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
        await reached.call()
        assert old.acted.count("tools/call") == 2
