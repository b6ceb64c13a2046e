"""`${projectRoot}`: the one variable of a manifest, for paths that are the same in every copy of a project."""

from __future__ import annotations

from pathlib import Path

from interlock.manifest.places import repository_root
from interlock.manifest.problems import Report

PROJECT_ROOT = "${projectRoot}"


def root_of(manifest: Path) -> Path:
    """The root of the manifest's repository; outside of one, the manifest's folder."""
    return repository_root(manifest.parent) or manifest.parent


def begins(text: str) -> bool:
    """Whether the text is the variable, or a path below it."""
    return text == PROJECT_ROOT or text.startswith((f"{PROJECT_ROOT}/", f"{PROJECT_ROOT}\\"))


def expanded(text: str, root: Path | str) -> str:
    """The text with the variable at its beginning filled in."""
    return f"{root}{text[len(PROJECT_ROOT) :]}" if begins(text) else text


def check_place(text: str, path: str, at: tuple[int, int], report: Report) -> None:
    """Report the variable where it does not begin the text, or stands there twice."""
    rest = text[len(PROJECT_ROOT) :] if begins(text) else text
    if PROJECT_ROOT in rest:
        what = f"`{PROJECT_ROOT}` is filled in only at the beginning of a word, alone or before a `/`."
        report.add("placeholder", what, write=f"{PROJECT_ROOT}/path as a word of its own", field=path, at=at)
