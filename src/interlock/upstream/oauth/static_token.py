"""A personal access token from the environment or a file: no discovery, no browser, no refresh, the grants untouched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from interlock.manifest.config import TokenSource
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream import secret_file
from interlock.upstream.secret_forms import masked


class StaticToken:
    """The environment wins over the file. A file is read again when it changes, so that a new token needs no restart."""

    def __init__(self, server: str, source: TokenSource, environ: Mapping[str, str]) -> None:
        self._server = server
        self._source = source
        self._environ = environ
        self._read: tuple[tuple[int, int, int], str] | None = None
        self._sent: list[str] = []
        """The last tokens, newest last: an answer that is late may still quote the one before."""
        self.name = ""
        """Which source the token came from, for people."""

    def current(self) -> str | None:
        try:
            return self._value()
        except Fault:
            return None

    async def ready(self, seconds: float) -> str:
        return self._value()

    async def refused(self, used: str, status: int, headers: Mapping[bytes, bytes], seconds: float) -> str:
        value = self._value()
        if value != used and status == 401:
            return value  # the file was changed meanwhile
        what = "has too narrow scopes for this call" if status == 403 else "was rejected"
        raise Fault(
            "token-rejected",
            f"{self._server}: the token from {self.name} {what} (HTTP {status}); the server did not act on the request. Put a good "
            "token there; nothing else was tried.",
            stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=self._server, retry="later", http_status=status,
        )  # fmt: skip

    def doubted(self, used: str) -> None:
        return

    def accepted(self, used: str) -> None:
        return

    def heard(self, headers: Mapping[bytes, bytes]) -> None:
        return

    def secrets(self) -> Sequence[str]:
        return self._sent

    def mask(self, text: str) -> str:
        return masked(text, self._sent)

    def _value(self) -> str:
        """Raises Fault where there is no token, or one that cannot be used."""
        token = ""
        if self._source.env is not None:
            self.name = f"the environment variable {self._source.env}"
            token = self._environ.get(self._source.env, "").strip()
        if not token and self._source.file is not None:
            self.name = f"the file {self._source.file}"
            token = self._from_file(self._source.file)
        scheme, _, rest = token.partition(" ")
        if scheme.lower() == "bearer":
            token = rest.strip()  # people copy the whole header
        if not token:
            raise self._fault("there is no token there")
        if not token.isascii() or not token.isprintable() or " " in token:
            raise self._fault("what is there cannot be sent as a token: it has spaces, line breaks or other characters")
        if token not in self._sent:
            self._sent = [*self._sent[-3:], token]
        return f"Bearer {token}"

    def _from_file(self, path: Path) -> str:
        try:
            status = secret_file.looked_at(path)
            seen = (status.st_mtime_ns, status.st_ino, status.st_size)
            if self._read is None or self._read[0] != seen:
                self._read = (seen, secret_file.content(path).strip())
        except secret_file.Unreadable as error:
            raise self._fault(error.why) from None
        return self._read[1]

    def _fault(self, why: str) -> Fault:
        return Fault(
            "token-rejected",
            f"{self._server}: the token from {self.name or 'nowhere'}: {why}. The server did not get the request.",
            stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=self._server, retry="later",
        )  # fmt: skip
