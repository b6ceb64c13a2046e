"""Laying a copy of Interlock in its home: built in a temporary folder, tried, recorded, and renamed into place.

A start at any moment finds the copy that was there before or the new one, never half of one. One process lays at a time
(a kernel file lock); another that wants to lay the same copy waits and finds it there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from interlock.install import bytecode, launcher, origin, prune, record
from interlock.install.closure import Closure, gather
from interlock.install.places import Places, is_copy_name, private_folder, read_current, version_of, write_whole
from interlock.install.version import newer

LOCK_SECONDS = 120.0
CHECK_SECONDS = 60.0


class LayingFailed(Exception):
    """Nothing was changed. The text says what went wrong and what to do."""


class Laid(NamedTuple):
    name: str
    """Build of the copy that runs from now on."""
    path: Path
    before: str | None
    """Build of the copy that ran until now; None where there was none."""
    fresh: bool
    """False where the copy was there already."""


def interpreter() -> record.Interpreter:
    """The base interpreter of this process: the one that its virtual environment was made from."""
    return record.Interpreter(
        path=os.path.abspath(getattr(sys, "_base_executable", None) or sys.executable),
        version=".".join(str(part) for part in sys.version_info[:3]),
        tag=sys.implementation.cache_tag or "unknown",
        abi=str(sysconfig.get_config_var("SOABI") or sys.implementation.cache_tag),
    )


def lay_self(home: str | os.PathLike[str], *, only_newer: bool = False) -> Laid:
    """Make the running Interlock the home copy. No network. A copy of the same build that is there and whole is kept.

    With `only_newer`, a home copy of the same or a later version stays, looked at under the lock: of several versions that
    start at once the newest wins. Takes seconds. Raises LayingFailed, closure.NotCopyable, or OSError.
    """
    from interlock.build import build

    places, name = Places(home), build()
    if not is_copy_name(name):
        raise LayingFailed("the files of this Interlock cannot be read")
    with exclusively(places):
        current = read_current(places)
        if only_newer and current is not None and not newer(version_of(name), version_of(current.name)):
            return Laid(current.name, Path(places.copy(current.name)), current.name, False)
        if _whole(places, name):
            return _point(places, name, fresh=False)
        parts = gather()
        with _workshop(places) as folder:
            lib = os.path.join(folder, "lib")
            _copy(parts, lib)
            return _finish(places, folder, name, interpreter(), parts.imports, origin.here())


def lay_built(
    home: str | os.PathLike[str], made_for: record.Interpreter, fill: Callable[[str], None], version: str
) -> Laid:
    """Make the release of an index that `fill` puts into the folder it is given the home copy; it must be `version`.

    `fill` looks it through before it returns: from then on it is run, first to say what it is.

    Raises LayingFailed, OSError, and what `fill` raises.
    """
    places = Places(home)
    with exclusively(places), _workshop(places) as folder:
        lib = os.path.join(folder, "lib")
        os.makedirs(lib, mode=0o700, exist_ok=True)
        fill(lib)
        name = reported_build(lib, made_for.path, ())
        if version_of(name) != version:
            raise LayingFailed(f"what was built calls itself {name}, and {version} was asked for")
        if _whole(places, name):
            return _point(places, name, fresh=False)
        return _finish(places, folder, name, made_for, (), origin.Origin("index"))


def switch(home: str | os.PathLike[str], name: str) -> Laid:
    """Let the launcher run another copy that is there. Raises record.Foreign where it must not run."""
    places = Places(home)
    with exclusively(places):
        record.verify(places, name)
        return _point(places, name, fresh=False)


@contextlib.contextmanager
def exclusively(places: Places) -> Iterator[None]:
    """Hold the lock of the home's `app` folder, which is made where it is missing. Raises LayingFailed after two minutes."""
    from filelock import FileLock, Timeout

    for folder in (places.home, places.app, places.bin):
        private_folder(folder)
    lock = FileLock(os.path.join(places.app, ".lock"), mode=0o600)
    try:
        lock.acquire(timeout=LOCK_SECONDS)
    except Timeout:
        raise LayingFailed(f"another process is changing {places.app} and does not end; try again") from None
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _workshop(places: Places) -> Iterator[str]:
    """A temporary folder beside the copies (renaming does not cross file systems); whatever is left of it is removed."""
    folder = tempfile.mkdtemp(prefix=prune.UNFINISHED, dir=places.app)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy(closure: Closure, lib: str) -> None:
    for part in closure.parts:
        target = os.path.join(lib, *part.name.split("/"))
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        shutil.copyfile(part.source, target)
        seen = os.stat(part.source)
        os.utime(target, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # bytecode names its source's time
        if part.name.endswith(".py"):
            bytecode.take_along(os.fspath(part.source), target)


def _finish(
    places: Places,
    folder: str,
    name: str,
    made_for: record.Interpreter,
    imports: Sequence[str],
    came_from: origin.Origin,
) -> Laid:
    lib = os.path.join(folder, "lib")
    bytecode.complete(lib, made_for.path)
    _restrict(folder)
    found = reported_build(lib, made_for.path, imports)
    if found != name:
        raise LayingFailed(f"the copy calls itself {found}, and should be {name}; were files changed just now?")
    total, files = record.digest(lib)
    record.write(
        folder,
        record.Record(
            name, version_of(name), record.owner(), total, files, made_for, time.time(), sys.executable, came_from
        ),
    )
    os.close(os.open(os.path.join(folder, record.IN_USE), os.O_CREAT | os.O_RDWR, 0o600))
    target = places.copy(name)
    if os.path.lexists(target):  # the same build, but not whole: `_whole` said so
        prune.set_aside(places, name)
    os.rename(folder, target)
    return _point(places, name, fresh=True)


def _whole(places: Places, name: str) -> bool:
    try:
        record.verify(places, name)
    except record.Foreign:
        return False
    return True


def _point(places: Places, name: str, *, fresh: bool) -> Laid:
    """From here on the launcher runs this copy."""
    made_for = record.read(places.copy(name)).interpreter
    if "\n" in made_for.path:
        raise LayingFailed(f"the interpreter's path has a line break in it: {made_for.path!r}")
    before = read_current(places)
    launcher.write(places, made_for.path)
    write_whole(places.current, f"{name}\n{made_for.tag}\n{made_for.path}\n".encode())
    prune.prune(places, keep=(name, before.name if before is not None else None))
    return Laid(name, Path(places.copy(name)), before.name if before is not None else None, fresh)


def _restrict(folder: str) -> None:
    """Folders 0700, files 0600: the interpreter only reads them."""
    if os.name != "posix":
        return
    os.chmod(folder, 0o700)
    for parent, folders, files in os.walk(folder):
        for child in folders:
            os.chmod(os.path.join(parent, child), 0o700)
        for child in files:
            os.chmod(os.path.join(parent, child), 0o600)


_TRY = (
    "import sys; sys.path.insert(0, sys.argv[1]); import importlib\n"
    "for name in sys.argv[2:]: importlib.import_module(name)\n"
    "import interlock.cli.main; from interlock.build import build; print(build())"
)


def reported_build(lib: str, python: str, imports: Sequence[str]) -> str:
    """Run what is in `lib` as the launcher would, and what it says it is. Raises LayingFailed with its complaint."""
    try:
        ended = subprocess.run(
            [python, "-I", "-S", "-B", "-c", _TRY, lib, *imports],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CHECK_SECONDS,
            cwd=lib,
        )
    except subprocess.TimeoutExpired:
        raise LayingFailed(f"the new copy did not start within {CHECK_SECONDS:.0f} s") from None
    except OSError as error:
        raise LayingFailed(f"{python} cannot be started: {error.strerror or error}") from None
    if ended.returncode != 0 or not is_copy_name(ended.stdout.strip()):
        last = (ended.stderr.strip() or "it printed no build").splitlines()[-1]
        raise LayingFailed(f"the new copy does not start with {python}: {last[:400]}")
    return ended.stdout.strip()
