"""Packages and images that are fetched by name at each start, without saying which version."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.hosts.checks.codes import found
from interlock.hosts.checks.launching import Package, package
from interlock.hosts.checks.subject import Subject
from interlock.hosts.declaration import Problem
from interlock.hosts.reading import exists


def check(subject: Subject) -> Iterator[Problem]:
    entry = subject.runs
    fetched = package(entry.command) if entry is not None else None
    if fetched is None:
        return
    field, spot = subject.word(fetched.index)
    if not fetched.pinned and not _installed(subject, fetched):
        which = f"whatever `{fetched.version}` is that day" if fetched.version else "the newest version there is"
        yield found(
            "unpinned-package",
            f"`{fetched.tool}` runs {which} of `{fetched.name}`.",
            todo=_pin(fetched),
            field=field,
            spot=spot,
        )
    if fetched.asks:
        yield found("npx-asks", f"`{fetched.tool}` without `-y`.", field=field, spot=spot)


def _installed(subject: Subject, fetched: Package) -> bool:
    """npx takes what the project has installed, whose version its lockfile pins."""
    machine = subject.machine
    if fetched.runner != "npm" or fetched.version:
        return False
    return any(
        exists(machine, machine.join(folder, "node_modules", *fetched.name.split("/"))) for folder in machine.upward()
    )


def _pin(fetched: Package) -> str:
    if fetched.runner == "npm":
        return f"Write `{fetched.name}@VERSION`; `npm view {fetched.name} version` says which is newest."
    if fetched.runner == "python":
        if "://" in fetched.name:
            return "Add `@` and a commit."
        return f"Write `{fetched.name}@VERSION`." if fetched.tool == "uvx" else f"Write `{fetched.name}==VERSION`."
    return f"Write `{fetched.name}@sha256:...`, as `{fetched.tool} images --digests` prints it."
