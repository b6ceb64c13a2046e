"""Who we are to each authorization server, kept for the next login. Never used with another issuer than its own.

One file a client id, so that dropping one is a compare-and-swap without a lock: the name is what is compared.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from interlock.upstream.oauth import private_files
from interlock.upstream.oauth.grant import Registration
from interlock.upstream.oauth.grant_file import Damaged, Newer, decode, encode
from interlock.upstream.oauth.grant_ids import digest
from interlock.upstream.oauth.private_files import Unfit

_SETTLED_SECONDS = 60.0
"""Two processes may register at the same moment; neither takes away what the other has just kept."""


class RegistrationStore:
    """Files `HASH_OF_ISSUER-HASH_OF_CLIENT.client.json`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def get(self, issuer: str, preset: str | None) -> Registration | None:
        """With `preset`, the registration with that client id; else the newest that is no preset."""
        if not private_files.present(self._root):
            return None
        for _, name in self._entries(issuer):
            kept = self._read(name)
            if kept is None or kept.issuer != issuer:
                continue
            if kept.source != "preset" if preset is None else kept.client_id == preset:
                return kept
        return None

    def keep(self, registration: Registration) -> None:
        """Raises StoreTrouble. Earlier dynamic registrations of the same issuer go, once they are a minute old."""
        private_files.make(self._root)
        path = self._path(registration.issuer, registration.client_id)
        private_files.write(path, encode("client", path.name.removesuffix(".client.json"), registration))
        if registration.source == "dynamic":
            self._tidy(registration.issuer, path.name)
        private_files.sweep(self._root)

    def drop(self, issuer: str, client_id: str) -> bool:
        """Whether there was one with this client id. Raises StoreTrouble."""
        return private_files.present(self._root) and private_files.remove(self._path(issuer, client_id))

    def _tidy(self, issuer: str, keep: str) -> None:
        before = time.time_ns() - int(_SETTLED_SECONDS * 1e9)
        for changed, name in self._entries(issuer):
            if name == keep or changed > before:
                continue
            kept = self._read(name)
            if kept is not None and kept.source == "dynamic":
                with contextlib.suppress(OSError):
                    os.unlink(self._root / name)

    def _path(self, issuer: str, client_id: str) -> Path:
        return self._root / f"{digest('issuer', issuer)}-{digest('client', client_id)}.client.json"

    def _read(self, name: str) -> Registration | None:
        try:
            content = private_files.read(self._root / name)
            return (
                None
                if content is None
                else decode("client", name.removesuffix(".client.json"), content, Registration)[0]
            )
        except (Unfit, Damaged, Newer):
            # Registering again is all that it costs; a preset comes from the settings.
            return None

    def _entries(self, issuer: str) -> list[tuple[int, str]]:
        return private_files.newest(self._root, f"{digest('issuer', issuer)}-", ".client.json")
