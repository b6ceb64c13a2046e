"""What comes of planning the changes of one host: entries, losses, refusals, and the edits that would make it so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from interlock.hosts.generated import Owned, Where
from interlock.hosts.wanting import WriteScope
from interlock.hosts.writing import FileEdits, Json, Loss


@dataclass(frozen=True, slots=True)
class Lost:
    server: str
    loss: Loss


@dataclass(frozen=True, slots=True)
class Refused:
    """`server` is empty where the whole file is meant."""

    server: str
    why: str
    todo: str = ""
    foreign: bool = False
    """An entry that Interlock did not write has the name."""


@dataclass(frozen=True, slots=True)
class Item:
    """One entry as it will stand in the file."""

    server: str
    path: Where
    entry: Mapping[str, Json]
    state: str
    """`new`, `changed`, `same`, `replaced` (it was not ours) or `removed`."""
    before: Mapping[str, object] | None = None
    lossy: bool = False
    stale: tuple[Where, ...] = ()
    """Fields that Interlock wrote before and that go away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    host: str
    file: str | None
    scope: WriteScope = "user"
    edits: tuple[FileEdits, ...] = ()
    losses: tuple[Lost, ...] = ()
    refused: tuple[Refused, ...] = ()
    notes: tuple[str, ...] = ()
    entries: tuple[Item, ...] = ()
    owned: Mapping[tuple[str, Where], Owned | None] = field(default_factory=dict)
    """What is to be kept in mind with the edits."""
