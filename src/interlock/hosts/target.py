"""The manifest that imported servers are added to: what stands there already, and the same with new documents behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from interlock.hosts.documents import loaded
from interlock.hosts.machine import Machine
from interlock.manifest.config import ServerConfig
from interlock.manifest.places import FILE_NAME
from interlock.manifest.problems import Problem

IN_FOLDER = "imported.yaml"
"""Where the manifest is a folder of files."""


class Unusable(Exception):
    """Nothing can be added. The text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    file: Path
    scope: str
    """`user` or `project`."""
    content: bytes | None = None
    """What the file holds; None where there is none."""
    servers: Mapping[str, ServerConfig] = field(default_factory=dict)
    """By key, of this file and of those beside it."""

    def appended(self, text: str, machine: Machine) -> bytes:
        """The file with these documents at its end. Raises Unusable where the whole would not load."""
        before = self.content or b""
        old = before.decode("utf-8-sig")
        newline = "\r\n" if "\r\n" in old else "\n"
        added = text.replace("\n", newline)
        if old.strip():
            lead = "" if old.endswith("\n") else newline
            added = f"{lead}---{newline}{added}"
        made = before + added.encode()
        _configs, errors = loaded(made.decode("utf-8-sig"), self.file, self.scope, machine.platform, machine.environ)
        if errors:
            raise Unusable(f"{self.file} would not load with the new servers: {errors[0].what}")
        return made


def user_file(home: Path) -> Path:
    place = home / FILE_NAME
    return place / IN_FOLDER if place.is_dir() else place


def read(file: Path, scope: str, machine: Machine) -> Target:
    """Raises Unusable where the file is there and is not right."""
    servers: dict[str, ServerConfig] = {}
    beside = sorted(file.parent.glob("*.y*ml")) if file.name == IN_FOLDER else [file]
    content = None
    for each in dict.fromkeys([*beside, file]):
        try:
            found = each.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Unusable(f"{each} cannot be read: {error.strerror or error}") from None
        if each == file:
            content = found
        try:
            configs, errors = loaded(found.decode("utf-8-sig"), each, scope, machine.platform, machine.environ)
        except UnicodeDecodeError:
            raise Unusable(f"{each} is not UTF-8 text: correct it first") from None
        if errors:
            raise Unusable(f"{_where(errors[0])}: {errors[0].what} Correct it first (`interlock check`).")
        servers |= {config.key: config for config in configs}
    return Target(file, scope, content, servers)


def _where(problem: Problem) -> str:
    return f"{problem.file}:{problem.line}" if problem.line else str(problem.file)
