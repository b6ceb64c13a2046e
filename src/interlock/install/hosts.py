"""What `interlock setup` knows of each AI host, as data: where its user-wide configuration is and how an entry is written.

From the hosts' documentation, their source, and runs of them (docs/setup.md says which was seen for itself). What nobody
has established is None here and is said so, never guessed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Entry = dict[str, object]
Format = Literal["json", "jsonc", "toml", "paste"]
"""`jsonc`: the host reads comments, so they may stay. `paste`: Interlock does not write it and prints what to paste."""


@dataclass(frozen=True, slots=True)
class Where:
    """The machine that paths are made for."""

    home: str
    environ: Mapping[str, str]
    platform: str = sys.platform

    def config(self, *parts: str) -> str:
        """A file under the folder for configurations of command-line programs, also on macOS."""
        base = self.environ.get("XDG_CONFIG_HOME") or os.path.join(self.home, ".config")
        return os.path.join(base, *parts)

    def application(self, *parts: str, linux: str | None = None) -> str:
        """A file of a desktop application. `linux` is its folder's name there, where that differs."""
        if self.platform == "darwin":
            return os.path.join(self.home, "Library", "Application Support", *parts)
        if self.platform == "win32":
            return os.path.join(self.environ.get("APPDATA") or os.path.join(self.home, "AppData", "Roaming"), *parts)
        return self.config(linux or parts[0], *parts[1:])

    def user(self, *parts: str) -> str:
        return os.path.join(self.home, *parts)


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


@dataclass(frozen=True, slots=True)
class Host:
    id: str
    label: str
    format: Format
    root: tuple[str, ...]
    """The object that holds the entries."""
    files: Callable[[Where], tuple[str, ...]]
    """Candidates; the first that exists is the one, else the first."""
    bridge: Callable[[Sequence[str], Sequence[str]], Entry] | None
    """Entry for a command and the environment variables that must reach it. None: starts no local process."""
    native: Callable[[str], Entry] | None
    """Entry for a URL. None: none can be written into a file."""
    authorizes: bool | None
    """Whether it signs in to a server by itself; None: not established."""
    passes: Literal["all", "named", "none"] = "all"
    """Which of its environment variables reach a server: all, those that an entry names, or none of the user's own."""
    cli: Cli | None = None
    aliases: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    """Glob patterns below the user's home of files in which plugins declare MCP servers."""
    by_hand: str | None = None
    """Where in its own interface a URL is added, where no file is for that."""
    afterwards: str = "Restart it, or reload its MCP servers."
    closed: bool = False
    """It writes its file from memory: it must not run while the file is changed."""
    reserved: frozenset[str] = frozenset()


def _command(command: Sequence[str], extra: Entry | None = None, *, kind: str | None = None) -> Entry:
    entry: Entry = {} if kind is None else {"type": kind}
    entry |= {"command": command[0], "args": list(command[1:])}
    return entry | (extra or {})


def _env(names: Sequence[str], form: str) -> Entry:
    """Variables by reference, in the host's own spelling: `form` with NAME in it."""
    return {"env": {name: form.replace("NAME", name) for name in names}} if names else {}


def _claude_files(where: Where) -> tuple[str, ...]:
    folder = where.environ.get("CLAUDE_CONFIG_DIR")
    return (os.path.join(folder, ".claude.json") if folder else where.user(".claude.json"),)


def _claude_desktop_files(where: Where) -> tuple[str, ...]:
    name = "claude_desktop_config.json"
    plain = where.application("Claude", name)
    if where.platform != "win32":
        return (plain,)
    local = where.environ.get("LOCALAPPDATA") or where.user("AppData", "Local")
    store = os.path.join(local, "Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude", name)
    return (store, plain) if os.path.exists(store) else (plain, store)


def _zed_files(where: Where) -> tuple[str, ...]:
    if where.platform == "win32":
        return (where.application("Zed", "settings.json"),)
    return (where.config("zed", "settings.json"),)


