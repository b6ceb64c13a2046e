"""`interlock login`: sign in to a remote server once, for every process of this machine."""

from __future__ import annotations

import argparse
import os

from interlock.cli import remote
from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, OK, USAGE
from interlock.cli.output import complain, print_json
from interlock.cli.starting import run_loop

SECONDS = 600.0


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "login", help="sign in to a remote server, once for this machine",
        description=__doc__ + " Prints the address to open, opens a browser where there is one, and waits. At a terminal, "
        "the address that the browser ended at can be pasted instead. Ctrl-C stops waiting, not the login.",
        epilog="Exit code 0 where there is a grant, 6 where the login is not finished.",
    )  # fmt: skip
    remote.add_flags(parser, "which one (default: all servers of the manifests with `auth: oauth`)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address (INTERLOCK_NO_BROWSER)")
    parser.add_argument("--device", action="store_true", help="with a code to enter at a browser anywhere (RFC 8628)")
    parser.add_argument(
        "--paste",
        metavar="URL",
        default=None,
        help="finish an open login with the address that the browser ended at; -: read it",
    )
    parser.add_argument("--again", action="store_true", help="log in although there is a good grant")
    parser.add_argument(
        "--timeout", type=float, default=SECONDS, metavar="S", help=f"stop waiting after this (default: {SECONDS:g})"
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
        complain(
            "no server of the manifests has `auth: oauth`. Name a URL: `interlock login https://mcp.example.com/mcp`."
        )
        return USAGE
    if args.paste is not None and len(targets) > 1:
        complain(f"--paste finishes one login; name one of {', '.join(target.name for target in targets)}.")
        return USAGE
    for target in targets:
        reason = remote.runnable(args, target.name)
        if reason is not None:
            complain(f"{target.name} may not run, so there is no login for it: {reason}")
            return CONFIGURATION
        if target.transport.oauth is None:
            complain(_no_login(target))
            return USAGE
    try:
        return run_loop(_log_in(args, targets))
    except KeyboardInterrupt:
        complain("stopped waiting. The login stays open: `interlock login`, or a call that needs it, goes on with it.")
        raise


def _no_login(target: remote.Target) -> str:
    where = f" ({target.declared})" if target.declared is not None else ""
    if target.transport.token is not None:
        return f"{target.name}{where} uses a personal access token; there is no login. `interlock doctor bridge` tries the token."
    return f"{target.name}{where} has no `auth: oauth`, so there is no login."


async def _log_in(args: argparse.Namespace, targets: list[remote.Target]) -> int:
    from interlock.build import build
    from interlock.cli.signing_in import Outcome, SignIn
    from interlock.upstream.oauth.browser import open_browser
    from interlock.upstream.oauth.shared import shared_for

    shared = shared_for(
        home_from(args), os.environ, build=build, user_agent=f"interlock/{build()}", announce=complain,
        open_browser=None if args.no_browser else open_browser,
    )  # fmt: skip
    outcomes: list[Outcome] = []
    try:
        for target in targets:
            sign_in = SignIn(target, shared, device=args.device, again=args.again, seconds=args.timeout)
            outcomes.append(await (sign_in.run() if args.paste is None else sign_in.paste(args.paste)))
            if not args.json:
                print("\n".join(outcomes[-1].lines), flush=True)
    finally:
        await shared.close()
    if args.json:
        print_json([outcome.as_dict() for outcome in outcomes])
    return max((outcome.code for outcome in outcomes), default=OK)
