"""`interlock up`: all servers behind one Streamable HTTP endpoint."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, OK, USAGE
from interlock.cli.output import complain
from interlock.cli.starting import announce, load, report_problems, run_loop
from interlock.cli.stdio_serving import LINGER_SECONDS
from interlock.cli.updates import watch

if TYPE_CHECKING:
    from interlock.manifest.loading import Loaded

DEFAULT_PORT = 7420
DRAIN_SECONDS = 10.0
SWEEP_SECONDS = 1.0
"""How often sessions that are idle, or whose credential was revoked, are ended."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("up", help="serve all servers behind one HTTP endpoint", description=__doc__)
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help=f"port; 0 takes a free one (default: {DEFAULT_PORT})"
    )
    parser.add_argument(
        "--allow-name", action="append", default=[], metavar="NAME",
        help="another host name that clients may use in Host and Origin; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--no-credential", action="store_true", help="serve anybody on this machine: for test suites, on loopback only"
    )
    parser.add_argument("--no-socket", action="store_true", help="do not offer this instance to `interlock connect`")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if not 0 <= args.port <= 65535:
        complain(f"--port {args.port}: a port is a number from 0 to 65535")
        return USAGE
    loopback = _is_loopback(args.host)
    if args.no_credential and not loopback:
        complain("--no-credential works on loopback only: take it away, or listen on 127.0.0.1")
        return USAGE
    loaded = load(args)
    if report_problems(loaded) and not loaded.gateway.servers:
        return CONFIGURATION
    unusable = _unusable(home_from(args))
    if unusable is not None:
        complain(f"{home_from(args)} cannot hold Interlock's state: {unusable}. Name another with --home.")
        return CONFIGURATION
    announce(loaded)
    return run_loop(_serve(args, loaded, home_from(args)))


def _unusable(home: Path) -> str | None:
    """Why nothing can be kept there, or None. Without it there are no credentials and no audit records."""
    import tempfile

    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            return None
    except OSError as error:
        return error.strerror or type(error).__name__


def _is_loopback(host: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _refused(error: OSError) -> str:
    """The system's word, and what to do about it."""
    import errno
    import os

    advice = {
        errno.EADDRINUSE: "Stop the program that listens there (it may be another `interlock up`), or choose another --port.",
        errno.EADDRNOTAVAIL: "Give one of this machine's own addresses as --host.",
        errno.EACCES: "Choose a --port of 1024 or more.",
    }
    word = os.strerror(error.errno) if error.errno in advice else error.strerror or str(error)
    return f"{word}. {advice.get(error.errno or 0, 'Check --host and --port.')}"


async def _serve(args: argparse.Namespace, loaded: Loaded, home: Path) -> int:
    import asyncio

    from interlock.build import build
    from interlock.serve.credentials import CredentialError, Credentials
    from interlock.serve.endpoint import Endpoint
    from interlock.serve.http1 import HttpServer
    from interlock.serve.runtime import Runtime

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for name in ("SIGINT", "SIGTERM"):
        if sys.platform != "win32":
            loop.add_signal_handler(getattr(signal, name), stop.set)
    credentials = None
    if not args.no_credential:
        try:
            credentials = Credentials(home)
        except CredentialError as error:
            complain(str(error))
            return CONFIGURATION
    runtime = Runtime(loaded.gateway, home)

    def ready() -> tuple[bool, str]:
        missing = [
            server.key
            for server in runtime.servers.values()
            if server.config.required and server.state not in ("ready", "cold", "starting")
        ]
        if runtime.front.draining.is_set():
            return False, "draining"
        return (not missing, "ready" if not missing else f"required servers are down: {', '.join(missing)}")

    host = f"[{args.host}]" if ":" in args.host else args.host
    names = frozenset(
        {"127.0.0.1", "localhost", "[::1]", *(name.lower().removesuffix(".") for name in args.allow_name)}
    )
    if args.host not in ("0.0.0.0", "::"):
        names |= {host.lower()}
    endpoint = Endpoint(
        runtime.front, authenticate=credentials.principal if credentials is not None else None, names=names, ready=ready
    )
    server = HttpServer(endpoint.handle)
    try:
        port = await server.start(args.host, args.port)
    except OSError as error:
        complain(f"cannot listen on {host}:{args.port}: {_refused(error)}")
        await runtime.close(0)
        return CONFIGURATION
    local = None
    if not args.no_socket:
        from interlock.serve.local import LocalServer

        local = LocalServer(runtime, home)
        await local.start()
    complain(f"listening on http://{host}:{port}/mcp")
    if args.no_credential:
        complain("WARNING: --no-credential: every program on this machine can use every server here")
    elif credentials is not None and not credentials.names():
        complain("no host has a credential yet: `interlock credential HOST` makes one")
    # Now, while these are still the files that run: an update may replace them at any time.
    loop.run_in_executor(None, build)
    runtime.start_eager()
    updates = watch(runtime, home)
    runtime.settle_memory()
    sweeper: asyncio.TimerHandle | None = None

    def sweep() -> None:
        nonlocal sweeper
        endpoint.sessions.close_idle(loop.time())
        if credentials is not None:
            credentials.refresh()
            endpoint.end_revoked(credentials.valid)
        sweeper = loop.call_later(SWEEP_SECONDS, sweep)

    sweep()
    await stop.wait()
    complain("stopping: finishing the calls that are under way (once more: stop at once)")
    updates.cancel()
    if sweeper is not None:
        sweeper.cancel()
    server.stop_listening()
    if local is not None:
        local.stop_listening()
    stop.clear()
    draining = asyncio.ensure_future(runtime.front.drain(DRAIN_SECONDS))
    again = asyncio.ensure_future(stop.wait())
    await asyncio.wait([draining, again], return_when=asyncio.FIRST_COMPLETED)
    if not draining.done():
        draining.cancel()
        await runtime.front.drain(0)
    again.cancel()
    if local is not None:
        local.close()
    await server.close(1.0)
    endpoint.sessions.close_all()
    stop.clear()
    closing = asyncio.ensure_future(runtime.close(0, linger=LINGER_SECONDS, on_linger=_say_linger))
    again = asyncio.ensure_future(stop.wait())
    await asyncio.wait([closing, again], return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    return OK


def _say_linger() -> None:
    complain(f"a sign-in is open: waiting for it up to {LINGER_SECONDS:.0f} s (once more: stop at once)")
