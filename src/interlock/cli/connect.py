"""`interlock connect`: all servers over stdio, for a host that starts a command.

Joins a running `interlock up` of the same user and manifests; serves by itself where there is none, or where it ends.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from typing import TYPE_CHECKING, Any

from interlock.cli.common import home_from
from interlock.cli.early import Greeting
from interlock.cli.exit_codes import OK
from interlock.cli.output import complain
from interlock.cli.starting import announce, load, report_problems, run_loop
from interlock.cli.stdio_serving import serve_alone, stop_signal, until_over

if TYPE_CHECKING:
    from asyncio import Future, StreamReader, StreamWriter

    from interlock.manifest.loading import Loaded


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "connect", help="serve all servers over stdio, for a host that starts a command", description=__doc__
    )
    parser.add_argument(
        "--host", default=None, metavar="NAME", help="the AI host that starts this, such as claude-code or codex"
    )
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

        joined = await local.join(home, local.generation(loaded.gateway), args.host, root, greeting.greeted)
        if joined is not None:
            return await _beside(args, loaded, greeting, *joined)
    return await serve_alone(loaded.gateway, home, args.host, greeting)


async def _beside(
    args: argparse.Namespace, loaded: Loaded, greeting: Greeting, reader: StreamReader, up: StreamWriter
) -> int:
    """Pass lines between the host and the running `interlock up`; serve from here should that end before the host does."""
    import asyncio

    from interlock.serve.joined import Joined
    from interlock.serve.local import new_client
    from interlock.serve.stdio import StdoutWriter, read_stdin

    out = StdoutWriter()
    await out.open()
    joined = Joined(out.write, up.write, greeting.greeted)

    async def receive() -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(256 * 1024):
                joined.up_said(data)
                await out.drain()

    joined.host_said(greeting.rest)
    reading = asyncio.ensure_future(read_stdin(joined.host_said))
    receiving = asyncio.ensure_future(receive())
    stop = stop_signal()
    stopping: list[Future[Any]] = [asyncio.ensure_future(each.wait()) for each in (stop, out.broken)]
    await asyncio.wait([reading, receiving, *stopping], return_when=asyncio.FIRST_COMPLETED)
    if reading.done() and not receiving.done():
        if up.can_write_eof():
            up.write_eof()
        await asyncio.wait([receiving, *stopping], return_when=asyncio.FIRST_COMPLETED)
    over = stop.is_set() or out.broken.is_set()
    for task in stopping:
        task.cancel()
    up.close()
    if over or reading.done():
        joined.lost(None, None)
        await out.close()
        return OK
    from interlock.serve.runtime import Runtime

    complain("the running `interlock up` has ended; this process serves the host from here on")
    runtime = Runtime(loaded.gateway, home_from(args), sign_in="browser")
    lines = joined.lost(runtime.front, new_client(args.host, os.getcwd()), out.backlog)
    assert lines is not None
    return await until_over(runtime, lines, reading, out, stop)
