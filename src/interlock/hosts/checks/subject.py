"""What a check of one entry looks at, and where in the file each part of it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from interlock.hosts.adapter import Adapter
from interlock.hosts.declaration import Declaration, Spot
from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine

_COMMAND = ("command", "cmd", "transport.command")
_ARGS = ("args", "transport.args")
ENV = ("env", "environment", "envs", "transport.env")
HEADERS = ("headers", "http_headers", "requestInit.headers", "requestOptions.headers", "transport.headers")
URL = ("url", "httpUrl", "serverUrl", "uri", "endpoint", "transport.url")
_CWD = ("cwd", "workingDirectory", "transport.cwd")


@dataclass(frozen=True, slots=True)
class Subject:
    """One declared entry with its host and machine."""

    adapter: Adapter
    machine: Machine
    declaration: Declaration
    contributes: bool = False
    """It only lends fields to another entry of its name, which is what runs."""

    @property
    def runs(self) -> Entry | None:
        """What the host starts; None where it starts nothing, now or once the user says yes."""
        state, rule = self.declaration.state, self.declaration.decided_by.rule
        waits = state == "blocked" and rule in ("untrusted", "not-approved")
        return self.declaration.runs if (state == "effective" or waits) and not self.contributes else None

    def word(self, index: int) -> tuple[str, Spot]:
        """Name and place of one word of the command; 0 is the program."""
        if index == 0:
            return self._first([*(f"{name}.0" for name in _COMMAND), *_COMMAND])
        listed = [f"{name}.{index}" for name in _COMMAND]
        return self._first([*(f"{name}.{index - 1}" for name in _ARGS), *listed, *_ARGS, *_COMMAND])

    def env(self, name: str) -> tuple[str, Spot]:
        return self._first([*(f"{table}.{name}" for table in ENV), *ENV], f"env.{name}")

    def header(self, name: str) -> tuple[str, Spot]:
        return self._first([*(f"{table}.{name}" for table in HEADERS), *HEADERS], f"headers.{name}")

    def url(self) -> tuple[str, Spot]:
        return self._first(list(URL))

    def cwd(self) -> tuple[str, Spot]:
        return self._first(list(_CWD))

    def at(self, name: str) -> Spot:
        """Where one field stands, by its own name."""
        return self._first([name])[1]

    def _first(self, names: list[str], otherwise: str = "") -> tuple[str, Spot]:
        """The first of these fields that stands in the file."""
        spots: list[Mapping[str, Spot]] = [self.declaration.spots]
        if self.declaration.merged is not None:
            spots.insert(0, self.declaration.origins)
        for places in spots:
            for name in names:
                if name in places:
                    return name, places[name]
        return otherwise or names[-1], self.declaration.spot


def texts(subject: Subject, entry: Entry) -> Iterator[tuple[str, str, str, Spot]]:
    """(kind, text, field, place) of everything that a host may fill variables into. Kinds are those of `Variables.fields`."""
    for index, word in enumerate(entry.command):
        yield ("args" if index else "command", word, *subject.word(index))
    for name, value in entry.env.items():
        yield ("env", value, *subject.env(name))
    if entry.url is not None:
        yield ("url", entry.url, *subject.url())
    for name, value in entry.headers.items():
        yield ("headers", value, *subject.header(name))
    if entry.cwd is not None:
        yield ("cwd", entry.cwd, *subject.cwd())
