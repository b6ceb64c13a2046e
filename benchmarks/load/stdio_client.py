"""Load over stdin and stdout: keeps `--concurrency` tool calls open with one child, and checks every answer.

    python benchmarks/load/stdio_client.py --concurrency 16 --seconds 3 -- python benchmarks/responders/fast_stdio.py

Prints `BENCH {json}` with the same fields as call.lua. The child is started by this program and ended with it; the time
until its first answer is not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import subprocess
import time
from statistics import quantiles
from typing import IO

import msgspec

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_START_LIMIT_SECONDS = 60


class _Content(msgspec.Struct):
    text: str = ""


class _Result(msgspec.Struct):
    content: list[_Content] = []
    isError: bool = False


class _Answer(msgspec.Struct):
    id: int | str | None = None
    result: _Result | None = None


_decode = msgspec.json.Decoder(_Answer).decode


class Peer:
    """The child's pipes, read in lines."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in: IO[bytes] = process.stdin
        self._out = process.stdout.fileno()
        self._pending = b""

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._in.fileno(), view) :]

    def lines(self, seconds: float) -> list[bytes]:
        """Whole lines that arrived; an empty list after `seconds` of silence. Raises EOFError at the child's end."""
        if not select.select([self._out], [], [], seconds)[0]:
            return []
        data = os.read(self._out, 1 << 18)
        if not data:
            raise EOFError("the child ended")
        found = (self._pending + data).split(b"\n")
        self._pending = found.pop()
        return found

    def ask(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """One request and its answer, whatever else arrives meanwhile."""
        self.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n")
        end = time.monotonic() + _START_LIMIT_SECONDS
        while time.monotonic() < end:
            for line in self.lines(1):
                with contextlib.suppress(ValueError):
                    message = json.loads(line)
                    if message.get("id") == method and "method" not in message:
                        return message  # type: ignore[no-any-return]
        raise TimeoutError(f"no answer to {method}")


def open_peer(peer: Peer, modern: bool, tool: str) -> str:
    """The handshake of the era; waits for a tool whose name ends in `tool`, and returns its exposed name."""
    if modern:
        peer.ask("server/discover", {"_meta": _META})
    else:
        info = {"name": "bench", "version": "1.0.0"}
        peer.ask("initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info})
        peer.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    end = time.monotonic() + _START_LIMIT_SECONDS
    while time.monotonic() < end:
        result = peer.ask("tools/list", {"_meta": _META} if modern else {}).get("result")
        tools = result.get("tools", []) if isinstance(result, dict) else []
        for listed in tools:
            if listed["name"].endswith(tool):
                return str(listed["name"])
        time.sleep(0.1)
    raise TimeoutError(f"no tool ending in {tool!r} was listed")


def load(peer: Peer, name: str, modern: bool, concurrency: int, seconds: float) -> dict[str, object]:
    """Runs for `seconds` and returns the counts; ids start at 1."""
    meta = b',"_meta":' + json.dumps(_META, separators=(",", ":")).encode() if modern else b""
    shape = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"' + name.encode()
    shape += b'","arguments":{"text":"hello world %d"}' + meta + b"}}\n"
    started: dict[int, float] = {}
    times: list[float] = []
    bad, sample, last = 0, "", 0
    begin = now = time.perf_counter()
    end = begin + seconds
    batch: list[bytes] = []
    for _ in range(concurrency):
        last += 1
        started[last] = now
        batch.append(shape % (last, last))
    peer.send(b"".join(batch))
    while started and now < end + 20:
        lines = peer.lines(1)
        now = time.perf_counter()
        batch = []
        for line in lines:
            answer = _decode(line)
            if not isinstance(answer.id, int) or answer.id not in started:
                continue  # a notification, or a request of the server's
            times.append(now - started.pop(answer.id))
            result = answer.result
            if result is None or result.isError or result.content[0].text != f"hello world {answer.id}":
                bad += 1
                sample = sample or line[:300].decode(errors="replace")
            if now < end:
                last += 1
                started[last] = now
                batch.append(shape % (last, last))
        if batch:
            peer.send(b"".join(batch))
    cuts = [cut * 1e6 for cut in quantiles(times, n=100)] if len(times) > 1 else [0.0] * 99
    return {
        "good": len(times) - bad,
        "bad": bad + len(started),
        "seconds": now - begin,
        "p50_us": cuts[49],
        "p99_us": cuts[98],
        "max_us": max(times, default=0.0) * 1e6,
        "connect": 0,
        "read": 0,
        "write": 0,
        "timeout": 0,
        "sample": sample,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--era", choices=("modern", "legacy"), default="modern")
    parser.add_argument("--tool", default="echo")
    parser.add_argument("command", nargs="+", help="after --: the child")
    arguments = parser.parse_args()
    modern = arguments.era == "modern"
    with subprocess.Popen(arguments.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        try:
            peer = Peer(process)
            name = open_peer(peer, modern, arguments.tool)
            result = load(peer, name, modern, arguments.concurrency, arguments.seconds)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
    print("BENCH " + json.dumps(result))


if __name__ == "__main__":
    main()
