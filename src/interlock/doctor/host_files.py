"""The MCP entries of AI hosts' files, as far as the way to one remote server needs them: who leads where, and how.

What a host's files are and what stands in them is known to `hosts/`. More is taken here than a host would: also an entry
that it refuses or that another one hides points to a server, and a person who looks for it has to be told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from interlock.hosts import registry
from interlock.hosts.declaration import Declaration, State
from interlock.hosts.machine import here
from interlock.hosts.reading import read
from interlock.hosts.references import found as references
from interlock.install.entries import URL_FIELDS, words

_CREDENTIALS = frozenset(("authorization", "x-api-key", "api-key", "cookie"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One server in one host's file. `command` holds the arguments as they stand there: show only what cannot be a secret."""

    host: str
    file: Path
    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    literal_headers: tuple[str, ...] = ()
    """Names of headers that carry a credential by their name and whose value stands in the file itself."""
    line: int = 0
    state: State = "effective"


def entries(user: Path, folder: Path, environ: Mapping[str, str]) -> list[Entry]:
    """Those of all hosts that are known here: the user's files, and the project files of `folder`."""
    machine = replace(here(environ, str(folder)), home=str(user))
    return [
        entry
        for adapter in registry.every()
        for declaration in read(adapter, machine).declarations
        if (entry := _entry(declaration)) is not None
    ]


def _entry(declaration: Declaration) -> Entry | None:
    if declaration.server is None or declaration.state == "never-read":
        return None
    raw, own = declaration.raw, declaration.entry
    command, url = (own.command, own.url) if own is not None else ((), None)
    if url is None and not command:  # the host refuses it: what stands there all the same
        command = tuple(words(raw))
        url = next((value for field in URL_FIELDS if isinstance(value := raw.get(field), str)), None)
    if url is None and not command:
        return None
    return Entry(
        declaration.host, Path(declaration.file), declaration.server, command, url, tuple(_literal_credentials(raw)),
        declaration.spot.line, declaration.state,
    )  # fmt: skip


def _literal_credentials(raw: Mapping[str, object]) -> Iterator[str]:
    for field in ("headers", "http_headers"):
        headers = raw.get(field)
        for name, value in headers.items() if isinstance(headers, dict) else ():
            if not isinstance(value, str) or not isinstance(name, str) or name.lower() not in _CREDENTIALS:
                continue
            if value and not references(value, ("$V", "%V%")):
                yield name


def is_absolute(program: str) -> bool:
    return os.path.isabs(program) or bool(re.match(r"[A-Za-z]:[\\/]", program))
