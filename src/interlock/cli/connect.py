"""`interlock connect`: all servers over stdio, for a host that starts a command.

Joins a running `interlock up` of the same user and manifests; serves by itself where there is none.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from interlock.cli.common import home_from
from interlock.cli.early import Greeting, keep
from interlock.cli.exit_codes import OK
from interlock.cli.starting import announce, load, report_problems, run_loop

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

    from interlock.manifest.loading import Loaded

KEEP_AFTER_SECONDS = 15.0


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "connect", help="serve all servers over stdio, for a host that starts a command", description=__doc__
    )
    parser.add_argument("--host", default=None, metavar="NAME", help="the AI host that starts this, such as claude-code or codex")
    parser.add_argument("--alone", action="store_true", help="never join a running `interlock up`")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    loaded = load(args)
    # Problems are told on standard error, which hosts keep in their logs; serving what is left is worth more than failing.
    report_problems(loaded)
    announce(loaded)
    return run_loop(_serve(args, loaded, getattr(args, "greeting", None) or Greeting()))


async def _serve(args: argparse.Namespace, loaded: Loaded, greeting: Greeting) -> int:
    home = home_from(args)
    root = os.getcwd()
    if not args.alone:
        from interlock.serve import local

        joined = await local.join(home, loaded.gateway.digest, args.host, root, greeting.greeted)
        if joined is not None:
            return await _relay(*joined, greeting.rest)
    import asyncio
    import signal
    import sys

    from interlock.serve.lines import LineClient
    from interlock.serve.local import new_client
    from interlock.serve.runtime import Runtime
    from interlock.serve.stdio import StdoutWriter, read_stdin
    from interlock.wire import messages

    runtime = Runtime(loaded.gateway, home)
    writer = StdoutWriter()
    await writer.open()
    lines = LineClient(runtime.front, new_client(args.host, root), writer.write, greeting.greeted)
    if greeting.rest:
        lines.feed(greeting.rest)
    stop = asyncio.Event()
    if sys.platform != "win32":
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, stop.set)
    runtime.start_eager()

    def keep_known() -> None:
        view = runtime.pipeline.last_view
        if view is not None:
            keep(sys.argv[1:], messages.write_map(view.capabilities), view.instructions)

    # Not only at the end: many hosts kill what they started.
    keeping = asyncio.get_running_loop().call_later(KEEP_AFTER_SECONDS, keep_known)
    reading = asyncio.ensure_future(read_stdin(lines.feed))
    stopping = [asyncio.ensure_future(stop.wait()), asyncio.ensure_future(writer.broken.wait())]
    await asyncio.wait([reading, *stopping], return_when=asyncio.FIRST_COMPLETED)
    if reading.done():
        await lines.end()
    lines.leave()
    for task in stopping:
        task.cancel()
    await writer.close()
    keeping.cancel()
    keep_known()
    await runtime.close(0)
    return OK


async def _relay(reader: StreamReader, writer: StreamWriter, rest: bytes) -> int:
    """Nothing but a pipe between the host and the running Interlock."""
    import asyncio

    from interlock.serve.stdio import StdoutWriter, read_stdin

    out = StdoutWriter()
    await out.open()

    async def outwards() -> None:
        writer.write(rest)
        await read_stdin(writer.write)
        if writer.can_write_eof():
            writer.write_eof()

    sending = asyncio.ensure_future(outwards())
    while data := await reader.read(256 * 1024):
        out.write(data)
    sending.cancel()
    await out.close()
    return OK
