"""Credentials of hosts: random tokens in Interlock's home (0600). A token is the principal; nothing else names a caller over HTTP."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import tempfile
from pathlib import Path

from interlock.model.principal import Principal

FILE_NAME = "credentials.json"
VARIABLE = "INTERLOCK_TOKEN"
"""What hosts are told to read the token from."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class CredentialError(Exception):
    """The file of credentials cannot be used; the message says why."""


class Credentials:
    """Tokens by name. The name is the principal's id and the host's adapter name; tokens never leave but by `token`."""

    def __init__(self, home: Path) -> None:
        self._file = home / FILE_NAME
        self._tokens: dict[str, str] = {}
        self._principals: dict[bytes, Principal] = {}
        self._stamp: tuple[int, int] | None = None
        self._load()

    def principal(self, token: bytes) -> Principal | None:
        """Whose token this is. Looked up by its hash, so that no comparison leaks how much of it was right."""
        digest = hashlib.sha256(token).digest()
        found = self._principals.get(digest)
        if found is None and self._changed():
            self._load()
            found = self._principals.get(digest)
        return found

    def names(self) -> list[str]:
        return sorted(self._tokens)

    def token(self, name: str) -> str:
        """The token of one host, made on first use. Raises ValueError for a name that cannot be one."""
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a usable name: letters, digits, dot, dash and underscore")
        self._load()
        if name not in self._tokens:
            self._tokens[name] = secrets.token_urlsafe(32)
            self._save()
        return self._tokens[name]

    def revoke(self, name: str) -> bool:
        self._load()
        if self._tokens.pop(name, None) is None:
            return False
        self._save()
        return True

    def _changed(self) -> bool:
        return self._stamp != _stamp(self._file)

    def _load(self) -> None:
        try:
            stamp = _stamp(self._file)
            data = json.loads(self._file.read_text("utf-8")) if stamp is not None else {}
        except (OSError, ValueError) as error:
            raise CredentialError(f"{self._file} cannot be read ({type(error).__name__}); repair it or move it away") from None
        tokens = data.get("tokens", {}) if isinstance(data, dict) else {}
        self._tokens = {str(name): str(token) for name, token in tokens.items()} if isinstance(tokens, dict) else {}
        self._principals = {
            hashlib.sha256(token.encode()).digest(): Principal(f"host:{name}", "credential", name)
            for name, token in self._tokens.items()
        }
        self._stamp = stamp

    def _save(self) -> None:
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=self._file.parent, prefix=".credentials-")  # 0600 by itself
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "tokens": self._tokens}, file, indent=1)
            os.replace(temporary, self._file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self._load()


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
