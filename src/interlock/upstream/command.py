"""From a command in the manifest to the file that will run, with a clear fault where there is none. POSIX rules."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from interlock.manifest.config import StdioTransport
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.environment import search_path

_HINTS = {
    "npx": "npx comes with Node.js",
    "npm": "npm comes with Node.js",
    "node": "install Node.js",
    "uvx": "uvx comes with uv",
    "uv": "install uv",
    "python": "many systems have only python3",
    "docker": "install Docker",
    "bunx": "bunx comes with Bun",
    "deno": "install Deno",
}


@dataclass(frozen=True, slots=True)
class Command:
    """What will run: the argument vector with an absolute path in front, and how a shell is told so where one is needed
    (batch files on Windows)."""

    argv: list[str]
    shell_line: str | None = None


def hint(command: str) -> str:
    """Where a well-known command comes from, in parentheses and after a space; else nothing."""
    return f" ({_HINTS[command]})" if command in _HINTS else ""


def never_started(slug: str, message: str, server: str | None) -> Fault:
    """The fault of a server whose process does not exist, so nothing can have taken effect."""
    return Fault(slug, message, stage=Stage.DISCOVER, verdict=Verdict.NEVER_REACHED, server=server)


def who(server: str | None) -> str:
    """The subject of a sentence about it."""
    return f"Server {server!r}" if server else "The server"


def check_directory(cwd: Path, server: str | None) -> None:
    """Raises Fault `cwd-missing` where the server could not be started in `cwd`."""
    if not cwd.is_dir():
        problem = "is not a directory" if cwd.exists() else "does not exist"
    elif not os.access(cwd, os.X_OK):
        problem = "may not be entered by the user that runs Interlock"
    else:
        return
    raise never_started(
        "cwd-missing",
        f"{who(server)} was not started: its working directory {cwd} {problem}. Create it, or correct `cwd` in the "
        "manifest.",
        server,
    )


def resolve(transport: StdioTransport, environment: Mapping[str, str], server: str | None) -> Command:
    """Find the command. Raises Fault `command-not-found`, or `spawn-failed` where it is no program.

    A command with a slash is relative to the server's directory; any other is looked up in the PATH that the server
    itself will have. Symbolic links are kept: virtual environments and multi-call programs depend on their own name.
    """
    command, *arguments = transport.command
    if "/" in command:
        path = transport.cwd / command
        if not path.exists():
            raise never_started(
                "command-not-found",
                f"{who(server)} was not started: there is no file {path}. Correct `command` in the manifest, or "
                "install the server there.",
                server,
            )
        _check_executable(path, server)
        return Command([str(path), *arguments])
    directories = search_path(environment)
    unusable: Path | None = None
    for directory in directories:
        path = transport.cwd / directory / command
        if path.is_file():
            if os.access(path, os.X_OK):
                return Command([str(path), *arguments])
            unusable = unusable or path
    if unusable is not None:
        _check_executable(unusable, server)
    searched = os.pathsep.join(directories) or "(empty)"
    raise never_started(
        "command-not-found",
        f"{who(server)} was not started: the command {command!r} is in none of the directories of PATH. Install it"
        f"{hint(command)}, or write its full path in the manifest; programs started from a desktop "
        f"often get a shorter PATH than a terminal. Searched: {searched}",
        server,
    )


def _check_executable(path: Path, server: str | None) -> None:
    if path.is_dir():
        problem = "it is a directory, not a program"
    elif not os.access(path, os.X_OK):
        problem = f"the file is not executable. Allow it with `chmod +x {path}`, or name its interpreter first"
    else:
        return
    raise never_started("spawn-failed", f"{who(server)} was not started: {path}: {problem}.", server)


def spawn_fault(error: OSError | ValueError, command: Command, cwd: Path, server: str | None) -> Fault:
    """What the kernel's refusal to run the command means."""
    program = command.argv[0]
    head = _first_bytes(program)
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ENOEXEC and not head.startswith((b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ")):
        reason = (
            f"{program} has no `#!` line, so the system does not know what should run it. Add one as its first line, "
            "or name the interpreter first in `command`"
        )
    elif number == errno.ENOEXEC:
        reason = f"{program} is a program for another kind of machine or system"
    elif number == errno.ENOENT and head.startswith(b"#!"):
        interpreter = head[2:].split(b"\n", 1)[0].strip().decode("utf-8", "replace")
        reason = f"the interpreter in the first line of {program}, {interpreter!r}, does not exist" + (
            " (its lines end in CR LF: convert them)" if b"\r\n" in head else ""
        )
    elif number == errno.ENOENT and not os.path.isdir(cwd):
        return never_started("cwd-missing", f"{who(server)} was not started: {cwd} does not exist.", server)
    elif number == errno.ENOENT and head:
        reason = f"{program} needs a loader that is not installed: it was built for another system"
    elif number == errno.ENOENT:
        return never_started("command-not-found", f"{who(server)} was not started: {program} is gone.", server)
    elif number in (errno.EACCES, errno.EPERM):
        reason = f"the system does not allow {program} to be run (its permissions, or a file system mounted noexec)"
    elif number == errno.E2BIG:
        reason = "its arguments and environment are larger than the system allows"
    elif number in (errno.EAGAIN, errno.ENOMEM):
        reason = "the system is out of processes or memory. Try again when there is room"
    elif number in (errno.EMFILE, errno.ENFILE):
        reason = "too many files are open. Raise the limit (`ulimit -n`) or run fewer servers"
    elif number == errno.ETXTBSY:
        reason = f"{program} is being written at this moment. Try again"
    else:
        reason = (os.strerror(number) if number else str(error)) + f" ({program})"
    return never_started("spawn-failed", f"{who(server)} was not started: {reason}.", server)


def _first_bytes(program: str) -> bytes:
    try:
        with open(program, "rb") as file:
            return file.read(256)
    except OSError:
        return b""
