"""The stores that the contract holds for. A new kind of store is one more entry here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import interlock
from interlock.store.interface import CallRow, Store
from interlock.store.sqlite import SqliteStore

OpenStore = Callable[[], Store]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture(params=["sqlite"])
def open_store(request: pytest.FixtureRequest, home: Path) -> Iterator[OpenStore]:
    """Opens the same database again and again, as so many processes would."""
    opened: list[Store] = []

    def open_it() -> Store:
        kinds: dict[str, Callable[[], Store]] = {"sqlite": lambda: SqliteStore(home, report=pytest.fail)}
        opened.append(kinds[request.param]())
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def row() -> Callable[..., CallRow]:
    """Makes a row that needs only say what matters."""

    def make(
        id: str = "a1", at_ns: int = 1, server: str | None = "git", status: str = "ok", record: bytes = b"{}"
    ) -> CallRow:
        return CallRow(id, at_ns, server, status, record)

    return make


@pytest.fixture
def child_environ() -> dict[str, str]:
    """An environment in which a child process imports this Interlock."""
    source = Path(interlock.__file__).parent.parent
    return {**os.environ, "PYTHONPATH": str(source), "PYTHONUNBUFFERED": "1"}
