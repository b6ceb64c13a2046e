"""A child that does not read: what waits for it is bounded, and nobody is left without an answer."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from interlock.manifest.config import StdioTransport
from interlock.model.fault import Fault
from interlock.model.verdict import Verdict
from interlock.upstream import stdio
from interlock.upstream.contract import Outgoing
from interlock.upstream.session import SessionLost
from interlock.upstream.stdio import StdioCarrier
from interlock.wire import messages

from .reaching import LEGACY_ANN, reaching

# Legacy: answers `initialize`, then asks and asks, and never reads again.
DEAF = """
import json, sys, threading, time
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "deaf", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    elif "id" in message:
        error = {"code": -32601, "message": "no"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
    else:
        break
while True:
    print("".join('{"jsonrpc":"2.0","id":"%s","method":"ping"}\\n' % ("q" * 200) for _ in range(200)), end="", flush=True)
"""


async def test_a_server_that_asks_without_reading_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 512 * 1024
    monkeypatch.setattr(stdio, "MAX_UNSENT_BYTES", limit)
    transport = StdioTransport((sys.executable, "-c", DEAF), Path("/"))
    async with reaching(transport) as reached:
        session = await reached.server.session(LEGACY_ANN)
        carrier = session.carrier
        assert isinstance(carrier, StdioCarrier)
        assert carrier.child is not None
        async with asyncio.timeout(20):
            while carrier.child.unsent <= limit:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        # A call now is refused before anything of it is sent: it may be repeated freely.
        params = {"name": messages.raw("tool")}
        with pytest.raises(Fault) as caught:
            await reached.server.request(Outgoing("tools/call", params, LEGACY_ANN, 10.0))
        assert (caught.value.slug, caught.value.verdict) == ("connection-lost", Verdict.NEVER_REACHED)
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert carrier.child.unsent < 2 * limit


# Modern or legacy does not matter: it answers everything with its pid.
PID = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}
    elif message.get("method") == "tools/call":
        result = {"pid": os.getpid()}
    elif "id" in message:
        error = {"code": -32601, "message": "no"}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def test_a_call_that_meets_a_process_which_has_just_ended_goes_to_the_next_one() -> None:
    """It was never written, so it may be sent, also where the end is told between the call and its write."""
    transport = StdioTransport((sys.executable, "-c", PID), Path("/"))
    async with reaching(transport) as reached:
        out = Outgoing("tools/call", {"name": messages.raw("tool")}, LEGACY_ANN, 10.0)
        first = messages.try_json((await reached.server.request(out)).body)
        session = await reached.server.session(LEGACY_ANN)
        carrier = session.carrier
        assert isinstance(carrier, StdioCarrier)
        child = carrier.child
        assert child is not None
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        on_exit, carrier.on_exit = carrier.on_exit, lambda exit: ended.set_result(None)  # type: ignore[method-assign]
        os.kill(child.pid, signal.SIGKILL)
        async with asyncio.timeout(10):
            await ended  # the process is gone, and the session does not know it yet
        assert not session.closed
        outcomes: list[object] = []
        session.start(Outgoing("tools/call", {"name": messages.raw("tool")}, LEGACY_ANN, 10.0), outcomes.append)
        assert child.exit is not None
        on_exit(child.exit)
        assert [type(outcome) for outcome in outcomes] == [SessionLost]
        out = Outgoing("tools/call", {"name": messages.raw("tool")}, LEGACY_ANN, 10.0)
        second = messages.try_json((await reached.server.request(out)).body)
        assert isinstance(first, dict)
        assert isinstance(second, dict)
        assert first["pid"] != second["pid"]
