"""Runs Interlock from the home copy. The launcher starts this file with the base interpreter, isolated (`-I -S -B`).

It stands in the package and, byte for byte, beside the launcher, so it must work alone: nothing of Interlock is imported
before it is known which copy runs and that nobody else can have written it. From within a copy it runs that copy
(align.py). Where something is missing it says in one line what, and what to do. The copy is held by a shared kernel lock
for as long as the process runs, so that no update removes it.
"""

from __future__ import annotations

import os
import sys

EXIT_CONFIGURATION = 8
_TRIES = 5
"""A copy may be removed between being read as current and being locked, but not time after time."""

held: list[int] = []
"""The descriptor of the lock. It is closed when the process ends, however it ends."""


def run() -> int:
    """Exit code of Interlock, or 8 where there is none to run."""
    home, pinned = _place()
    for _ in range(_TRIES):
        name = pinned or _current(home)
        if _hold(os.path.join(home, "app", name)):
            break
    else:
        raise SystemExit(_say(f"{os.path.join(home, 'app')} is being changed all the time; try again"))
    lib = os.path.join(home, "app", name, "lib")
    for path in (home, os.path.join(home, "bin"), os.path.join(home, "app"), os.path.dirname(lib), lib):
        _check(path)
    sys.path.insert(0, lib)
    sys.argv[0] = os.path.join(home, "bin", "interlock")
    from interlock.cli.main import main

    return main()


def _place() -> tuple[str, str | None]:
    """The home, and the copy where this file is a copy's own: then that copy runs, because it was just looked through."""
    here = os.path.dirname(os.path.abspath(__file__))
    if os.path.basename(here) == "bin":
        return os.path.dirname(here), None
    copy = os.path.dirname(os.path.dirname(os.path.dirname(here)))  # <home>/app/<build>/lib/interlock/install
    return os.path.dirname(os.path.dirname(copy)), os.path.basename(copy)


def _current(home: str) -> str:
    file = os.path.join(home, "app", "current")
    try:
        with open(file, encoding="utf-8") as stream:
            name, tag = stream.read(8192).split("\n")[:2]
    except (OSError, ValueError):
        raise SystemExit(_say(f"{file} cannot be read, so there is no home copy to run; {_REPAIR}")) from None
    if os.path.basename(name) != name or name in ("", ".", ".."):
        raise SystemExit(_say(f"{file} does not name a copy; {_REPAIR}"))
    if not os.path.isdir(os.path.join(home, "app", name, "lib")):
        raise SystemExit(_say(f"the home copy {name} is gone from {os.path.join(home, 'app')}; {_REPAIR}"))
    if sys.implementation.cache_tag != tag:
        raise SystemExit(
            _say(f"{sys.executable} is now {sys.implementation.cache_tag}, and the home copy needs {tag}; {_REPAIR}")
        )
    return name


def _hold(copy: str) -> bool:
    """False where the copy went away meanwhile. Windows itself keeps the files of a running program from being removed."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        descriptor = os.open(os.path.join(copy, "in-use"), os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # a home that may only be read: nobody removes anything from it either
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        import errno

        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            os.close(descriptor)
            return False  # being removed
    try:
        same = os.path.samestat(os.fstat(descriptor), os.stat(os.path.join(copy, "in-use")))
    except OSError:
        same = False
    if not same:
        os.close(descriptor)
        return False
    held.append(descriptor)
    return True


def _check(path: str) -> None:
    """A folder that another user owns or may write could hold another's program: it is not run."""
    if os.name != "posix":
        return
    seen = os.lstat(path)
    if seen.st_uid != os.geteuid():
        raise SystemExit(_say(f"{path} belongs to another user (uid {seen.st_uid}), so it is not run; {_REPAIR}"))
    if seen.st_mode & 0o022:
        raise SystemExit(_say(f"other users can write {path}, so it is not run; `chmod go-w` it if nobody did"))


_REPAIR = "`interlock update --lay`, run from any installed Interlock, makes a new one"


def _say(what: str) -> int:
    sys.stderr.write(f"interlock: {what}\n")
    return EXIT_CONFIGURATION


if __name__ == "__main__":
    sys.exit(run())
