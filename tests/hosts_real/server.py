"""A small real MCP server over stdio, which the hosts start: tools `echo` and `wipe`. `serve` is the same over HTTP."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOOLS = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ("echo", "wipe")]


def answer(message: dict) -> dict | None:
    """None for a notification."""
    if "id" not in message:
        return None
    method = message.get("method")
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "small", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "ping":
        result = {}
    else:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "not found"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def main() -> None:
    for word in sys.argv[1:]:
        if word.startswith("log="):
            flavours = {name: value for name, value in os.environ.items() if name == "SMALL_FLAVOUR"}
            Path(word.removeprefix("log=")).write_text(json.dumps(flavours))
    for line in sys.stdin:
        reply = answer(json.loads(line))
        if reply is not None:
            print(json.dumps(reply), flush=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.server.seen.append(dict(self.headers))  # type: ignore[attr-defined]
        reply = answer(json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0))))
        body = b"" if reply is None else json.dumps(reply).encode()
        self.send_response(202 if reply is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_GET

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serve() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Its address on loopback, and the headers of each request that has come."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.seen = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", server.seen  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
