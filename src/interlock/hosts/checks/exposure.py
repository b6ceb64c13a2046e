"""Who else gets to see a file: other users of the machine, and everybody who clones the repository that tracks it."""

from __future__ import annotations

import os
import stat
from functools import lru_cache

from interlock.hosts.machine import Machine

_MAX_INDEX = 64 * 1024 * 1024


def of(machine: Machine, path: str) -> str:
    """In words, or empty where nobody else is known to."""
    real = machine.real(path)
    if tracked(real):
        return "Git tracks the file: whoever has the repository has the secret, in its history too."
    if machine.platform != "windows" and readable_by_others(real, machine.root):
        return "Every user of this machine can read the file."
    return ""


def readable_by_others(real: str, top: str | None = None) -> bool:
    """By its own mode and that of every folder above it, up to `top`. Never on Windows, whose rights are others."""
    return _for_others(real, stat.S_IROTH, top)


def writable_by_others(real: str, top: str | None = None) -> bool:
    """The file itself, or the folder that it could be replaced in."""
    if _for_others(real, stat.S_IWOTH, top):
        return True
    folder = os.path.dirname(os.path.realpath(real))
    try:
        mode = os.stat(folder).st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX and _for_others(folder, stat.S_IXOTH, top)


def _for_others(real: str, right: int, top: str | None) -> bool:
    if os.name != "posix" or _windows_drive(real):
        return False
    real = os.path.realpath(real)
    top = os.path.realpath(top) if top else "/"
    try:
        if not os.stat(real).st_mode & right:
            return False
        folder = os.path.dirname(real)
        while folder.startswith(top) and folder != top:
            if not os.stat(folder).st_mode & stat.S_IXOTH:
                return False
            folder = os.path.dirname(folder)
    except OSError:
        return False
    return True


def _windows_drive(real: str) -> bool:
    """A drive of Windows seen from a WSL: every file is shown as open to all, whatever Windows says."""
    parts = real.split("/")
    return real.startswith("/mnt/") and len(parts) > 2 and len(parts[2]) == 1


def tracked(real: str) -> bool:
    """Whether the index of the repository around the file names it. Git itself is not run: a repository can name programs."""
    real = os.path.realpath(real)
    folder = os.path.dirname(real)
    while True:
        mark = os.path.join(folder, ".git")
        if os.path.lexists(mark):
            names = _index(_git_folder(mark))
            return os.path.relpath(real, folder).replace(os.sep, "/") in names
        above = os.path.dirname(folder)
        if above == folder:
            return False
        folder = above


def _git_folder(mark: str) -> str:
    if os.path.isdir(mark):
        return mark
    try:
        with open(mark, encoding="utf-8") as file:
            text = file.read(4096)
    except (OSError, ValueError):
        return mark
    return os.path.normpath(os.path.join(os.path.dirname(mark), text.removeprefix("gitdir:").strip()))


def _index(git: str) -> frozenset[str]:
    path = os.path.join(git, "index")
    try:
        state = os.stat(path)
    except OSError:
        return frozenset()
    return _names(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=8)
def _names(path: str, _changed: int, _size: int) -> frozenset[str]:
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_INDEX)
        return frozenset(_entries(content))
    except (OSError, ValueError, IndexError):
        return frozenset()


def _entries(content: bytes) -> list[str]:
    """The paths of a Git index, versions 2 to 4 (gitformat-index)."""
    if content[:4] != b"DIRC":
        return []
    version, count = int.from_bytes(content[4:8], "big"), int.from_bytes(content[8:12], "big")
    names: list[str] = []
    at, last = 12, b""
    for _ in range(count):
        flags = int.from_bytes(content[at + 60 : at + 62], "big")
        start = at + (64 if flags & 0x4000 and version >= 3 else 62)
        if version == 4:
            drop, start = _varint(content, start)
            end = content.index(b"\0", start)
            last = last[: len(last) - drop] + content[start:end]
            at = end + 1
        else:
            end = content.index(b"\0", start)
            last = content[start:end]
            at += (end - at + 8) // 8 * 8
        names.append(last.decode("utf-8", "replace"))
    return names


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Git's offset encoding."""
    byte = content[at]
    value = byte & 0x7F
    at += 1
    while byte & 0x80:
        byte = content[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
        at += 1
    return value, at
