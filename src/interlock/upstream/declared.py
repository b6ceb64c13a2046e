"""What a manifest declares of a remote server, with the values of this process's environment and of the user's files: its
address and its headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.manifest.config import HeaderValue, HttpTransport
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream import secret_file
from interlock.upstream.http1 import Origin

_WHERE = (
    "The server did not get the request. Set it in the environment of Interlock (or of the AI host that starts Interlock) and "
    "try again."
)


def address(server: str, transport: HttpTransport, environ: Mapping[str, str]) -> tuple[str, Origin]:
    """The server's URL and its origin. Raises Fault where the variable that holds it is not set, or holds no URL."""
    url = transport.endpoint
    if url is None:
        name = transport.endpoint_env or ""
        url = environ.get(name)
        if not url:
            raise _missing(
                server, f"the environment variable {name}, which holds the server's URL, is not set. {_WHERE}"
            )
    try:
        return url, Origin.of(url)
    except ValueError as error:
        raise Fault(
            "unreachable", f"{server}: its endpoint is {error}.",
            stage=Stage.DISCOVER, verdict=Verdict.NEVER_REACHED, server=server,
        ) from None  # fmt: skip


def headers(server: str, declared: Sequence[HeaderValue], environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names and values. Raises Fault where one is not there, or cannot stand in a header."""
    made: list[tuple[str, str]] = []
    for header in declared:
        value = header.literal
        if header.source is not None:
            value = environ.get(header.source)
            if value is None:
                raise _missing(
                    server,
                    f"the environment variable {header.source}, used for the header {header.name}, is not set. {_WHERE}",
                )
        if header.file is not None:
            try:
                value = secret_file.value(header.file)
            except secret_file.Unreadable as error:
                raise _missing(
                    server,
                    f"the file {header.file}, used for the header {header.name}: {error.why}. The server did not get the "
                    "request.",
                ) from None
        text = header.prefix + (value or "").strip()
        if not text.isascii() or not text.isprintable():
            raise _missing(
                server,
                f"the value for the header {header.name} has line breaks or other characters that no header may hold. The "
                "server did not get the request.",
            )
        made.append((header.name, text))
    return made


def _missing(server: str, what: str) -> Fault:
    return Fault("env-missing", f"{server}: {what}", stage=Stage.DISCOVER, verdict=Verdict.NEVER_REACHED, server=server)
