"""What `interlock setup` alone needs to know of each AI host: its own command for adding an entry, and what a person does besides.

Files, formats, fields and variables are the adapters' (hosts/). What nobody has established is None here and is said so,
never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.hosts import registry

if TYPE_CHECKING:
    from interlock.hosts.adapter import Adapter
    from interlock.hosts.machine import Machine
    from interlock.hosts.place import Place
    from interlock.hosts.writing import Rendered


@dataclass(frozen=True, slots=True)
class Cli:
    """The host's own command for adding an entry in user scope."""

    program: str
    bridge: Callable[[str, Sequence[str]], list[str]]
    """Arguments that add an entry which starts a command."""
    native: Callable[[str, str], list[str]] | None = None
    remove: Callable[[str], list[str]] | None = None
    """Arguments that make room, where adding over an entry fails. None: adding replaces."""
    drops_comments: bool = False
    """Rewrites the file without its comments, so where there are some the file is edited instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    id: str
    authorizes: bool | None = None
    """Whether it signs in to a server by itself; None: not established."""
    cli: Cli | None = None
    by_hand: str | None = None
    """Where in its own interface a URL is added, where no file is for that."""
    afterwards: str = "Restart it, or reload its MCP servers."
    without_files: str = ""
    """The name of a host that has none, and so no adapter."""

    @property
    def adapter(self) -> Adapter | None:
        return None if self.without_files else registry.find(self.id)

    @property
    def label(self) -> str:
        adapter = self.adapter
        return adapter.label if adapter is not None else self.without_files

    @property
    def takes_urls(self) -> bool:
        """Whether an entry can name a URL in place of a command."""
        adapter = self.adapter
        return adapter is not None and "http" in (adapter.transports.value or ())

    @property
    def own_secrets(self) -> bool:
        """What an entry refers to is kept in the host, and not in its environment."""
        adapter = self.adapter
        known = adapter.variables.value if adapter is not None else None
        return known is not None and known.forms[:1] == ("${{ secrets.V }}",)

    @property
    def closed(self) -> bool:
        """It writes its file from memory: it must not run while the file is changed."""
        adapter = self.adapter
        return adapter is not None and adapter.closed.value is True


_RESTART = "Sessions that are open see it after a restart."
_CONNECTORS = "Settings, Connectors, Add custom connector"

_KNOWN: tuple[Host, ...] = (
    Host(
        id="claude-code",
        authorizes=True,
        cli=Cli(
            "claude",
            lambda name, command: ["mcp", "add", "-s", "user", name, "--", *command],
            lambda name, url: ["mcp", "add", "-s", "user", "--transport", "http", name, url],
            lambda name: ["mcp", "remove", "-s", "user", name],
        ),
        afterwards=_RESTART,
    ),
    Host(
        id="codex",
        authorizes=True,
        cli=Cli(
            "codex",
            lambda name, command: ["mcp", "add", name, "--", *command],
            None,  # `codex mcp add --url` goes on to sign in and waits for a person
            drops_comments=True,
        ),
        afterwards=_RESTART,
    ),
    Host(
        id="cursor",
        authorizes=True,
        afterwards="It may show the new server as disabled: switch it on in its MCP settings.",
    ),
    Host(id="antigravity", authorizes=True),
    Host(
        id="gemini-cli",
        authorizes=True,
        cli=Cli(
            "gemini",
            lambda name, command: ["mcp", "add", "-s", "user", name, command[0], "--", *command[1:]],
            lambda name, url: ["mcp", "add", "-s", "user", "--transport", "http", name, url],
        ),
    ),
    Host(id="vscode", authorizes=True),
    Host(id="copilot-cli", authorizes=True),
    Host(
        id="claude-desktop",
        authorizes=True,
        by_hand=_CONNECTORS,
        afterwards="Quit it wholly and start it again.",
    ),
    Host(id="windsurf"),
    Host(id="zed", authorizes=True),
    Host(id="opencode", authorizes=True),
    Host(id="goose", afterwards="A new session sees it."),
    Host(id="cline", authorizes=True),
    Host(id="roo-code"),
    Host(id="continue"),
    Host(id="jetbrains"),
    Host(id="pi", authorizes=True),
    Host(id="qwen-code", authorizes=True),
    Host(id="kiro"),
    Host(
        id="claude-ai",
        authorizes=True,
        by_hand=_CONNECTORS,
        afterwards="It connects from its own servers: a URL that only this machine can reach does not work there.",
        without_files="claude.ai in a browser",
    ),
)
_BY_ID = {host.id: host for host in _KNOWN}
HOSTS: tuple[Host, ...] = tuple(_BY_ID.get(id) or Host(id=id) for id in (*registry.IDS, "claude-ai"))


def find(name: str) -> Host | None:
    """By id or alias, in any case, with `_` for `-`."""
    wanted = registry.resolve(name) or name.strip().lower().replace("_", "-")
    return next((host for host in HOSTS if host.id == wanted), None)


def place(host: Host, machine: Machine) -> tuple[Place, str] | None:
    """The user's file to write, and what kind of file it is; None where the host has none."""
    from interlock.hosts.generating import file_for, place_for

    adapter = host.adapter
    found = place_for(adapter, "user") if adapter is not None else None
    file = file_for(found, machine) if found is not None else None
    return None if found is None or file is None else (found, file)


def bridge(host: Host, machine: Machine, name: str, command: Sequence[str], names: Sequence[str]) -> Rendered | None:
    """The entry that starts this command, with the variables that must reach it. None: the host starts no local process."""
    from interlock.hosts.writing import Wanted

    adapter = host.adapter
    if adapter is None:
        return None
    wanted = Wanted(name=name, scope="user", connect=tuple(command), pass_names=tuple(names))
    return _noted(adapter, machine, adapter.write(wanted, machine))


def _noted(adapter: Adapter, machine: Machine, rendered: Rendered) -> Rendered:
    """Also with the word for a host of which two files are there, and nobody knows which one it reads."""
    from interlock.hosts.generating import place_for, unsure_which

    place = place_for(adapter, "user")
    note = unsure_which(adapter, place, machine) if place is not None else ""
    return replace(rendered, notes=(*rendered.notes, note)) if note else rendered


def native(host: Host, machine: Machine, name: str, url: str) -> Rendered | None:
    """The entry for a URL. None: none can be written into a file."""
    from interlock.hosts.writing import Wanted
    from interlock.manifest.config import HttpTransport, Origin, ServerConfig

    adapter = host.adapter
    if adapter is None or not host.takes_urls:
        return None
    server = ServerConfig(
        key=name, integration_id="interlock.setup", scope="user", origin=Origin(Path("interlock setup"), 1),
        transport=HttpTransport(endpoint=url),
    )  # fmt: skip
    rendered = adapter.write(Wanted(name=name, scope="user", server=server), machine)
    lost = any(loss.weakens for loss in rendered.losses)
    return None if not rendered.entry or lost else _noted(adapter, machine, rendered)


def passes_variables(host: Host, machine: Machine) -> bool:
    """Whether a variable of the host's environment is known to reach what an entry starts, by inheritance or by its name."""
    adapter = host.adapter
    if adapter is None:
        return False
    inherited = adapter.child_env.value
    if inherited is not None and inherited.kind == "all":
        return True
    named, plain = (bridge(host, machine, "x", ("x",), names) for names in (("NAME",), ()))
    return named is not None and plain is not None and named.entry != plain.entry
