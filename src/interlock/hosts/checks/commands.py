"""Whether the program of an entry can be started at all: by this host, with the PATH that it has, on this system."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence

from interlock.hosts.checks.codes import found
from interlock.hosts.checks.launching import Launch, launch, name_of
from interlock.hosts.checks.literals import masked
from interlock.hosts.checks.references import references
from interlock.hosts.checks.subject import Subject, texts
from interlock.hosts.declaration import Problem, Spot
from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine
from interlock.hosts.platforms import is_shim

GUI_PATH = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""What a program started from the desktop has on macOS, and at least on Linux."""
MAYBE = ("/usr/local/bin", "/opt/homebrew/bin", "/snap/bin")
"""Some desktops and some hosts add them: no complaint."""
_OF_WINDOWS = re.compile(r"(?:\A|(?<==))(?:[A-Za-z]:[\\/]|\\\\[A-Za-z0-9])")
_OF_UNIX = re.compile(
    r"(?:\A|(?<==))/(?:home|usr|Users|mnt/[a-z]|opt|tmp|etc|var|root|bin|Applications|Library)(?:/|\Z)"
)


def check(subject: Subject) -> Iterator[Problem]:
    entry = subject.runs
    if entry is None or not entry.command:
        return
    start = launch(entry.command)
    if start is None:
        return
    yield from _program(subject, entry, start)
    yield from _shim(subject, entry, start)
    yield from _folder(subject, entry)
    if not start.elsewhere and not start.shell:
        yield from _foreign(subject, entry)


def _program(subject: Subject, entry: Entry, start: Launch) -> Iterator[Problem]:
    machine, program = subject.machine, entry.command[0]
    if not program.strip():
        yield found("command-not-found", "The command is empty.", field=subject.word(0)[0], spot=subject.word(0)[1])
        return
    # What is behind `cmd /c` or `env` has to be there as much as they have.
    field, spot = subject.word(start.offset)
    if start.offset and not (start.through_cmd and machine.platform != "windows"):
        program = start.program
    else:
        field, spot = subject.word(0)
    if program.startswith("~") or list(references(program)) or _elsewhere(machine, program):
        return  # other checks say so
    if not _is_path(machine, program):
        yield from _by_name(subject, entry, program, field, spot)
        return
    if not _absolute(machine, program):
        yield from _relative(subject, entry, program, field, spot)
        return
    state = _state(machine, program)
    if state:
        yield found(
            "command-not-found", f"`{_shown(program)}` {state}.", why=_WHY_NOT.get(state, ""), todo=_todo(program, state),
            field=field, spot=spot,
        )  # fmt: skip


_WHY_NOT = {
    "is a folder": "A folder cannot be started.", "may not be executed": "The system does not start a file without that right.",
}  # fmt: skip


def _todo(program: str, state: str) -> str:
    if state == "is a folder":
        return f"Name a program in `command`: `{_shown(program)}` is a folder."
    if state == "may not be executed":
        return f"`chmod +x {shlex.quote(_shown(program))}`, or name the interpreter first in `command`."
    return ""


def _by_name(subject: Subject, entry: Entry, program: str, field: str, spot: Spot) -> Iterator[Problem]:

    machine = subject.machine
    folders = _path(machine)
    own = entry.env.get("PATH", "")
    if own and not list(references(own)):
        folders = [*own.split(_separator(machine)), *folders]
    elif own:
        return  # nobody can tell what it becomes
    if not folders:
        return
    where = which(machine, program, folders)
    if where is None:
        if machine.platform != "windows" and which(machine, program, [*GUI_PATH, *MAYBE]) is not None:
            return
        yield found(
            "command-not-found", f"`{_shown(program)}` is in no folder of the PATH.",
            todo=_install(program), field=field, spot=spot,
        )  # fmt: skip
        return
    # Windows gives the desktop the same PATH as a terminal.
    short = subject.adapter.gui and machine.platform != "windows" and not own
    if short and which(machine, program, [*GUI_PATH, *MAYBE]) is None:
        yield found(
            "command-not-on-gui-path", f"`{_shown(program)}` is in {machine.paths.dirname(where)} only.",
            todo=f"Write `{where}`.", field=field, spot=spot,
        )  # fmt: skip


def _relative(subject: Subject, entry: Entry, program: str, field: str, spot: Spot) -> Iterator[Problem]:

    machine = subject.machine
    base = machine.folder
    if entry.cwd and not list(references(entry.cwd)):
        base = machine.join(machine.folder, entry.cwd)
    elif entry.cwd:
        return
    place = machine.paths.normpath(machine.join(base, program))
    if _state(machine, place):
        yield found("command-not-found", f"`{_shown(program)}` is not there, seen from {base}.", field=field, spot=spot)
    elif subject.declaration.scope not in ("project", "local") and not (entry.cwd and machine.paths.isabs(entry.cwd)):
        yield found(
            "command-relative",
            f"`{_shown(program)}` is found from {base} only.",
            todo=f"Write `{_shown(place)}`.",
            field=field,
            spot=spot,
        )


