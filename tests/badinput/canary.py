"""The client that must never notice anything: a process of its own that calls the good server without pause, in both eras.

As a program it is `canary.py PORT`; it ends when its input does, and says how many calls it made and how long the longest took.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from .clients import SECONDS, Http, Wrong


async def sing(port: int, modern: bool, stop: asyncio.Event) -> tuple[int, float]:
    """Calls until told to stop, and checks every answer. Raises Wrong."""
    http = Http(port, modern)
    await http.start()
    loop = asyncio.get_running_loop()
    calls, longest = 0, 0.0
    while not stop.is_set():
        calls += 1
        arguments = {"n": calls, "text": "canary é"}
        began = loop.time()
        message = await http.call("good__echo", arguments, calls)
        longest = max(longest, loop.time() - began)
        if message.get("result", {}).get("structuredContent") != arguments:
            raise Wrong(f"the canary's call went wrong: {str(message)[:500]}")
        await asyncio.sleep(0.002)
    await http.close()
    return calls, longest


async def main(port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    ending = asyncio.ensure_future(reader.read())
    ending.add_done_callback(lambda _: stop.set())
    found = await asyncio.gather(sing(port, True, stop), sing(port, False, stop))
    print(json.dumps({"calls": sum(calls for calls, _ in found), "longest": max(longest for _, longest in found)}))


_ROOT = Path(__file__).resolve().parents[2]


class Canary:
    """The process, from outside."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, port: int, environment: dict[str, str]) -> Canary:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.badinput.canary", str(port), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env=environment, cwd=_ROOT,
        )  # fmt: skip
        return cls(process)

    async def stop(self) -> tuple[int, float]:
        """How many calls it made, and how long the longest took in seconds. Raises Wrong where one went wrong."""
        async with asyncio.timeout(2 * SECONDS):
            said, complaint = await self._process.communicate(b"")
        if self._process.returncode != 0:
            raise Wrong(complaint.decode(errors="replace")[-1000:])
        found = json.loads(said)
        return found["calls"], found["longest"]


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
