"""What `generate` asks of a host's adapter: the manifest's servers, with commands and paths as that host needs them.

An adapter writes a command as it gets it. Which word that is (the bare name or where it was found), what a relative path is
relative to, and how the project's root is called are the same questions for every host, and are answered here from facts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from interlock.hosts import filling
from interlock.hosts.adapter import Adapter
from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine
from interlock.hosts.platforms import is_shim, launch_words
from interlock.hosts.writing import Loss, Wanted
from interlock.manifest import logical
from interlock.manifest.config import EnvValue, Gateway, HttpTransport, ServerConfig, StdioTransport

WriteScope = Literal["user", "project", "local"]

CONNECT_KEY = "interlock"
"""Key of Interlock's own entry in every host's file."""

ROOT_FORMS: Mapping[str, Fact[str]] = {
    "vscode": Fact("${workspaceFolder}", "D", source="vscode-docs mcp-configuration.md"),
    "cursor": Fact("${workspaceFolder}", "D", "in command, args, env, url and headers", "cursor.com/docs/mcp"),
    "claude-code": Fact("${CLAUDE_PROJECT_DIR:-.}", "O", "2.1.332 has the variable only where something set it before, and fills in "
                        "the `.`; servers get it"),
    "codex": Fact(".", "O", "servers start in the folder that the session was started in"),
    "opencode": Fact(".", "O", "as Codex"),
    "gemini-cli": Fact(".", "O", "as Codex"),
    "qwen-code": Fact(".", "O", "as Codex"),
    "copilot-cli": Fact(".", "O", "as Codex"),
}  # fmt: skip
"""How a file of a project says where that project is. `.`: relative to the folder that the host was started in."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A server of the manifest that is not generated for any host."""

    server: str
    why: str
    off: bool = False
    """Switched off in the manifest: an entry that was generated for it goes away."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A server as one host's adapter gets it."""

    wanted: Wanted
    cwd: str | None
    """The working directory to be written, in the host's form; None: none is needed."""
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()


def candidates(gateway: Gateway, keys: Sequence[str] | None = None) -> tuple[list[ServerConfig], list[Skipped]]:
    """The servers that may be generated, and why the others may not. `keys`: only these."""
    chosen, skipped = [], []
    for key, config in gateway.servers.items():
        if keys is not None and key not in keys:
            continue
        if not config.enabled:
            skipped.append(Skipped(key, f"it is switched off at {config.origin}", off=True))
        elif config.blocked:
            skipped.append(Skipped(key, config.blocked))
        else:
            chosen.append(config)
    return chosen, skipped


def variables(config: ServerConfig) -> tuple[str, ...]:
    """The environment variables that a server's entry refers to, in a fixed order, each once."""
    return tuple(dict.fromkeys(name for name in _variables(config) if name is not None))


def _variables(config: ServerConfig) -> Iterator[str | None]:
    transport = config.transport
    if isinstance(transport, StdioTransport):
        yield from (value.source for value in transport.env)
        return
    yield transport.endpoint_env
    yield from (header.source for header in (*transport.headers, *transport.session_headers))
    if transport.token is not None:
        yield transport.token.env
    if transport.oauth is not None:
        yield transport.oauth.client_id_env
        yield transport.oauth.client_secret_env


def connect(command: Sequence[str], gateway: Gateway, scope: WriteScope, project_root: str | None) -> Wanted:
    """Interlock's own entry. The variables of all servers behind it have to reach it."""
    names: dict[str, None] = {}
    for config in gateway.servers.values():
        if config.enabled:
            names.update(dict.fromkeys(variables(config)))
    return Wanted(
        name=CONNECT_KEY,
        scope=scope,
        connect=tuple(command),
        pass_names=tuple(sorted(names)),
        project_root=project_root,
    )


def direct(
    config: ServerConfig, adapter: Adapter, machine: Machine, scope: WriteScope, project_root: str | None
) -> Prepared:
    """A server's own entry, as this host on this machine has to be told it."""
    transport = config.transport
    literal = filling.lost(adapter, transport, machine)
    if isinstance(transport, HttpTransport):
        return Prepared(Wanted(name=config.key, scope=scope, server=config, project_root=project_root), None, literal)
    form = _Form(adapter, machine, scope, str(logical.root_of(config.origin.file)))
    command, cwd, losses, notes = _command(transport, form)
    env = tuple(_env(value, form) for value in transport.env)
    notes += form.notes()
    # A folder of another machine's form is text for the adapter, and no path of this one: cwd is put in afterwards.
    made = replace(config, transport=replace(transport, command=command, env=env))
    return Prepared(
        Wanted(name=config.key, scope=scope, server=made, project_root=project_root), cwd, (*losses, *literal), notes
    )


