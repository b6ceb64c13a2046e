"""`interlock credential`: the secret that one host sends to `interlock up`."""

from __future__ import annotations

import argparse

from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, OK, USAGE
from interlock.cli.output import complain, print_json


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "credential", help="print or revoke the credential of a host",
        description=__doc__ + " Printed to standard output, for `export INTERLOCK_TOKEN=\"$(interlock credential HOST)\"`.",
    )  # fmt: skip
    parser.add_argument("host", nargs="?", metavar="HOST", help="the host's name, such as claude-code or codex")
    parser.add_argument("--revoke", action="store_true", help="make the host's credential useless")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.serve.credentials import CredentialError, Credentials

    try:
        credentials = Credentials(home_from(args))
        if args.host is None:
            names = credentials.names()
            if args.json:
                print_json(names)
            else:
                print("\n".join(names) if names else "no credentials yet: `interlock credential HOST` makes one")
            return OK
        if args.revoke:
            if not credentials.revoke(args.host):
                complain(f"{args.host} has no credential")
                return USAGE
            complain(f"revoked: {args.host} can no longer connect")
            return OK
        print(credentials.token(args.host))
    except ValueError as error:
        complain(str(error))
        return USAGE
    except CredentialError as error:
        complain(str(error))
        return CONFIGURATION
    return OK
