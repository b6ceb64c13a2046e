"""One installed plugin or extension: where it comes from, who switched it on, and what it brings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from interlock.hosts.declaration import Declaration, Problem, Spot
from interlock.hosts.plugins.hooks import Hook
from interlock.hosts.plugins.skills import Skill

Kind = Literal[
    "claude-code", "codex", "cursor", "antigravity", "gemini-extension", "qwen-extension", "opencode", "copilot",
    "agent-plugin",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Copy:
    """Another version of the same plugin that lies on the disk and is not loaded."""

    version: str
    folder: str
    why: str
    """Why the host does not load this one."""


@dataclass(slots=True, kw_only=True)
class Plugin:
    kind: Kind
    host: str
    name: str
    version: str = ""
    """As its manifest says, else as the host recorded it; empty: nobody says."""
    folder: str = ""
    """The folder (or the file, for OpenCode) that the host loads. Logical."""
    origin: str = ""
    """Marketplace, repository or folder that it was installed from."""
    enabled: bool | None = None
    """None: what decides it is not in a file that is known."""
    decided_by: Spot | None = None
    """The place that says so."""
    decided: str = ""
    """The same in words."""
    servers: list[Declaration] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    skills: list[Skill] = field(default_factory=list)
    others: list[Copy] = field(default_factory=list)
    recorded_version: str = ""
    """The version that the host has written down; where it differs from `version`, the folder has moved on."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def source(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name
