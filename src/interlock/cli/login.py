"""`interlock login`: sign in to a remote server once, for every process of this machine."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from interlock.cli import remote
from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, OK, USAGE
from interlock.cli.output import complain, print_json
from interlock.cli.starting import run_loop

if TYPE_CHECKING:
    from interlock.cli.signing_in import Outcome, SignIn

SECONDS = 600.0


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "login", help="sign in to a remote server, once for this machine",
        description=__doc__ + " Prints the address to open, opens a browser where there is one, and waits. At a terminal, "
        "the address that the browser ended at can be pasted instead. After Ctrl-C another `interlock login` goes on with the "
        "same address. With a personal access token it only tries whether the server takes it.",
        epilog="Exit code 0 where there is a grant or the token is taken, 6 where the sign-in is not finished.",
    )  # fmt: skip
    remote.add_flags(parser, "which one (default: all servers of the manifests with `auth: oauth`)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address (INTERLOCK_NO_BROWSER)")
    parser.add_argument("--device", action="store_true", help="with a code to enter at a browser anywhere (RFC 8628)")
    parser.add_argument(
        "--paste",
        metavar="URL",
        default=None,
        help="finish an open sign-in with the address that the browser ended at; -: read it",
    )
    parser.add_argument("--again", action="store_true", help="sign in although there is a good grant")
    parser.add_argument(
        "--timeout",
        type=remote.seconds,
        default=SECONDS,
        metavar="S",
        help=f"stop waiting after this (default: {SECONDS:g})",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if not 0 <= args.timeout <= 86_400:
        complain("--timeout is a number of seconds between 0 and 86400.")
        return USAGE
    try:
        targets = [remote.target_of(args)] if args.server is not None else remote.with_oauth(args)
    except remote.NoTarget as error:
        complain(str(error))
        return USAGE
    if not targets:
        waiting = remote.blocked(args)
        if waiting:
            listed = "; ".join(f"{name}: {reason}" for name, reason in waiting.items())
            complain(f"no server with `auth: oauth` may run here yet; `interlock trust` shows what to allow. {listed}")
            return CONFIGURATION
        complain(
            "no server of the manifests has `auth: oauth`. Name a URL: `interlock login https://mcp.example.com/mcp`."
        )
        return USAGE
    if args.paste is not None and len(targets) > 1:
        complain(f"--paste finishes one sign-in; name one of {', '.join(target.name for target in targets)}.")
        return USAGE
    for target in targets:
        reason = remote.runnable(args, target.name)
        if reason is not None:
            complain(f"{target.name} may not run, so nobody signs in to it: {reason}")
            return CONFIGURATION
        if target.transport.token is not None:
            if args.paste is not None or args.device or args.again:
                complain(f"{target.name} uses a personal access token, so --paste, --device and --again have no use.")
                return USAGE
        elif target.transport.oauth is None:
            where = f" ({target.declared})" if target.declared is not None else ""
            complain(f"{target.name}{where} has no `auth: oauth`, so nobody signs in to it.")
            return USAGE
    begun: list[SignIn] = []
    try:
        return run_loop(_log_in(args, targets, begun))
    except KeyboardInterrupt:
        complain(begun[-1].left_open(same_flags=remote.has_settings(args)) if begun else "stopped.")
        raise


async def _log_in(args: argparse.Namespace, targets: list[remote.Target], begun: list[SignIn]) -> int:
    from interlock.build import build
    from interlock.cli.signing_in import SignIn
    from interlock.cli.trying_token import try_token
    from interlock.upstream.oauth.browser import open_browser
    from interlock.upstream.oauth.shared import shared_for

    shared = shared_for(
        home_from(args), os.environ, build=build, user_agent=f"interlock/{build()}", announce=complain,
        open_browser=None if args.no_browser else open_browser,
    )  # fmt: skip
    outcomes: list[Outcome] = []
    try:
        for target in targets:
            if target.transport.token is not None:
                outcomes.append(await try_token(target, os.environ))
            else:
                sign_in = SignIn(target, shared, device=args.device, again=args.again, seconds=args.timeout)
                begun.append(sign_in)
                outcomes.append(await (sign_in.run() if args.paste is None else sign_in.paste(args.paste)))
            if not args.json:
                print("\n".join(outcomes[-1].lines), flush=True)
    finally:
        await shared.close()
    if args.json:
        print_json([outcome.as_dict() for outcome in outcomes])
    return max((outcome.code for outcome in outcomes), default=OK)
