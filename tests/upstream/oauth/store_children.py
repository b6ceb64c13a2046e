"""Many real processes on one grant store, for test_store_processes.py. Forks from one warm process, so that 30 cost little.

`store_children.py COMMAND HOME [NUMBER ...]` prints one JSON value. POSIX only.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from store_forks import ID, REGISTRATION, forked, grant, set_to, temporary, together
from store_kills import kill

from interlock.upstream.oauth import private_files
from interlock.upstream.oauth.grant_log import GrantLog
from interlock.upstream.oauth.grant_store import Busy, GrantStore, StoreTrouble, token_hash


def count(home: Path, processes: int, rounds: int) -> object:
    """Each child adds one to the number in the grant, so often."""

    async def add() -> None:
        store = GrantStore(home)
        for _ in range(rounds):
            async with store.locked(ID, 50) as held:
                before = held.read()
                number = int(before.access_token or 0) if before else 0
                # Where two could be in here at once, they would be now.
                await asyncio.sleep(0)
                held.write(grant(str(number + 1)))

    codes = together(processes, lambda _: asyncio.run(add()))
    after = GrantStore(home).read(ID)
    assert after is not None
    return {"codes": codes, "token": after.access_token, "generation": after.generation, "left": temporary(home)}


def refresh(home: Path, processes: int) -> object:
    """Each child means to replace the same token: the first does, the others see it. A loser then tries to drop its own."""
    asyncio.run(set_to(GrantStore(home), "old"))
    spent = home / "spent"

    mine = GrantStore(home).read(ID)
    assert mine is not None

    async def one() -> None:
        store = GrantStore(home)
        async with store.locked(ID, 50) as held:
            now = held.read()
            assert now is not None
            if now.generation == mine.generation:
                with spent.open("a") as file:
                    file.write("x")
                held.write(grant("new"))
        # As one that got invalid_grant for the old pair in a parallel world.
        async with store.locked(ID, 50) as held:
            assert not held.drop_if(token_hash("refresh-old"))

    codes = together(processes, lambda _: asyncio.run(one()))
    after = GrantStore(home).read(ID)
    return {"codes": codes, "spent": spent.read_text(), "token": after.access_token if after else None}


def hold(home: Path) -> object:
    """A child takes the lock and is killed while it holds it; how long the lock takes to be free."""
    asyncio.run(set_to(GrantStore(home), "old"))
    told, tell = os.pipe()

    async def take() -> None:
        async with GrantStore(home).locked(ID, 5) as held:
            held.reserve()
            os.write(tell, b"x")
            await asyncio.sleep(60)

    child = forked(lambda: asyncio.run(take()))
    os.read(told, 1)

    async def lock(seconds: float) -> None:
        async with GrantStore(home).locked(ID, seconds):
            pass

    try:
        asyncio.run(lock(0.05))
        busy = False
    except Busy:
        busy = True
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    began = time.monotonic()
    asyncio.run(lock(5))
    return {"busy": busy, "seconds": time.monotonic() - began, "left": temporary(home)}


def log(home: Path, processes: int, lines: int, length: int) -> object:
    def one(place: int) -> None:
        writer = GrantLog(home, lambda: "v0.0.0+test")
        for number in range(lines):
            writer.write("refreshed", "resource.test", f"writer {place} line {number} {'w ' * (length // 2)}end")

    return {"codes": together(processes, one)}


def full(home: Path) -> object:
    """What a disk without space does to a write that is under way: here a limit of the file size, which needs no root."""
    asyncio.run(set_to(GrantStore(home), "old"))
    result = home / "result"

    async def one() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        store = GrantStore(home)
        texts: list[str] = []
        async with store.locked(ID, 5) as held:
            for attempt in (held.reserve, lambda: held.write(grant("new"))):
                try:
                    attempt()
                except StoreTrouble as error:
                    texts.append(str(error))
        GrantLog(home, lambda: "v0").write("refreshed", "resource.test", "w " * 100)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        GrantLog(home, lambda: "v0").write("refreshed", "resource.test", "after")
        result.write_text(json.dumps(texts))

    code = os.waitstatus_to_exitcode(os.waitpid(forked(lambda: asyncio.run(one())), 0)[1])
    kept = GrantStore(home).read(ID)
    return {
        "code": code,
        "texts": json.loads(result.read_text()),
        "token": kept.access_token if kept else None,
        "left": temporary(home),
    }


def foreign(home: Path) -> object:
    """Needs root. What another user's folder and files do: as nobody in root's folder, and as root in nobody's."""
    asyncio.run(set_to(GrantStore(home), "old"))
    home.parent.chmod(0o755)
    home.chmod(0o755)
    (home / "grants").chmod(0o755)
    result = home.parent / "result"
    result.touch()
    os.chown(result, 65534, 65534)

    def one() -> None:
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        store = GrantStore(home)
        texts: list[str] = []
        for attempt in (lambda: store.read(ID), lambda: asyncio.run(set_to(store, "new")), store.all):
            try:
                attempt()
            except StoreTrouble as error:
                texts.append(str(error))
        GrantLog(home, lambda: "v0").write("refreshed", "resource.test", "nothing happens")
        result.write_text(json.dumps(texts))

    code = os.waitstatus_to_exitcode(os.waitpid(forked(one), 0)[1])
    theirs = home.parent / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, 65534, 65534)
    os.umask(0o777)
    asyncio.run(set_to(GrantStore(theirs), "old"))
    GrantLog(theirs, lambda: "v0").write("refreshed", "resource.test", "for nobody")
    paths = list(theirs.rglob("*"))
    return {
        "code": code,
        "texts": json.loads(result.read_text()),
        "kept": os.listdir(home / "grants"),
        "owners": {path.name: os.stat(path).st_uid for path in paths},
        "modes": {path.name: os.stat(path).st_mode & 0o777 for path in paths},
    }


