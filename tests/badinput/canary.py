"""The client that must never notice anything: it calls the good server without pause, in both eras.

A process of its own, with the good server in it, so that what it notices is the gateway's doing and not the generator's. As a
program it says the server's port, reads the gateway's port from its input, and at the end of that says how many calls it made
and how long the longest took.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from .clients import SECONDS, Http, Wrong
from .servers import echo, serve_http


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


async def main() -> None:
    server = await serve_http("good", True, True, echo)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    stop = asyncio.Event()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    port = int(await reader.readline() or b"0")
    ending = asyncio.ensure_future(reader.read())
    ending.add_done_callback(lambda _: stop.set())
    found = await asyncio.gather(sing(port, True, stop), sing(port, False, stop)) if port else []
    print(
        json.dumps(
            {"calls": sum(calls for calls, _ in found), "longest": max((wait for _, wait in found), default=0.0)}
        )
    )


_ROOT = Path(__file__).resolve().parents[2]


class Canary:
    """The process, from outside. `good` is the port of the server that it calls."""

    def __init__(self, process: asyncio.subprocess.Process, good: int) -> None:
        self._process = process
        self.good = good

    @classmethod
    async def start(cls, environment: dict[str, str]) -> Canary:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.badinput.canary", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env=environment, cwd=_ROOT,
        )  # fmt: skip
        assert process.stdout is not None
        return cls(process, json.loads(await process.stdout.readline())["port"])

    def sing(self, port: int) -> None:
        """Call through the gateway at this port from now on."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"%d\n" % port)

    async def stop(self) -> tuple[int, float]:
        """How many calls it made, and how long the longest took in seconds. Raises Wrong where one went wrong."""
        async with asyncio.timeout(2 * SECONDS):
            said, complaint = await self._process.communicate(b"")
        if self._process.returncode != 0:
            raise Wrong(complaint.decode(errors="replace")[-1000:])
        found = json.loads(said)
        return found["calls"], found["longest"]

    async def kill(self) -> None:
        """For where something else went wrong first."""
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


if __name__ == "__main__":
    asyncio.run(main())
