"""Commands that a host runs at its own events: from its settings, and from plugins. Shown with secrets blacked out.

Two shapes are in use: groups with a matcher that hold handlers (Claude Code, Codex, Gemini CLI, Qwen Code), and plain
lists of handlers (Cursor). One reader takes both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from interlock.hosts.declaration import Spot
from interlock.hosts.machine import Machine
from interlock.hosts.place import Format
from interlock.hosts.plugins import files
from interlock.hosts.plugins.shown import command as shown_command
from interlock.hosts.text.document import Document, Step

Does = Literal["command", "prompt", "http", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    host: str
    event: str
    does: Does
    shown: str
    """The command, or the address, with secrets as `****`; of a prompt nothing."""
    spot: Spot
    matcher: str = ""
    source: str = ""
    """The plugin that brings it; empty: the host's own settings."""
    scope: str = ""


def in_document(
    host: str, path: str, loaded: Document | None, base: Sequence[str] = ("hooks",), **more: str
) -> list[Hook]:
    """All hooks under `base`. `more`: source, scope."""
    if loaded is None:
        return []
    events = files.inner(loaded.value, *base)
    return [
        hook
        for event, groups in events.items()
        if isinstance(groups, list)
        for index, group in enumerate(groups)
        for hook in _group(host, event, group, path, loaded, (*base, event, index), more)
    ]


def _group(
    host: str, event: str, group: object, path: str, loaded: Document, where: tuple[Step, ...], more: dict[str, str]
) -> Iterator[Hook]:
    if not isinstance(group, dict):
        return
    handlers = group.get("hooks")
    matcher = files.text_of(group.get("matcher"))
    if not isinstance(handlers, list):
        handlers, inside = [group], False
    else:
        inside = True
    for index, handler in enumerate(handlers):
        if not isinstance(handler, dict):
            continue
        does, shown = _action(handler)
        spot = files.spot(path, loaded, *where, *(("hooks", index) if inside else ()))
        yield Hook(host=host, event=event, does=does, shown=shown, spot=spot, matcher=matcher, **more)


def _action(handler: dict[str, object]) -> tuple[Does, str]:
    for name in ("command", "bash", "powershell", "windows", "linux", "osx"):
        value = handler.get(name)
        if isinstance(value, str):
            return "command", shown_command(value)
        if isinstance(value, list):
            return "command", shown_command(" ".join(str(word) for word in value))
    if isinstance(handler.get("url"), str):
        return "http", shown_command(str(handler["url"]))
    return ("prompt", "") if "prompt" in handler else ("other", "")


_Where = tuple[str, str, str, Format, tuple[str, ...]]


def _places(machine: Machine) -> Iterator[_Where]:
    """(host, scope, file, format, key path) of hooks outside of plugins."""
    user, environ = machine.user, machine.environ
    claude = environ.get("CLAUDE_CONFIG_DIR") or user(".claude")
    codex = environ.get("CODEX_HOME") or user(".codex")
    top = machine.repository() or machine.folder
    if machine.platform == "windows":
        managed = "C:\\Program Files\\ClaudeCode\\managed-settings.json"
    elif machine.platform == "macos":
        managed = "/Library/Application Support/ClaudeCode/managed-settings.json"
    else:
        managed = "/etc/claude-code/managed-settings.json"
    yield "claude-code", "managed", managed, "jsonc", ("hooks",)
    yield "claude-code", "user", machine.join(claude, "settings.json"), "jsonc", ("hooks",)
    yield "codex", "user", machine.join(codex, "hooks.json"), "jsonc", ("hooks",)
    yield "codex", "user", machine.join(codex, "config.toml"), "toml", ("hooks",)
    yield "cursor", "user", user(".cursor", "hooks.json"), "jsonc", ("hooks",)
    yield "gemini-cli", "user", user(".gemini", "settings.json"), "jsonc", ("hooks",)
    yield "qwen-code", "user", user(".qwen", "settings.json"), "jsonc", ("hooks",)
    for folder in machine.project_folders():
        for name, scope in (("settings.json", "project"), ("settings.local.json", "local")):
            yield "claude-code", scope, machine.join(folder, ".claude", name), "jsonc", ("hooks",)
        yield "codex", "project", machine.join(folder, ".codex", "hooks.json"), "jsonc", ("hooks",)
        yield "codex", "project", machine.join(folder, ".codex", "config.toml"), "toml", ("hooks",)
    yield "cursor", "project", machine.join(top, ".cursor", "hooks.json"), "jsonc", ("hooks",)
    yield "gemini-cli", "project", machine.join(machine.folder, ".gemini", "settings.json"), "jsonc", ("hooks",)
    yield "qwen-code", "project", machine.join(machine.folder, ".qwen", "settings.json"), "jsonc", ("hooks",)
    for name in files.members(machine, machine.join(top, ".github", "hooks")):
        if name.endswith(".json"):
            yield "copilot-cli", "project", machine.join(top, ".github", "hooks", name), "jsonc", ("hooks",)


def found(machine: Machine, hosts: Sequence[str] | None = None) -> list[Hook]:
    """Hooks in the hosts' own settings. Whether a host has hooks switched on is not asked here."""
    hooks: list[Hook] = []
    seen: set[tuple[str, str]] = set()
    for host, scope, path, format, base in _places(machine):
        if (hosts is None or host in hosts) and (host, path) not in seen:
            seen.add((host, path))
            hooks += in_document(host, path, files.document(machine, path, format), base, scope=scope)
    return hooks