HOSTS: tuple[Host, ...] = (
    Host(
        "claude-code", "Claude Code", "json", ("mcpServers",), _claude_files,
        bridge=lambda command, names: _command(command, {"env": {}}, kind="stdio"),
        native=lambda url: {"type": "http", "url": url},
        authorizes=True,
        cli=Cli(
            "claude",
            lambda name, command: ["mcp", "add", "-s", "user", name, "--", *command],
            lambda name, url: ["mcp", "add", "-s", "user", "--transport", "http", name, url],
            lambda name: ["mcp", "remove", "-s", "user", name],
        ),
        aliases=("claude",),
        plugins=(".claude/plugins/**/.mcp.json", ".claude/plugins/**/plugin.json"),
        afterwards="Sessions that are open see it after a restart.",
        reserved=frozenset({"workspace", "claude-in-chrome", "computer-use"}),
    ),
    Host(
        "codex", "Codex", "toml", ("mcp_servers",),
        lambda where: (os.path.join(where.environ.get("CODEX_HOME") or where.user(".codex"), "config.toml"),),
        bridge=lambda command, names: _command(command, {"env_vars": list(names)} if names else {}),
        native=lambda url: {"url": url},
        authorizes=True,
        passes="named",
        cli=Cli(
            "codex",
            lambda name, command: ["mcp", "add", name, "--", *command],
            None,  # `codex mcp add --url` goes on to sign in and waits for a person
            drops_comments=True,
        ),
        plugins=(".codex/plugins/**/.mcp.json", ".codex/plugins/**/mcp.json"),
        afterwards="Sessions that are open see it after a restart.",
    ),
    Host(
        "opencode", "OpenCode", "jsonc", ("mcp",),
        lambda where: (where.config("opencode", "opencode.json"), where.config("opencode", "opencode.jsonc")),
        bridge=lambda command, names: {"type": "local", "command": list(command), "enabled": True},
        native=lambda url: {"type": "remote", "url": url, "enabled": True},
        authorizes=True,
    ),
    Host(
        "cursor", "Cursor", "json", ("mcpServers",), lambda where: (where.user(".cursor", "mcp.json"),),
        bridge=lambda command, names: _command(command, _env(names, "${env:NAME}"), kind="stdio"),
        native=lambda url: {"url": url},
        authorizes=True,
        passes="named",
        plugins=(".cursor/plugins/**/mcp.json",),
        afterwards="It may show the new server as disabled: switch it on in its MCP settings.",
    ),
    Host(
        "gemini-cli", "Gemini CLI", "jsonc", ("mcpServers",), lambda where: (where.user(".gemini", "settings.json"),),
        bridge=lambda command, names: _command(command, _env(names, "$NAME")),
        native=lambda url: {"type": "http", "url": url},
        authorizes=True,
        passes="named",
        cli=Cli(
            "gemini",
            lambda name, command: ["mcp", "add", "-s", "user", name, command[0], "--", *command[1:]],
            lambda name, url: ["mcp", "add", "-s", "user", "--transport", "http", name, url],
        ),
        aliases=("gemini",),
        plugins=(".gemini/extensions/*/gemini-extension.json",),
    ),
    Host(
        "vscode", "VS Code", "jsonc", ("servers",), lambda where: (where.application("Code", "User", "mcp.json"),),
        bridge=lambda command, names: _command(command, _env(names, "${env:NAME}"), kind="stdio"),
        native=lambda url: {"type": "http", "url": url},
        authorizes=True,
        aliases=("code", "vs-code"),
        afterwards="It asks whether to trust the server when it first starts.",
    ),
    Host(
        "copilot-cli", "GitHub Copilot CLI", "jsonc", ("mcpServers",),
        lambda where: (os.path.join(where.environ.get("COPILOT_HOME") or where.user(".copilot"), "mcp-config.json"),),
        bridge=lambda command, names: _command(command, {"tools": ["*"], **_env(names, "${NAME}")}, kind="local"),
        native=lambda url: {"type": "http", "url": url, "tools": ["*"]},
        authorizes=True,
        passes="named",
        aliases=("copilot",),
    ),
    Host(
        "claude-desktop", "Claude Desktop", "json", ("mcpServers",), _claude_desktop_files,
        bridge=lambda command, names: _command(command),
        native=None,
        authorizes=True,
        passes="none",
        by_hand="Settings, Connectors, Add custom connector",
        afterwards="Quit it wholly and start it again.",
        closed=True,
    ),
    Host(
        "windsurf", "Windsurf (Devin Desktop)", "json", ("mcpServers",),
        lambda where: (
            where.application("devin", "mcp_config.json") if where.platform == "win32"
            else where.config("devin", "mcp_config.json"),
            where.user(".codeium", "windsurf", "mcp_config.json"),
        ),
        bridge=lambda command, names: _command(command, _env(names, "${env:NAME}")),
        native=lambda url: {"serverUrl": url},
        authorizes=None,
        passes="named",
        aliases=("devin",),
        closed=True,
    ),
    Host(
        "zed", "Zed", "jsonc", ("context_servers",), _zed_files,
        bridge=lambda command, names: _command(command, {"env": {}}),
        native=lambda url: {"url": url},
        authorizes=True,
        passes="none",
    ),
    Host(
        "antigravity", "Antigravity", "json", ("mcpServers",),
        lambda where: (where.user(".gemini", "config", "mcp_config.json"),),
        bridge=lambda command, names: _command(command),
        native=lambda url: {"serverUrl": url},
        authorizes=True,
        passes="none",
    ),
    Host(
        "cline", "Cline", "json", ("mcpServers",),
        lambda where: (
            where.environ.get("CLINE_MCP_SETTINGS_PATH")
            or where.user(".cline", "data", "settings", "cline_mcp_settings.json"),
        ),
        bridge=lambda command, names: _command(command, {"disabled": False}),
        native=lambda url: {"type": "streamableHttp", "url": url, "disabled": False},
        authorizes=True,
        passes="none",
    ),
    Host(
        "kiro", "Kiro", "json", ("mcpServers",), lambda where: (where.user(".kiro", "settings", "mcp.json"),),
        bridge=lambda command, names: _command(command),
        native=lambda url: {"url": url},
        authorizes=None,
        passes="none",
    ),
    Host(
        "junie", "JetBrains Junie", "json", ("mcpServers",), lambda where: (where.user(".junie", "mcp", "mcp.json"),),
        bridge=lambda command, names: _command(command),
        native=None,
        authorizes=None,
        passes="none",
    ),
    Host(
        "goose", "goose", "paste", ("extensions",),
        lambda where: (
            where.application("Block", "goose", "config", "config.yaml") if where.platform == "win32"
            else where.config("goose", "config.yaml"),
        ),
        bridge=lambda command, names: {
            "type": "stdio", "name": "interlock", "enabled": True, "cmd": command[0], "args": list(command[1:]),
        },
        native=lambda url: {"type": "streamable_http", "name": "interlock", "enabled": True, "uri": url},
        authorizes=None,
    ),
    Host(
        "claude-ai", "claude.ai in a browser", "paste", (), lambda where: (),
        bridge=None,
        native=None,
        authorizes=True,
        by_hand="Settings, Connectors, Add custom connector",
        afterwards="It connects from its own servers: a URL that only this machine can reach does not work there.",
    ),
)  # fmt: skip


def find(name: str) -> Host | None:
    """By id or alias, in any case, with `_` for `-`."""
    wanted = name.strip().lower().replace("_", "-")
    return next((host for host in HOSTS if wanted == host.id or wanted in host.aliases), None)


def config_file(host: Host, where: Where) -> str | None:
    """The file to write; None where the host has none."""
    candidates = host.files(where)
    return next((path for path in candidates if os.path.exists(path)), candidates[0] if candidates else None)
