"""Command lines of the fixture servers: which transport to serve, and the loop that serves it."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from interlock.lab.http_server import HttpHandler, Reply, Request, listen
from interlock.lab.legacy_http import LegacyHttp
from interlock.lab.legacy_sse import EVENTS_PATH, LegacySse
from interlock.lab.legacy_stdio import BeforeInitialize, serve_legacy_stdio
from interlock.lab.modern_engine import ModernServer
from interlock.lab.modern_http import ModernHttp
from interlock.lab.modern_stdio import serve_modern_stdio
from interlock.lab.registry import Content, Era
from interlock.lab.stdio import StdioPipe

MCP_PATH = "/mcp"


@dataclass(slots=True)
class Launch:
    """What to serve, and over which transport; exactly one of `stdio`, `http` and `sse` is set."""

    era: Era
    content: Content
    stdio: bool = False
    http: int | None = None
    sse: int | None = None
    json_only: bool = False
    always_stream: bool = False
    sessions: bool = True
    before_initialize: BeforeInitialize = "error"
    silent: bool = False
    """Take everything, answer nothing."""
    background: Callable[[StdioPipe | None], Coroutine[object, object, None]] | None = None
    """Runs beside the server; gets the stdio pipe where there is one."""


def add_transport_arguments(parser: argparse.ArgumentParser, era: Era | None) -> None:
    """The options that every fixture server has."""
    transport = parser.add_mutually_exclusive_group(required=True)
    transport.add_argument("--stdio", action="store_true", help="serve one client on standard input and output")
    transport.add_argument(
        "--http", type=int, metavar="PORT", help="serve Streamable HTTP at /mcp; 0 takes a free port"
    )
    if era != "modern":
        transport.add_argument("--sse", type=int, metavar="PORT", help="serve HTTP+SSE of 2024-11-05 at /sse")
        parser.add_argument("--json-only", action="store_true", help="legacy HTTP: answer POSTs with JSON, never SSE")
        parser.add_argument("--no-sessions", action="store_true", help="legacy HTTP: issue no session id")
        parser.add_argument(
            "--before-initialize",
            choices=["error", "silent"],
            default="error",
            help="legacy stdio: what becomes of a request before initialize",
        )
    if era != "legacy":
        parser.add_argument("--always-stream", action="store_true", help="modern HTTP: answer every request with SSE")


def launch_of(arguments: argparse.Namespace, era: Era, content: Content) -> Launch:
    """The launch that parsed options ask for."""
    return Launch(
        era=era,
        content=content,
        stdio=arguments.stdio,
        http=arguments.http,
        sse=getattr(arguments, "sse", None),
        json_only=getattr(arguments, "json_only", False),
        always_stream=getattr(arguments, "always_stream", False),
        sessions=not getattr(arguments, "no_sessions", False),
        before_initialize=getattr(arguments, "before_initialize", "error"),
    )


def run(launch: Launch) -> None:
    """Serve until the client closes our input (stdio) or a signal arrives (HTTP)."""
    asyncio.run(_serve_stdio(launch) if launch.stdio else _serve_http(launch))


async def _serve_stdio(launch: Launch) -> None:
    pipe = StdioPipe()
    background = asyncio.ensure_future(launch.background(pipe)) if launch.background else None
    if launch.silent:
        async for _ in pipe.lines():
            pass
    elif launch.era == "legacy":
        await serve_legacy_stdio(launch.content, pipe, before=launch.before_initialize)
    else:
        await serve_modern_stdio(ModernServer(launch.content), pipe)
    if background is not None:
        background.cancel()


async def _serve_http(launch: Launch) -> None:
    modern = ModernServer(launch.content) if launch.era == "modern" else None
    handler: HttpHandler
    if modern is not None:
        handler = _only(MCP_PATH, ModernHttp(modern, always_stream=launch.always_stream).handle)
    elif launch.sse is not None:
        handler = LegacySse(launch.content).handle
    else:
        endpoint = LegacyHttp(launch.content, sessions=launch.sessions, json_only=launch.json_only)
        handler = _only(MCP_PATH, endpoint.handle)
    if launch.silent:
        handler = _never_answer
    port, path = (launch.http, MCP_PATH) if launch.sse is None else (launch.sse, EVENTS_PATH)
    assert port is not None
    server = await listen(handler, port, path)
    background = asyncio.ensure_future(launch.background(None)) if launch.background else None
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in ("SIGINT", "SIGTERM"):
        loop.add_signal_handler(getattr(signal, name), stop.set)
    await stop.wait()
    if modern is not None:
        # Let open subscriptions end with their result, as the specification asks, before the process goes.
        modern.stopping.set()
        await asyncio.sleep(0.05)
    if background is not None:
        background.cancel()
    server.close()


async def _never_answer(_: Request, reply: Reply) -> None:
    await reply.closed.wait()


def _only(path: str, handler: HttpHandler) -> HttpHandler:
    async def handle(request: Request, reply: Reply) -> None:
        if request.path == path:
            await handler(request, reply)
        else:
            await reply.send(404)

    return handle
