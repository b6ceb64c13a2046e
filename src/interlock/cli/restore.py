"""`interlock restore`: undo what a run of adopt, generate, import or setup wrote into files, or list the runs."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from interlock.cli.common import CONFIGURATION, OK, USAGE, home_from
from interlock.cli.output import complain, print_json, safe

if TYPE_CHECKING:
    from interlock.hosts.changes.recording import Run
    from interlock.hosts.changes.restoring import Restored

_HOW = {
    "original": "as it was, byte for byte",
    "removed": "removed: it was not there before",
    "undone": "undone in part",
    "already": "is as it was",
    "left": "left as it is",
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "restore",
        help="undo what adopt, generate or setup wrote",
        description="Put the files of one run back as they were: the newest run that is not undone, or the one named. "
        "Where another program has changed a file since, only what Interlock had changed is put back. "
        "Exit code 8 where a file had to be left as it is.",
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="the run, or the beginning of its id")
    parser.add_argument("--list", action="store_true", help="list the runs, the newest first, and change nothing")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")
    parser.add_argument(
        "--force", action="store_true", help="put the original bytes back, even where a file was changed since"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.hosts.changes.recording import damaged
    from interlock.hosts.changes.refused import Refused
    from interlock.hosts.changes.restoring import NothingToRestore, foreseen, history, restore
    from interlock.hosts.machine import here
    from interlock.hosts.shown_paths import shortened

    home = home_from(args)
    for folder in damaged(home):
        complain(f"the record in {folder} is damaged, so that run cannot be undone; what its files held is in there.")
    if args.list:
        _list(history(home), json=args.json)
        return OK
    try:
        done = (foreseen if args.dry_run else restore)(home, here(), args.id, force=args.force)
    except NothingToRestore as error:
        if args.json and args.id is None:
            print_json({"id": None, "dryRun": args.dry_run, "files": []})
        elif args.id is None:
            print(error)
        else:
            complain(f"{error} `interlock restore --list` shows them.")
        return OK if args.id is None else USAGE
    except Refused as error:
        complain(f"nothing was changed. {safe(sys.stderr, shortened(str(error), here()))}")
        return CONFIGURATION
    if args.json:
        print_json(as_dict(done, dry=args.dry_run))
    else:
        _show(done, dry=args.dry_run)
    return OK if done.complete else CONFIGURATION


def as_dict(done: Restored, *, dry: bool) -> dict[str, object]:
    return {
        "id": done.id,
        "command": done.command,
        "dryRun": dry,
        "complete": done.complete,
        "files": [{"file": each.file, "how": each.how, "why": each.why} for each in done.files],
    }


def _show(done: Restored, *, dry: bool) -> None:
    from interlock.hosts.machine import here
    from interlock.hosts.shown_paths import shortened

    machine = here()
    print(f"{'This would undo' if dry else 'Undone:'} the run {done.id} (interlock {done.command}).")
    for each in done.files:
        line = f"  {each.file}: {_HOW[each.how]}{f' ({each.why})' if each.why else ''}"
        print(safe(sys.stdout, shortened(line, machine)))
    if not done.complete:
        print("Not all of it could be undone; the run stays in the list of those that can.")
    elif dry:
        print("Nothing was changed. Without --dry-run it is done.")


def _list(runs: list[Run], *, json: bool) -> None:
    from interlock.hosts.machine import here
    from interlock.hosts.shown_paths import shortened

    machine = here()
    if json:
        print_json([_run_dict(each) for each in runs])
    elif not runs:
        print("No run of Interlock has changed a file.")
    for each in () if json else runs:
        state = " (undone)" if each.restored else ""
        undid = f" of {each.of}" if each.of is not None else ""
        print(f"{each.id}  {each.at}  {each.command}{undid}{state}")
        for file in each.files:
            print(safe(sys.stdout, shortened(f"    {file.path}", machine)))


def _run_dict(run: Run) -> dict[str, object]:
    return {
        "id": run.id,
        "at": run.at,
        "command": run.command,
        "of": run.of,
        "restored": run.restored,
        "files": [file.path for file in run.files],
    }
