"""Reading what a host's files say already: who leads to a URL, natively or through a bridge, ours or another's."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from interlock.install import jsontext, tomltext
from interlock.install.hosts import Format, Host, Where

_MAX_BYTES = 32 * 1024 * 1024
URL_FIELDS = ("url", "serverUrl", "httpUrl", "uri")

Way = Literal["interlock", "native", "other-bridge", "other"]


class Found(NamedTuple):
    """One entry in one file."""

    file: str
    name: str
    entry: Mapping[str, object]
    way: Way
    """`interlock`: starts our bridge; `other-bridge`: starts another program with the URL among its arguments."""
    url: str | None
    """Where it leads, where that can be told."""


def read_text(path: str) -> str | None:
    """None where there is no such file. Raises OSError, or jsontext.Damaged where it is not UTF-8 or far too large."""
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    if len(content) > _MAX_BYTES:
        raise jsontext.Damaged("it is larger than any configuration should be")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise jsontext.Damaged(f"byte {error.start} is not UTF-8") from None


def parse(text: str, format: Format) -> dict[str, object]:
    """The file as a value, as the host reads it. Raises jsontext.Damaged."""
    if format == "toml":
        return tomltext.parse(text)
    return jsontext.parse(text, comments=format == "jsonc")


def at(value: Mapping[str, object], root: tuple[str, ...]) -> dict[str, dict[str, object]]:
    """The entries under `root` that are objects."""
    inner: object = value
    for key in root:
        inner = inner.get(key) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        return {}
    return {name: entry for name, entry in inner.items() if isinstance(entry, dict)}


def words(entry: Mapping[str, object]) -> list[str]:
    """Command and arguments, however the host writes them."""
    command, args = entry.get("command", entry.get("cmd")), entry.get("args")
    found = command if isinstance(command, list) else [command]
    return [word for word in [*found, *(args if isinstance(args, list) else [])] if isinstance(word, str)]


def seen(file: str, name: str, entry: Mapping[str, object]) -> Found:
    """What the entry does."""
    for field in URL_FIELDS:
        url = entry.get(field)
        if isinstance(url, str):
            return Found(file, name, entry, "native", url)
    given = words(entry)
    urls = [word for word in given if word.startswith(("http://", "https://"))]
    url = urls[0] if urls else None
    ours = [place for place, word in enumerate(given) if _is_interlock(word)]
    if ours and "bridge" in given[ours[0] + 1 : ours[0] + 2]:
        return Found(file, name, entry, "interlock", url)
    return Found(file, name, entry, "other-bridge" if url is not None else "other", url)


def _is_interlock(word: str) -> bool:
    name = word.replace("\\", "/").rsplit("/", 1)[-1].lower()
    return name in ("interlock", "interlock.cmd", "interlock.exe")


def same_url(one: str | None, other: str) -> bool:
    """Compared as servers do: scheme and host in any case, default port and a slash at the very end aside."""
    return one is not None and _normal(one) == _normal(other)


def _normal(url: str) -> tuple[str, str, int | None, str, str]:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme.lower())
    except ValueError:
        return "", url, None, "", ""
    return parts.scheme.lower(), (parts.hostname or "").lower(), port, parts.path.rstrip("/"), parts.query


def of_host(host: Host, where: Where, folder: str | None = None) -> Iterator[Found]:
    """Entries of the user's files and, with `folder`, of the project that it is in. Unreadable files are left out."""
    files = [(path, host.format, host.root) for path in host.files(where)]
    if folder is not None:
        files += [(os.path.join(folder, name), format, root) for name, format, root in _PROJECT.get(host.id, ())]
    for path, format, root in files:
        if format == "paste":
            continue
        try:
            text = read_text(path)
            found = at(parse(text, format), root) if text is not None else {}
        except (OSError, jsontext.Damaged):
            continue
        for name, entry in found.items():
            yield seen(path, name, entry)


_PROJECT: Mapping[str, tuple[tuple[str, Format, tuple[str, ...]], ...]] = {
    "claude-code": ((".mcp.json", "json", ("mcpServers",)),),
    "codex": ((".codex/config.toml", "toml", ("mcp_servers",)),),
    "opencode": (("opencode.json", "jsonc", ("mcp",)), ("opencode.jsonc", "jsonc", ("mcp",))),
    "cursor": ((".cursor/mcp.json", "json", ("mcpServers",)),),
    "gemini-cli": ((".gemini/settings.json", "jsonc", ("mcpServers",)),),
    "vscode": ((".vscode/mcp.json", "jsonc", ("servers",)),),
    "copilot-cli": ((".mcp.json", "jsonc", ("mcpServers",)),),
    "zed": ((".zed/settings.json", "jsonc", ("context_servers",)),),
}


def plugin_with_bridge(host: Host, where: Where, url: str) -> Found | None:
    """An entry of one of the host's plugins that starts our bridge to this URL."""
    for pattern in host.plugins:
        for path in sorted(
            glob.glob(os.path.join(glob.escape(where.home), pattern), recursive=True, include_hidden=True)
        ):
            try:
                text = read_text(path)
                value = json.loads(text) if text is not None else None
            except (OSError, ValueError, jsontext.Damaged):
                continue
            if not isinstance(value, dict):
                continue
            entries = at(value, ("mcpServers",)) or at(value, ())  # plugin files may be the bare map
            for name, entry in entries.items():
                found = seen(path, name, entry)
                if found.way == "interlock" and same_url(found.url, url):
                    return found
    return None
