"""Real processes that use one grant, for test_refresh_processes.py. They are forked from one warm process. POSIX only.

`refresh_children.py together HOME URL CLIENT NUMBER MODE` prints one JSON line for each child: what it got.
`refresh_children.py die HOME URL CLIENT POINT` ends by SIGKILL at that named point of a refresh, or with 0 where it was
not reached; `die-at-call ... NUMBER` at that call to the operating system; `wait HOME URL CLIENT` is killed from outside.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import filelock
import httpx2

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.upstream.oauth import refresh
from interlock.upstream.oauth.authorizer import OAuthAuthorization
from interlock.upstream.oauth.shared import Shared, shared_for
from interlock.upstream.oauth.timing import Timing

assert filelock.FileLock
assert httpx2.AsyncClient
QUICK = Timing(grace_seconds=1.0, knock_seconds=0.3)


CALLS = (
    "open", "close", "write", "fsync", "ftruncate", "fchmod", "utime", "replace", "rename", "unlink", "mkdir", "chmod", "lstat",
    "listdir", "scandir", "read",
)  # fmt: skip


def forked(work: Callable[[], None]) -> int:
    """The child's process id. It ends with 0 where the work returned, and never runs more of this program."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def die_at(point: int) -> None:
    """From now on: kill this process at the call of that number to the operating system, before it is made."""
    made = 0

    def wrapped(real: Callable[..., object]) -> Callable[..., object]:
        def counting(*arguments: object, **named: object) -> object:
            nonlocal made
            made += 1
            if made == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return counting

    for call in CALLS:
        setattr(os, call, wrapped(getattr(os, call)))


def shared(home: Path, reached: Callable[[str], None] = lambda step: None) -> Shared:
    def refuse(url: str) -> bool:
        raise AssertionError("a browser was opened")

    return shared_for(
        home, {}, build=lambda: "v0.0.0+child", user_agent="interlock/0", announce=lambda text: None,
        open_browser=refuse, timing=QUICK, reached=reached,
    )  # fmt: skip


async def one(home: Path, url: str, client: str, mode: str, gate: int) -> dict[str, object]:
    ours = shared(home)
    auth = OAuthAuthorization("srv", url, OAuth(client_id=client), ours)
    used = auth.current() or ""
    await asyncio.to_thread(os.read, gate, 1)
    try:
        if mode == "401":
            value = await auth.refused(used, 401, {b"www-authenticate": b'Bearer error="invalid_token"'}, 40)
        elif mode == "idle":
            auth.start()
            ends = time.monotonic() + 10
            while (auth.current() or used) == used and time.monotonic() < ends:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await asyncio.sleep(1.0)
            value = auth.current() or ""
        else:
            value = await auth.ready(40)
        return {"token": hashlib.sha256(value.removeprefix("Bearer ").encode()).hexdigest(), "fault": None}
    except Fault as fault:
        return {"token": None, "fault": fault.slug, "message": fault.message}
    finally:
        await auth.close()
        await ours.close()


def together(home: Path, url: str, client: str, number: int, mode: str) -> int:
    gate, opener = os.pipe()

    def child() -> None:
        os.close(opener)
        line = json.dumps(asyncio.run(one(home, url, client, mode, gate))).encode() + b"\n"
        os.write(1, line)  # short, so in one piece

    children = [forked(child) for _ in range(number)]
    os.close(gate)
    time.sleep(0.3)
    os.close(opener)
    return sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)


async def renew(home: Path, url: str, client: str, reached: Callable[[str], None]) -> None:
    ours = shared(home, reached)
    auth = OAuthAuthorization("srv", url, OAuth(client_id=client), ours)
    known = auth._known
    assert known.id is not None
    assert known.found is not None
    await refresh.renew(
        ours, "srv", known.id, known.found, rejected=(auth.current() or "").removeprefix("Bearer ") or None, waited=True
    )
    await ours.close()


def main(command: str, home: Path, url: str, client: str, *more: str) -> int:
    if command == "together":
        return together(home, url, client, int(more[0]), more[1])

    def reached(step: str) -> None:
        if command in ("die", "stop") and step == more[0]:
            os.kill(os.getpid(), signal.SIGKILL if command == "die" else signal.SIGSTOP)
        if command == "die-at-call" and step == "refresh-begins":
            die_at(int(more[0]))

    asyncio.run(renew(home, url, client, reached))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4], *sys.argv[5:]))
