"""What is written beside a copy when it is laid: whose it is, what it holds, and which interpreter it was made for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import NamedTuple

from interlock.install.origin import UNKNOWN, Origin, from_record
from interlock.install.places import Places, is_copy_name, read_current, trouble_with, write_whole

FORMAT = 1
NAME = "record.json"
IN_USE = "in-use"
"""Empty file beside `lib` that every process of the copy holds a shared lock on (start.py)."""
_MAX_BYTES = 64 * 1024


class Interpreter(NamedTuple):
    """The base interpreter of the environment that the copy was made from: it outlives the environment."""

    path: str
    version: str
    tag: str
    """`sys.implementation.cache_tag`."""
    abi: str
    """SOABI, or the tag where the build has none (Windows)."""


class Record(NamedTuple):
    build: str
    version: str
    owner: int
    """User id; -1 on Windows."""
    hash: str
    """SHA-256 over names and contents of everything under `lib`."""
    files: int
    interpreter: Interpreter
    laid_at: float
    """Seconds since the epoch."""
    laid_by: str
    """The interpreter that ran the laying; its pip is asked first for later versions."""
    origin: Origin = UNKNOWN
    """Where what was copied had come from: later versions are looked for only there."""


class Foreign(Exception):
    """A copy that must not run: another user's, writable by others, changed since it was laid, or not as we write them."""


def write(copy: str, record: Record) -> None:
    """Into the copy's folder."""
    value = {
        "format": FORMAT,
        "build": record.build,
        "version": record.version,
        "owner": record.owner,
        "hash": record.hash,
        "files": record.files,
        "interpreter": record.interpreter._asdict(),
        "laid_at": record.laid_at,
        "laid_by": record.laid_by,
        "origin": record.origin.as_dict(),
    }
    write_whole(os.path.join(copy, NAME), json.dumps(value, indent=2).encode())


def read(copy: str) -> Record:
    """Raises Foreign where there is no readable record."""
    file = os.path.join(copy, NAME)
    try:
        with open(file, "rb") as stream:
            value = json.loads(stream.read(_MAX_BYTES))
        if value["format"] != FORMAT:
            raise Foreign(f"{file} has a format that this Interlock does not know")
        interpreter = value["interpreter"]
        return Record(
            build=_text(value["build"]),
            version=_text(value["version"]),
            owner=int(value["owner"]),
            hash=_text(value["hash"]),
            files=int(value["files"]),
            interpreter=Interpreter(
                *(_text(interpreter[part]) for part in ("path", "version", "tag", "abi")),
            ),
            laid_at=float(value["laid_at"]),
            laid_by=_text(value["laid_by"]),
            origin=from_record(value.get("origin")),
        )
    except OSError as error:
        raise Foreign(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError):
        raise Foreign(f"{file} is damaged") from None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def digest(lib: str, *, owned: bool = False) -> tuple[str, int]:
    """SHA-256 over names, sizes and contents of all files under `lib`, and their number. About 60 ms for a whole copy.

    With `owned`, every file and folder must be ours and writable by us alone. A symbolic link or a special file is never
    part of a copy. Raises Foreign, or OSError.
    """
    import hashlib

    total, number = hashlib.sha256(), 0
    for name, path in _files(lib, owned):
        with open(path, "rb") as stream:
            content = stream.read()
        total.update(b"%b\0%d\0" % (name.encode("utf-8", "surrogateescape"), len(content)))
        total.update(content)
        number += 1
    return total.hexdigest(), number


def _files(lib: str, owned: bool) -> Iterator[tuple[str, str]]:
    """Relative name with slashes, and path, in the order of the names. A missing folder raises OSError."""
    found: list[tuple[str, str]] = []
    pending = [(lib, "")]
    while pending:
        folder, prefix = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                name = prefix + entry.name
                if owned and (why := trouble_with(entry.path)) is not None:
                    raise Foreign(why)
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, name + "/"))
                elif entry.is_file(follow_symlinks=False):
                    found.append((name, entry.path))
                else:
                    raise Foreign(f"{entry.path} is neither a file nor a folder")
    found.sort()
    yield from found


def verify(places: Places, name: str) -> Record:
    """The record of a copy that may run: ours, writable by us alone, whole and unchanged. Raises Foreign with the reason."""
    copy = places.copy(name)
    if (why := trouble_with(places.home, follow=True)) is not None:
        raise Foreign(why)
    for path in (places.app, copy, places.lib(name), os.path.join(copy, NAME)):
        if (why := trouble_with(path)) is not None:
            raise Foreign(why)
    record = read(copy)
    if record.build != name or not is_copy_name(name):
        raise Foreign(f"{copy} calls itself {record.build}")
    if record.owner != owner():
        raise Foreign(f"{copy} was laid by another user (uid {record.owner})")
    try:
        found, number = digest(places.lib(name), owned=True)
    except OSError as error:
        raise Foreign(f"{error.filename}: {error.strerror}") from None
    if found != record.hash:
        what = "" if number == record.files else f" ({number} files where {record.files} were laid)"
        raise Foreign(f"{places.lib(name)} was changed since it was laid{what}")
    if not os.access(record.interpreter.path, os.X_OK):
        raise Foreign(f"its interpreter {record.interpreter.path} is gone")
    return record


def owner() -> int:
    """Our user id; -1 where the system has none."""
    return os.geteuid() if os.name == "posix" else -1


class Standing(NamedTuple):
    """The home copy beside this Interlock, for `interlock doctor`."""

    current: str | None
    """Build of the copy that the launcher runs; None where there is none."""
    trouble: str | None
    """Why it must not run; None where it may."""
    older: tuple[str, ...]
    """Builds of the other copies."""


def standing(home: str | os.PathLike[str]) -> Standing:
    """Looks at everything and changes nothing. Reads the whole copy, so it takes about as long as `digest`."""
    places = Places(home)
    try:
        names = sorted(name for name in os.listdir(places.app) if is_copy_name(name))
    except OSError:
        names = []
    current = read_current(places)
    if current is None:
        return Standing(None, None, tuple(names))
    others = tuple(name for name in names if name != current.name)
    try:
        verify(places, current.name)
    except Foreign as error:
        return Standing(current.name, str(error), others)
    return Standing(current.name, None, others)
