"""A machine of test files, Interlock's home beside it, and edits in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.hosts.machine import Machine
from interlock.hosts.place import Format
from interlock.hosts.writing import Edit, FileEdits, Json, _Remove

FORMATS: dict[str, Format] = {".json": "jsonc", ".toml": "toml", ".yaml": "yaml"}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    root = tmp_path / "machine"
    (root / "home" / "ada").mkdir(parents=True)
    return Machine(platform="linux", home="/home/ada", folder="/home/ada", environ={}, root=str(root))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "interlock"


class Disk:
    """The machine's files, by their logical paths below the user's home."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def path(self, name: str) -> Path:
        return Path(self._machine.real(f"/home/ada/{name}"))

    def write(self, name: str, content: bytes) -> bytes:
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_bytes(content)
        return content

    def read(self, name: str) -> bytes | None:
        return self.path(name).read_bytes() if self.path(name).exists() else None

    def names(self) -> set[str]:
        top = self.path("")
        return {str(path.relative_to(top)) for path in top.rglob("*")}


@pytest.fixture
def disk(machine: Machine) -> Disk:
    return Disk(machine)


def change(name: str, *given: tuple[str, Json | _Remove], keep: bool = False) -> FileEdits:
    """Members by dotted paths."""
    return FileEdits(
        file=f"/home/ada/{name}",
        format=FORMATS[name[name.rindex(".") :]],
        comments=True,
        edits=tuple(Edit(tuple(path.split(".")), value, keep=keep) for path, value in given),
    )
