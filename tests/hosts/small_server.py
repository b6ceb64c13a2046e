"""A stdio server of the legacy era in one file: the tools that its arguments name, if its environment is as it should be.

`--needs NAME:SHA256` makes it end at once unless the variable NAME holds a value of that digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys


def main() -> None:
    tools = []
    words = iter(sys.argv[1:])
    for word in words:
        if word != "--needs":
            tools.append({"name": word, "inputSchema": {"type": "object"}})
            continue
        name, _, digest = next(words).partition(":")
        if hashlib.sha256(os.environ.get(name, "").encode()).hexdigest() != digest:
            sys.exit(f"{name} is not what it should be")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": message["id"]}
        if message.get("method") == "initialize":
            answer["result"] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "small", "version": "1"},
            }
        elif message.get("method") == "tools/list":
            answer["result"] = {"tools": tools}
        elif message.get("method") == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": "no such method"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
