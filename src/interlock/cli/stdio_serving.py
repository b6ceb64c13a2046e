"""Serving one host over standard input and output until it leaves: what `connect` and `bridge` share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from interlock.cli.early import Greeting, keep
from interlock.cli.exit_codes import OK
from interlock.cli.updates import watch

if TYPE_CHECKING:
    from asyncio import Event, Future
    from pathlib import Path

    from interlock.manifest.config import Gateway
    from interlock.serve.authorizing import SignIn
    from interlock.serve.lines import LineClient
    from interlock.serve.runtime import Runtime
    from interlock.serve.stdio import StdoutWriter
    from interlock.upstream.oauth.timing import Timing

KEEP_AFTER_SECONDS = 15.0
CREDENTIAL_SECONDS = 5.0
"""After the end of our input, calls that wait for a credential are answered without one when this is over."""
LINGER_SECONDS = 120.0
"""How long an open sign-in is waited for after the host has gone: somebody may be looking at its page."""


async def serve_alone(
    gateway: Gateway,
    home: Path,
    host: str | None,
    greeting: Greeting,
    *,
    sign_in: SignIn = "browser",
    timing: Timing | None = None,
) -> int:
    """Serve the host from this process. Returns the exit code."""
    import asyncio

    from interlock.serve.lines import LineClient
    from interlock.serve.local import new_client
    from interlock.serve.runtime import Runtime
    from interlock.serve.stdio import StdoutWriter, read_stdin

    runtime = Runtime(gateway, home, sign_in=sign_in, timing=timing)
    writer = StdoutWriter()
    await writer.open()
    client = new_client(host, os.getcwd())
    lines = LineClient(runtime.front, client, writer.write, greeting.greeted, writer.backlog)
    if greeting.rest:
        lines.feed(greeting.rest)
    reading = asyncio.ensure_future(read_stdin(lines.feed))
    return await until_over(runtime, lines, reading, writer, stop_signal())


def stop_signal() -> Event:
    """Set when the process is told to end."""
    import asyncio
    import signal
    import sys

    stop = asyncio.Event()
    if sys.platform != "win32":
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
    return stop


async def until_over(
    runtime: Runtime, lines: LineClient, reading: Future[None], writer: StdoutWriter, stop: Event
) -> int:
    """Serve from this process until the host closes our input or output, or we are told to end."""
    import asyncio
    import sys

    from interlock.wire import messages

    runtime.aloud = True
    runtime.start_eager()
    updates = watch(runtime, runtime.home)

    def keep_known() -> None:
        view = runtime.pipeline.last_view
        if view is not None:
            keep(sys.argv[1:], messages.write_map(view.capabilities), view.instructions)

    # Not only at the end: many hosts kill what they started.
    keeping = asyncio.get_running_loop().call_later(KEEP_AFTER_SECONDS, keep_known)
    stopping: list[Future[Any]] = [asyncio.ensure_future(each.wait()) for each in (stop, writer.broken)]
    await asyncio.wait([reading, *stopping], return_when=asyncio.FIRST_COMPLETED)
    if reading.done():
        # A host that closes our input may also tell us to end before the last answer is there.
        ending = asyncio.ensure_future(lines.end())
        done, _ = await asyncio.wait(
            [ending, *stopping], timeout=CREDENTIAL_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            runtime.authorizing.leave()
            await asyncio.wait([ending, *stopping], return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
    lines.leave()
    for task in (*stopping, updates):
        task.cancel()
    await writer.close()
    keeping.cancel()
    keep_known()
    await runtime.close(0, linger=LINGER_SECONDS, on_linger=_leave_streams)
    return OK


def _leave_streams() -> None:
    """The host sees the end of our streams, though an open sign-in keeps the process for a while."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    os.close(null)