def disk(home: Path) -> object:
    """Needs a mount of its own under `home` (256 KiB): full, then with space reserved before, then read-only."""
    store = GrantStore(home / "state")
    asyncio.run(set_to(store, "old"))
    filler = home / "filler"
    seen: dict[str, object] = {}

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass

    def attempt(name: str, work: Callable[[], object]) -> None:
        try:
            work()
            seen[name] = "done"
        except StoreTrouble as error:
            seen[name] = f"{errno.errorcode[error.errno or 0]} {error}"
        kept = store.read(ID)
        seen[f"{name} token"] = kept.access_token if kept else None

    async def reserved() -> None:
        filler.unlink()
        async with store.locked(ID, 5) as held:
            held.write(msgspec.structs.replace(grant("old"), state="spent"))
            # The token endpoint answers now.
            fill()
            held.write(grant("fresh"))

    fill()
    attempt("full", lambda: asyncio.run(set_to(store, "new")))
    attempt("full client", lambda: store.keep_registration(REGISTRATION))
    seen["left"] = temporary(home / "state")
    attempt("reserved", lambda: asyncio.run(reserved()))
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
    attempt("read-only", lambda: asyncio.run(set_to(store, "new")))
    attempt("read-only client", lambda: store.keep_registration(REGISTRATION))
    attempt("read-only forget", lambda: store.forget(ID))
    GrantLog(home / "state", lambda: "v0").write("refreshed", "resource.test", "nothing happens")
    return seen


COMMANDS: dict[str, Callable[..., object]] = {
    "count": count,
    "refresh": refresh,
    "kill": kill,
    "hold": hold,
    "log": log,
    "full": full,
    "foreign": foreign,
    "disk": disk,
}

if __name__ == "__main__":
    given: list[object] = [int(each) if each.isdigit() else each for each in sys.argv[3:]]
    assert private_files.LIMIT
    print(json.dumps(COMMANDS[sys.argv[1]](Path(sys.argv[2]), *given)))
