"""All files of one host on one machine, read and judged: what the host would make of each declared entry, and why.

The order of judgement: can the file be read (Tolerance), can the entry (`Adapter.read`), which of one name wins (`Merge`),
is it switched off, and the host's own rules last (`Adapter.judge`). Nothing is written and nothing is started.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from interlock.hosts.adapter import Adapter
from interlock.hosts.declaration import Decision, Declaration, Problem, Spot
from interlock.hosts.machine import Machine
from interlock.hosts.place import ANY, PROJECT, Format, Place, Scope
from interlock.hosts.text.document import At, Damaged, Document, Step
from interlock.hosts.text.mends import mend

MAX_BYTES = 32 * 1024 * 1024
"""Claude Code keeps its history in the file that its servers stand in."""


class BadEntry(Exception):
    """The host refuses this entry. `field` is what is wrong about it; the texts hold no value from the file."""

    def __init__(self, why: str, field: str = "", todo: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.field = field
        self.todo = todo


@dataclass(frozen=True, slots=True)
class Seen:
    """One file that is there. `document` is None where it cannot be parsed at all."""

    path: str
    place: Place
    document: Document | None
    fault: Problem | None = None
    """Why the host cannot read it."""


@dataclass(slots=True)
class Reading:
    adapter: Adapter
    machine: Machine
    seen: list[Seen] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """Of files, not of entries."""
    _others: dict[str, Document | None] = field(default_factory=dict)

    def other(self, path: str, format: Format = "jsonc") -> Document | None:
        """Another file of the host (trust lists, settings), or None where it is missing or damaged. Read once."""
        if path not in self._others:
            try:
                content = read_bytes(self.machine, path)
                self._others[path] = None if content is None else parse(content, format)
            except (OSError, Damaged):
                self._others[path] = None
        return self._others[path]

    def of(self, server: str) -> list[Declaration]:
        """The declarations of one name that the host reads."""
        return [each for each in self.declarations if each.server == server and each.state != "never-read"]


def read_bytes(machine: Machine, path: str) -> bytes | None:
    """None where there is no such file. Raises OSError, or Damaged where it is far too large."""
    try:
        real = machine.real(path)
        mode = os.stat(real).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise Damaged("it is no regular file")  # a pipe would be waited for without end
        with open(real, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(content) > MAX_BYTES:
        raise Damaged("it is larger than any configuration should be")
    return content


def parse(content: bytes, format: Format) -> Document:
    """With every liberty allowed that the format has; the caller judges them. Raises Damaged."""
    if format == "toml":
        from interlock.hosts.text import toml

        return toml.parse(content)
    if format == "yaml":
        from interlock.hosts.text import yaml

        return yaml.parse(content)
    from interlock.hosts.text import jsonc

    return jsonc.parse(content)


def read(adapter: Adapter, machine: Machine) -> Reading:
    """Never raises for what stands in a file."""
    from interlock.hosts.settling import settle

    reading = Reading(adapter, machine)
    places = [place for place in adapter.places if not place.shared or _is_here(adapter, machine)]
    own = {(path, place.tables) for place in places if place.scope == "user" for path in place.find(machine)}
    for place in places:
        for path in dict.fromkeys(place.find(machine)):
            # In the home itself a project's file may be the user's: then it is the user's, whichever place comes first.
            if place.scope != "project" or (path, place.tables) not in own:
                _read_file(reading, place, path)
    _one_for_each_fault(reading)
    settle(reading)
    return reading


def _one_for_each_fault(reading: Reading) -> None:
    """A file that several places look into is broken once, and not at all where its entries say so already."""
    told: set[str] = {each.file for each in reading.declarations if each.server is not None and each.state == "broken"}
    kept = []
    for each in reading.declarations:
        if each.server is None and each.decided_by.rule == "syntax":
            if each.file in told:
                continue
            told.add(each.file)
        kept.append(each)
    reading.declarations = kept


def _is_here(adapter: Adapter, machine: Machine) -> bool:
    """Whether a file that is not this host's alone may be taken for its own."""
    return adapter.signs is None or any(exists(machine, path) for path in adapter.signs(machine))


