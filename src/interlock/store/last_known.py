"""Each server's last known catalogue and era, for a gateway that must serve on whatever becomes of the database.

Loading answers None where the store fails. Saving never waits: a thread that lives no longer than there is something to
save does it, and the event loop goes on. The first failure of a row of them is reported.
"""

from __future__ import annotations

import threading
from typing import Literal

from interlock.store.interface import Store, StoreError
from interlock.store.report import Report, to_stderr

_Kind = Literal["catalogue", "era"]
_Key = tuple[_Kind, str, str]


class LastKnown:
    """The same four methods as `Store`, none of which raises StoreError. May be used from any thread.

    A load takes about as long as one indexed read. `config_digest` must differ wherever the answer may: a catalogue
    that depends on who asks is kept under a digest that names who asked.
    """

    def __init__(self, store: Store, report: Report = to_stderr) -> None:
        self._store = store
        self._report = report
        self._failing = False
        self._lock = threading.Lock()
        # What is not saved yet, the latest of each. The first stays in until it is saved, so that a load finds it.
        self._pending: dict[_Key, bytes | str] = {}
        self._saver: threading.Thread | None = None

    def load_catalogue(self, server_key: str, config_digest: str) -> bytes | None:
        found = self._load(("catalogue", server_key, config_digest))
        return found if isinstance(found, bytes) else None

    def save_catalogue(self, server_key: str, config_digest: str, payload: bytes) -> None:
        self._save(("catalogue", server_key, config_digest), payload)

    def load_era(self, server_key: str, config_digest: str) -> str | None:
        found = self._load(("era", server_key, config_digest))
        return found if isinstance(found, str) else None

    def save_era(self, server_key: str, config_digest: str, era: str) -> None:
        self._save(("era", server_key, config_digest), era)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until all that was to be saved was tried, at most `timeout` seconds; before the store is closed."""
        with self._lock:
            saver = self._saver
        if saver is not None:
            saver.join(timeout)
        with self._lock:
            return not self._pending

    def _load(self, key: _Key) -> bytes | str | None:
        with self._lock:
            if key in self._pending:
                return self._pending[key]
        kind, server_key, config_digest = key
        load = self._store.load_catalogue if kind == "catalogue" else self._store.load_era
        try:
            return load(server_key, config_digest)
        except StoreError as error:
            self._failed(error)
            return None

    def _save(self, key: _Key, value: bytes | str) -> None:
        with self._lock:
            self._pending[key] = value
            if self._saver is None:
                # Not a daemon: a process that ends lets it finish, which takes milliseconds.
                self._saver = threading.Thread(target=self._save_pending, name="interlock-last-known")
                self._saver.start()

    def _save_pending(self) -> None:
        while True:
            with self._lock:
                if not self._pending:
                    self._saver = None
                    return
                key, value = next(iter(self._pending.items()))
            kind, server_key, config_digest = key
            try:
                if isinstance(value, bytes):
                    self._store.save_catalogue(server_key, config_digest, value)
                else:
                    self._store.save_era(server_key, config_digest, value)
                self._failing = False
            except StoreError as error:
                self._failed(error)
            except Exception as error:
                self._report(f"what {server_key} offers could not be kept for the next start ({kind}: {error!r}).")
            with self._lock:
                # Unless a newer one has come meanwhile.
                if self._pending.get(key) is value:
                    del self._pending[key]

    def _failed(self, error: StoreError) -> None:
        if not self._failing:
            self._failing = True
            self._report(
                f"{error.message}. Servers are asked for their lists afresh at the next start; see docs/audit.md."
            )
