"""Opening the database: to keep records in it, or only to look."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from interlock.store import schema
from interlock.store.report import Report

BUSY_SECONDS = 5.0
"""How long a write waits for another process's. Each is one short transaction, so that is rarely more than a moment."""


def open_for_keeping(path: Path, report: Report) -> sqlite3.Connection:
    """A connection in autocommit mode to the current schema. The file exists already (database_file.create_private)."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        # Said before anything is written: the first writes are still in the mode that a file begins in.
        connection.execute("PRAGMA synchronous = NORMAL")
        if schema.check(connection, str(path)) == 0:
            # Before the first table; on a file that has some it would only ask for the write lock.
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        mode = str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]).lower()
        if mode != "wal":
            # Without the log, NORMAL could break the file in a power cut.
            connection.execute("PRAGMA synchronous = FULL")
            report(
                f"the file system of {path} does not allow SQLite's write-ahead log (network file systems do not); "
                f"records are kept in mode {mode}, which is slower. A --home on a local disk avoids this."
            )
        # Bytes that the log keeps after a burst, and KiB of page cache: the working set is a few index pages.
        connection.execute("PRAGMA journal_size_limit = 16777216")
        # Pages in the log before they go into the file: an index page that many rows touch is then written fewer times.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA cache_size = -1024")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
        schema.migrate(connection, str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_looking(path: Path) -> sqlite3.Connection | None:
    """A read-only connection, or None where the file holds nothing yet. Creates and repairs nothing."""
    log = path.with_name(path.name + "-wal")
    address = path.absolute().as_uri()
    # In a folder that we may not write, SQLite cannot make the log's index; without a log it needs none.
    ways = ("?mode=ro",) if log.exists() else ("?mode=ro", "?immutable=1")
    for way in ways:
        connection = sqlite3.connect(
            address + way, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            version = schema.check(connection, str(path))
        except sqlite3.OperationalError:
            connection.close()
            if way == ways[-1]:
                raise
        except BaseException:
            connection.close()
            raise
        else:
            if version:
                return connection
            connection.close()
            return None
    return None
