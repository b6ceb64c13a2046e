"""What a host's file has about it as a whole: marks and liberties that not every parser takes, and who may change it."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.hosts.checks import exposure
from interlock.hosts.checks.codes import found
from interlock.hosts.declaration import Problem, Spot
from interlock.hosts.fact import Fact
from interlock.hosts.place import ANY, PROJECT
from interlock.hosts.reading import Reading, Seen
from interlock.hosts.text.document import Document, Step


def check(reading: Reading) -> Iterator[Problem]:
    done: set[str] = set()
    for seen in reading.seen:
        if seen.path in done or seen.place.known.value is False:
            continue
        done.add(seen.path)
        posix = reading.machine.platform != "windows"
        if posix and exposure.writable_by_others(reading.machine.real(seen.path), reading.machine.root):
            yield found(
                "file-writable-by-others", "Any user of this machine can write the file, or replace it.",
                todo=f"chmod o-w {seen.path}", spot=Spot(seen.path),
            )  # fmt: skip
        if not seen.place.known.known:
            yield found(
                "file-doubtful", f"It is not established that {reading.adapter.label} reads this file.",
                why=seen.place.known.note, spot=Spot(seen.path),
            )  # fmt: skip
        if seen.document is not None and seen.fault is None:
            yield from _form(reading, seen, seen.document)


def _form(reading: Reading, seen: Seen, document: Document) -> Iterator[Problem]:
    takes, label = reading.adapter.tolerance, reading.adapter.label
    if document.bom:
        yield found(
            "byte-order-mark", "The file begins with a byte order mark.",
            why=f"{label} takes it, others refuse the file." if takes.bom.value else f"It is not known whether {label} takes it.",
            severity="note" if takes.bom.value else "warning", spot=Spot(seen.path, 1, 1),
        )  # fmt: skip
    liberties: list[tuple[str, tuple[int, int] | None, Fact[bool]]] = [
        ("a comment", document.comment, takes.comments),
        ("a comma after the last member", document.trailing_comma, takes.trailing_comma),
    ]
    if seen.place.format not in ("json", "jsonc"):
        liberties = []
    for what, at, fact in liberties:
        if at is not None and not fact.known:
            yield found(
                "tolerance-unknown",
                f"There is {what}, and it is not known whether {label} takes that.",
                spot=Spot(seen.path, *at),
            )
    tables = [table for each in reading.seen if each.path == seen.path for table in each.place.tables]
    for path, at in document.duplicates:
        if not any(_touches(path, table) for table in tables):
            continue
        name, spot = str(path[-1]) if path else "", Spot(seen.path, *at)
        if takes.duplicate_keys.value == "last":
            yield found(
                "duplicate-key", f"`{name}` stands twice; {label} takes this one, the earlier is lost.", spot=spot
            )
        elif takes.duplicate_keys.value is None:
            yield found("duplicate-key", f"`{name}` stands twice; which one {label} takes is not known.", spot=spot)


def _touches(path: tuple[Step, ...], table: tuple[str, ...]) -> bool:
    """Whether the key holds servers, or is one, or is inside of one."""
    return all(mine == theirs or theirs in (ANY, PROJECT) for mine, theirs in zip(path, table, strict=False))
