"""Small JSON, TOML and text files next to the hosts' own, read without ever failing."""

from __future__ import annotations

import os

from interlock.hosts.declaration import Spot
from interlock.hosts.machine import Machine
from interlock.hosts.place import Format
from interlock.hosts.reading import parse, read_bytes
from interlock.hosts.text.document import At, Damaged, Document, Step

MOST = 2_000
"""Members of a folder that are looked at."""


def document(machine: Machine, path: str, format: Format = "jsonc") -> Document | None:
    """None where it is missing."""
    loaded, _ = attempt(machine, path, format)
    return loaded


def attempt(
    machine: Machine, path: str, format: Format = "jsonc"
) -> tuple[Document | None, tuple[str, At | None] | None]:
    """The document, and why there is none although there is a file (with the place)."""
    try:
        content = read_bytes(machine, path)
        return (None, None) if content is None else (parse(content, format), None)
    except Damaged as error:
        return None, (error.why, error.at)
    except OSError as error:
        return None, (f"it cannot be read: {error.strerror or type(error).__name__}", None)


def table(machine: Machine, path: str, format: Format = "jsonc") -> dict[str, object]:
    """Its top object; empty where there is none."""
    loaded = document(machine, path, format)
    return dict(loaded.value) if loaded is not None and isinstance(loaded.value, dict) else {}


def spot(path: str, loaded: Document | None, *steps: Step) -> Spot:
    return Spot(path, *((loaded.at(*steps) if loaded is not None else None) or (0, 0)))


def inner(value: object, *path: str) -> dict[str, object]:
    """The object under a path of keys; empty where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return {str(name): each for name, each in value.items()} if isinstance(value, dict) else {}


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def members(machine: Machine, folder: str) -> list[str]:
    """Names in a folder, sorted; none where there is no such folder."""
    try:
        return sorted(os.listdir(machine.real(folder)))[:MOST]
    except OSError:
        return []


def folders(machine: Machine, folder: str) -> list[str]:
    """Names of the folders in a folder (links to folders too), hidden ones left out."""
    return [
        name
        for name in members(machine, folder)
        if not name.startswith(".") and os.path.isdir(machine.real(machine.join(folder, name)))
    ]


def is_file(machine: Machine, path: str) -> bool:
    return os.path.isfile(machine.real(path))


def is_folder(machine: Machine, path: str) -> bool:
    return os.path.isdir(machine.real(path))
