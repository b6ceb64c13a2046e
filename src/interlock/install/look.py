"""Looking for a newer release every six hours, once for the whole machine, and never in anybody's way.

A long-lived process calls `look_if_due` at its start and now and then; where the time has come it starts a process that
asks pip under a kernel file lock and writes `update.json`. Nothing waits for that process, and it has a deadline.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import NamedTuple

from interlock.install.places import Places, off, private_folder, write_whole

EVERY_SECONDS = 6 * 3600.0
_MAX_BYTES = 64 * 1024


class Seen(NamedTuple):
    """What the last look found."""

    at: float = 0.0
    """Seconds since the epoch."""
    newest: str | None = None
    trouble: str | None = None
    """Why it found nothing, for `interlock doctor`."""


def read(home: str | os.PathLike[str]) -> Seen:
    """Never raises."""
    try:
        with open(Places(home).update, "rb") as file:
            value = json.loads(file.read(_MAX_BYTES))
        newest, trouble = value.get("newest"), value.get("trouble")
        return Seen(
            float(value["at"]),
            newest if isinstance(newest, str) else None,
            trouble if isinstance(trouble, str) else None,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Seen()


def wanted(home: str | os.PathLike[str], environ: Mapping[str, str]) -> bool:
    """Only where this Interlock came from an index, a person said yes at setup, and no variable forbids it."""
    if off(environ) is not None:
        return False
    from interlock.install import origin
    from interlock.install.settings import read as read_settings

    return read_settings(home).updates is True and origin.here().from_index()


def due(home: str | os.PathLike[str], now: float) -> bool:
    """Six hours have passed, or the clock was set back since."""
    return not 0 <= now - read(home).at < EVERY_SECONDS


def look_if_due(home: str | os.PathLike[str], environ: Mapping[str, str]) -> bool:
    """Start a look where the time has come; whether one was started. Returns at once and never raises."""
    try:
        if not wanted(home, environ) or not due(home, time.time()):
            return False
        import subprocess

        from interlock.install.launcher import again

        subprocess.Popen(
            [*again(), "update", "--look", "--home", os.path.abspath(os.fspath(home))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=_clean(environ),
        )
    except OSError:
        return False
    return True


def _clean(environ: Mapping[str, str]) -> dict[str, str]:
    """Without what makes Python import from the working directory, which may be anybody's project."""
    clean = dict(environ)
    named = [entry for entry in clean.pop("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(entry)]
    if named:
        clean["PYTHONPATH"] = os.pathsep.join(named)
    return clean


def look(home: str | os.PathLike[str], environ: Mapping[str, str]) -> Seen | None:
    """Ask pip now, unless another process does or has just done so: then None. Blocks for a minute at most."""
    from filelock import FileLock, Timeout

    from interlock.install import pip

    places = Places(home)
    private_folder(places.home)
    lock = FileLock(places.update + ".lock", mode=0o600)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return None
    try:
        if not due(home, time.time()):
            return None
        try:
            newest, trouble = pip.find(home, environ).newest(environ), None
        except pip.PipFailed as error:
            newest, trouble = None, str(error)
        # pip says "no matching distribution" also where it could not reach an index: what is known stays known.
        found = Seen(time.time(), newest or read(home).newest, trouble)
        keep(places, found)
        return found
    finally:
        lock.release()


def keep(places: Places, seen: Seen) -> None:
    """Raises OSError."""
    write_whole(places.update, (json.dumps(seen._asdict(), indent=2) + "\n").encode())
