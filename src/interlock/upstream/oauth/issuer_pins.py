"""Which authorization server a configured client was first used with for a server, kept so that no other one gets its secret.

One file for a server's URL and a client id, beside the registrations. It goes when a person signs out.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from interlock.upstream.oauth import private_files
from interlock.upstream.oauth.grant_file import Damaged, Newer, decode, encode
from interlock.upstream.oauth.grant_ids import digest
from interlock.upstream.oauth.private_files import StoreTrouble, Unfit

ENDING = ".issuer.json"


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds."""

    server_url: str
    client_id: str
    issuer: str


def name_of(server_url: str, client_id: str) -> str:
    """The file's name without its ending."""
    return f"{digest('url', server_url)}-{digest('client', client_id)}"


class PinStore:
    """Files `HASH_OF_URL-HASH_OF_CLIENT.issuer.json`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def get(self, server_url: str, client_id: str) -> str | None:
        """The issuer. Raises StoreTrouble, also where the file is there and cannot be understood: guessing would be a first use."""
        if not private_files.present(self._root):
            return None
        name = name_of(server_url, client_id)
        path = self._root / f"{name}{ENDING}"
        try:
            content = private_files.read(path)
            return None if content is None else decode("issuer", name, content, Pin)[0].issuer
        except (Unfit, Damaged, Newer) as why:
            text = (
                f"{path} says which authorization server a client belongs to, and cannot be read ({why}). Move it away."
            )
            raise StoreTrouble(None, text, path) from None

    def keep(self, pin: Pin) -> None:
        """From now on the one. Raises StoreTrouble."""
        private_files.make(self._root)
        name = name_of(pin.server_url, pin.client_id)
        private_files.write(self._root / f"{name}{ENDING}", encode("issuer", name, pin))

    def drop(self, server_url: str | None) -> bool:
        """Whether there was one for the URL (None: for any), which is gone now. Raises StoreTrouble."""
        if not private_files.present(self._root):
            return False
        begin = f"{digest('url', server_url)}-" if server_url is not None else ""
        dropped = False
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._root):
                if name.startswith(begin) and name.endswith(ENDING):
                    dropped = private_files.remove(self._root / name) or dropped
        return dropped
