"""Reads the MCP entries of AI hosts' configuration files, as far as `doctor` needs them. Writes nothing, keeps no value.

The users' files are those that `interlock setup` knows (install/hosts.py); project files come from the hosts' own
documentation. Files that cannot be read are left out: this tells what points to a server, not what a host makes of it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from interlock.install import jsontext
from interlock.install.hosts import HOSTS, Where

MAX_BYTES = 16 * 1024 * 1024
"""Claude Code keeps its history in the same file."""


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
    tables: tuple[tuple[str, ...], ...]
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


_TABLES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "claude-code": (("mcpServers",), ("projects", "*", "mcpServers")),
    "opencode": (("mcp",), ("mcp", "servers")),
}
"""Where entries stand in a user's file besides, or instead of, the one place that `interlock setup` writes."""
_PROJECT: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("codex", ".codex/config.toml", ("mcp_servers",)),
    ("cursor", ".cursor/mcp.json", ("mcpServers",)),
    ("gemini-cli", ".gemini/settings.json", ("mcpServers",)),
    ("antigravity", ".agents/mcp_config.json", ("mcpServers",)),
    ("opencode", "opencode.json", ("mcp",)),
    ("opencode", "opencode.json", ("mcp", "servers")),
    ("opencode", "opencode.jsonc", ("mcp",)),
    ("opencode", "opencode.jsonc", ("mcp", "servers")),
    ("vscode", ".vscode/mcp.json", ("servers",)),
    ("zed", ".zed/settings.json", ("context_servers",)),
)


def _places(user: Path, folder: Path, environ: Mapping[str, str]) -> Iterator[_Place]:
    where = Where(str(user), environ)
    for host in HOSTS:
        for file in host.files(where):
            yield _Place(host.id, Path(file), _TABLES.get(host.id, (host.root,)))
    yield _Place("antigravity", user / ".gemini" / "antigravity" / "mcp_config.json", (("mcpServers",),))
    for above in (folder, *folder.parents):  # up to the root of the file system, past the repository's own
        yield _Place("claude-code", above / ".mcp.json", (("mcpServers",),))
    for id, name, path in _PROJECT:
        yield _Place(id, folder / name, (path,))


def _content(file: Path) -> object:
    """More is read than some hosts would: this tells where an entry stands, not whether the host takes it."""
    try:
        if not file.is_file() or file.stat().st_size > MAX_BYTES:
            return None
        raw = file.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        if file.suffix == ".toml":
            return tomllib.loads(raw)
        return _yaml(raw) if file.suffix == ".yaml" else jsontext.parse(raw, comments=True)
    except (
        OSError,
        ValueError,
        RecursionError,
        jsontext.Damaged,
    ):  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        return None


def _yaml(raw: str) -> object:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(raw)
    except YAMLError:
        return None


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
