"""The default store: one SQLite file in Interlock's home, in WAL mode, shared by every Interlock process of the user.

Commits survive a killed process at once; a power cut may take the last moments but never breaks the file
(`synchronous=NORMAL` in WAL mode, sqlite.org/pragma.html#pragma_synchronous). A damaged file is set aside and a new one
begun, so that a bad disk block never stops a gateway. `sqlite3` is imported on first use: start-up stays light.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from interlock.store import database_file
from interlock.store.interface import (
    MAX_CATALOGUE_BYTES,
    MAX_KNOWN_BYTES,
    MAX_KNOWN_ENTRIES,
    CallRow,
    Gap,
    StoreError,
)
from interlock.store.report import Report, to_stderr
from interlock.store.sqlite_trouble import explained

if TYPE_CHECKING:
    import sqlite3

FILE_NAME = "interlock.db"
_ROWS_A_STATEMENT = 512
"""At most. Five variables each, of which an old SQLite (before 3.32) allows 999 in all."""

_T = TypeVar("_T")


class _Link:
    """One lazily opened connection, the file it leads to, and the lock that keeps it to one thread at a time."""

    __slots__ = ("connection", "lock", "seen")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None
        self.seen: database_file.Identity | None = None

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            # Closing may checkpoint and so fail as any write may; what was committed stays in the log.
            with contextlib.suppress(Exception):
                connection.close()


class _NothingThere(Exception):
    """There is no database to look at."""


class SqliteStore:
    """`<home>/interlock.db`. Safe to use from several threads and beside other processes.

    Reads have a connection of their own, so that in WAL mode they never wait for a write.
    """

    def __init__(self, home: Path, *, report: Report = to_stderr) -> None:
        self.path = home / FILE_NAME
        self._report = report
        self._writer = _Link()
        self._reader = _Link()
        self._looking = False

    @classmethod
    def for_reading(cls, home: Path) -> SqliteStore:
        """A store that creates, changes and repairs nothing: for commands that only show what is there."""
        store = cls(home)
        store._looking = True
        return store

    @property
    def where(self) -> str:
        return str(self.path)

    def append_calls(self, rows: Sequence[CallRow]) -> None:
        if not rows:
            return

        def work(connection: sqlite3.Connection) -> None:
            most = _rows_a_statement(connection)
            if len(rows) <= most:
                # Python's lock is let go once for many rows: the event loop's thread is not made to hand it over row
                # by row, as executemany would.
                with _transaction(connection):
                    _insert(connection, rows)
                return
            with _transaction(connection):
                for start in range(0, len(rows), most):
                    _insert(connection, rows[start : start + most])

        self._write(work)

    def recent_calls(self, limit: int, server: str | None = None, status: str | None = None) -> list[CallRow]:
        conditions: list[str] = []
        values: list[str | int] = []
        for column, value in (("server", server), ("status", status)):
            if value is not None:
                conditions.append(f"{column} = ?")
                values.append(_text(value))
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        return self._calls(f"{where} ORDER BY at_ns DESC, seq DESC LIMIT ?", *values, max(0, limit))

    def find_calls(self, id_prefix: str, limit: int) -> list[CallRow]:
        prefix = _text(id_prefix)
        # A range instead of LIKE or GLOB: it uses the index and gives no character a special meaning.
        return self._calls("WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", prefix, prefix + "\U0010ffff", max(0, limit))

    def prune(self, before_ns: int, limit: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            with _transaction(connection):
                old = "SELECT seq FROM calls WHERE at_ns < ? ORDER BY at_ns LIMIT ?"
                sql = f"DELETE FROM calls WHERE seq IN ({old})"
                gone = connection.execute(sql, (before_ns, max(0, limit))).rowcount
                connection.execute("DELETE FROM gaps WHERE to_ns < ?", (before_ns,))
            if gone:
                # Give pages back to the file system a few at a time; the file was created for that (auto_vacuum).
                # As a script, because each page is a step and `execute` takes only the first.
                connection.executescript("PRAGMA incremental_vacuum(256)")
            return gone

        # Pruning makes no database where there is none.
        return self._write(work) if database_file.identity(self.path) else 0

    def append_gap(self, gap: Gap) -> None:
        sql = "INSERT INTO gaps (from_ns, to_ns, lost, reason) VALUES (?, ?, ?, ?)"
        self._write(lambda connection: connection.execute(sql, (gap.from_ns, gap.to_ns, gap.lost, _text(gap.reason))))

    def recent_gaps(self, since_ns: int, limit: int) -> list[Gap]:
        sql = "SELECT from_ns, to_ns, lost, reason FROM gaps WHERE to_ns >= ? ORDER BY to_ns DESC, seq DESC LIMIT ?"
        return [Gap(*row) for row in self._rows(sql, since_ns, max(0, limit))]

    def save_catalogue(self, server_key: str, config_digest: str, payload: bytes) -> None:
        if len(payload) > MAX_CATALOGUE_BYTES:
            raise StoreError(
                "too_large",
                f"the catalogue of {server_key} has {len(payload)} bytes and is not kept; "
                f"at most {MAX_CATALOGUE_BYTES} are kept for one server",
            )

        def work(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                connection.execute(
                    "INSERT OR REPLACE INTO catalogues (server_key, config_digest, saved_ns, payload) "
                    "VALUES (?, ?, ?, ?)",
                    (_text(server_key), _text(config_digest), time.time_ns(), payload),
                )
                connection.execute(
                    """
                    DELETE FROM catalogues WHERE rowid IN (
                        SELECT kept FROM (
                            SELECT
                                rowid AS kept,
                                row_number() OVER latest AS place,
                                sum(length(payload)) OVER latest AS bytes
                            FROM catalogues WINDOW latest AS (ORDER BY saved_ns DESC, rowid DESC)
                        ) WHERE place > ? OR bytes > ?
                    )
                    """,
                    (MAX_KNOWN_ENTRIES, MAX_KNOWN_BYTES),
                )

        self._write(work)

    def load_catalogue(self, server_key: str, config_digest: str) -> bytes | None:
        sql = "SELECT payload FROM catalogues WHERE server_key = ? AND config_digest = ?"
        for (payload,) in self._rows(sql, _text(server_key), _text(config_digest)):
            return payload if isinstance(payload, bytes) else None
        return None

    def save_era(self, server_key: str, config_digest: str, era: str) -> None:
        def work(connection: sqlite3.Connection) -> None:
            with _transaction(connection):
                connection.execute(
                    "INSERT OR REPLACE INTO eras (server_key, config_digest, saved_ns, era) VALUES (?, ?, ?, ?)",
                    (_text(server_key), _text(config_digest), time.time_ns(), _text(era)),
                )
                connection.execute(
                    "DELETE FROM eras WHERE rowid IN "
                    "(SELECT rowid FROM eras ORDER BY saved_ns DESC, rowid DESC LIMIT -1 OFFSET ?)",
                    (MAX_KNOWN_ENTRIES,),
                )

        self._write(work)

    def load_era(self, server_key: str, config_digest: str) -> str | None:
        sql = "SELECT era FROM eras WHERE server_key = ? AND config_digest = ?"
        for (era,) in self._rows(sql, _text(server_key), _text(config_digest)):
            return era if isinstance(era, str) else None
        return None

    def close(self) -> None:
        for link in (self._writer, self._reader):
            with link.lock:
                link.close()

    def _calls(self, tail: str, *values: str | int) -> list[CallRow]:
        rows = self._rows(f"SELECT id, at_ns, server, status, CAST(record AS BLOB) FROM calls {tail}", *values)
        return [CallRow(*row) for row in rows]

    def _rows(self, sql: str, *values: str | int) -> list[tuple]:  # type: ignore[type-arg]
        # Reading makes no database where there is none.
        if self._reader.connection is None and database_file.identity(self.path) is None:
            return []
        try:
            return self._attempt(self._reader, lambda connection: connection.execute(sql, values).fetchall())
        except _NothingThere:
            return []

    def _write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        if self._looking:
            raise StoreError("unwritable", f"{self.where} was opened for reading only")
        return self._attempt(self._writer, work)

    def _attempt(self, link: _Link, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do `work`; where the file proves damaged, set it aside and do it once more on a new one."""
        try:
            import sqlite3
        except ImportError as error:
            raise StoreError("failed", f"{self.where}: this Python was built without SQLite ({error})") from error

        again = not self._looking
        while True:
            with link.lock:
                try:
                    return work(self._connection(link))
                except (sqlite3.Error, OSError, StoreError) as error:
                    # Whatever it was, the next attempt starts afresh: the file may be another by then.
                    link.close()
                    trouble = explained(error, self.where)
                    if trouble.trouble != "damaged" or not again:
                        raise trouble from error
                    damaged = link.seen
            again = False
            self._set_aside(damaged, trouble)

    def _connection(self, link: _Link) -> sqlite3.Connection:
        """The link's connection, opened again where the path leads to another file than before."""
        from interlock.store.sqlite_open import open_for_keeping, open_for_looking

        if link.connection is not None:
            if database_file.identity(self.path) == link.seen:
                return link.connection
            link.close()
            if link is self._writer:
                self._report(
                    f"{self.where} is no longer the file it was (moved, deleted or set aside while in use); "
                    "records continue in a new file at the same place."
                )
        if self._looking:
            link.seen = database_file.identity(self.path)
            link.connection = open_for_looking(self.path) if link.seen else None
            if link.connection is None:
                raise _NothingThere
            return link.connection
        database_file.create_private(self.path)
        with database_file.exclusively(self.path):
            link.seen = database_file.identity(self.path)
            link.connection = open_for_keeping(self.path, self._report)
        return link.connection

    def _set_aside(self, damaged: database_file.Identity | None, trouble: StoreError) -> None:
        with self._writer.lock, self._reader.lock:
            self._writer.close()
            self._reader.close()
            try:
                with database_file.exclusively(self.path):
                    target = database_file.set_aside(self.path, damaged)
            except OSError as error:
                raise StoreError("damaged", f"{trouble.message}, and it could not be set aside ({error})") from error
        if target is None:
            # Another process has set it aside already.
            return
        self._report(
            f"{trouble.message}. It was set aside as {target} and a new one was begun; calls are served as before. "
            f'Older records are in the file set aside; `sqlite3 "{target}" .recover` reads what is left of them.'
        )
        with contextlib.suppress(StoreError):
            self.append_gap(Gap(0, time.time_ns(), None, f"the file was damaged; older records are in {target.name}"))


def _rows_a_statement(connection: sqlite3.Connection) -> int:
    import sqlite3

    return min(_ROWS_A_STATEMENT, connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // len(CallRow._fields))


@functools.lru_cache(maxsize=64)
def _insertion(rows: int) -> str:
    values = ", ".join(["(?, ?, ?, ?, CAST(? AS TEXT))"] * rows)
    return f"INSERT INTO calls (id, at_ns, server, status, record) VALUES {values} ON CONFLICT (id) DO NOTHING"


def _insert(connection: sqlite3.Connection, rows: Sequence[CallRow]) -> None:
    """In pieces of a power of two: a connection keeps every statement that it has prepared, and large ones are large."""
    start = 0
    while start < len(rows):
        size = 1 << ((len(rows) - start).bit_length() - 1)
        connection.execute(_insertion(size), [value for row in rows[start : start + size] for value in row])
        start += size


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(Exception):
            connection.execute("ROLLBACK")
        raise


def _text(value: str) -> str:
    """SQLite text is UTF-8, which has no lone surrogates (a command line argument may hold some)."""
    return value.encode("utf-8", "replace").decode()
