"""`interlock import`: the servers that AI hosts have, as a manifest: each once, secrets by reference.

Nothing is written without --write or --to. The manifest goes to standard output, what a person should know to standard error.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, OK, USAGE
from interlock.cli.output import complain, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.hosts.declaration import Declaration
    from interlock.hosts.importing import Import
    from interlock.hosts.machine import Machine
    from interlock.hosts.target import Target


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "import", help="make a manifest from what AI hosts have configured", description=__doc__
    )
    parser.add_argument("host", nargs="*", metavar="HOST", help="only of these AI hosts (default: all)")
    parser.add_argument(
        "--scope",
        choices=("user", "project", "all"),
        default="user",
        help="the user's own files, those of the project here, or both (default: user)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--to", type=Path, default=None, metavar="FILE", help="write a new file")
    where.add_argument(
        "--write", action="store_true", help="add to the manifest of that scope, and keep what stands there"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.cli.import_telling import as_dict, lines
    from interlock.hosts import importing, machine, target
    from interlock.hosts.changes.refused import Refused
    from interlock.hosts.shown_paths import shortened

    here = machine.here()
    home = home_from(args)
    try:
        hosts = chosen(args.host)
        file = args.to.expanduser().absolute() if args.to is not None else manifest_file(args.scope, home, here)
        if args.to is not None and os.path.lexists(file):
            raise target.Unusable(f"{file} exists already; --write adds to the manifest of a scope")
        standing = target.read(file, "project" if args.scope == "project" else "user", here)
    except (UnknownHost, target.Unusable) as error:
        complain(str(error))
        return USAGE if isinstance(error, UnknownHost) else CONFIGURATION
    made = importing.take(declarations(here, hosts), here, target=file, which=args.scope, existing=standing.servers)
    written = None
    if (args.write or args.to is not None) and made.servers:
        try:
            written = _write(made, standing, home, here)
        except (target.Unusable, Refused, OSError) as error:
            complain(str(error))
            return CONFIGURATION
    if args.json:
        print_json({**as_dict(made), "manifest": made.text(), "file": str(file), "written": written})
        return OK
    for line in lines(made, here):
        complain(line)
    if written is not None:
        where = shortened(str(file), here)
        count = f"{len(made.servers)} server{'s' * (len(made.servers) != 1)}"
        complain(f"{count} added to {where}; `interlock restore {written}` takes them out again")
    elif not made.servers:
        complain("no server is left to import" if made.present or made.left else "no host here has a server")
    if written is None and made.servers:
        print(made.text(), end="")
    return OK


class UnknownHost(Exception):
    pass


def chosen(names: Sequence[str]) -> list[str] | None:
    """Ids of these hosts; None where none is named. Raises UnknownHost."""
    from interlock.hosts import registry

    ids = []
    for name in names:
        adapter = registry.find(name)
        if adapter is None:
            raise UnknownHost(f"{name!r} is no host that Interlock knows. It knows: {', '.join(registry.IDS)}")
        ids.append(adapter.id)
    return list(dict.fromkeys(ids)) or None


def declarations(here: Machine, hosts: Sequence[str] | None) -> list[Declaration]:
    from interlock.hosts import inventory

    return inventory.take(here, hosts).declarations


def manifest_file(scope: str, home: Path, here: Machine) -> Path:
    """Where servers of this scope are declared."""
    from interlock.hosts import target
    from interlock.manifest.places import FILE_NAME, find_project_manifest

    if scope != "project":
        return target.user_file(home)
    folder = Path(here.folder)
    found = find_project_manifest(folder)
    if found is not None:
        return found / target.IN_FOLDER if found.is_dir() else found
    return Path(here.repository() or folder) / FILE_NAME


def _write(made: Import, standing: Target, home: Path, here: Machine) -> str:
    """The id of the recorded change. Raises Unusable or OSError."""
    from interlock.hosts.changes.applying import WholeFile, apply

    content = standing.appended(made.text(), here)
    whole = WholeFile(os.fspath(standing.file), content)
    return apply(home, here, [], command="import", extra=[whole]).id
