"""The SQLite schema, as the steps that lead to it. A step that was released is never edited: add the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.store.interface import StoreError

if TYPE_CHECKING:
    import sqlite3

APPLICATION_ID = 0x494C_4B31
"""`ILK1` in the file's header (PRAGMA application_id): tells our file from another program's."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE calls (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL,
            at_ns INTEGER NOT NULL,
            server TEXT,
            status TEXT NOT NULL,
            record TEXT NOT NULL
        )
        """,
        "CREATE UNIQUE INDEX calls_id ON calls (id)",
        "CREATE INDEX calls_at ON calls (at_ns)",
        "CREATE INDEX calls_server_at ON calls (server, at_ns)",
        """
        CREATE TABLE gaps (
            seq INTEGER PRIMARY KEY,
            from_ns INTEGER NOT NULL,
            to_ns INTEGER NOT NULL,
            lost INTEGER,
            reason TEXT NOT NULL
        )
        """,
        """
        CREATE TABLE catalogues (
            server_key TEXT NOT NULL,
            config_digest TEXT NOT NULL,
            saved_ns INTEGER NOT NULL,
            payload BLOB NOT NULL,
            PRIMARY KEY (server_key, config_digest)
        )
        """,
        """
        CREATE TABLE eras (
            server_key TEXT NOT NULL,
            config_digest TEXT NOT NULL,
            saved_ns INTEGER NOT NULL,
            era TEXT NOT NULL,
            PRIMARY KEY (server_key, config_digest)
        )
        """,
        # For people with a SQL shell (docs/audit.md): the calls with one column a field.
        """
        CREATE VIEW audit AS SELECT
            id,
            strftime('%Y-%m-%dT%H:%M:%fZ', at_ns / 1e9, 'unixepoch') AS at,
            at_ns,
            json_extract(record, '$.method') AS method,
            server,
            json_extract(record, '$.name') AS name,
            status,
            json_extract(record, '$.verdict') AS verdict,
            json_extract(record, '$.slug') AS slug,
            json_extract(record, '$.principal') AS principal,
            json_extract(record, '$.client') AS client,
            json_extract(record, '$.host') AS host,
            json_extract(record, '$.era_down') AS era_down,
            json_extract(record, '$.era_up') AS era_up,
            coalesce(json_extract(record, '$.bytes_in'), 0) AS bytes_in,
            coalesce(json_extract(record, '$.bytes_out'), 0) AS bytes_out,
            coalesce(json_extract(record, '$.micros'), 0) AS micros,
            json_extract(record, '$.marks') AS marks
        FROM calls
        """,
    ),
)


def check(connection: sqlite3.Connection, where: str) -> int:
    """The file's schema version. `StoreError` where the file is another program's or a later Interlock's."""
    # In this order: another process may make the schema between two of these reads, and what it sets last is read last.
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID and not (empty and application == 0 and version == 0):
        raise StoreError("foreign", f"{where} is another program's database; move it away or use another --home")
    if version > len(MIGRATIONS):
        raise StoreError(
            "newer",
            f"{where} was written by a later Interlock (schema {version}; this one knows {len(MIGRATIONS)}); "
            "update this Interlock or use another --home",
        )
    return version


def migrate(connection: sqlite3.Connection, where: str) -> None:
    """Bring the file to the current schema in one transaction; several processes may try at once."""
    if check(connection, where) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again under the write lock: another process may have been first.
        for step in MIGRATIONS[check(connection, where) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
