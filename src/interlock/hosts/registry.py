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


def find(name: str) -> Adapter | None:
    """By id or alias, in any case, with `_` or a space for `-`."""
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    wanted = _ALIASES.get(wanted, wanted)
    if wanted not in IDS:
        return None
    module = importlib.import_module(f"interlock.hosts.adapters.{wanted.replace('-', '_')}")
    adapter: Adapter = module.ADAPTER
    return adapter


def every() -> Iterator[Adapter]:
    for id in IDS:
        adapter = find(id)
        if adapter is not None:
            yield adapter
