"""The store of grants as it stands on disk, looked at and nothing else: no mode tightened, no damaged file set aside."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from interlock.upstream.oauth.discovery_store import Entry
from interlock.upstream.oauth.flow_note import FlowNote, Snooze
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.grant_file import Damaged, Newer, decode
from interlock.upstream.oauth.grant_ids import digest
from interlock.upstream.oauth.grant_store import FOLDER
from interlock.upstream.oauth.issuer_pins import ENDING, Pin, name_of

MAX_BYTES = 1024 * 1024
_NAME = re.compile(r"(?P<id>[0-9a-f]{32})(?P<kind>|\.flow|\.snooze)\.json")
_Kept = TypeVar("_Kept", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is filed under one id. All three may be absent; `trouble` says why a grant that is there cannot be read."""

    id: str
    path: Path
    grant: Grant | None = None
    note: FlowNote | None = None
    snooze: Snooze | None = None
    trouble: str | None = None

    @property
    def server_url(self) -> str | None:
        if self.grant is not None:
            return self.grant.server_url
        return self.note.found.server_url if self.note is not None else None


def folder_of(home: Path) -> Path:
    return home / FOLDER


def look(home: Path) -> list[Kept]:
    """Everything in the store, in the order of ids. A folder that is not there, or that is not ours to read, is empty."""
    folder = folder_of(home)
    try:
        found = {match["id"] for name in os.listdir(folder) if (match := _NAME.fullmatch(name)) is not None}
    except OSError:
        return []
    return [_one(folder, id) for id in sorted(found)]


def key_of(home: Path) -> Callable[[str], str | None]:
    """Finds the secret of an open sign-in, with which its owner proves that the port is its (identity.py)."""

    def key(id: str) -> str | None:
        if re.fullmatch(r"[0-9a-f]{32}", id) is None:
            return None
        note = _or_none(folder_of(home) / f"{id}.flow.json", "flow", id, FlowNote)
        return note.key or None if note is not None else None

    return key


def named_issuer(home: Path, server_url: str) -> str | None:
    """The authorization server that this MCP server named when it was last asked. None where that is not kept."""
    folder = folder_of(home)
    begin = f"{digest('url', server_url)}-"
    try:
        names = [name for name in os.listdir(folder) if name.startswith(begin) and name.endswith(".found.json")]
        newest = max(names, key=lambda name: os.lstat(folder / name).st_mtime_ns, default=None)
    except OSError:
        return None
    if newest is None:
        return None
    entry = _or_none(folder / newest, "found", newest.removesuffix(".found.json"), Entry)
    return entry.found.issuer if entry is not None and entry.found.server_url == server_url else None


def pinned(home: Path, server_url: str, client_id: str) -> str | None:
    """The authorization server that a configured client was first used with for this URL."""
    name = name_of(server_url, client_id)
    pin = _or_none(folder_of(home) / f"{name}{ENDING}", "issuer", name, Pin)
    return pin.issuer if pin is not None else None


def registrations(home: Path, issuer: str) -> list[Registration]:
    """Those kept for this issuer, newest first."""
    folder = folder_of(home)
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".client.json")]
    except OSError:
        return []
    found: list[tuple[float, Registration]] = []
    for name in names:
        try:
            kept = _read(folder / name, "client", name.removesuffix(".client.json"), Registration)
            changed = os.lstat(folder / name).st_mtime
        except (OSError, Damaged, Newer):
            continue
        if kept is not None and kept.issuer == issuer:
            found.append((changed, kept))
    return [kept for _changed, kept in sorted(found, key=lambda pair: -pair[0])]


def width(path: Path) -> str | None:
    """Why others than the owner can get at the file or folder; None where they cannot, or it is not there."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    if os.name != "posix":
        return None
    if status.st_uid != os.geteuid():
        return f"it belongs to another user (uid {status.st_uid})"
    if status.st_mode & 0o077:
        return f"its mode is {status.st_mode & 0o777:04o}"
    return None


def _one(folder: Path, id: str) -> Kept:
    path = folder / f"{id}.json"
    grant: Grant | None = None
    trouble: str | None = None
    try:
        grant = _read(path, "grant", id, Grant)
    except Damaged as damage:
        trouble = str(damage)
    except Newer as newer:
        trouble = f"written by a newer Interlock ({newer})"
    except OSError as error:
        trouble = error.strerror or type(error).__name__
    return Kept(
        id,
        path,
        grant,
        _or_none(folder / f"{id}.flow.json", "flow", id, FlowNote),
        _or_none(folder / f"{id}.snooze.json", "snooze", id, Snooze),
        trouble,
    )


def _or_none(path: Path, kind: str, id: str, type: type[_Kept]) -> _Kept | None:
    try:
        return _read(path, kind, id, type)
    except (OSError, Damaged, Newer):
        return None


def _read(path: Path, kind: str, id: str, type: type[_Kept]) -> _Kept | None:
    """None where there is no such file. Raises OSError, Damaged or Newer."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Damaged("no plain file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise Damaged("too long")
    return decode(kind, id, content, type)[0]
