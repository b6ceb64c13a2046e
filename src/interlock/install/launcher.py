"""The launcher that host configurations name: it never moves, whatever version it runs.

On POSIX a few lines of shell that start no other program (each costs a start some milliseconds); on Windows a batch file.
Beside it lies a copy of start.py, which finds the current copy and runs it.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from interlock.install.places import Places, write_whole

_SHELL = """\
#!/bin/sh
# Starts the Interlock that app/current names. Written by `interlock setup` and `interlock update`; do not edit.
# The interpreter stands here and not in a file of app/: what others might write is looked at before it is believed.
home={home}
python={python}
if [ ! -x "$python" ]; then
  echo "interlock: the Python of the home copy, $python, is gone; {repair}" >&2
  exit 8
fi
exec "$python" -I -S -B "$home/bin/start.py" "$@"
"""

_BATCH = """\
@echo off
rem Starts the Interlock that app\\current names. Written by `interlock setup` and `interlock update`; do not edit.
setlocal DisableDelayedExpansion
if not exist "{python}" (
  echo interlock: the Python of the home copy, {python}, is gone; {repair} 1>&2
  exit /b 8
)
"{python}" -I -S -B "%~dp0start.py" %*
exit /b %ERRORLEVEL%
"""

REPAIR = "'interlock update --lay', run from any installed Interlock, makes a new one"


def shell_text(home: str, python: str) -> str:
    """The POSIX launcher for one home. It holds the home's path, so that a symbolic link to it works too."""
    return _SHELL.format(home=shlex.quote(home), python=shlex.quote(python), repair=REPAIR)


def batch_text(python: str) -> str:
    """The Windows launcher. It holds the interpreter's path, because a batch file reads other files slowly."""
    return _BATCH.format(python=python.replace("%", "%%"), repair=REPAIR)


def write(places: Places, python: str) -> None:
    """Write launcher and start.py where they are not there just so already."""
    text = batch_text(python).replace("\n", "\r\n") if os.name == "nt" else shell_text(places.home, python)
    _renew(places.launcher, text.encode(), 0o700)
    own = Path(__file__).with_name("start.py").read_bytes()
    _renew(os.path.join(places.bin, "start.py"), own, 0o600)


def _renew(path: str, content: bytes, mode: int) -> None:
    try:
        with open(path, "rb") as file:
            if file.read() == content and (os.name != "posix" or os.stat(path).st_mode & 0o777 == mode):
                return
    except OSError:
        pass
    write_whole(path, content, mode)


def command(home: str | os.PathLike[str]) -> list[str]:
    """What a host has to start, with absolute paths. Windows programs cannot start a batch file without `cmd /c`."""
    launcher = Places(home).launcher
    return ["cmd", "/c", launcher] if os.name == "nt" else [launcher]


def again() -> list[str]:
    """The command that starts this very Interlock again, from wherever it runs."""
    package = Path(__file__).resolve().parents[1]
    app = package.parents[2]
    if sys.flags.no_site and app.name == "app" and (app.parent / "bin" / "start.py").is_file():
        return [sys.executable, "-I", "-S", "-B", os.fspath(app.parent / "bin" / "start.py")]
    # -P: a host starts us in a project's folder, and an `interlock` that lies there must not run in our place.
    return [sys.executable, "-P", "-m", "interlock"]