def _read_file(reading: Reading, place: Place, path: str) -> None:
    if any(each.path == path and each.place.tables == place.tables for each in reading.seen):
        return  # a user's file that is also found as a project's
    try:
        content = read_bytes(reading.machine, path)
    except Damaged as error:
        _broken_file(reading, place, path, None, error.why, None)
        return
    except OSError as error:
        _broken_file(reading, place, path, None, f"it cannot be read: {error.strerror or type(error).__name__}", None)
        return
    if content is None:
        return
    try:
        document = parse(content, place.format)
    except Damaged as error:
        _broken_file(reading, place, path, None, error.why, error.at)
        return
    why, at = (None, None) if place.known.value is False else refusal(reading.adapter, place, document)
    if not content.strip() and place.known.value is not False and reading.adapter.tolerance.empty.value is False:
        why, at = "it is empty, which this host does not take", (1, 1)
    if why is not None:
        _broken_file(reading, place, path, document, why, at)
        return
    reading.seen.append(Seen(path, place, document))
    _misshapen(reading, place, path, document)
    for server, raw, base in entries_of(document, place.tables, reading.machine, listed=place.listed):
        declare(reading, place, path, document, server, raw, base)
    value = document.value
    if place.alone and isinstance(value, dict) and any(name in value for name in ("command", "url")):
        name = reading.machine.paths.basename(path)
        declare(reading, place, path, document, reading.machine.paths.splitext(name)[0], value, ())


def refusal(adapter: Adapter, place: Place, document: Document) -> tuple[str | None, At | None]:
    """Why this host's parser refuses what ours could read."""
    takes = adapter.tolerance
    if document.bom and takes.bom.value is False:
        return "it begins with a byte order mark, which this host does not take", (1, 1)
    if place.format in ("json", "jsonc"):
        if document.comment is not None and takes.comments.value is False:
            return "it has a comment, which this host does not take", document.comment
        if document.trailing_comma is not None and takes.trailing_comma.value is False:
            return "it has a comma after the last member, which this host does not take", document.trailing_comma
        if document.duplicates and takes.duplicate_keys.value == "error":
            return "it has a key twice, which this host does not take", document.duplicates[0][1]
    return None, None


def _misshapen(reading: Reading, place: Place, path: str, document: Document) -> None:
    """Says so where something else stands in the place of the entries: the host finds no server there, and rarely says why."""
    if place.known.value is False:
        return
    right = list if place.listed else dict
    if (
        all(place.tables)
        and not isinstance(document.value, dict)
        and (document.value is not None or "json" in place.format)
    ):
        if all(each.path != path for each in reading.seen[:-1]):
            seen = "The file holds no entries: at its top is no object."
            reading.problems.append(Problem("not-a-table", "problem", seen, spot=Spot(path, 1, 1)))
        return
    for table in place.tables:
        for base, inner in _under(document.value, table, (), reading.machine):
            if inner is not None and not isinstance(inner, right):
                spot = Spot(path, *(document.at(*base) or (0, 0)))
                shown = ".".join(str(step) for step in base) or "the file"
                reading.problems.append(
                    Problem(
                        "not-a-table",
                        "problem",
                        f"`{shown}` holds no entries: it is not {'a list' if place.listed else 'an object'}.",
                        spot=spot,
                        todo="Write a list of entries with a `name` each." if place.listed else "",
                    )
                )


def _broken_file(reading: Reading, place: Place, path: str, document: Document | None, why: str, at: At | None) -> None:
    spot = Spot(path, *(at or (0, 0)))
    problem = Problem("file-unreadable", "problem", why, spot=spot, todo=mend(why, at[0] if at else 0))
    reading.seen.append(Seen(path, place, document, problem))
    if place.known.value is False:
        # No server depends on it. Where the host reads the file for other things, that is worth a word.
        if not any(each.path == path and each.fault is not None for each in reading.seen[:-1]):
            reading.problems.append(replace(problem, severity="note"))
        return
    decision = Decision("syntax", spot, why)
    declared = []
    if document is not None:
        declared = list(entries_of(document, place.tables, reading.machine, listed=place.listed))
        for server, raw, base in declared:
            declare(reading, place, path, document, server, raw, base)
            reading.declarations[-1].state = "broken"
            reading.declarations[-1].decided_by = decision
            reading.declarations[-1].problems.append(problem)
    if not declared:
        reading.declarations.append(
            Declaration(
                host=reading.adapter.id, scope=place.scope, place=place, spot=spot, server=None,
                state="broken", decided_by=decision, problems=[problem],
            )
        )  # fmt: skip


