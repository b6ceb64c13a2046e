"""The lock of a grant within one process. Between processes: test_store_processes.py."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from interlock.upstream.oauth.grant_store import Busy, GrantStore, Held, grant_id

from .grants import ID, ISSUER, SERVER, grant, put


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "home"


@pytest.fixture
def store(home: Path) -> GrantStore:
    return GrantStore(home)


async def test_the_lock_excludes_tasks_of_one_process(store: GrantStore) -> None:
    inside = 0
    most = 0

    async def add() -> None:
        nonlocal inside, most
        async with store.locked(ID, 20) as held:
            inside += 1
            most = max(most, inside)
            before = held.read()
            await asyncio.sleep(0)
            held.write(grant(access_token=str(int(before.access_token or 0) + 1 if before else 1)))
            inside -= 1

    await asyncio.gather(*(add() for _ in range(20)))
    after = store.read(ID)
    assert after is not None
    assert (most, after.access_token, after.generation) == (1, "20", 20)


async def test_busy_comes_in_time_and_the_loop_goes_on(store: GrantStore) -> None:
    turns = 0

    async def spin() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    spinning = asyncio.create_task(spin())
    async with store.locked(ID, 1):
        began = time.monotonic()
        with pytest.raises(Busy, match=r"holds .*\.lock for more than 0\.2 seconds"):
            async with store.locked(ID, 0.2):
                raise AssertionError
        assert 0.2 <= time.monotonic() - began < 2
        with pytest.raises(Busy):
            async with store.locked(ID, 0):
                raise AssertionError
        other = grant_id(SERVER, ISSUER, "another")
        async with store.locked(other, 0):
            pass
    assert turns > 20
    spinning.cancel()
    async with store.locked(ID, 0):
        pass


async def test_a_cancelled_waiter_and_a_cancelled_holder_leave_no_lock(store: GrantStore) -> None:
    entered = asyncio.Event()

    async def hold() -> None:
        async with store.locked(ID, 5) as held:
            held.reserve()
            entered.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await entered.wait()
    waiter = asyncio.create_task(put(store, grant()))
    await asyncio.sleep(0)
    for task in (waiter, holder):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with store.locked(ID, 0):
        pass
    assert [path.name for path in store.root.iterdir()] == [f"{ID}.lock"]


async def test_a_failure_under_the_lock_lets_it_go(store: GrantStore) -> None:
    with pytest.raises(ZeroDivisionError):
        async with store.locked(ID, 1):
            raise ZeroDivisionError
    async with store.locked(ID, 0):
        pass


async def test_held_is_of_no_use_after_the_lock(store: GrantStore) -> None:
    async with store.locked(ID, 1) as held:
        kept: Held = held
    for use in (kept.read, kept.reserve, kept.remove, lambda: kept.write(grant()), lambda: kept.drop_if("x")):
        with pytest.raises(RuntimeError, match="not held"):
            use()


async def test_forget_waits_for_the_lock_and_says_busy(store: GrantStore, monkeypatch: pytest.MonkeyPatch) -> None:
    written = await put(store, grant())
    monkeypatch.setattr("interlock.upstream.oauth.grant_store._FORGET_SECONDS", 0.05)
    async with store.locked(ID, 1) as held:
        with pytest.raises(Busy):
            store.forget(ID)
        assert store.read(ID) == written
        assert held.remove() is True
        assert held.remove() is False
    assert store.read(ID) is None
