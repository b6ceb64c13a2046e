"""Killing a process at each of its calls to the operating system, and what is found on the disk after each."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from store_forks import ID, REGISTRATION, forked, grant, set_to, temporary

from interlock.upstream.oauth import flow_note
from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.flow_note import FlowNote
from interlock.upstream.oauth.grant_store import GrantStore, token_hash

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