def entries_of(
    document: Document, tables: tuple[tuple[str, ...], ...], machine: Machine, *, listed: bool = False
) -> Iterator[tuple[str, Mapping[str, object] | object, tuple[Step, ...]]]:
    """(name, raw entry, path from the top) of everything under `tables`, which with `listed` are lists."""
    for table in tables:
        for base, inner in _under(document.value, table, (), machine):
            if isinstance(inner, dict) and not listed:
                for name, raw in inner.items():
                    yield str(name), raw, (*base, name)
            elif isinstance(inner, list) and listed:
                for index, raw in enumerate(inner):
                    name = raw.get("name") if isinstance(raw, dict) else None
                    yield str(name) if name is not None else f"#{index + 1}", raw, (*base, index)


def _under(
    value: object, table: tuple[str, ...], base: tuple[Step, ...], machine: Machine
) -> Iterator[tuple[tuple[Step, ...], object]]:
    if not table:
        yield base, value
        return
    if not isinstance(value, dict):
        return
    head, rest = table[0], table[1:]
    keys = [head]
    if head == ANY:
        keys = list(value)
    elif head == PROJECT:
        keys = project_keys(machine)
    for key in keys:
        if key in value:
            yield from _under(value[key], rest, (*base, key), machine)


def project_keys(machine: Machine) -> list[str]:
    """How a file names the project of the working directory: the root of its repository, else the folder itself."""
    folder = machine.repository() or machine.folder
    return list(dict.fromkeys((folder, folder.replace("\\", "/"))))


def declare(
    reading: Reading,
    place: Place,
    path: str,
    document: Document,
    server: str,
    raw: object,
    base: tuple[Step, ...],
) -> None:
    spot = Spot(path, *(document.at(*base) or (0, 0)))
    spots = {".".join(str(step) for step in where): Spot(path, *at) for where, at in document.below(*base).items()}
    # Where the host reads the file, and not this key of it, only the key is wrong.
    readers = [each.place for each in reading.seen if each.path == path and each.place.known.value is not False]
    declaration = Declaration(
        host=reading.adapter.id, scope=_scope(reading.machine, place, path, readers), place=place, spot=spot, server=server,
        path=base, raw=raw if isinstance(raw, dict) else {}, spots=spots,
    )  # fmt: skip
    reading.declarations.append(declaration)
    try:
        if not isinstance(raw, dict):
            raise BadEntry("it is not an object with fields")
        if place.listed and not isinstance(raw.get("name"), str):
            raise BadEntry("it has no `name`", "name", "Give it a `name`, which is the server's.")
        declaration.entry = reading.adapter.read(raw)
    except BadEntry as error:
        # One layer of several may be incomplete: whether it makes sense is known when they are put together.
        # And in a file that the host does not read nothing can be wrong but the file.
        if place.known.value is not False and (reading.adapter.merge.value != "fields" or not isinstance(raw, dict)):
            refuse(declaration, error)
    if place.known.value is None:
        seen = f"It is not known whether {reading.adapter.label} reads this file."
        declaration.problems.append(Problem("place-uncertain", "warning", seen, place.known.note, spot=spot))
    if place.known.value is False:
        declaration.state = "never-read"
        declaration.decided_by = Decision("wrong-file", spot, place.known.note)
        declaration.problems.append(
            Problem(
                "wrong-table" if readers else "never-read", "note" if place.shared else "problem",
                place.known.note or "The host does not read this file.", spot=spot, todo=place.instead,
            )
        )  # fmt: skip


def _scope(machine: Machine, place: Place, path: str, readers: Sequence[Place]) -> Scope:
    """Of a wrong file whose it would be: a place of such files looks into a person's folders and a project's alike."""
    if place.known.value is not False:
        return place.scope
    if readers:
        return readers[-1].scope
    root = machine.repository() or machine.folder
    if root != machine.home and path.startswith(machine.join(root, "")):
        return "project"
    return "user" if path.startswith(machine.user(".")) else place.scope


def refuse(declaration: Declaration, error: BadEntry) -> None:
    """The host does not take this entry."""
    spot = declaration.spots.get(error.field, declaration.spot)
    declaration.state = "broken"
    declaration.decided_by = Decision("invalid-entry", spot, error.why)
    declaration.problems.append(
        Problem("entry-invalid", "problem", error.why, field=error.field, spot=spot, todo=error.todo)
    )


def exists(machine: Machine, path: str) -> bool:
    return os.path.lexists(machine.real(path))
