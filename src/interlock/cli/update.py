"""`interlock update`: lays a newer Interlock in its home, or goes back to the one before."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from interlock import __version__
from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, NEVER_REACHED, OK, USAGE
from interlock.cli.output import complain, print_json

if TYPE_CHECKING:
    from interlock.install.laying import Laid


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "update",
        help="lay a newer Interlock for all hosts, or go back",
        description=__doc__ + " For an Interlock that was installed from a package index: "
        "pip's own configuration says which. Running hosts keep the old one until they restart.",
    )  # fmt: skip
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--version", dest="wanted", metavar="V", help="lay exactly this release, also an older one")
    what.add_argument("--back", action="store_true", help="go back to the copy that ran before")
    what.add_argument("--lay", action="store_true", help="lay the Interlock that runs this command; uses no network")
    what.add_argument("--look", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only-newer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.install.closure import NotCopyable
    from interlock.install.laying import LayingFailed
    from interlock.install.pip import PipFailed
    from interlock.install.record import Foreign
    from interlock.install.release import NotOurs

    home = home_from(args)
    try:
        if args.look:
            return _look(home)
        if args.lay:
            return _lay(home, args)
        if args.back:
            return _back(home, args)
        return _fetch(home, args)
    except PipFailed as error:
        complain(f"{error}. Nothing was changed.")
        return NEVER_REACHED
    except NotOurs as error:
        complain(f"refused: {error}. Nothing of it was run, and nothing was changed.")
        return CONFIGURATION
    except (LayingFailed, NotCopyable, Foreign) as error:
        complain(f"{error}. Nothing was changed.")
        return CONFIGURATION


def _look(home: Path) -> int:
    from interlock.install.look import look, wanted

    if wanted(home, os.environ):
        look(home, os.environ)
    return OK


def _lay(home: Path, args: argparse.Namespace) -> int:
    from interlock.install.laying import lay_self

    laid = lay_self(home, only_newer=args.only_newer)
    if not args.only_newer:
        _unhold(home)
    _tell(home, laid, args)
    return OK


def _back(home: Path, args: argparse.Namespace) -> int:
    from interlock.install import prune, settings
    from interlock.install.laying import switch
    from interlock.install.places import Places, read_current, version_of

    places = Places(home)
    current = read_current(places)
    if current is None:
        complain(f"there is no home copy in {places.app}, so there is nothing to go back from")
        return CONFIGURATION
    there = prune.copies(places)
    # The one laid before the current one; after having gone back already, the next one further back.
    names = [copy.name for copy in there]
    older = names[names.index(current.name) + 1 :] if current.name in names else names
    if not older:
        complain(f"{current.name} is the only copy in {places.app}; `interlock update --version V` lays another")
        return CONFIGURATION
    if not _agreed(f"Go back from {current.name} to {older[0]}?", args):
        return USAGE
    laid = switch(home, older[0])
    settings.keep(home, settings.read(home)._replace(held=version_of(current.name)))
    _tell(home, laid, args)
    return OK


def _fetch(home: Path, args: argparse.Namespace) -> int:
    import time

    from interlock.install import look, origin, pip
    from interlock.install.laying import lay_built
    from interlock.install.places import Places, read_current, version_of
    from interlock.install.version import key, newer

    places = Places(home)
    current = read_current(places)
    running = version_of(current.name) if current is not None else None
    if args.wanted is not None and key(args.wanted) is None:
        complain(f"{args.wanted!r} is not a version; write one like {__version__}")
        return USAGE
    came_from = origin.here()
    if not came_from.from_index():
        complain(f"{came_from.no_updates()}. Nothing was changed.")
        return CONFIGURATION
    found = pip.find(home, os.environ)
    wanted: str | None = args.wanted
    if wanted is None:
        wanted = found.newest(os.environ)
        if wanted is None:
            raise pip.PipFailed(
                "pip finds no release of Interlock for this Python where it looks, or cannot reach that place"
            )
        if os.path.isdir(places.home):
            look.keep(places, look.Seen(time.time(), wanted))
        if running is not None and not newer(wanted, running):
            return _nothing_to_do(args, running, wanted)
    if not _agreed(f"Lay Interlock {wanted} in {places.app}" + (f", in place of {running}?" if running else "?"), args):
        return USAGE
    version = wanted
    laid = lay_built(home, found.made_for, lambda folder: found.install(version, folder, os.environ), version)
    _unhold(home)
    _tell(home, laid, args)
    return OK


def _nothing_to_do(args: argparse.Namespace, running: str, newest: str) -> int:
    if args.json:
        print_json({"laid": None, "current": running, "newest": newest})
    else:
        print(
            f"Interlock {running} is the newest there is."
            if running == newest
            else f"{running} is newer than {newest}."
        )
    return OK


def _agreed(question: str, args: argparse.Namespace) -> bool:
    if args.yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        complain(f"{question} This is no terminal to answer at: say so with --yes.")
        return False
    try:
        return input(f"{question} [Y/n] ").strip().lower() in ("", "y", "yes")
    except EOFError:
        print()
        return False


def _unhold(home: Path) -> None:
    from interlock.install import settings

    known = settings.read(home)
    if known.held is not None:
        settings.keep(home, known._replace(held=None))


def _tell(home: Path, laid: Laid, args: argparse.Namespace) -> None:
    from interlock.install.launcher import command

    if args.json:
        print_json({
            "laid": laid.name, "path": str(laid.path), "before": laid.before, "fresh": laid.fresh,
            "command": command(home),
        })  # fmt: skip
        return
    print(f"{'Laid' if laid.fresh else 'There already:'} {laid.name} in {laid.path}")
    print(f"It runs from now on as {command(home)[-1]}")
    if laid.before is not None and laid.before != laid.name:
        print(
            f"Hosts that are running keep {laid.before} until they restart. `interlock update --back` goes back to it."
        )
    elif laid.before is None:
        print("`interlock setup HOST URL` tells a host about it.")
