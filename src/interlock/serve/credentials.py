"""Credentials of hosts: random tokens in Interlock's home (0600). A token is the principal; nothing else names a caller over HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from interlock.model.principal import Principal

FILE_NAME: Final = "credentials.json"
VARIABLE: Final = "INTERLOCK_TOKEN"
"""What hosts are told to read the token from."""
LOOK_SECONDS: Final = 0.1
"""How often a running Interlock looks whether a token was revoked or replaced."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_Stamp = tuple[int, int, int]


class CredentialError(Exception):
    """The file of credentials cannot be used; the message says why."""


class Credentials:
    """Tokens by name. The name is the principal's id and the host's adapter name; tokens never leave but by `token`."""

    def __init__(self, home: Path) -> None:
        self._file = home / FILE_NAME
        self._tokens: dict[str, str] = {}
        self._principals: dict[bytes, Principal] = {}
        self._stamp: _Stamp | None = None
        self._looked = 0.0
        self._load()

    def principal(self, token: bytes) -> Principal | None:
        """Whose token this is. Looked up by its hash, so that no comparison leaks how much of it was right."""
        now = time.monotonic()
        digest = hashlib.sha256(token).digest()
        found = self._principals.get(digest)
        if found is None or now - self._looked > LOOK_SECONDS:
            self._looked = now
            self.refresh()
            found = self._principals.get(digest)
        return found

    def refresh(self) -> None:
        """Read the file again where it changed. One that cannot be read lets nobody in."""
        if not self._changed():
            return
        try:
            self._load()
        except CredentialError as error:
            self._tokens, self._principals, self._stamp = {}, {}, _stamp(self._file)
            sys.stderr.write(f"interlock: {error}; until then no host can connect\n")

    def valid(self, principal: Principal) -> bool:
        """False where its token was revoked since."""
        return principal in self._principals.values()

    def names(self) -> list[str]:
        return sorted(self._tokens)

    def token(self, name: str) -> str:
        """The token of one host, made on first use. Raises ValueError for a name that cannot be one."""
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a usable name: letters, digits, dot, dash and underscore, at most 64")
        with self._alone():
            if name not in self._tokens:
                self._tokens[name] = secrets.token_urlsafe(32)
                self._save()
            return self._tokens[name]

    def revoke(self, name: str) -> bool:
        """False where there was none."""
        with self._alone():
            if self._tokens.pop(name, None) is None:
                return False
            self._save()
            return True

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process changes the file meanwhile, so that none loses a token that another has just handed out."""
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(self._file.with_suffix(".lock"), "a", encoding="utf-8") as handle:
                if sys.platform != "win32":
                    import fcntl

                    fcntl.flock(handle, fcntl.LOCK_EX)
                self._load()
                yield
        except OSError as error:
            raise CredentialError(f"{self._file} cannot be written: {error.strerror or type(error).__name__}") from None

    def _changed(self) -> bool:
        return self._stamp != _stamp(self._file)

    def _load(self) -> None:
        stamp = _stamp(self._file)
        try:
            data = json.loads(self._file.read_text("utf-8")) if stamp is not None else {"tokens": {}}
            tokens = data["tokens"]
            if not all(isinstance(name, str) and isinstance(token, str) and token for name, token in tokens.items()):
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CredentialError(
                f"{self._file} cannot be read ({type(error).__name__}); repair it or move it away"
            ) from None
        if stamp is not None and sys.platform != "win32":
            with contextlib.suppress(OSError):
                if self._file.stat().st_mode & 0o077:
                    self._file.chmod(0o600)  # copied or restored without its permissions
        self._tokens = dict(tokens)
        self._principals = {
            hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest(): Principal(
                f"host:{name}", "credential", name
            )
            for name, token in self._tokens.items()
        }
        self._stamp = stamp

    def _save(self) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self._file.parent, prefix=".credentials-")  # 0600 by itself
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "tokens": self._tokens}, file, indent=1)
            os.replace(temporary, self._file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self._load()


def _stamp(file: Path) -> _Stamp | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
