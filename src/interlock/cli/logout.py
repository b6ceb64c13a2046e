"""`interlock logout`: give a grant back. The authorization server is told where it can revoke, then the grant is forgotten."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from interlock.cli import remote
from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, OK, TOOL_ERROR, USAGE
from interlock.cli.output import complain, print_json
from interlock.cli.starting import run_loop

if TYPE_CHECKING:
    from interlock.doctor.kept import Kept


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "logout", help="revoke a grant and forget it", description=__doc__,
        epilog="Exit code 0 where nothing is left of it, 1 where the server could not be told.",
    )  # fmt: skip
    remote.add_flags(parser, "which one")
    parser.add_argument("--all", action="store_true", help="every grant of this machine")
    parser.add_argument("--local", action="store_true", help="only forget it here; tell the server nothing")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if (args.server is None) is not args.all:
        complain(
            "name a server of the manifests or a URL, or give --all alone. `interlock grants` lists what there is."
        )
        return USAGE
    try:
        kept = _chosen(args)
    except remote.NoTarget as error:
        complain(str(error))
        return USAGE
    if not kept:
        free = _let_go(args)
        if args.json:
            print_json([])
        else:
            print("There is no grant for it on this machine." if not args.all else "There is no grant on this machine.")
            if free:
                print("The configured client is no longer held to the authorization server that it was used with.")
        return OK
    return run_loop(_log_out(args, kept))


def _chosen(args: argparse.Namespace) -> list[Kept]:
    """What is filed for the server: by its URL, and by what discovery found for that URL. Raises NoTarget."""
    from interlock.doctor import kept
    from interlock.upstream.oauth.client_of import preset_of
    from interlock.upstream.oauth.grant_ids import filed_under
    from interlock.upstream.oauth.grant_store import GrantStore

    everything = kept.look(home_from(args))
    if args.all:
        return everything
    target = remote.target_of(args)
    id = None
    if target.transport.oauth is not None:
        settings = target.transport.oauth
        found = GrantStore(home_from(args)).recalled(target.url, settings.resource)
        id = found and filed_under(found, preset_of(settings, os.environ))
    return [each for each in everything if each.id == id or each.server_url == target.url]


def _let_go(args: argparse.Namespace) -> bool:
    """Whether a configured client was held to an authorization server, and may be used with another from now on."""
    from interlock.upstream.oauth.grant_store import GrantStore

    try:
        return GrantStore(home_from(args)).unpin(None if args.all else remote.target_of(args).url)
    except OSError as error:
        complain(str(error))
        return False


async def _log_out(args: argparse.Namespace, chosen: list[Kept]) -> int:
    from interlock.build import build
    from interlock.cli.signing_out import SignOut
    from interlock.upstream.oauth.fetch import Fetcher
    from interlock.upstream.oauth.grant_log import GrantLog
    from interlock.upstream.oauth.grant_store import Busy, GrantStore

    home = home_from(args)
    log = GrantLog(home, build)
    fetch = Fetcher(user_agent=f"interlock/{build()}", environ=os.environ)
    sign_out = SignOut(GrantStore(home, log), fetch, log, tell=not args.local)
    said: list[dict[str, object]] = []
    code = OK
    try:
        for each in chosen:
            try:
                outcome = await sign_out.run(each.id)
            except (Busy, OSError) as error:
                reason = "another process is using it" if isinstance(error, Busy) else str(error)
                complain(f"{each.server_url or each.id}: not forgotten: {reason}")
                code = CONFIGURATION
                continue
            if outcome.left:
                code = max(code, TOOL_ERROR)
            said.append({"server": each.server_url, "id": each.id, "revoked": outcome.revoked, "message": outcome.text})
            if not args.json:
                print(f"{each.server_url or each.id}: {outcome.text}")
    finally:
        await fetch.close()
    if code != CONFIGURATION:
        _let_go(args)  # after a person has signed out, the next sign-in may be at another authorization server
    if args.json:
        print_json(said)
    return code
