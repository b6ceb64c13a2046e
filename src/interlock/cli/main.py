"""The `interlock` command: parses what was typed and hands over. Each command's module is imported only when it is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    import argparse

    from interlock.cli.early import Greeting

COMMANDS: Final[dict[str, str]] = {
    "up": "serve all servers behind one HTTP endpoint",
    "connect": "serve all servers over stdio, for a host that starts a command",
    "bridge": "serve one remote server over stdio, with one sign-in for the machine",
    "check": "say what the manifests declare, and what is wrong with them",
    "schema": "print the manifest's JSON Schema, for editors",
    "trust": "show what a manifest would run, and let it",
    "tools": "list all tools with their names and context cost",
    "call": "call one tool",
    "trace": "show the route that calls took",
    "inventory": "every MCP server in every host's files on this machine, and what becomes of it",
    "adopt": "put Interlock in front of everything that the hosts have now",
    "import": "make a manifest from the hosts' files",
    "generate": "write the manifest's servers into the hosts' files",
    "diff": "show where the hosts' files differ from the manifest",
    "restore": "undo what adopt, generate or setup wrote",
    "hosts": "what is known of each AI host, and how",
    "setup": "connect an AI host to a remote server",
    "login": "sign in to a remote server, once for this machine",
    "logout": "revoke a grant and forget it",
    "grants": "list this machine's grants and open sign-ins",
    "doctor": "find out what is wrong on the way to a server",
    "update": "fetch a newer Interlock, and say what to do next",
    "credential": "print or revoke a host's credential",
    "demo": "run the demonstration on real servers",
}


_MODULES: Final = {"import": "import_"}
HOME_ONLY: Final = frozenset({"bridge"})
"""Commands that read no manifest."""


def parser(only: str | None = None) -> argparse.ArgumentParser:
    """The whole command line; `only` adds just one command's flags, which keeps start-up light."""
    import argparse
    import importlib

    from interlock.cli.common import add_common, add_home

    class Formatter(argparse.HelpFormatter):
        """argparse does not count the indent of commands: without room for it, the longest name gets a line of its own."""

        def __init__(self, prog: str) -> None:
            super().__init__(prog)
            self._action_max_length = 14

    root = argparse.ArgumentParser(
        prog="interlock",
        formatter_class=Formatter,
        description="One place between AI coding hosts and the MCP servers they use.",
        epilog="Each command has its own --help. Exit codes: docs/exit-codes.md.",
    )
    root.add_argument("--version", action="store_true", help="print the version and a hash of the installed files")
    commands = root.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, text in COMMANDS.items():
        if only is None or only == name:
            importlib.import_module(f"interlock.cli.{_MODULES.get(name, name)}").add(commands)
            (add_home if name in HOME_ONLY else add_common)(commands.choices[name])
        else:
            commands.add_parser(name, help=text)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code. Raises SystemExit where argparse ends it."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a server's text may hold what this terminal cannot show
    try:
        try:
            return _run(list(sys.argv[1:] if argv is None else argv))
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`interlock tools | head`): not a fault worth a traceback, now or at the exit.
        _drop_output()
        return 0
    except OSError as error:
        # A full disk, a home that cannot be read: the system's own words say more than a traceback.
        what = f"{error.filename}: " if error.filename is not None else ""
        sys.stderr.write(f"interlock: cannot go on: {what}{error.strerror or error}\n")
        _drop_output()
        return 8


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["--version"]:
        from interlock.build import build

        print(build())
        return 0
    greeting: Greeting | None = None
    if arguments[:1] in (["connect"], ["bridge"], ["up"]):
        # Before a byte of standard input is read: the newest Interlock of this machine may run in our place.
        from interlock.cli.early import home_of
        from interlock.install.align import align

        align(home_of(arguments), arguments, os.environ)
    if arguments[:1] == ["connect"]:
        from interlock.cli.early import greet

        greeting = greet(arguments)
    named = arguments[0] if arguments and arguments[0] in COMMANDS else None
    root = parser(named if named is not None else "check")
    args, unknown = root.parse_known_args(arguments)
    if unknown:
        _of(root, named).error(f"unrecognized arguments: {' '.join(unknown)}")
    if args.command is None:
        root.print_help()
        return 2
    args.greeting = greeting
    args.words = arguments
    code: int = args.run(args)
    return code


def _of(root: argparse.ArgumentParser, named: str | None) -> argparse.ArgumentParser:
    """The command's own parser, whose usage helps where a flag of it is mistyped."""
    import argparse

    for action in root._actions:
        if named is not None and isinstance(action, argparse._SubParsersAction):
            return cast("argparse.ArgumentParser", action.choices[named])
    return root


def _drop_output() -> None:
    """What is still to be written goes nowhere, so that the interpreter's own flush at the end has nothing to complain of."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _open_standard_streams() -> None:
    """Where a standard stream is closed, the next file or socket would take its number, and strangers would write to it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115


if __name__ == "__main__":
    raise SystemExit(main())
