"""From a command in the manifest to what CreateProcess gets, by the rules of Windows. Pure, so tested anywhere.

Most servers are started through `npx` or `uvx`, and the first is a batch file. Windows runs those through cmd.exe,
which reads its command line by rules of its own: quotes toggle, `%NAME%` is replaced even inside of them, and a
program's arguments may become commands. So arguments of batch files are quoted here, for both parsers, or refused.
"""

from __future__ import annotations

import ntpath
import re
from collections.abc import Callable, Mapping

from interlock.manifest.config import StdioTransport
from interlock.upstream.command import Command, hint, never_started, who
from interlock.upstream.environment import search_path

_DEFAULT_PATHEXT = ".COM;.EXE;.BAT;.CMD"
_PROGRAMS = (".exe", ".com")
_BATCH = (".bat", ".cmd")
# What cmd.exe and every C runtime take as it stands, outside of quotes.
_PLAIN = re.compile(r"[A-Za-z0-9_./\\:@+-]+")


def resolve(
    transport: StdioTransport,
    environment: Mapping[str, str],
    server: str | None,
    is_file: Callable[[str], bool],
) -> Command:
    """Find the command. Raises Fault `command-not-found`, or `spawn-failed` where Windows cannot run what was found."""
    command, *arguments = transport.command
    extensions = _extensions(environment)
    directories = (
        [""]
        if ntpath.splitdrive(command)[0] or "\\" in command or "/" in command
        else search_path(environment, windows=True)
    )
    for directory in directories:
        base = ntpath.normpath(ntpath.join(str(transport.cwd), directory, command))
        for path in _candidates(base, extensions):
            if is_file(path):
                return _runnable(path, arguments, server)
    searched = ";".join(directories)
    where = f"in none of the directories of PATH. Searched: {searched}" if directories != [""] else "not there"
    raise never_started(
        "command-not-found",
        f"{who(server)} was not started: the command {command!r}, with any of the endings {' '.join(extensions)}, is "
        f"{where}. Install it{hint(command)}, or write its full path in the manifest.",
        server,
    )


def _extensions(environment: Mapping[str, str]) -> list[str]:
    value = next((value for name, value in environment.items() if name.upper() == "PATHEXT"), _DEFAULT_PATHEXT)
    return [entry.lower() for entry in value.split(";") if entry.startswith(".")]


def _candidates(base: str, extensions: list[str]) -> list[str]:
    """A name with an ending that can be run stands for itself first. One without never does: beside `npx.cmd` lies an
    `npx` that is a shell script."""
    with_endings = [base + extension for extension in extensions]
    own = ntpath.splitext(base)[1].lower()
    return [base, *with_endings] if own in (*extensions, *_PROGRAMS, *_BATCH, ".ps1") else with_endings


def _runnable(path: str, arguments: list[str], server: str | None) -> Command:
    ending = ntpath.splitext(path)[1].lower()
    if ending in _PROGRAMS:
        return Command([path, *arguments])
    if ending in _BATCH:
        for text in (path, *arguments):
            if re.search(r"[\0\r\n]", text):
                raise never_started(
                    "spawn-failed",
                    f"{who(server)} was not started: {path} is a batch file, and an argument with a line break cannot "
                    "be passed to one. Name the program that it starts instead.",
                    server,
                )
        return Command([path, *arguments], batch_line(path, arguments))
    raise never_started(
        "spawn-failed",
        f"{who(server)} was not started: Windows does not run {path} by itself. Name its interpreter first in "
        "`command` (for example python, node, or powershell -File).",
        server,
    )


def batch_line(path: str, arguments: list[str]) -> str:
    """The text for `cmd.exe /c "TEXT"` that runs a batch file with exactly these arguments.

    Everything but plain words is quoted; inside of quotes cmd.exe takes `& | < > ^ ( )` as they are, in its own pass
    and in the one over the batch file's `%*`. A quote is doubled, which leaves cmd.exe's idea of being inside unchanged
    and is one quote to the C runtime.
    """
    return " ".join([_quoted(path), *(_quoted(argument) for argument in arguments)])


def _quoted(text: str) -> str:
    if _PLAIN.fullmatch(text) and not text.endswith("\\"):
        return text
    # Backslashes before a quote, also the closing one, are escapes to the C runtime: doubled, they are themselves.
    text = re.sub(r'(\\*)("|$)', lambda match: match[1] * 2 + ('""' if match[2] else ""), text)
    # `%cd:~,%` is a substring of no length. It stands between the percent sign and what could be a variable's name.
    return '"' + text.replace("%", "%%cd:~,%") + '"'
