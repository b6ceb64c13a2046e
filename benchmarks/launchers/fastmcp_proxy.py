"""Runs FastMCP's proxy over HTTP; started with the Python of FastMCP's own environment.

    python fastmcp_proxy.py default --port P http://127.0.0.1:9100/mcp
    python fastmcp_proxy.py shared --port P -- python fast_stdio.py

`default` is what its documentation shows first, create_proxy(target). `shared` hands it one client that stays
connected, its fastest form; FastMCP warns that requests then share that client's state.
"""

from __future__ import annotations

import asyncio
import logging
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy


def target(words: list[str]) -> str | StdioTransport:
    """A URL as it is, or the command of a stdio server, kept alive between uses."""
    if words[0].startswith("http"):
        return words[0]
    return StdioTransport(command=words[0], args=words[1:], keep_alive=True)


async def run(mode: str, port: int, words: list[str]) -> None:
    """Serves until cancelled."""
    options = {"transport": "http", "host": "127.0.0.1", "port": port, "show_banner": False}
    options |= {"log_level": "error", "uvicorn_config": {"access_log": False}}
    if mode == "default":
        await create_proxy(target(words)).run_async(**options)
        return
    async with Client(target(words)) as client:
        await create_proxy(client).run_async(**options)


def main() -> None:
    logging.disable(logging.WARNING)
    mode, flag, port, *words = sys.argv[1:]
    assert flag == "--port"
    asyncio.run(run(mode, int(port), words[1:] if words[0] == "--" else words))


if __name__ == "__main__":
    main()
