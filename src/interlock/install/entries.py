"""Who leads to a URL in what a host's files and plugins say already: natively or through a bridge, ours or another's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from interlock.hosts.declaration import Declaration
from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine
from interlock.hosts.ours import ours
from interlock.install.hosts import Host

URL_FIELDS = ("url", "serverUrl", "httpUrl", "uri")

Way = Literal["interlock", "native", "other-bridge", "other"]


class Found(NamedTuple):
    """One entry in one file."""

    file: str
    name: str
    command: tuple[str, ...]
    """Program and arguments; variables unfilled."""
    way: Way
    """`interlock`: starts our bridge; `other-bridge`: starts another program with the URL among its arguments."""
    url: str | None
    """Where it leads, where that can be told."""


def words(entry: Mapping[str, object]) -> list[str]:
    """Command and arguments of a raw entry, however the host writes them."""
    command, args = entry.get("command", entry.get("cmd")), entry.get("args")
    found = command if isinstance(command, list) else [command]
    return [word for word in [*found, *(args if isinstance(args, list) else [])] if isinstance(word, str)]


def seen(declaration: Declaration) -> Found:
    """What the entry does. Of one that the host refuses, what stands there all the same."""
    entry = declaration.entry or _as_it_stands(declaration.raw)
    urls = [word for word in entry.command if word.startswith(("http://", "https://"))]
    url = entry.url or (urls[0] if urls else None)
    way: Way = "other-bridge" if urls else "other"
    if entry.url is not None:
        way = "native"
    elif ours(entry) == "bridge":
        way = "interlock"
    return Found(declaration.file, declaration.server or "", entry.command, way, url)


def _as_it_stands(raw: Mapping[str, object]) -> Entry:
    url = next((value for field in URL_FIELDS if isinstance(value := raw.get(field), str)), None)
    return Entry(transport=None, command=() if url is not None else tuple(words(raw)), url=url)


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


def of_host(host: Host, machine: Machine) -> Iterator[Found]:
    """Entries of the host's own files, the user's and the project's, but for those that start nothing: broken, off, never read,
    or hidden by another."""
    from interlock.hosts.reading import read

    if host.adapter is None:
        return
    for declaration in read(host.adapter, machine).declarations:
        if declaration.server is not None and declaration.state not in (
            "broken",
            "never-read",
            "disabled",
            "shadowed",
        ):
            yield seen(declaration)


def plugin_with_bridge(host: Host, machine: Machine, url: str) -> Found | None:
    """An entry of one of the host's plugins that starts our bridge to this URL."""
    from interlock.hosts.plugins.finding import found

    for plugin in found(machine, [host.id]):
        if plugin.enabled is False:
            continue
        for declaration in plugin.servers:
            entry = seen(declaration)
            if entry.way == "interlock" and same_url(entry.url, url):
                return entry
    return None
