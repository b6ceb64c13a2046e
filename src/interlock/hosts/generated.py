"""What Interlock has written into hosts' files, so that it changes and takes away its own work and nobody else's.

`generated.json` in Interlock's home, by file and place in it. It is changed together with the files that it is about.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from interlock.hosts.machine import Machine
from interlock.hosts.reading import parse, read_bytes
from interlock.hosts.text.document import Damaged
from interlock.hosts.writing import REMOVE, Edit, FileEdits, Json

FILE_NAME = "generated.json"

Where = tuple[str, ...]
"""Key path from the top of a file."""


@dataclass(frozen=True, slots=True)
class Owned:
    """One member of one file that Interlock wrote."""

    host: str
    server: str = ""
    """Key of the entry that it belongs to; empty for a list, whose items say it each."""
    digest: str = ""
    """Of the value as it was written."""
    members: tuple[Where, ...] = ()
    """Of an object: its leaves that are Interlock's. Others are a person's."""
    items: Mapping[str, tuple[Json, ...]] = field(default_factory=dict)
    """Of a list: the items that Interlock added, by server."""
    since: int = 0
    """How many steps of the path lead to the first object that Interlock made on the way; 0: it made none."""


@dataclass(frozen=True, slots=True)
class Ledger:
    files: Mapping[str, Mapping[Where, Owned]] = field(default_factory=dict)
    fault: str = ""
    """Why nothing is known although the file is there."""

    def at(self, file: str, where: Where) -> Owned | None:
        return self.files.get(file, {}).get(where)

    def of_host(self, host: str) -> Iterator[tuple[str, Where, Owned]]:
        for file, members in self.files.items():
            for where, owned in members.items():
                if owned.host == host:
                    yield file, where, owned


def place_of(home: Path | str) -> str:
    return str(Path(home) / FILE_NAME)


def read(home: Path | str, machine: Machine) -> Ledger:
    """Never raises. A file that cannot be read means that nothing is known to be ours."""
    try:
        content = read_bytes(machine, place_of(home))
        if content is None:
            return Ledger()
        value = parse(content, "json").value
    except (OSError, Damaged, RecursionError) as error:
        return Ledger(
            fault=f"{place_of(home)} cannot be read ({type(error).__name__}): no entry is known to be Interlock's"
        )
    files = value.get("files") if isinstance(value, dict) else None
    found: dict[str, dict[Where, Owned]] = {}
    for file, members in files.items() if isinstance(files, dict) else ():
        for pointer, raw in members.items() if isinstance(members, dict) else ():
            owned = _owned(raw)
            if owned is not None:
                found.setdefault(file, {})[from_pointer(pointer)] = owned
    return Ledger(found)


def _owned(raw: object) -> Owned | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("host"), str):
        return None
    members, items, since = raw.get("members"), raw.get("items"), raw.get("since")
    return Owned(
        raw["host"],
        str(raw.get("server", "")),
        str(raw.get("digest", "")),
        tuple(from_pointer(each) for each in members if isinstance(each, str)) if isinstance(members, list) else (),
        {name: tuple(each) for name, each in items.items() if isinstance(each, list)}
        if isinstance(items, dict)
        else {},
        since if isinstance(since, int) else 0,
    )


def edits(home: Path | str, changes: Mapping[tuple[str, Where], Owned | None]) -> tuple[FileEdits, ...]:
    """The ledger's own change. It travels with the others, so that it is true whenever they are. None: no longer ours."""
    if not changes:
        return ()
    made = tuple(
        Edit(("files", file, pointer(where)), REMOVE if owned is None else _raw(owned))
        for (file, where), owned in sorted(changes.items(), key=lambda each: each[0])
    )
    return (FileEdits(file=place_of(home), format="json", comments=False, edits=(Edit(("version",), 1), *made)),)


def _raw(owned: Owned) -> Json:
    made: dict[str, Json] = {"host": owned.host}
    if owned.server:
        made["server"] = owned.server
    if owned.digest:
        made["digest"] = owned.digest
    if owned.members:
        made["members"] = [pointer(each) for each in owned.members]
    if owned.items:
        made["items"] = {server: list(items) for server, items in owned.items.items()}
    if owned.since:
        made["since"] = owned.since
    return made


def digest(value: object) -> str:
    """The same for values that are equal, whatever the order of their members."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def pointer(where: Where) -> str:
    """RFC 6901."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in where)


def from_pointer(text: str) -> Where:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:])
