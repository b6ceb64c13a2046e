"""Where manifests are: the managed, project and user scope, and the files of each."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

FILE_NAME = "interlock.yaml"
MAX_FILES = 500
"""Of one folder."""

_REPOSITORY_MARKS = (".git", ".hg", ".jj", ".svn")


def platform_name() -> str:
    """windows, macos or linux (which stands for every other Unix too)."""
    return {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")


def managed_folder(environ: Mapping[str, str], platform: str) -> Path:
    """The administrator's folder: /etc/interlock, on Windows %ProgramData%\\Interlock."""
    if platform == "windows":
        return Path(environ.get("ProgramData") or r"C:\ProgramData") / "Interlock"
    return Path("/etc/interlock")


def repository_root(start: Path) -> Path | None:
    """The nearest folder at or above `start` that holds a version-control folder."""
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in _REPOSITORY_MARKS):
            return folder
    return None


def find_project_manifest(start: Path) -> Path | None:
    """The nearest interlock.yaml from `start` up to the root of its repository.

    Outside a repository only `start` itself is looked at: a folder above it may belong to anybody, as /tmp does.
    """
    start = Path(os.path.abspath(start))
    try:
        root = repository_root(start) or start
        for folder in (start, *start.parents):
            candidate = folder / FILE_NAME
            if candidate.exists():
                return candidate
            if folder == root:
                return None
    except OSError:
        return None
    return None


def files_of(place: Path) -> list[Path]:
    """A file itself, or the *.yaml and *.yml of a folder in the order of their names. Raises OSError where it cannot be read."""
    if place.is_dir():
        # Both endings: a deny in a file that is silently not read would be no deny.
        found = sorted(
            entry for entry in place.iterdir() if entry.suffix in (".yaml", ".yml") and not entry.name.startswith(".")
        )
        return [entry for entry in found if entry.is_file()]
    return [place]


def kept_by_owner(path: Path) -> bool:
    """Whether only this user or the administrator can change the file.

    Always true on Windows, where the folder's ACL decides.
    """
    if sys.platform == "win32":
        return True
    for each in (path, path.parent):
        status = each.stat()
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        if status.st_uid not in (0, os.geteuid()) or (status.st_mode & stat.S_IWOTH and not sticky):
            return False
    return True
