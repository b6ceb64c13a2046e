"""A program of the tests: one run of Interlock, and another, that is killed at its first, second, third ... call to the system.

    python dying.py BASE apply|restore

BASE/template is copied for each, as BASE/1, BASE/2 ...; it prints how many died, then the next one came through.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from interlock.hosts.changes.applying import WholeFile, apply
from interlock.hosts.changes.restoring import restore
from interlock.hosts.machine import Machine
from interlock.hosts.writing import Edit, FileEdits

FILES = {
    "a.json": b'{\r\n  "m": {"old": 1}, // mine\r\n}',
    "b.toml": b"# mine\nx = 1\n",
    "c.yaml": b"# mine\nm: {}\n",
}
CALLS = ("replace", "fsync", "unlink", "mkdir", "rmdir")


def machine(base: Path) -> Machine:
    return Machine(platform="linux", home="/h", folder="/h", environ={}, root=str(base / "machine"))


def change(base: Path) -> str:
    formats = {"a.json": "jsonc", "b.toml": "toml", "c.yaml": "yaml", "new/d.json": "json"}
    edits = [
        FileEdits(file=f"/h/{name}", format=format, comments=True, edits=(Edit(("m", "i"), {"command": "c"}),))  # type: ignore[arg-type]
        for name, format in formats.items()
    ]
    return apply(base / "home", machine(base), edits, command="c", extra=[WholeFile("/h/w.yaml", b"w\n")]).id


def undo(base: Path) -> None:
    restore(base / "home", machine(base), None, force=False)


def main() -> None:
    top, what = Path(sys.argv[1]), sys.argv[2]
    act: Callable[[Path], object] = change if what == "apply" else undo
    import filelock  # noqa: F401 - imported once, before the forks
    import ruamel.yaml  # noqa: F401

    number = 0
    while True:
        number += 1
        base = top / str(number)
        shutil.copytree(top / "template", base)
        if what == "restore":
            change(base)
        child = os.fork()
        if not child:
            _die_at(number)
            act(base)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            print(number - 1, os.waitstatus_to_exitcode(status))
            return


def _die_at(number: int) -> None:
    """Before the call; what the call before it did is done by then."""
    count = 0

    def patched(true: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **more: object) -> object:
            nonlocal count
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return true(*args, **more)

        return call

    for name in CALLS:
        setattr(os, name, patched(getattr(os, name)))


if __name__ == "__main__":
    main()
