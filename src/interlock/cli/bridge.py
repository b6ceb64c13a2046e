"""`interlock bridge`: one remote server over stdio, for a host that starts a command.

The gateway with one server and no renaming: answers the host at once, also before anybody has signed in.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from interlock.cli.bridge_config import BridgeError, add_server_flags, gateway_from, remarks
from interlock.cli.common import home_from
from interlock.cli.early import greet
from interlock.cli.exit_codes import USAGE
from interlock.cli.output import complain
from interlock.cli.starting import run_loop
from interlock.cli.stdio_serving import serve_alone

if TYPE_CHECKING:
    from interlock.serve.authorizing import SignIn
    from interlock.upstream.oauth.timing import Timing

TIMES = {"login_seconds": 600.0, "snooze_seconds": 600.0, "grace_seconds": 120.0}
"""How long a sign-in may be open, is not offered again when it was not finished, and a refusal is not yet believed."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "bridge", help="serve one remote server over stdio, with one sign-in for the machine", description=__doc__
    )
    add_server_flags(parser)
    parser.add_argument(
        "--host", default=None, metavar="NAME", help="the AI host that starts this, such as claude-code or codex"
    )
    parser.add_argument(
        "--no-browser",
        action="store_true",
        help="open no browser: print the address of a sign-in (INTERLOCK_NO_BROWSER)",
    )
    for name, default in TIMES.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=float, default=default, metavar="S", help=argparse.SUPPRESS
        )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        gateway = gateway_from(args, os.environ)
    except BridgeError as error:
        complain(str(error))
        return USAGE
    for remark in remarks(args, os.environ):
        complain(remark)
    if sys.stdin.isatty():
        complain(
            "this speaks MCP on standard input and output, for a host that starts it; `interlock setup HOST URL` connects one"
        )
    # Only now: a host must not be greeted by a process that is about to end for a wrong flag.
    greeting = greet(args.words)
    sign_in: SignIn = "address" if args.no_browser else "browser"
    return run_loop(serve_alone(gateway, home_from(args), args.host, greeting, sign_in=sign_in, timing=_timing(args)))


def _timing(args: argparse.Namespace) -> Timing | None:
    """None where nothing was changed: the defaults need no import."""
    given = {name: getattr(args, name) for name in TIMES}
    if given == TIMES:
        return None
    from interlock.upstream.oauth.timing import Timing

    return Timing(**given)
