"""All plugins and extensions of the hosts on a machine, with the servers, hooks and skills that they bring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from interlock.hosts.machine import Machine
from interlock.hosts.plugins import agent_plugin, antigravity, claude_code, codex, copilot, cursor, gemini, opencode
from interlock.hosts.plugins.plugin import Plugin

KINDS: Mapping[str, Callable[[Machine], list[Plugin]]] = {
    "claude-code": claude_code.found,
    "codex": codex.found,
    "cursor": cursor.found,
    "antigravity": antigravity.found,
    "gemini-cli": partial(gemini.found, of=gemini.GEMINI),
    "qwen-code": partial(gemini.found, of=gemini.QWEN),
    "opencode": opencode.found,
    "copilot-cli": copilot.found,
}
"""By host. VS Code's extensions register their servers in code, so no file tells them."""


def found(machine: Machine, hosts: Iterable[str] | None = None) -> list[Plugin]:
    """Of these hosts (ids), or of all."""
    plugins: list[Plugin] = []
    for host in KINDS if hosts is None else hosts:
        if host in KINDS:
            plugins += KINDS[host](machine)
    for plugin in plugins:
        if plugin.kind == "agent-plugin":
            plugin.problems += agent_plugin.faults(machine, plugin.folder)
    return plugins
