"""Where Copilot CLI keeps its files."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.hosts.machine import Machine


def home(machine: Machine, *parts: str) -> str:
    return machine.join(machine.environ.get("COPILOT_HOME") or machine.user(".copilot"), *parts)


def user(machine: Machine) -> Sequence[str]:
    return [home(machine, "mcp-config.json")]


def config(machine: Machine) -> str:
    return home(machine, "config.json")


def settings(machine: Machine) -> str:
    return home(machine, "settings.json")


def repository_settings(machine: Machine) -> tuple[str, str]:
    """Of everybody who works in the repository, and of this user there."""
    folder = machine.join(machine.repository() or machine.folder, ".github", "copilot")
    return machine.join(folder, "settings.json"), machine.join(folder, "settings.local.json")
