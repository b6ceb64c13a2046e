"""The one store of grants for the machine: the disk is the truth, and every change of a grant is made under its lock.

`HOME/grants/` (0700, files 0600): `ID.json` a grant, `ID.lock` its lock, `ID.flow.json` and `ID.snooze.json` the login
beside it (flow_note.py), `*.found.json` what discovery found, `*.client.json` dynamic registrations,
`*.issuer.json` where a configured client belongs.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from interlock.upstream.oauth import file_lock, private_files
from interlock.upstream.oauth.discovery_store import DiscoveryStore
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.file_lock import Busy
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.grant_file import Damaged, Extra, Newer, decode, encode, grant_extra
from interlock.upstream.oauth.grant_ids import checked, grant_id, token_hash
from interlock.upstream.oauth.grant_log import GrantLog
from interlock.upstream.oauth.issuer_pins import Pin, PinStore
from interlock.upstream.oauth.private_files import Reserved, StoreTrouble, Unfit
from interlock.upstream.oauth.registration_store import RegistrationStore

__all__ = ["Busy", "GrantStore", "Held", "StoreTrouble", "grant_id", "token_hash"]

FOLDER = "grants"
RESERVED_BYTES = 64 * 1024
_GRANT_FILE = re.compile(r"(?P<id>[0-9a-f]{32})\.json")
_FORGET_SECONDS = 5.0


class GrantStore:
    """Cheap to make; opens nothing until it is used. Reading needs no lock: files change in one step.

    Every method raises StoreTrouble (an OSError, its text for people) where the disk refuses or the folder is another
    user's; nothing is lost then.
    """

    def __init__(self, home: Path, log: GrantLog | None = None) -> None:
        self.root = home / FOLDER
        self._log = log or GrantLog(home, _build)
        self._discoveries = DiscoveryStore(self.root)
        self._registrations = RegistrationStore(self.root)
        self._pins = PinStore(self.root)
        self._said: set[tuple[str, tuple[int, int] | None]] = set()

    def read(self, id: str) -> Grant | None:
        """The grant, or None. Never raises for damage: such a file is set aside under another name and named in grant.log."""
        path = self._path(id)
        if not private_files.present(self.root):
            return None
        try:
            found = self._look(path, id)
        except (Unfit, Damaged):
            return self._mend(path, id)
        except Newer as newer:
            self._say(path, id, "grant-newer", f"kept as it is, this build does not know it: {newer}")
            return None
        return None if found is None else found[0]

    def stamp(self, id: str) -> tuple[int, int] | None:
        """(time of change in nanoseconds, inode): another value after every change. None: no grant. Cheap, reads nothing."""
        try:
            status = os.lstat(self._path(id))
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino

    @asynccontextmanager
    async def locked(self, id: str, seconds: float) -> AsyncIterator[Held]:
        """Hold the grant's lock, tried about every 15 ms without blocking the loop. Raises Busy after `seconds`.

        Excludes other processes and other tasks alike; free at once when the holder dies. Not re-entrant. Never hold it
        over the request to the server itself, and give the token endpoint a deadline of its own within it.
        """
        path = self._path(id)
        private_files.make(self.root)
        async with file_lock.locked(self.root / f"{id}.lock", seconds):
            private_files.sweep(self.root, held=path.name)
            held = Held(self, path, id)
            try:
                yield held
            finally:
                held.close()

    def all(self) -> list[tuple[str, Grant]]:
        """Every readable grant with its id, in the order of ids."""
        if not private_files.present(self.root):
            return []
        with contextlib.suppress(FileNotFoundError):
            ids = sorted(found["id"] for name in os.listdir(self.root) if (found := _GRANT_FILE.fullmatch(name)))
            return [(id, grant) for id in ids if (grant := self.read(id)) is not None]
        return []

    def forget(self, id: str) -> bool:
        """Whether there was a grant, which is gone now, with the note of an open login beside it. For code outside a loop.

        Waits at most 5 seconds for the lock, then raises Busy. Within `locked`, use `Held.remove`.
        """
        path = self._path(id)
        if not private_files.present(self.root):
            return False
        with file_lock.locked_now(self.root / f"{id}.lock", _FORGET_SECONDS):
            return self._remove(path, id)

    def remember(self, found: Discovered, *, override: str | None = None) -> None:
        """Keep what was discovered. `override`: the setting that replaced the resource, where there is one."""
        self._discoveries.remember(found, override)

    def recalled(self, server_url: str, resource: str | None) -> Discovered | None:
        """What was found last for this URL (and, where a setting names it, this resource)."""
        return self._discoveries.recalled(server_url, resource)

    def registration(self, issuer: str, preset: str | None) -> Registration | None:
        """Who we are to this issuer: with `preset`, only the registration with that client id; else the newest that is no preset."""
        return self._registrations.get(issuer, preset)

    def keep_registration(self, registration: Registration) -> None:
        """From now on the newest of its issuer."""
        self._registrations.keep(registration)

    def drop_registration(self, issuer: str, client_id: str) -> bool:
        """Compare-and-swap: only the registration with this client id goes, never one that came since."""
        return self._registrations.drop(issuer, client_id)

    def pinned(self, server_url: str, client_id: str) -> str | None:
        """The issuer that a configured client was first used with for this URL."""
        return self._pins.get(server_url, client_id)

    def pin(self, pin: Pin) -> None:
        """From now on the client belongs to this issuer."""
        self._pins.keep(pin)

    def unpin(self, server_url: str | None) -> bool:
        """Whether any configured client was held to an issuer for this URL (None: any URL). The next use decides anew."""
        return self._pins.drop(server_url)

    def _path(self, id: str) -> Path:
        return self.root / f"{checked(id)}.json"

    def _look(self, path: Path, id: str) -> tuple[Grant, Extra] | None:
        content = private_files.read(path)
        return None if content is None else decode("grant", id, content, Grant)

    def _mend(self, path: Path, id: str) -> Grant | None:
        """Under the lock: whoever holds it may be putting a good file in the damaged one's place right now."""
        try:
            with file_lock.locked_now(self.root / f"{id}.lock", 0):
                found = self._look_or_set_aside(path, id)
        except (Busy, StoreTrouble):
            self._say(path, id, "grant-damaged", "cannot be read; left where it is, because it cannot be locked now")
            return None
        return None if found is None else found[0]

    def _look_or_set_aside(self, path: Path, id: str) -> tuple[Grant, Extra] | None:
        """Only under the lock. Raises Newer."""
        try:
            return self._look(path, id)
        except (Unfit, Damaged) as damage:
            aside = private_files.set_aside(path, "damaged")
            where = "kept under this name" if aside else "cannot be renamed either"
            self._log.write("grant-damaged", (aside or path).name, f"{damage}; {where}")
            return None

    def _remove(self, path: Path, id: str) -> bool:
        for beside in (f"{id}.flow.json", f"{id}.snooze.json"):
            private_files.remove(self.root / beside)
        return private_files.remove(path)

    def _say(self, path: Path, id: str, event: str, text: str) -> None:
        """Once for each state of the file, however often it is read."""
        seen = (event, self.stamp(id))
        if seen not in self._said:
            self._said.add(seen)
            self._log.write(event, path.name, text)


