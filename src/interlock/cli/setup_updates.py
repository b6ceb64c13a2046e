"""The one question of `interlock setup`: may newer releases be looked for?"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from interlock.cli.output import complain
from interlock.install import origin, settings


def settle(home: Path, args: argparse.Namespace) -> tuple[bool | None, str | None]:
    """The answer, asked for where it is not known and kept, and what to say about it.

    An Interlock that came from no package index looks for nothing, so there is nothing to ask. Raises KeyboardInterrupt.
    """
    known = settings.read(home)
    if not args.no_updates and (known.updates is not None or not origin.here().from_index()):
        return known.updates, None
    answer = False if args.no_updates else True if args.yes else _asked(args)
    if answer is None:
        return None, "Newer releases are not looked for: nobody was asked. --yes or --no-updates settles it."
    if answer == known.updates:
        return answer, None
    try:
        settings.keep(home, known._replace(updates=answer))
    except OSError as error:
        return answer, f"This was not kept, so it is asked again: {home}: {error.strerror or error}"
    if args.yes and answer:
        return answer, (
            "Newer releases are looked for every six hours from now on (off: --no-updates, or INTERLOCK_NO_UPDATE=1)."
        )
    return answer, None


def _asked(args: argparse.Namespace) -> bool | None:
    """None where nobody is there to answer."""
    if args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    try:
        told = input("Look for a newer Interlock every six hours, through pip's configuration? [Y/n] ")
    except EOFError:
        print()
        return None
    except KeyboardInterrupt:
        print()
        complain(
            "stopped before the call that tries it. What is said above is done, and stays; run this again to try it."
        )
        raise
    return told.strip().lower() in ("", "y", "yes")
