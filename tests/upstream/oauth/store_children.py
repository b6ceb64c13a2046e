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

import filelock
import msgspec

from interlock.upstream.oauth import flow_note, private_files
from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.flow_note import FlowNote
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.grant_log import GrantLog
from interlock.upstream.oauth.grant_store import Busy, GrantStore, StoreTrouble, grant_id, token_hash

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


def temporary(home: Path) -> list[str]:
    root = home / "grants"
    return sorted(name for name in os.listdir(root) if name.endswith(".tmp")) if root.is_dir() else []


CALLS = (
    "open",
    "close",
    "write",
    "fsync",
    "ftruncate",
    "fchmod",
    "utime",
    "replace",
    "rename",
    "unlink",
    "mkdir",
    "chmod",
)


def die_at(point: int, name: Path) -> None:
    """Kill this process at the call of that number to the operating system (before it is made)."""
    made = 0

    def wrapped(call: str, real: Callable[..., object]) -> Callable[..., object]:
        def counting(*arguments: object, **named: object) -> object:
            nonlocal made
            made += 1
            if made == point:
                descriptor = REAL["open"](name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                REAL["write"](descriptor, call.encode())
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **named)

        return counting

    for call in CALLS:
        setattr(os, call, wrapped(call, REAL[call]))


REAL: dict[str, Callable[..., object]] = {call: getattr(os, call) for call in CALLS}


def found_of(server_url: str) -> Discovered:
    metadata = ServerMetadata(issuer="https://issuer.test")
    return Discovered(server_url=server_url, resource=server_url, issuer="https://issuer.test", metadata=metadata)


def note(flow_id: str) -> FlowNote:
    return FlowNote(
        flow_id=flow_id,
        url="https://issuer.test/authorize",
        port=33418,
        pid=os.getpid(),
        created=time.time(),
        found=found_of("https://resource.test/mcp"),
        registration=REGISTRATION,
    )


async def _replace(store: GrantStore) -> None:
    async with store.locked(ID, 5) as held:
        held.reserve()
        held.write(grant("new"))


async def _twice(store: GrantStore) -> None:
    async with store.locked(ID, 5) as held:
        spent = held.write(msgspec.structs.replace(grant("old"), state="spent"))
        held.write(msgspec.structs.replace(spent, access_token="new", state="live"))


async def _drop(store: GrantStore) -> None:
    async with store.locked(ID, 5) as held:
        assert held.drop_if(token_hash("old"))


async def _note(store: GrantStore) -> None:
    flow_note.write_note(store.root, ID, note("second"))


async def _registration(store: GrantStore) -> None:
    store.keep_registration(msgspec.structs.replace(REGISTRATION, client_id="second"))


def _seed_grant(home: Path) -> None:
    asyncio.run(set_to(GrantStore(home), "old"))


def _seed_nothing(home: Path) -> None:
    home.mkdir()


def _seed_damage(home: Path) -> None:
    _seed_grant(home)
    (home / "grants" / f"{ID}.json").write_bytes(b'{"version": 1, "value"')


def _seed_note(home: Path) -> None:
    _seed_grant(home)
    flow_note.write_note(home / "grants", ID, note("first"))
    GrantStore(home).keep_registration(msgspec.structs.replace(REGISTRATION, client_id="first"))


ACTS = {
    "replace": (_seed_grant, _replace),
    "first": (_seed_nothing, _replace),
    "twice": (_seed_grant, _twice),
    "drop": (_seed_grant, _drop),
    "damaged": (_seed_damage, _replace),
    "note": (_seed_note, _note),
    "registration": (_seed_note, _registration),
}


def kill(home: Path, act: str) -> object:
    """Do the act again and again, each time killed one call later, until it is through; what is found after each."""
    seed, work = ACTS[act]
    seen: list[dict[str, object]] = []
    for point in range(1, 200):
        place = home / f"{act}-{point}"
        at = home / "at"
        at.unlink(missing_ok=True)
        seed(place)

        def one(point: int = point, place: Path = place, at: Path = at) -> None:
            die_at(point, at)
            asyncio.run(work(GrantStore(place)))

        code = os.waitstatus_to_exitcode(os.waitpid(forked(one), 0)[1])
        seen.append({"at": at.read_text() if at.exists() else "", "code": code, **after(place)})
        if code == 0:
            return seen
        assert code == -signal.SIGKILL, code
    raise AssertionError("never done")


def after(home: Path) -> dict[str, object]:
    store = GrantStore(home)
    left = len(temporary(home))
    # Reading needs no lock and comes first: that is what the other processes do.
    before = store.read(ID)
    began = time.monotonic()

    async def lock() -> None:
        async with store.locked(ID, 0):
            pass

    asyncio.run(lock())
    waited = time.monotonic() - began
    # What is not the grant's own is stale only by age.
    for name in temporary(home):
        os.utime(home / "grants" / name, (1, 1))
    asyncio.run(set_to(store, "later"))
    flow = flow_note.read_note(store.root, ID)
    client = store.registration("https://issuer.test", None)
    return {
        "token": before.access_token if before else None,
        "left": left,
        "waited": waited,
        "swept": temporary(home),
        "flow": flow.flow_id if flow else None,
        "client": client.client_id if client else None,
        "aside": sum(".damaged-" in name for name in os.listdir(store.root)),
    }


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
            held.reserve()
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
