"""A damaged file is set aside, never deleted, and a new one begun; everybody learns of it once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.store import database_file
from interlock.store.interface import CallRow, StoreError
from interlock.store.sqlite import SqliteStore

MakeRow = Callable[..., CallRow]
Damage = Callable[[Path], None]


def junk_throughout(path: Path) -> None:
    path.write_bytes(b"this is not a database, it is a note to myself\n" * 200)


def junk_header(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[:100] = b"\xff" * 100
    path.write_bytes(content)


def junk_after_the_first_page(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)


def cut_in_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


DAMAGES = [junk_throughout, junk_header, junk_after_the_first_page, cut_in_half]


def filled(home: Path, row: MakeRow) -> Path:
    store = SqliteStore(home)
    store.append_calls([row(f"old{n:04}", n, record=b'{"x":"' + b"y" * 500 + b'"}') for n in range(500)])
    store.close()
    return store.path


def set_aside_in(home: Path) -> list[Path]:
    return [path for path in home.iterdir() if ".corrupt-" in path.name and not path.name.endswith(("-wal", "-shm"))]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("first", ["write", "read"])
def test_a_damaged_file_is_set_aside_and_a_new_one_begun(home: Path, row: MakeRow, damage: Damage, first: str) -> None:
    path = filled(home, row)
    damage(path)
    damaged = path.read_bytes()
    said: list[str] = []
    store = SqliteStore(home, report=said.append)
    if first == "read":
        # What the file still gives, it gives; reading all of it meets the damage.
        assert len(store.recent_calls(1000)) in (0, 500)
    store.append_calls([row(f"new{n}", 1000 + n) for n in range(3)])
    store.append_calls([row("new3", 1003)])
    assert [found.id for found in store.recent_calls(4)] == ["new3", "new2", "new1", "new0"]

    (kept,) = set_aside_in(home)
    assert kept.read_bytes()[-len(damaged) :] == damaged or kept.read_bytes()[:4096] == damaged[:4096]
    assert len(said) == 1
    assert "is damaged" in said[0]
    assert str(kept) in said[0]
    (gap,) = store.recent_gaps(0, 9)
    assert (gap.lost, gap.from_ns) == (None, 0)
    assert kept.name in gap.reason
    store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_the_log_and_its_index_are_set_aside_under_the_name_that_belongs_to_the_file(home: Path) -> None:
    home.mkdir()
    path = home / "interlock.db"
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).write_text(f"content{suffix}")
    with database_file.exclusively(path):
        target = database_file.set_aside(path, database_file.identity(path))
    assert target is not None
    assert {each.name: each.read_text() for each in home.iterdir()} == {
        target.name: "content",
        f"{target.name}-wal": "content-wal",
        f"{target.name}-shm": "content-shm",
        "interlock.db.lock": "",
    }


def test_a_second_damage_within_a_second_gets_a_name_of_its_own(home: Path, row: MakeRow) -> None:
    store = SqliteStore(home, report=lambda message: None)
    for _ in range(3):
        store.append_calls([row()])
        store.close()
        junk_throughout(store.path)
    store.append_calls([row()])
    store.close()
    assert len(set_aside_in(home)) == 3


def test_a_file_that_is_not_the_one_seen_is_not_set_aside(home: Path, row: MakeRow) -> None:
    path = filled(home, row)
    seen = database_file.identity(path)
    path.rename(path.with_name("moved"))
    path.write_bytes(b"new")
    with database_file.exclusively(path):
        assert database_file.set_aside(path, seen) is None
        assert database_file.set_aside(path, None) is None
    assert path.read_bytes() == b"new"


def test_another_store_that_had_the_damaged_file_open_goes_on_in_the_new_one(home: Path, row: MakeRow) -> None:
    said: list[str] = []
    first, second = (SqliteStore(home, report=said.append) for _ in range(2))
    first.append_calls([row("a")])
    second.append_calls([row("b")])
    # As another process does it that found the file damaged, while both have it open.
    with database_file.exclusively(first.path):
        aside = database_file.set_aside(first.path, database_file.identity(first.path))
    first.append_calls([row("c")])
    second.append_calls([row("d")])
    assert [found.id for found in second.find_calls("", 9)] == ["c", "d"]
    first.close()
    second.close()
    third = SqliteStore(home)
    assert [found.id for found in third.find_calls("", 9)] == ["c", "d"]
    third.close()
    assert aside is not None
    connection = sqlite3.connect(aside)
    assert connection.execute("SELECT id FROM calls ORDER BY id").fetchall() == [("a",), ("b",)]
    connection.close()
    assert len(said) == 2


def test_a_store_for_reading_says_so_and_changes_nothing(home: Path, row: MakeRow) -> None:
    path = filled(home, row)
    junk_throughout(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="the file is damaged") as refused:
        SqliteStore.for_reading(home).recent_calls(5)
    assert refused.value.trouble == "damaged"
    assert path.read_bytes() == before
    assert set_aside_in(home) == []
