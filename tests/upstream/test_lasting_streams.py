"""The connections to one HTTP server: streams that stay open for as long as their session leave room for calls."""

from __future__ import annotations

import asyncio

import pytest

from interlock.upstream import http1
from interlock.upstream.contract import Caller
from interlock.wire.eras import Era
from interlock.wire.messages import Raw

from .reaching import reaching
from .scripted import TEXT, Out, Seen, legacy, scripted


async def test_streams_of_many_sessions_leave_room_for_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "MAX_CONNECTIONS", 3)

    async def stream(seen: Seen, out: Out) -> None:
        out.begin_events()
        await asyncio.Event().wait()

    async def call(seen: Seen, out: Out) -> None:
        out.result(seen, TEXT)

    async with scripted(legacy(call, stream=stream)) as there, reaching(there.url) as reached:
        callers = [Caller(f"client{number}", "ann", Raw(b"{}"), era=Era.LEGACY) for number in range(8)]
        for caller in callers:
            assert not (await reached.call(caller)).is_error
        await there.until(lambda: sum(each.method == "GET" for each in there.seen) == 8)
        assert not (await reached.call(callers[0])).is_error
        pool = reached.server._pool
        assert pool is not None
        assert pool._lasting == 8
        for caller in callers[1:]:
            reached.server.release(caller.client)
        async with asyncio.timeout(5):
            while pool._lasting > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert not (await reached.call(callers[0])).is_error