def _shim(subject: Subject, entry: Entry, start: Launch) -> Iterator[Problem]:
    if subject.machine.platform != "windows" or start.through_cmd or start.shell or not is_shim(entry.command[0]):
        return
    field, spot = subject.word(0)
    yield found(
        "shim-without-cmd", f"`{_shown(entry.command[0])}` is a batch file on Windows.",
        todo=f"Write `cmd` as the command, and `/c`, `{_shown(entry.command[0])}` before its arguments.", field=field, spot=spot,
    )  # fmt: skip


def _folder(subject: Subject, entry: Entry) -> Iterator[Problem]:
    machine = subject.machine
    if not entry.cwd or entry.cwd.startswith("~") or list(references(entry.cwd)) or not machine.paths.isabs(entry.cwd):
        return
    if not os.path.isdir(machine.real(entry.cwd)) and not _elsewhere(machine, entry.cwd):
        field, spot = subject.cwd()
        yield found("cwd-missing", f"{entry.cwd} is not there.", field=field, spot=spot)


def _foreign(subject: Subject, entry: Entry) -> Iterator[Problem]:
    machine = subject.machine
    program = entry.command[0]
    through = machine.platform != "windows" and program.lower().endswith(".exe") and not _elsewhere(machine, program)
    if through or name_of(program) in ("cmd", "powershell", "pwsh", "wsl"):
        return  # a program of Windows, started from a WSL, takes paths of Windows
    for kind, text, field, spot in texts(subject, entry):
        if kind not in ("command", "args", "env", "cwd"):
            continue
        if machine.platform == "windows":
            foreign = bool(_OF_UNIX.search(text))
            whose = "another system"
        else:
            foreign, whose = bool(_OF_WINDOWS.search(text)), "Windows"
            other = re.search(r"(?:\A|(?<==))(/Users/|/home/).*", text)
            if not foreign and other is not None:
                home = "/Users/" if machine.platform == "macos" else "/home/"
                foreign = other[1] != home and not os.path.lexists(machine.real(other[0]))
                whose = "Linux" if machine.platform == "macos" else "macOS"
        if foreign:
            where = (
                "Windows" if machine.platform == "windows" else {"macos": "macOS", "linux": "Linux"}[machine.platform]
            )
            yield found(
                "foreign-path",
                f"`{field}` holds a path of {whose}, and this is {where}.",
                field=field,
                spot=spot,
                severity="problem" if kind == "command" else None,  # an argument may be meant for another machine
            )


def which(machine: Machine, program: str, folders: Sequence[str]) -> str | None:
    """The logical path under which a bare name is found in these folders."""
    endings = [""]
    if machine.platform == "windows":
        endings = [*machine.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD;.PS1").lower().split(";"), ""]
    for folder in folders:
        if not folder:
            continue
        for ending in endings:
            path = machine.join(folder, f"{program}{ending}")
            if _state(machine, path) == "":
                return path
    return None


def _state(machine: Machine, path: str) -> str:
    """Empty where it can be started, else why not."""
    real = machine.real(path)
    if not os.path.exists(real):
        return "is a link that leads nowhere" if os.path.lexists(real) else "is not there"
    if os.path.isdir(real):
        return "is a folder"
    if machine.platform != "windows" and os.name == "posix" and not os.access(real, os.X_OK):
        return "may not be executed"
    return ""


def _path(machine: Machine) -> list[str]:
    value = machine.environ.get("PATH") or machine.environ.get("Path") or ""
    return [folder for folder in value.split(_separator(machine)) if folder]


def _separator(machine: Machine) -> str:
    return ";" if machine.platform == "windows" else ":"


def _is_path(machine: Machine, program: str) -> bool:
    return "/" in program or (machine.platform == "windows" and "\\" in program)


def _absolute(machine: Machine, program: str) -> bool:
    return bool(machine.paths.isabs(program))


def _elsewhere(machine: Machine, path: str) -> bool:
    """A path of another system, which `foreign-path` is about."""
    return bool((_OF_UNIX if machine.platform == "windows" else _OF_WINDOWS).match(path))


_INSTALL = {
    "npx": "Install Node.js, or write the full path of `npx`.",
    "node": "Install Node.js, or write the full path of `node`.",
    "uvx": "Install uv (docs.astral.sh/uv), or write the full path of `uvx`.",
    "uv": "Install uv (docs.astral.sh/uv), or write the full path of `uv`.",
    "docker": "Install Docker, or start it so that `docker` is on the PATH.",
    "python": "Write `python3`, or the full path.",
    "cmd": "Take `cmd` and `/c` out: they are for Windows only, and this is another system.",
    "bunx": "Install Bun, or write the full path of `bunx`.",
}


def _install(program: str) -> str:
    return _INSTALL.get(name_of(program), f"Install it, or write the full path of `{_shown(program)}`.")


def _shown(program: str) -> str:
    """People write a whole command line here, with a token in it."""
    return masked((program,))[0]
