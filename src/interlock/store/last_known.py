"""Each server's last known catalogue and era, for a gateway that must serve on whatever becomes of the database.

Loading answers None and saving does nothing where the store fails; the first failure of a row of them is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from interlock.store.interface import Store, StoreError
from interlock.store.report import Report, to_stderr

_T = TypeVar("_T")


class LastKnown:
    """The same four methods as `Store`, none of which raises StoreError.

    They block: loads for about the time of one indexed read, saves for as long as another process writes
    (asyncio.to_thread them). `config_digest` must differ wherever the answer may: a catalogue that depends on who asks
    is kept under a digest that names who asked.
    """

    def __init__(self, store: Store, report: Report = to_stderr) -> None:
        self._store = store
        self._report = report
        self._failing = False

    def load_catalogue(self, server_key: str, config_digest: str) -> bytes | None:
        return self._forgiving(lambda: self._store.load_catalogue(server_key, config_digest))

    def save_catalogue(self, server_key: str, config_digest: str, payload: bytes) -> None:
        self._forgiving(lambda: self._store.save_catalogue(server_key, config_digest, payload))

    def load_era(self, server_key: str, config_digest: str) -> str | None:
        return self._forgiving(lambda: self._store.load_era(server_key, config_digest))

    def save_era(self, server_key: str, config_digest: str, era: str) -> None:
        self._forgiving(lambda: self._store.save_era(server_key, config_digest, era))

    def _forgiving(self, work: Callable[[], _T]) -> _T | None:
        try:
            result = work()
        except StoreError as error:
            if not self._failing:
                self._failing = True
                self._report(f"{error.message}. Servers are asked for their lists afresh instead; see docs/audit.md.")
            return None
        self._failing = False
        return result
