"""Runs the conformance server from the MCP SDK's sdist: `sdk_server.py FOLDER --stdio | --http PORT`.

The server itself stays where it is; this only chooses the transport.
"""

from __future__ import annotations

import sys


def main() -> None:
    folder, transport, *port = sys.argv[1:]
    # uvicorn's httptools parser keeps blanks after header values, which the suite forbids; h11 trims them.
    sys.modules["httptools"] = None  # type: ignore[assignment]
    sys.path.insert(0, folder)
    from mcp_everything_server import server  # type: ignore[import-not-found]

    if transport == "--stdio":
        server.mcp.run(transport="stdio")
    else:
        options = {"event_store": server.event_store, "retry_interval": 100}
        server.mcp.run(transport="streamable-http", port=int(port[0]), **options)


if __name__ == "__main__":
    main()
