"""Which hosts are known, by id and alias. Each adapter is imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from interlock.hosts.adapter import Adapter

IDS = (
    "claude-code",
    "codex",
    "cursor",
    "antigravity",
    "gemini-cli",
    "vscode",
    "copilot-cli",
    "claude-desktop",
    "windsurf",
    "zed",
    "opencode",
    "goose",
    "cline",
    "roo-code",
    "continue",
    "jetbrains",
    "pi",
    "qwen-code",
    "kiro",
)
"""In the order in which they are shown. Each is a module of `adapters` (`-` as `_`) with an `ADAPTER`."""

_ALIASES = {
    "claude": "claude-code",
    "code": "vscode",
    "vs-code": "vscode",
    "copilot": "copilot-cli",
    "gemini": "gemini-cli",
    "agy": "antigravity",
    "devin": "windsurf",
    "windsurf-devin": "windsurf",
    "roo": "roo-code",
    "junie": "jetbrains",
    "qwen": "qwen-code",
}


def resolve(name: str) -> str | None:
    """The id that a name or alias means, in any case, with `_` or a space for `-`; nothing is imported."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    wanted = _ALIASES.get(wanted, wanted)
    return wanted if wanted in IDS else None


_MODULES = {"continue": "continue_dev"}
"""Where the module is not named after the host, because Python keeps the word."""


def find(name: str) -> Adapter | None:
    """By id or alias."""
    wanted = resolve(name)
    if wanted is None:
        return None
    name = _MODULES.get(wanted) or wanted.replace("-", "_")
    module = importlib.import_module(f"interlock.hosts.adapters.{name}")
    adapter: Adapter = module.ADAPTER
    return adapter


def label(id: str) -> str:
    """What people call this host."""
    adapter = find(id)
    return id if adapter is None else adapter.label


def every() -> Iterator[Adapter]:
    for id in IDS:
        adapter = find(id)
        if adapter is not None:
            yield adapter
