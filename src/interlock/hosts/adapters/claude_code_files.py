"""Where Claude Code keeps servers, trust, approvals, policy and permission rules, and how they are asked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from interlock.hosts.declaration import Spot
from interlock.hosts.machine import Machine
from interlock.hosts.reading import Reading, project_keys
from interlock.hosts.text.document import Step

UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def home(machine: Machine, *parts: str) -> str:
    return machine.join(machine.environ.get("CLAUDE_CONFIG_DIR") or machine.user(".claude"), *parts)


def main(machine: Machine) -> Sequence[str]:
    moved = machine.environ.get("CLAUDE_CONFIG_DIR")
    return [machine.join(moved, ".claude.json") if moved else machine.user(".claude.json")]


def project(machine: Machine) -> Sequence[str]:
    return [machine.join(folder, ".mcp.json") for folder in machine.upward()]


def system(machine: Machine, name: str) -> str:
    if machine.platform == "windows":
        return machine.join("C:\\Program Files", "ClaudeCode", name)
    if machine.platform == "macos":
        return machine.join("/Library/Application Support", "ClaudeCode", name)
    return machine.join("/etc", "claude-code", name)


def settings(machine: Machine) -> dict[str, str]:
    """The settings files by scope, the strongest first.

    Of a project: those of the working directory, and settings.local.json of the repository's root besides.
    """
    root = machine.repository() or machine.folder
    return {
        "managed": system(machine, "managed-settings.json"),
        "local": machine.join(machine.folder, ".claude", "settings.local.json"),
        "local of the root": machine.join(root, ".claude", "settings.local.json"),
        "project": machine.join(machine.folder, ".claude", "settings.json"),
        "user": home(machine, "settings.json"),
    }


def at(reading: Reading, file: str, *path: Step) -> tuple[object, Spot] | None:
    """What stands at a place of a JSON file, and where; None where nothing does."""
    document = reading.other(file)
    value: object = document.value if document is not None else None
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    if document is None or value is None:
        return None
    return value, Spot(file, *(document.at(*path) or (0, 0)))


def of_project(reading: Reading, name: str) -> tuple[object, Spot] | None:
    """A field of the project's own object in ~/.claude.json."""
    file = main(reading.machine)[0]
    for key in project_keys(reading.machine):
        found = at(reading, file, "projects", key, name)
        if found is not None:
            return found
    return None


def is_trusted(reading: Reading) -> bool:
    """Of the working directory, or of a folder above it up to the repository's root."""
    file = main(reading.machine)[0]
    for folder in reading.machine.project_folders():
        for key in (folder, folder.replace("\\", "/")):
            found = at(reading, file, "projects", key, "hasTrustDialogAccepted")
            if found is not None and found[0] is True:
                return True
    return False


def names(found: tuple[object, Spot] | None) -> dict[str, Spot]:
    if found is None or not isinstance(found[0], list):
        return {}
    return {safe(each): found[1] for each in found[0] if isinstance(each, str)}


def safe(name: str) -> str:
    """As in a callable name: other characters become `_`."""
    return UNSAFE.sub("_", name)
