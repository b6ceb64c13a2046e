"""Where the home copy lives, who may write there, and how its small files are written. Imports next to nothing.

<home>/bin/interlock           the launcher that hosts start
<home>/app/<build>/lib/...     one copy of Interlock and of what it needs, with record.json beside lib
<home>/app/current             which copy runs, and with which interpreter
"""

from __future__ import annotations

import os
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CURRENT_MAX_BYTES = 8192


class Places:
    """The paths under one Interlock home, as text: every start touches them before anything else is imported."""

    __slots__ = ("app", "bin", "current", "home", "launcher", "settings", "update")

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self.home = os.path.abspath(os.fspath(home))
        self.app = os.path.join(self.home, "app")
        self.bin = os.path.join(self.home, "bin")
        self.current = os.path.join(self.app, "current")
        self.launcher = os.path.join(self.bin, "interlock.cmd" if os.name == "nt" else "interlock")
        self.settings = os.path.join(self.home, "settings.json")
        self.update = os.path.join(self.home, "update.json")

    def copy(self, name: str) -> str:
        """Folder of the copy with this name."""
        return os.path.join(self.app, name)

    def lib(self, name: str) -> str:
        """The folder that goes onto `sys.path`."""
        return os.path.join(self.app, name, "lib")


class Current(NamedTuple):
    """What `app/current` says: three lines, so that a shell can read it too."""

    name: str
    """The copy's build, `vX.Y.Z+hash`, which is its folder's name."""
    tag: str
    """`sys.implementation.cache_tag` of the interpreter that its compiled modules need, such as `cpython-311`."""
    interpreter: str
    """Absolute path of the base interpreter."""


def read_current(places: Places) -> Current | None:
    """None where there is no home copy, or the file is not as we write it. Never raises."""
    try:
        with open(places.current, "rb") as file:
            lines = file.read(CURRENT_MAX_BYTES).decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return None
    if len(lines) < 3 or not is_copy_name(lines[0]) or not lines[1] or not os.path.isabs(lines[2]):
        return None
    return Current(lines[0], lines[1], lines[2])


def is_copy_name(name: str) -> bool:
    """Whether this can be the folder of a copy: a build, and never a way out of `app/`."""
    version, plus, digest = name.partition("+")
    return (
        bool(plus)
        and version[:1] == "v"
        and version[1:2].isdigit()
        and digest.isalnum()
        and version.isascii()
        and digest.isascii()
        and all(letter.isalnum() or letter in "._-" for letter in version)
    )


def version_of(name: str) -> str:
    """`1.2.3` of `v1.2.3+0123456789ab`."""
    return name[1:].partition("+")[0]


def trouble_with(path: str, *, follow: bool = False) -> str | None:
    """Why what is at `path` may be another's work, in words for people; None where it is ours and only we can write it.

    Windows keeps other users out of the profile folder by its access lists, which this does not read.
    """
    try:
        seen = os.stat(path) if follow else os.lstat(path)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    if os.name != "posix":
        return None
    if (seen.st_mode & 0o170000) == 0o120000:
        return f"{path} is a symbolic link"
    if seen.st_uid != os.geteuid():
        return f"{path} belongs to another user (uid {seen.st_uid})"
    if seen.st_mode & 0o022:
        return f"{path} can be written by other users (mode {seen.st_mode & 0o777:04o})"
    return None


def off(environ: Mapping[str, str]) -> str | None:
    """The variable that keeps Interlock from replacing or updating itself here, or None."""
    for name in ("INTERLOCK_NO_UPDATE", "CI"):
        if environ.get(name, "").strip().lower() not in ("", "0", "false", "no"):
            return name
    return None


def write_whole(path: str, content: bytes, mode: int = 0o600) -> None:
    """Replace the file in one step, so that a reader sees the old one or the new one. The folder must exist."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), mode)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        try:  # noqa: SIM105 - contextlib is more to import than all of this file
            os.unlink(temporary)
        except OSError:
            pass
        raise


def private_folder(path: str) -> None:
    """Make the folder with mode 0700, and take writing away from others where it is there already and ours."""
    os.makedirs(path, mode=0o700, exist_ok=True)
    if os.name == "posix":
        seen = os.stat(path)
        if seen.st_uid == os.geteuid() and seen.st_mode & 0o022:
            os.chmod(path, seen.st_mode & 0o7755)
