"""Last known state: found at once, saved without waiting, and never a reason for the gateway to fail."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.store.interface import MAX_CATALOGUE_BYTES, CallRow
from interlock.store.last_known import LastKnown
from interlock.store.sqlite import SqliteStore

MakeRow = Callable[..., CallRow]


@pytest.fixture
def said() -> list[str]:
    return []


def test_what_is_saved_is_known_at_once_and_after_the_next_start(home: Path, said: list[str]) -> None:
    store = SqliteStore(home)
    known = LastKnown(store, said.append)
    assert known.load_catalogue("git", "d") is None
    assert known.load_era("git", "d") is None
    for number in range(50):
        known.save_catalogue("git", "d", b"%d" % number)
        known.save_era("git", "d", f"era {number}")
        assert known.load_catalogue("git", "d") == b"%d" % number
        assert known.load_era("git", "d") == f"era {number}"
    assert known.load_catalogue("git", "e") is None
    assert known.flush()
    store.close()
    again = SqliteStore(home)
    assert LastKnown(again).load_catalogue("git", "d") == b"49"
    assert LastKnown(again).load_era("git", "d") == "era 49"
    again.close()
    assert said == []


def test_flushing_nothing_is_done_at_once(home: Path) -> None:
    assert LastKnown(SqliteStore(home)).flush()
    assert not home.exists()


def test_saving_does_not_wait_for_a_locked_database(home: Path, row: MakeRow, said: list[str]) -> None:
    store = SqliteStore(home)
    store.append_calls([row()])
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    known = LastKnown(store, said.append)
    known.save_catalogue("git", "d", b"first")
    assert known.flush(timeout=0.0) is False
    known.save_catalogue("git", "d", b"second")
    assert known.load_catalogue("git", "d") == b"second"
    other.execute("ROLLBACK")
    other.close()
    assert known.flush()
    assert store.load_catalogue("git", "d") == b"second"
    store.close()
    assert said == []


def test_a_store_that_fails_is_reported_once_and_fails_nobody(home: Path, said: list[str]) -> None:
    home.write_text("a file where the folder should be")
    store = SqliteStore(home)
    known = LastKnown(store, said.append)
    for _ in range(3):
        known.save_catalogue("git", "d", b"x")
        known.save_era("git", "d", "modern")
        assert known.flush()
        assert known.load_catalogue("git", "d") is None
    assert len(said) == 1
    assert "it cannot be opened or written" in said[0]
    home.unlink()
    known.save_catalogue("git", "d", b"y")
    assert known.flush()
    assert known.load_catalogue("git", "d") == b"y"
    store.close()


def test_a_catalogue_too_large_to_keep_is_reported_and_the_rest_is_saved(home: Path, said: list[str]) -> None:
    store = SqliteStore(home)
    known = LastKnown(store, said.append)
    known.save_catalogue("big", "d", bytes(MAX_CATALOGUE_BYTES + 1))
    known.save_catalogue("git", "d", b"x")
    assert known.flush()
    assert known.load_catalogue("big", "d") is None
    assert known.load_catalogue("git", "d") == b"x"
    assert ["the catalogue of big has" in message for message in said] == [True]
    store.close()


def test_a_process_that_ends_at_once_saves_first(home: Path, child_environ: dict[str, str]) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from interlock.store.last_known import LastKnown\n"
        "from interlock.store.sqlite import SqliteStore\n"
        "LastKnown(SqliteStore(Path(sys.argv[1]))).save_era('git', 'd', 'modern')"
    )
    subprocess.run([sys.executable, "-c", code, str(home)], env=child_environ, check=True)
    store = SqliteStore(home)
    assert store.load_era("git", "d") == "modern"
    store.close()
