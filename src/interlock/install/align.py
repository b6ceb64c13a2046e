"""The newest Interlock runs, whichever file was launched: each long-lived start compares itself with the home copy.

Called before anything is read from standard input and before anything heavy is imported. Where there is no home copy, or
this is the home copy, it costs one failed or successful `open` at most.
"""

from __future__ import annotations

import os
import sys

from interlock import __version__
from interlock.install.places import Places, off, read_current, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MARKER = "INTERLOCK_ALIGNED_FOR"
"""Set to the process id when the home copy is started in our place, so that it never starts another in its own."""


def align(home: str | Path, argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """Run the home copy in our place where it is strictly newer; lay ourselves there where we are. Never raises.

    `argv` is what follows the program's name. Does not return where the home copy takes over. A copy that another user
    could have written, or that was changed, never runs: that is said on standard error, and we go on ourselves.
    """
    try:
        _align(os.path.abspath(os.fspath(home)), argv, environ)
    except OSError as error:
        _say(f"the home copy could not be compared with this Interlock: {error}")


def _align(home: str, argv: Sequence[str], environ: Mapping[str, str]) -> None:
    marker = environ.get(MARKER)
    if marker is not None:
        os.environ.pop(MARKER, None)  # what we start aligns for itself
        if marker in (str(os.getpid()), str(os.getppid())):
            return
    if off(environ) is not None:
        return
    places = Places(home)
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if here.startswith(places.app + os.sep):
        return
    current = read_current(places)
    if current is None or os.path.realpath(here).startswith(os.path.realpath(places.app) + os.sep):
        return
    from interlock.install.version import newer

    theirs = version_of(current.name)
    if newer(theirs, __version__):
        _run(places, current.name, argv, environ)
    elif newer(__version__, theirs):
        _lay(places, theirs)
    elif theirs == __version__:
        from interlock.build import build

        if current.name != build():
            _say(
                f"this is {build()}, and the home copy is {current.name}: the same version, built differently; left as it is"
            )


def _run(places: Places, name: str, argv: Sequence[str], environ: Mapping[str, str]) -> None:
    from interlock.install import record

    try:
        found = record.verify(places, name)
        start = os.path.join(places.lib(name), "interlock", "install", "start.py")
        if not os.path.isfile(start):
            raise record.Foreign("it is too old to be started this way")
    except record.Foreign as error:
        _say(f"the home copy {name} is newer and is not run: {error}. Going on as v{__version__}")
        return
    command = [found.interpreter.path, "-I", "-S", "-B", start, *argv]
    inherited = {**environ, MARKER: str(os.getpid())}
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execve(command[0], command, inherited)
    # Windows has no exec: what it calls so ends this process at once, and the host takes that for the end of the server.
    import subprocess

    raise SystemExit(subprocess.run(command, env=inherited, check=False).returncode)


def _lay(places: Places, theirs: str) -> None:
    """In a process of its own, because it takes a second and the host waits for an answer."""
    import subprocess

    from interlock.install.launcher import again
    from interlock.install.settings import read

    if read(places.home).held == __version__:
        return  # a person went back from this version
    _say(f"v{__version__} is newer than the home copy {theirs} and takes its place")
    subprocess.Popen(
        [*again(), "update", "--lay", "--only-newer", "--home", places.home],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a host that ends us does not end it
    )


def _say(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"interlock: {text}\n")
        sys.stderr.flush()
