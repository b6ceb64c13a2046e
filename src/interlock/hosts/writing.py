"""A server of the manifest on its way into a host's file: what is wanted, what was written, what was lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from interlock.hosts.place import Format
from interlock.manifest.config import ServerConfig

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Path = tuple[str, ...]


class _Remove:
    """The one value that means: take it away."""

    def __repr__(self) -> str:
        return "REMOVE"


REMOVE = _Remove()


@dataclass(frozen=True, slots=True)
class Edit:
    """One member of one file set, replaced or removed. Missing objects on the way are made; all else stays."""

    path: Path
    value: Json | _Remove
    keep: bool = False
    """With an object: only its members are set; others that stand there stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdits:
    """What is to change in one file."""

    file: str
    """Logical."""
    format: Format
    comments: bool
    """Comments and commas after the last member may stay where they stand: the host takes them, or nobody knows that it
    does not. False: it is known to refuse them, so one in the file is a fault already."""
    edits: tuple[Edit, ...]
    list_key: str | None = None
    """Continue: entries are a list of maps, and this member is the name that a path's last part means."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the manifest says and the host's file cannot."""

    field: str
    """The manifest's field, such as `capability.tools.deny`."""
    why: str
    weakens: bool
    """True: without it more would be allowed, or a secret or a switch would be wrong. Only such a loss is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What `generate` asks an adapter for: a server of the manifest, or Interlock's own entry (`connect`)."""

    name: str
    """Key of the entry in the host's file."""
    scope: Literal["user", "project", "local"]
    server: ServerConfig | None = None
    connect: tuple[str, ...] = ()
    """The command of Interlock's own entry; then `server` is None."""
    pass_names: tuple[str, ...] = ()
    """With `connect`: variables that servers behind Interlock need, to be passed on by reference."""
    project_root: str | None = None
    """Folder that project files are relative to (logical); None outside of a project."""
    file: str | None = None
    """Where the entry goes (logical), where that is settled already: what goes beside it belongs into the same file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """In the host's words. Holds references to secrets only."""

    entry: Mapping[str, Json]
    edits: tuple[FileEdits, ...] = ()
    """Changes in other files that belong to it: permission rules, lists of disabled servers."""
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()
    """What a person has to do besides, such as approving the server in the host."""
