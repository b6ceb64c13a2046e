"""The machine whose host files are looked at: this one, the Windows around a WSL, a container, or a folder of test files.

Hosts' paths are logical: written as that machine writes them. `real` says where one is reached from here, so that the
tables for every platform can be tried on any.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

Platform = Literal["linux", "macos", "windows"]
Surrounding = Literal["native", "wsl", "container", "windows-of-wsl", "wsl-of-windows"]
"""`windows-of-wsl`: the Windows that a WSL runs on, seen from inside it; `wsl-of-windows`: the other way round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """All paths are absolute and logical."""

    platform: Platform
    home: str
    """The user's home directory."""
    folder: str
    """The working directory: project files are found from there."""
    environ: Mapping[str, str]
    surrounding: Surrounding = "native"
    root: str | None = None
    """Where that machine's files are reached from here (`C:\\x` as `root/c/x`, `/x` as `root/x`); None: they are ours."""

    @property
    def paths(self) -> ModuleType:
        """`ntpath` or `posixpath`: how this machine's paths are put together."""
        return ntpath if self.platform == "windows" else posixpath

    def join(self, *parts: str) -> str:
        joined: str = self.paths.join(*parts)
        return joined

    def user(self, *parts: str) -> str:
        """A path below the user's home."""
        return self.join(self.home, *parts)

    def config(self, *parts: str) -> str:
        """Below the folder for configurations of command-line programs, on macOS too: $XDG_CONFIG_HOME, else ~/.config."""
        return self.join(self.environ.get("XDG_CONFIG_HOME") or self.user(".config"), *parts)

    def application(self, *parts: str) -> str:
        """Below the folder for desktop applications: ~/Library/Application Support, %APPDATA%, or as `config`."""
        if self.platform == "macos":
            return self.user("Library", "Application Support", *parts)
        if self.platform == "windows":
            return self.join(self.environ.get("APPDATA") or self.user("AppData", "Roaming"), *parts)
        return self.config(*parts)

    def local_application(self, *parts: str) -> str:
        """Below %LOCALAPPDATA% (Windows only)."""
        return self.join(self.environ.get("LOCALAPPDATA") or self.user("AppData", "Local"), *parts)

    def expanded(self, path: str) -> str:
        """A path that a person wrote, with a leading `~` and made absolute from the working directory."""
        if path == "~" or path.startswith(("~/", "~\\")):
            path = self.user(*[part for part in path[1:].replace("\\", "/").split("/") if part])
        normal: str = self.paths.normpath(self.join(self.folder, path))
        return normal

    def real(self, path: str) -> str:
        """Where a logical path is reached from this process."""
        if self.root is None:
            return path
        if self.platform == "windows":
            drive, rest = ntpath.splitdrive(path)
            parts = [part for part in rest.replace("\\", "/").split("/") if part]
            return os.path.join(self.root, drive.rstrip(":").lower() or "c", *parts)
        return os.path.join(self.root, *[part for part in path.split("/") if part])

    def names_in(self, folder: str) -> list[str]:
        """What a folder holds, in order; nothing where it is missing or may not be read."""
        try:
            return sorted(os.listdir(self.real(folder)))
        except OSError:
            return []

    def upward(self, start: str | None = None) -> Iterator[str]:
        """`start` (the working directory) and every folder above it, nearest first."""
        folder = start or self.folder
        while True:
            yield folder
            above = self.paths.dirname(folder)
            if above == folder:
                return
            folder = above

    def repository(self, start: str | None = None) -> str | None:
        """The nearest folder at or above `start` with a `.git`, or None."""
        for folder in self.upward(start):
            if os.path.lexists(self.real(self.join(folder, ".git"))):
                return folder
        return None

    def project_folders(self) -> list[str]:
        """From the working directory up to the root of its repository, nearest first; outside of one only the first."""
        top = self.repository()
        if top is None:
            return [self.folder]
        folders = []
        for folder in self.upward():
            folders.append(folder)
            if folder == top:
                break
        return folders


def here(environ: Mapping[str, str] | None = None, folder: str | None = None) -> Machine:
    """The machine that this process runs on."""
    environ = os.environ if environ is None else environ
    platform: Platform = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")  # type: ignore[assignment]
    return Machine(
        platform=platform,
        home=os.path.expanduser("~"),
        folder=os.path.abspath(folder or os.getcwd()),
        environ=environ,
        surrounding=_surrounding(environ),
    )


def _surrounding(environ: Mapping[str, str]) -> Surrounding:
    if sys.platform != "linux":
        return "native"
    if environ.get("WSL_DISTRO_NAME") or os.path.exists("/proc/sys/fs/binfmt_misc/WSLInterop"):
        return "wsl"
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        return "container"
    return "native"
