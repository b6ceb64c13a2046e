"""What any store offers, in plain values: the calls that were made, known gaps in them, each server's last known state.

Nothing here is particular to SQLite, so that another database fits in as one more class that passes the same tests
(tests/store). All methods block. They may be called from any thread, and raise `StoreError` and nothing else when the
database is at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

Trouble = Literal["full", "unwritable", "busy", "damaged", "newer", "foreign", "too_large", "failed"]
"""Why a store could not do it. `newer`: written by a later Interlock; `foreign`: another program's database."""

MAX_CATALOGUE_BYTES = 16 * 1024 * 1024
"""Largest catalogue of one server that is kept."""
MAX_KNOWN_BYTES = 128 * 1024 * 1024
"""Sum of all kept catalogues; the ones saved longest ago go first."""
MAX_KNOWN_ENTRIES = 512
"""Number of kept catalogues, and of kept eras; the ones saved longest ago go first."""


class StoreError(Exception):
    """The database could not do what was asked. `message` is for people: file and cause, without a full stop."""

    def __init__(self, trouble: Trouble, message: str) -> None:
        super().__init__(message)
        self.trouble: Trouble = trouble
        self.message = message


class CallRow(NamedTuple):
    """One call as stored: what it is looked up by, and the rest as one JSON text, shaped by journal/record.py."""

    id: str
    at_ns: int
    """Wall clock at arrival, nanoseconds since the epoch."""
    server: str | None
    status: str
    record: bytes


class Gap(NamedTuple):
    """Calls that were served and are not in the store, and why. `lost` is None where their number is unknown."""

    from_ns: int
    to_ns: int
    lost: int | None
    reason: str


class Store(Protocol):
    """Opened on first use. `where` says for people which database it is, without a secret."""

    @property
    def where(self) -> str: ...

    def append_calls(self, rows: Sequence[CallRow]) -> None:
        """Write all rows or none. A row whose id is already there is left as it is, so that a batch may be repeated."""

    def recent_calls(self, limit: int, server: str | None = None, status: str | None = None) -> list[CallRow]:
        """The latest calls by arrival, newest first."""

    def find_calls(self, id_prefix: str, limit: int) -> list[CallRow]:
        """Calls whose id starts with `id_prefix`, oldest id first."""

    def prune(self, before_ns: int, limit: int) -> int:
        """Delete at most `limit` calls that arrived before `before_ns`, and gaps that ended before it. Returns how many
        calls went."""

    def append_gap(self, gap: Gap) -> None:
        """Record that calls are missing."""

    def recent_gaps(self, since_ns: int, limit: int) -> list[Gap]:
        """Gaps that ended at or after `since_ns`, newest first."""

    def save_catalogue(self, server_key: str, config_digest: str, payload: bytes) -> None:
        """Replace what is kept for this server and configuration.

        Beyond MAX_CATALOGUE_BYTES: StoreError, `too_large`."""

    def load_catalogue(self, server_key: str, config_digest: str) -> bytes | None:
        """What was last saved for exactly this server and configuration, or None."""

    def save_era(self, server_key: str, config_digest: str, era: str) -> None:
        """Replace the era kept for this server and configuration."""

    def load_era(self, server_key: str, config_digest: str) -> str | None:
        """The era last saved for exactly this server and configuration, or None."""

    def close(self) -> None:
        """Give back files and connections. The store opens again when it is used again."""
