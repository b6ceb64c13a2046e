"""Reads the MCP entries of AI hosts' configuration files, as far as `doctor` needs them. Writes nothing, keeps no value.

Sources: the hosts' own documentation and source (docs of each host, as of late 2026). Files that cannot be read are left
out: this tells what points to a server, not whether a host accepts its file.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 16 * 1024 * 1024
"""Claude Code keeps its history in the same file."""
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Entry:
    """One server in one host's file. `command` holds the arguments as they stand there: show only what cannot be a secret."""

    host: str
    file: Path
    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    literal_headers: tuple[str, ...] = ()
    """Names of headers that carry a credential by their name and whose value stands in the file itself."""


@dataclass(frozen=True, slots=True)
class _Place:
    host: str
    file: Path
    tables: tuple[tuple[str, ...], ...] = (("mcpServers",),)
    """Where the entries stand; `*` is any name."""


def entries(user: Path, folder: Path, environ: Mapping[str, str]) -> list[Entry]:
    """Those of all hosts that are known here: the user's files, and the project files of `folder`."""
    found: list[Entry] = []
    for place in _places(user, folder, environ):
        content = _content(place.file)
        if content is None:
            continue
        for path in place.tables:
            for table in _at(content, path):
                found += (entry for name, raw in table.items() if (entry := _entry(place, name, raw)) is not None)
    return found


def _places(user: Path, folder: Path, environ: Mapping[str, str]) -> Iterator[_Place]:
    yield _Place("claude-code", user / ".claude.json", (("mcpServers",), ("projects", "*", "mcpServers")))
    for above in (folder, *folder.parents):
        yield _Place("claude-code", above / ".mcp.json")
    codex = Path(environ["CODEX_HOME"]) if environ.get("CODEX_HOME") else user / ".codex"
    yield _Place("codex", codex / "config.toml", (("mcp_servers",),))
    yield _Place("codex", folder / ".codex" / "config.toml", (("mcp_servers",),))
    yield _Place("cursor", user / ".cursor" / "mcp.json")
    yield _Place("cursor", folder / ".cursor" / "mcp.json")
    yield _Place("antigravity", user / ".gemini" / "config" / "mcp_config.json")
    yield _Place("antigravity", user / ".gemini" / "antigravity" / "mcp_config.json")
    yield _Place("gemini", user / ".gemini" / "settings.json")
    yield _Place("gemini", folder / ".gemini" / "settings.json")
    copilot = Path(environ["COPILOT_HOME"]) if environ.get("COPILOT_HOME") else user / ".copilot"
    yield _Place("copilot-cli", copilot / "mcp-config.json")
    config = Path(environ["XDG_CONFIG_HOME"]) if environ.get("XDG_CONFIG_HOME") else user / ".config"
    for name in ("opencode.json", "opencode.jsonc"):
        for where in (config / "opencode", folder, folder / ".opencode"):
            yield _Place("opencode", where / name, (("mcp",), ("mcp", "servers")))
    yield _Place("zed", config / "zed" / "settings.json", (("context_servers",),))
    yield _Place("goose", config / "goose" / "config.yaml", (("extensions",),))
    yield _Place("devin", config / "devin" / "mcp_config.json")
    yield _Place("windsurf", user / ".codeium" / "windsurf" / "mcp_config.json")
    yield _Place("vscode", _application_data(user, environ) / "Code" / "User" / "mcp.json", (("servers",),))
    yield _Place("vscode", folder / ".vscode" / "mcp.json", (("servers",),))
    yield _Place("claude-desktop", _application_data(user, environ) / "Claude" / "claude_desktop_config.json")


def _application_data(user: Path, environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return user / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(environ.get("APPDATA") or user / "AppData" / "Roaming")
    return Path(environ.get("XDG_CONFIG_HOME") or user / ".config")


def _content(file: Path) -> object:
    try:
        if not file.is_file() or file.stat().st_size > MAX_BYTES:
            return None
        raw = file.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        if file.suffix == ".toml":
            return tomllib.loads(raw)
        if file.suffix == ".yaml":
            return _yaml(raw)
        try:
            return json.loads(raw)
        except ValueError:
            return json.loads(_plain_json(raw))
    except (OSError, ValueError, RecursionError):  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        return None


def _yaml(raw: str) -> object:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(raw)
    except YAMLError:
        return None


def _plain_json(raw: str) -> str:
    """Without the comments and trailing commas that several hosts take."""

    def kept(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith('"') else " "

    return _STRING_OR_COMMA.sub(kept, _STRING_OR_COMMENT.sub(kept, raw))


def _at(content: object, path: tuple[str, ...]) -> Iterator[Mapping[str, object]]:
    if not isinstance(content, dict):
        return
    if not path:
        yield content
        return
    for name in content if path[0] == "*" else path[:1]:
        yield from _at(content.get(name), path[1:])


def _entry(place: _Place, name: object, raw: object) -> Entry | None:
    if not isinstance(raw, dict) or not isinstance(name, str):
        return None
    command = raw.get("command", raw.get("cmd"))
    words = command if isinstance(command, list) else [command] if isinstance(command, str) else []
    arguments = raw.get("args")
    words = [*words, *(arguments if isinstance(arguments, list) else [])]
    urls = (raw.get(field) for field in ("url", "serverUrl", "httpUrl", "uri"))
    url = next((each for each in urls if isinstance(each, str)), None)
    if url is None and not words:
        return None
    return Entry(
        place.host,
        place.file,
        name,
        tuple(word for word in words if isinstance(word, str)),
        url,
        tuple(_literal_credentials(raw)),
    )


def _literal_credentials(raw: Mapping[str, object]) -> Iterator[str]:
    for field in ("headers", "http_headers"):
        headers = raw.get(field)
        for name, value in headers.items() if isinstance(headers, dict) else ():
            if not isinstance(value, str) or not isinstance(name, str):
                continue
            refers = "$" in value or "{env:" in value or "{file:" in value or "%" in value
            if value and not refers and name.lower() in ("authorization", "x-api-key", "api-key", "cookie"):
                yield name


def is_absolute(program: str) -> bool:
    return os.path.isabs(program) or bool(re.match(r"[A-Za-z]:[\\/]", program))
