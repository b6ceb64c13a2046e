"""The floor: the least that a Python gateway can do, a byte forwarder with one JSON parse a request.

    python benchmarks/floor.py http --port 9201 --upstream-port 9100
    python benchmarks/floor.py stdio --port 9202 -- python benchmarks/responders/fast_stdio.py

uvicorn with uvloop and httptools in front; behind it a raw keep-alive client, or one persistent child with re-issued
ids. It checks nothing, names nothing, records nothing. `--server` and `--client` swap its parts, for front_choice.py.
"""

from __future__ import annotations

import argparse
import asyncio

import msgspec
from forwarders.child import ChildForward, start_child
from forwarders.clients import CLIENTS
from forwarders.servers import SERVERS, Forward


def http_forward(client: str, upstream_port: int) -> Forward:
    """Parses the body once, to learn the tool's name for the header, and posts the bytes as they came."""
    post = CLIENTS[client](upstream_port).post
    parse = msgspec.json.Decoder().decode

    async def forward(body: bytes) -> bytes:
        message = parse(body)
        if message["method"] != "tools/call":
            raise ValueError("the floor carries tools/call only")
        return await post(body, message["params"]["name"])

    return forward


def stdio_forward(command: list[str]) -> Forward:
    """Starts the child with the first request."""
    starting: asyncio.Task[ChildForward] | None = None
    child: ChildForward | None = None

    async def forward(body: bytes) -> bytes:
        nonlocal starting, child
        if child is None:
            starting = starting or asyncio.ensure_future(start_child(command))
            child = await starting
        return await child.forward(body)

    return forward


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    upstreams = parser.add_subparsers(dest="upstream", required=True)
    http, stdio = upstreams.add_parser("http"), upstreams.add_parser("stdio")
    for upstream in (http, stdio):
        upstream.add_argument("--port", type=int, required=True)
        upstream.add_argument("--server", choices=sorted(SERVERS), default="uvicorn")
    http.add_argument("--upstream-port", type=int, required=True)
    http.add_argument("--client", choices=sorted(CLIENTS), default="raw")
    stdio.add_argument("command", nargs="+", help="after --: the child")
    arguments = parser.parse_args()

    def make_forward() -> Forward:
        if arguments.upstream == "http":
            return http_forward(arguments.client, arguments.upstream_port)
        return stdio_forward(arguments.command)

    SERVERS[arguments.server](make_forward, arguments.port)


if __name__ == "__main__":
    main()
