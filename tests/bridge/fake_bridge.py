"""A bridge that misbehaves in known ways, to test the driver itself: `python fake_bridge.py SERVER_URL`.

`echo` answers, `late` does so after 0.4 s, `never` stays silent, `login` names an authorize URL, `ask` asks the host
first, `noise` prints what is no JSON-RPC, `end` ends the process.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

AUTHORIZE = "http://127.0.0.1:9/authorize?response_type=code&redirect_uri=http%3A%2F%2Flocalhost%3A9%2Fcallback&state="


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


def call(number: object, tool: str) -> None:
    if tool == "echo":
        say({"id": number, "result": text("x")})
    elif tool == "late":
        threading.Timer(0.4, say, [{"id": number, "result": text("late")}]).start()
    elif tool == "login":
        print(f"sign in at {AUTHORIZE}one", file=sys.stderr, flush=True)
        data = {"verdict": "wait", "authorize_url": f"{AUTHORIZE}one"}
        say({"id": number, "error": {"code": -1, "message": "sign in", "data": data}})
    elif tool == "failed":
        say({"id": number, "result": {**text("no"), "isError": True, "_meta": {"verdict": "outcome_unknown"}}})
    elif tool == "ask":
        say({"id": "q1", "method": "elicitation/create", "params": {}})
        answered = json.loads(sys.stdin.readline())
        say({"id": number, "result": text(json.dumps(answered.get("result")))})
    elif tool == "noise":
        print("hello", flush=True)
        say({"id": number, "result": text("x")})
    elif tool == "end":
        sys.exit(3)


def main() -> None:
    for line in iter(sys.stdin.readline, ""):
        message = json.loads(line)
        if message.get("method") == "initialize":
            say({"id": message["id"], "result": {"protocolVersion": "2025-11-25", "capabilities": {}}})
        elif message.get("method") == "tools/call":
            call(message["id"], message["params"]["name"])
    time.sleep(0.01)


if __name__ == "__main__":
    main()
