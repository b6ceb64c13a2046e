"""Rules files: texts that a host puts before the model in every session. Who reads which, how large, and what hides in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.hosts.declaration import Spot
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import files
from interlock.hosts.plugins.invisible import invisible
from interlock.hosts.reading import read_bytes
from interlock.hosts.text.document import Damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFile:
    path: str
    hosts: tuple[str, ...]
    """Those that read a file of this name and place, as far as is known."""
    scope: str
    size: int
    """Bytes."""
    hidden: tuple[Spot, ...] = ()
    """Invisible and direction-changing characters in it."""
    note: str = ""


_AGENTS = ("codex", "cursor", "opencode", "copilot-cli", "zed", "antigravity", "vscode", "windsurf")
_IN_PROJECT: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("AGENTS.md",), _AGENTS),
    (("AGENTS.override.md",), ("codex",)),
    (("CLAUDE.md",), ("claude-code", "copilot-cli", "opencode")),
    (("CLAUDE.local.md",), ("claude-code",)),
    ((".claude", "CLAUDE.md"), ("claude-code",)),
    (("GEMINI.md",), ("gemini-cli", "antigravity", "copilot-cli")),
    (("QWEN.md",), ("qwen-code",)),
    ((".cursorrules",), ("cursor",)),
    ((".windsurfrules",), ("windsurf",)),
    ((".clinerules",), ("cline",)),
    ((".roorules",), ("roo-code",)),
    ((".goosehints",), ("goose",)),
    ((".rules",), ("zed",)),
    ((".github", "copilot-instructions.md"), ("copilot-cli", "vscode")),
    ((".junie", "guidelines.md"), ("jetbrains",)),
    ((".junie", "AGENTS.md"), ("jetbrains",)),
)
"""Looked for in each folder from the working directory up to the root of its repository."""
_FOLDERS: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    ((".cursor", "rules"), ".mdc", ("cursor",)),
    ((".claude", "rules"), ".md", ("claude-code",)),
    ((".windsurf", "rules"), ".md", ("windsurf",)),
    ((".clinerules",), ".md", ("cline",)),
    ((".roo", "rules"), ".md", ("roo-code",)),
    ((".continue", "rules"), ".md", ("continue",)),
    ((".github", "instructions"), ".instructions.md", ("copilot-cli", "vscode")),
    ((".kiro", "steering"), ".md", ("kiro",)),
    ((".agents", "rules"), ".md", ("antigravity",)),
    ((".aiassistant", "rules"), ".md", ("jetbrains",)),
)
_DEPTH = 6


def _user(machine: Machine) -> Iterator[tuple[str, tuple[str, ...]]]:
    user, environ = machine.user, machine.environ
    codex = environ.get("CODEX_HOME") or user(".codex")
    yield machine.join(environ.get("CLAUDE_CONFIG_DIR") or user(".claude"), "CLAUDE.md"), ("claude-code", "opencode")
    yield machine.join(codex, "AGENTS.md"), ("codex",)
    yield machine.join(codex, "AGENTS.override.md"), ("codex",)
    yield user(".gemini", "GEMINI.md"), ("gemini-cli", "antigravity")
    yield user(".qwen", "QWEN.md"), ("qwen-code",)
    yield machine.config("opencode", "AGENTS.md"), ("opencode",)
    yield user(".copilot", "copilot-instructions.md"), ("copilot-cli",)
    yield machine.config("goose", ".goosehints"), ("goose",)
    yield user(".codeium", "windsurf", "memories", "global_rules.md"), ("windsurf",)


def found(machine: Machine, hosts: Sequence[str] | None = None) -> list[RuleFile]:
    rules: list[RuleFile] = []
    seen: set[str] = set()
    candidates = [(path, readers, "user") for path, readers in _user(machine)]
    for folder in machine.project_folders():
        candidates += [(machine.join(folder, *name), readers, "project") for name, readers in _IN_PROJECT]
        for name, ending, readers in _FOLDERS:
            candidates += [
                (path, readers, "project") for path in _walk(machine, machine.join(folder, *name), ending, _DEPTH)
            ]
    for path, all_readers, scope in candidates:
        readers = tuple(each for each in all_readers if hosts is None or each in hosts)
        if readers and path not in seen and files.is_file(machine, path):
            seen.add(path)
            rules.append(_read(machine, path, readers, scope))
    return rules


def _walk(machine: Machine, folder: str, ending: str, depth: int) -> Iterator[str]:
    if depth == 0 or not files.is_folder(machine, folder):
        return
    for name in files.members(machine, folder):
        path = machine.join(folder, name)
        if name.endswith(ending):
            yield path
        elif "." not in name:
            yield from _walk(machine, path, ending, depth - 1)


def _read(machine: Machine, path: str, hosts: tuple[str, ...], scope: str) -> RuleFile:
    try:
        content = read_bytes(machine, path) or b""
    except (Damaged, OSError):
        return RuleFile(path=path, hosts=hosts, scope=scope, size=0, note="it cannot be read")
    hidden = tuple(invisible(content.decode("utf-8", "replace"), path))
    note = ""
    if "codex" in hosts and len(content) > 32_768:
        note = "Codex reads 32 KiB of such files in all (`project_doc_max_bytes`)"
    return RuleFile(path=path, hosts=hosts, scope=scope, size=len(content), hidden=hidden, note=note)
