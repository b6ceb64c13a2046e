"""The SQLite file itself: who may read it, which schema it has, and what happens when it cannot be used."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.store import schema
from interlock.store.interface import CallRow, Gap, StoreError
from interlock.store.sqlite import SqliteStore

MakeRow = Callable[..., CallRow]
posix = pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")


def shell(path: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute(sql).fetchall()
        connection.commit()
    finally:
        connection.close()
    return rows


@posix
def test_home_and_files_are_for_their_owner_alone(home: Path, row: MakeRow) -> None:
    umask = os.umask(0)
    try:
        store = SqliteStore(home)
        store.append_calls([row()])
    finally:
        os.umask(umask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in [home, *home.iterdir()]}
    assert modes == {
        "home": 0o700,
        "interlock.db": 0o600,
        "interlock.db-wal": 0o600,
        "interlock.db-shm": 0o600,
        "interlock.db.lock": 0o600,
    }
    store.close()


@posix
def test_a_file_that_others_could_read_is_closed_to_them(home: Path, row: MakeRow) -> None:
    home.mkdir()
    (home / "interlock.db").touch(0o644)
    store = SqliteStore(home)
    store.append_calls([row()])
    assert (home / "interlock.db").stat().st_mode & 0o777 == 0o600
    store.close()


@pytest.mark.parametrize("reads_before", [0, 1, 2, 3])
def test_a_schema_that_another_process_makes_meanwhile_is_no_strangers(tmp_path: Path, reads_before: int) -> None:
    path = tmp_path / "interlock.db"
    other = sqlite3.connect(path, isolation_level=None)

    class Interrupted(sqlite3.Connection):
        reads = 0

        def execute(self, sql: str, *more: object) -> sqlite3.Cursor:
            if self.reads == reads_before:
                schema.migrate(other, str(path))
            self.reads += 1
            return super().execute(sql, *more)

    connection = sqlite3.connect(path, isolation_level=None, factory=Interrupted)
    assert schema.check(connection, str(path)) in (0, len(schema.MIGRATIONS))
    schema.migrate(connection, str(path))
    assert schema.check(connection, str(path)) == len(schema.MIGRATIONS)
    connection.close()
    other.close()


def test_the_database_uses_the_write_ahead_log(home: Path, row: MakeRow) -> None:
    store = SqliteStore(home)
    store.append_calls([row()])
    store.close()
    assert shell(store.path, "PRAGMA journal_mode") == [("wal",)]
    assert shell(store.path, "PRAGMA application_id") == [(0x494C4B31,)]
    assert shell(store.path, "PRAGMA user_version") == [(len(schema.MIGRATIONS),)]
    assert shell(store.path, "PRAGMA auto_vacuum") == [(2,)]


def test_making_a_store_and_reading_from_it_touch_no_file(home: Path) -> None:
    for store in (SqliteStore(home), SqliteStore.for_reading(home)):
        assert store.recent_calls(1) == []
        assert store.load_era("git", "d") is None
        store.close()
    assert not home.exists()


def test_importing_and_making_a_store_leaves_sqlite3_for_later(child_environ: dict[str, str]) -> None:
    code = (
        "import sys, pathlib, interlock.store.sqlite as s, interlock.journal.audit as j; "
        "j.Journal(s.SqliteStore(pathlib.Path('nowhere'))); print('sqlite3' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=child_environ, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_file_of_an_older_schema_is_migrated_and_keeps_its_rows(
    home: Path, row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = SqliteStore(home)
    old.append_calls([row("a")])
    old.close()
    step = ("ALTER TABLE calls ADD COLUMN extra TEXT DEFAULT 'new'", "CREATE TABLE more (x)")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step))
    store = SqliteStore(home)
    store.append_calls([row("b")])
    store.close()
    assert shell(store.path, "SELECT id, extra FROM calls") == [("a", "new"), ("b", "new")]
    assert shell(store.path, "PRAGMA user_version") == [(len(schema.MIGRATIONS),)]


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    home: Path, row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = SqliteStore(home)
    old.append_calls([row("a")])
    old.close()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("CREATE TABLE more (x)", "CREATE TABLE calls (x)")))
        with pytest.raises(StoreError, match="table calls already exists"):
            SqliteStore(home).append_calls([row("b")])
    again = SqliteStore(home)
    assert [found.id for found in again.find_calls("", 9)] == ["a"]
    again.close()
    assert shell(again.path, "SELECT count(*) FROM sqlite_master WHERE name = 'more'") == [(0,)]


def test_a_later_interlocks_file_is_refused_and_left_alone(home: Path, row: MakeRow) -> None:
    store = SqliteStore(home)
    store.append_calls([row()])
    store.close()
    shell(store.path, "PRAGMA user_version = 99")
    before = store.path.read_bytes()
    for attempt in (lambda: store.append_calls([row("b")]), lambda: store.recent_calls(1)):
        with pytest.raises(StoreError, match="written by a later Interlock") as refused:
            attempt()
        assert refused.value.trouble == "newer"
    assert store.path.read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(home: Path, row: MakeRow) -> None:
    home.mkdir()
    path = home / "interlock.db"
    shell(path, "CREATE TABLE bookmarks (url)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program's database") as refused:
        SqliteStore(home).append_calls([row()])
    assert refused.value.trouble == "foreign"
    with pytest.raises(StoreError, match="another program's database"):
        SqliteStore.for_reading(home).recent_calls(1)
    assert path.read_bytes() == before


@pytest.mark.parametrize("what", ["file for home", "file above home", "folder for database"])
def test_a_home_that_cannot_be_used_is_an_error_and_works_once_it_can(home: Path, row: MakeRow, what: str) -> None:
    target = {"file for home": home, "file above home": home, "folder for database": home / "interlock.db"}[what]
    store = SqliteStore(home / "sub" if what == "file above home" else home)
    target.parent.mkdir(exist_ok=True)
    if what == "folder for database":
        target.mkdir()
    else:
        target.touch()
    with pytest.raises(StoreError) as refused:
        store.append_calls([row()])
    assert refused.value.trouble == "unwritable"
    assert str(store.path) in refused.value.message
    if target.is_dir():
        target.rmdir()
    else:
        target.unlink()
    store.append_calls([row()])
    assert [found.id for found in store.recent_calls(9)] == ["a1"]
    store.close()


def test_a_locked_database_is_an_error_and_works_once_it_is_free(
    home: Path, row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("interlock.store.sqlite_open.BUSY_SECONDS", 0.05)
    store = SqliteStore(home)
    store.append_calls([row("a")])
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process keeps it locked") as refused:
        store.append_calls([row("b")])
    assert refused.value.trouble == "busy"
    # Reading does not wait for a writer.
    assert [found.id for found in store.recent_calls(9)] == ["a"]
    other.execute("ROLLBACK")
    other.close()
    store.append_calls([row("b")])
    assert len(store.recent_calls(9)) == 2
    store.close()


@posix
def test_a_stopped_process_that_holds_the_opening_lock_does_not_hang_others(
    home: Path, row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("interlock.store.database_file._PATIENCE_SECONDS", 0.05)
    home.mkdir()
    holder = os.open(home / "interlock.db.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)
    store = SqliteStore(home)
    with pytest.raises(StoreError) as refused:
        store.append_calls([row()])
    assert refused.value.trouble == "busy"
    os.close(holder)
    store.append_calls([row()])
    store.close()


def test_a_file_deleted_while_in_use_is_replaced(home: Path, row: MakeRow) -> None:
    said: list[str] = []
    store = SqliteStore(home, report=said.append)
    store.append_calls([row("a")])
    assert len(store.recent_calls(9)) == 1
    for path in list(home.iterdir()):
        path.unlink()
    store.append_calls([row("b")])
    assert [found.id for found in store.recent_calls(9)] == ["b"]
    assert len(said) == 1
    assert "is no longer the file it was" in said[0]
    store.close()


def test_a_store_for_reading_writes_nothing(home: Path, row: MakeRow) -> None:
    keeper = SqliteStore(home)
    keeper.append_calls([row()])
    reader = SqliteStore.for_reading(home)
    assert len(reader.recent_calls(9)) == 1
    with pytest.raises(StoreError, match="opened for reading only"):
        reader.append_gap(Gap(0, 1, 1, "no"))
    keeper.append_calls([row("later")])
    assert len(reader.recent_calls(9)) == 2
    reader.close()
    keeper.close()


def test_reading_an_empty_file_answers_with_nothing(home: Path) -> None:
    home.mkdir()
    (home / "interlock.db").touch()
    reader = SqliteStore.for_reading(home)
    assert reader.recent_calls(9) == []
    assert (home / "interlock.db").stat().st_size == 0


def test_a_home_with_odd_characters(tmp_path: Path, row: MakeRow) -> None:
    home = tmp_path / "a b?mode=memory#ü%20"
    store = SqliteStore(home)
    store.append_calls([row()])
    reader = SqliteStore.for_reading(home)
    assert len(reader.recent_calls(9)) == 1
    reader.close()
    store.close()
    assert (home / "interlock.db").stat().st_size > 0


def test_the_audit_view_shows_a_column_for_each_field(home: Path, row: MakeRow) -> None:
    store = SqliteStore(home)
    record = (
        b'{"method":"tools/call","principal":"p","client":"c","name":"git/log","micros":12,'
        b'"marks":[["execute","ok","",null,3]]}'
    )
    store.append_calls([row("a", 1_735_689_600_123_000_000, record=record)])
    store.close()
    columns = "at, method, server, name, status, micros, bytes_in, host, marks"
    assert shell(store.path, f"SELECT {columns} FROM audit") == [
        ("2025-01-01T00:00:00.123Z", "tools/call", "git", "git/log", "ok", 12, 0, None, '[["execute","ok","",null,3]]')
    ]


def test_pruning_gives_space_back(home: Path, row: MakeRow) -> None:
    store = SqliteStore(home)
    store.append_calls([row(f"{n:05}", n, record=b'{"x":"' + b"y" * 1000 + b'"}') for n in range(2000)])
    store.close()
    before = store.path.stat().st_size
    while store.prune(2000, 200):
        pass
    store.close()
    assert store.path.stat().st_size < before / 4
