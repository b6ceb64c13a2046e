"""Forks that work on one grant: what store_children.py and store_kills.py share. POSIX only."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import filelock

from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.grant_store import GrantStore, grant_id

assert filelock.FileLock  # imported before the forks
REGISTRATION = Registration(issuer="https://issuer.test", client_id="client", source="dynamic")
ID = grant_id("https://resource.test/mcp", "https://issuer.test", None)


def grant(token: str) -> Grant:
    return Grant(
        server_url="https://resource.test/mcp",
        resource="https://resource.test/mcp",
        issuer="https://issuer.test",
        registration=REGISTRATION,
        access_token=token,
        refresh_token=f"refresh-{token}",
    )


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
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(code)


def together(number: int, work: Callable[[int], None]) -> list[int]:
    """So many children that begin at the same moment; their exit codes."""
    gate, opener = os.pipe()

    def one(place: int) -> None:
        os.close(opener)
        os.read(gate, 1)
        work(place)

    children = [forked(lambda place=place: one(place)) for place in range(number)]  # type: ignore[misc]
    os.close(gate)
    os.close(opener)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


async def set_to(store: GrantStore, token: str) -> None:
    async with store.locked(ID, 30) as held:
        held.write(grant(token))


def temporary(home: Path) -> list[str]:
    root = home / "grants"
    return sorted(name for name in os.listdir(root) if name.endswith(".tmp")) if root.is_dir() else []