class Held:
    """A grant whose lock is held. Of no use after the `async with` has ended."""

    def __init__(self, store: GrantStore, path: Path, id: str) -> None:
        self.id = id
        self._store = store
        self._path = path
        self._reserved: Reserved | None = None
        self._open = True

    def read(self) -> Grant | None:
        """As it stands on the disk now."""
        self._check()
        try:
            found = self._store._look_or_set_aside(self._path, self.id)
        except Newer:
            return None
        return None if found is None else found[0]

    def reserve(self) -> None:
        """Take the disk space for the next `write` now, so that it cannot fail for want of it. Raises StoreTrouble.

        For the step before something that cannot be asked for twice. `write` does it by itself with a grant that is `spent`.
        """
        self._check()
        if self._reserved is None:
            self._reserved = Reserved(self._path, RESERVED_BYTES)

    def write(self, grant: Grant) -> Grant:
        """Replace the grant, and give it back with the next generation. Raises StoreTrouble; then the old one still stands.

        Fields that a newer build had put into the file stay in it; a file of a later version is kept beside the new one.
        """
        self._check()
        generation = grant.generation
        extra: Extra = {}
        try:
            found = self._store._look_or_set_aside(self._path, self.id)
            if found is not None:
                old, extra = found
                generation = old.generation
                extra = grant_extra(extra, old, grant)
        except Newer:
            private_files.set_aside(self._path, "newer")
        grant = msgspec.structs.replace(grant, generation=generation + 1)
        content = encode("grant", self.id, grant, extra)
        reserved, self._reserved = self._reserved, None
        try:
            if grant.state == "spent":
                # The refresh token is about to be presented: what comes back for it must find its place.
                self.reserve()
        except StoreTrouble:
            if reserved is not None:
                reserved.give_up()
            raise
        private_files.write(self._path, content, reserved)
        return grant

    def drop_if(self, hash: str) -> bool:
        """Compare-and-swap: remove the grant only where its refresh or access token has this hash (`token_hash`)."""
        grant = self.read()
        if grant is None or hash not in {
            token_hash(each) for each in (grant.refresh_token, grant.access_token) if each
        }:
            return False
        return private_files.remove(self._path)

    def remove(self) -> bool:
        """Whether there was a grant, which is gone now, with the note of an open login beside it."""
        self._check()
        return self._store._remove(self._path, self.id)

    def close(self) -> None:
        """The lock is about to be let go."""
        self._open = False
        if self._reserved is not None:
            self._reserved.give_up()

    def _check(self) -> None:
        if not self._open:
            raise RuntimeError("the lock of this grant is not held any more")


def _build() -> str:
    from interlock.build import build

    return build()