@dataclass(slots=True)
class _Form:
    """How one host's file writes paths; remembers whether the project's root was needed."""

    adapter: Adapter
    machine: Machine
    scope: WriteScope
    root: str
    used: bool = False

    def path(self, text: str) -> str:
        """A word that may begin with `${projectRoot}`."""
        if not logical.begins(text):
            return text
        self.used = True
        form = ROOT_FORMS.get(self.adapter.id)
        if self.scope != "project" or form is None or form.value is None:
            return logical.expanded(text, self.root)
        return logical.expanded(text, form.value)

    def notes(self) -> tuple[str, ...]:
        if not self.used or self.scope != "project":
            return ()
        form = ROOT_FORMS.get(self.adapter.id)
        if form is None:
            return (f"Nobody has established how {self.adapter.label} names the project's folder: its path on this machine "
                    "stands in the file, which is wrong on every other.",)  # fmt: skip
        if form.value in (".", "${CLAUDE_PROJECT_DIR:-.}"):
            return (f"Paths are relative to the folder that {self.adapter.label} is started in: start it in the project's "
                    "root.",)  # fmt: skip
        return ()


def _command(
    transport: StdioTransport, form: _Form
) -> tuple[tuple[str, ...], str | None, tuple[Loss, ...], tuple[str, ...]]:
    declared = transport.declared or transport.command
    program = _program(transport, declared[0], form)
    relative = [_is_relative(word, transport.cwd) for word in declared[1:]]
    asked = transport.declared_cwd is not None
    knows_cwd = "cwd" in form.adapter.fields
    losses: tuple[Loss, ...] = ()
    cwd: str | None = None
    arguments = [form.path(word) for word in declared[1:]]
    if knows_cwd and (asked or any(relative)):
        cwd = form.path(transport.declared_cwd or "") if asked else None
        if cwd is None or not (logical.begins(transport.declared_cwd or "") or os.path.isabs(cwd)):
            cwd = _below_root(transport.cwd, form)
    elif asked or any(relative):
        arguments = [
            _below_root(Path(os.path.normpath(transport.cwd / word)), form) if is_path else form.path(word)
            for word, is_path in zip(declared[1:], relative, strict=True)
        ]
        if asked:
            losses = (Loss("transports.stdio.cwd", "entries of this host have no working directory", weakens=False),)
    words = (program, *arguments)
    if form.scope != "project":
        return launch_words(words, form.machine), cwd, losses, ()
    notes: tuple[str, ...] = ()
    if is_shim(program) and form.machine.platform == "windows":
        notes = (f"On Windows `{program}` is a batch file, and some hosts start it only as `cmd /c {program}`, which "
                 "other systems have not: this file is written for all of them.",)  # fmt: skip
    return words, cwd, losses, notes


def _program(transport: StdioTransport, declared: str, form: _Form) -> str:
    """The bare name where a terminal's PATH will find it; where it was found for a desktop's host, which has another PATH."""
    if logical.begins(declared):
        return form.path(declared)
    if not os.path.dirname(declared) and (form.scope == "project" or not form.adapter.gui):
        return declared
    if os.path.isabs(transport.command[0]) and os.path.dirname(declared):
        return _below_root(Path(transport.command[0]), form)
    return transport.command[0]


def _below_root(path: Path, form: _Form) -> str:
    """A path, in a project's file relative to that project where it lies in it."""
    if form.scope == "project":
        try:
            inside = path.relative_to(form.root)
        except ValueError:
            return str(path)
        rest = inside.as_posix()
        return form.path(logical.PROJECT_ROOT if rest == "." else f"{logical.PROJECT_ROOT}/{rest}")
    return str(path)


def _is_relative(word: str, cwd: Path) -> bool:
    """Whether an argument is a path from the working directory: written as one, or with a file there."""
    if word.startswith(("./", "../", ".\\", "..\\")) or word in (".", ".."):
        return True
    if not word or word.startswith(("-", "~", "$")) or os.path.isabs(word) or len(word) > 1024 or "\0" in word:
        return False
    try:
        place = cwd / word
        return place.is_file() or ("/" in word and place.is_dir())
    except (OSError, ValueError):
        return False


def _env(value: EnvValue, form: _Form) -> EnvValue:
    return value if value.logical is None else replace(value, literal=form.path(value.logical))
