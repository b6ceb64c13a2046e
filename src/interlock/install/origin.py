"""Where this Interlock came from: releases are looked for and fetched only from there, never from a place that has the name.

pip writes `direct_url.json` beside the metadata of what was installed from a path, a checkout or a VCS URL, and none for
what came from an index by name (PEP 610). A copy in the home remembers it in its record. Where nothing says it, nothing
is looked for: a stranger's package may have any name.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Literal, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:  # every start that meets a newer home copy imports this by way of its record
    from importlib.metadata import Distribution
    from pathlib import Path

Kind = Literal["index", "path", "vcs", "archive", "unknown"]
_KINDS: tuple[Kind, ...] = ("index", "path", "vcs", "archive")
_ENTRY = "interlock/__init__.py"
_FROM_INDEXES = frozenset({"pip", "uv", "poetry", "pdm"})
"""Installers (PEP 376, `INSTALLER`) that take what has no direct URL from an index. Others, such as a system's, do not."""


class Origin(NamedTuple):
    kind: Kind = "unknown"
    place: str = ""
    """A folder, a file or a URL without user, password and query; empty for an index, whose address pip knows."""

    def from_index(self) -> bool:
        return self.kind == "index"

    def words(self) -> str:
        """How it came here, to follow "This Interlock"."""
        if self.kind == "index":
            return "was installed from a package index"
        if self.kind == "unknown":
            return "does not say where it was installed from"
        return f"was installed from {self.place or 'a place of its own'}"

    def no_updates(self) -> str:
        """Why nothing is looked for, and what to do instead."""
        there = (
            "Update it there"
            if self.kind != "unknown"
            else "Install the version you want in the way you installed this one"
        )
        return (
            f"This Interlock {self.words()}, so no package index is asked for releases. {there}, then run "
            "`interlock update --lay` from it"
        )

    def as_dict(self) -> dict[str, str]:
        return {"kind": self.kind, "place": self.place}


UNKNOWN = Origin()


def here() -> Origin:
    """Of the running Interlock. Reads a few small files the first time; never raises."""
    from interlock.install.closure import package_root

    return of_package(package_root())


@cache
def of_package(package: Path) -> Origin:
    """Of the `interlock` package in this folder: from its copy's record, else from the distribution that it belongs to."""
    from importlib import metadata

    from interlock.install.closure import DISTRIBUTION

    copy = package.parent.parent  # <home>/app/<build>/lib/interlock
    if package.parent.name == "lib" and copy.parent.name == "app":
        from interlock.install import record

        try:
            return record.read(os.fspath(copy)).origin
        except record.Foreign:
            return UNKNOWN
    # In this folder only: what is installed elsewhere is another Interlock.
    for found in metadata.distributions(name=DISTRIBUTION, path=[os.fspath(package.parent)]):
        if any(file.as_posix() == _ENTRY for file in found.files or ()):
            return _of(found)
    if (package.parents[1] / "pyproject.toml").is_file() and package.parent.name == "src":
        return Origin("path", os.fspath(package.parents[1]))
    return UNKNOWN


def _of(found: Distribution) -> Origin:
    try:
        text = found.read_text("direct_url.json")
    except (OSError, ValueError):
        return UNKNOWN
    if text is None:
        installer = (found.read_text("INSTALLER") or "").split()
        return Origin("index") if installer and installer[0].lower() in _FROM_INDEXES else UNKNOWN
    try:
        value = json.loads(text)
        url = value["url"]
    except (ValueError, KeyError, TypeError):
        return UNKNOWN
    if not isinstance(url, str):
        return UNKNOWN
    if "vcs_info" in value:
        return Origin("vcs", _shown(url))
    return Origin("path" if url.startswith("file:") else "archive", _shown(url))


def _shown(url: str) -> str:
    """For people and for the record: a path where it is one, and never a user, a password or a query."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        if parts.scheme == "file":
            from urllib.request import url2pathname

            return url2pathname(parts.path)
        port = f":{parts.port}" if parts.port is not None else ""
        return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
    except ValueError:
        return ""


def from_record(value: object) -> Origin:
    """As `as_dict` wrote it; unknown for anything else, and for the records of copies that had none."""
    if not isinstance(value, dict):
        return UNKNOWN
    kind, place = value.get("kind"), value.get("place")
    known = next((one for one in _KINDS if one == kind), None)
    return Origin(known, place) if known is not None and isinstance(place, str) else UNKNOWN
