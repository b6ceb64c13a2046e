"""`interlock doctor bridge`: what is wrong on the way to a remote server, step by step. It changes nothing, here or there."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli import remote
from interlock.cli.common import add_common, home_from
from interlock.cli.doctor_showing import line, summary
from interlock.cli.exit_codes import OK, TOOL_ERROR, USAGE
from interlock.cli.output import complain, print_json
from interlock.cli.starting import run_loop

if TYPE_CHECKING:
    from interlock.doctor.finding import Finding

SECONDS = 10.0
MOST = 20
"""Servers that are examined where none was named."""


def add(subjects: argparse._SubParsersAction[argparse.ArgumentParser], description: str) -> None:
    parser = subjects.add_parser(
        "bridge", help="the connection to a remote server", description=description,
        epilog="Exit code 0 where nothing is wrong, 1 where a problem was found.",
    )  # fmt: skip
    remote.add_flags(parser, "which one (default: all remote servers of the manifests and of the kept grants)")
    before = len(parser._actions)
    parser.add_argument(
        "--timeout",
        type=remote.seconds,
        metavar="S",
        help=f"wait so long for each answer (default: {SECONDS:g})",
    )
    parser.add_argument("--quiet", action="store_true", help="leave out what is in order")
    add_common(parser)
    for action in parser._actions[before:]:
        action.default = argparse.SUPPRESS  # they may stand before `bridge` too, and must not be undone here


def run(args: argparse.Namespace) -> int:
    try:
        targets = [remote.target_of(args)] if args.server is not None else _all(args)
    except remote.NoTarget as error:
        complain(str(error))
        return USAGE
    return run_loop(_examine(args, targets))


def _all(args: argparse.Namespace) -> list[remote.Target]:
    """What the manifests declare, and every other URL that there is a grant for. Raises NoTarget."""
    from interlock.doctor import kept
    from interlock.wire.address import shown

    found = remote.everything(args, os.environ)
    urls = {target.url for target in found}
    for each in kept.look(home_from(args)):
        url = each.server_url
        if url is not None and url not in urls:
            urls.add(url)
            try:
                found.append(remote.of_url(args, url, os.environ))
            except remote.NoTarget as error:
                complain(f"{shown(url)}: {error}")
    if len(found) > MOST:
        complain(f"{len(found)} servers; the first {MOST} are examined. Name another one to have it examined.")
    return found[:MOST]


async def _examine(args: argparse.Namespace, targets: list[remote.Target]) -> int:
    from interlock.build import build
    from interlock.doctor import bridge
    from interlock.doctor.case import Case, Machine
    from interlock.upstream.oauth.fetch import Fetcher

    machine = Machine(home_from(args), Path.home(), Path.cwd(), os.environ)
    sections: list[tuple[str, str, list[Finding]]] = [
        ("this machine", "", await bridge.of_machine(machine, args.timeout))
    ]
    fetch = Fetcher(user_agent=f"interlock/{build()}", environ=os.environ)
    try:
        for target in targets:
            case = Case(target.name, target.url, target.transport, machine, fetch, args.timeout, target.declared)
            sections.append((target.name, target.url, await bridge.of_server(case)))
    finally:
        await fetch.close()
    if args.json:
        print_json([_as_dict(*section) for section in sections])
    else:
        _show(sections, quiet=args.quiet)
    return TOOL_ERROR if any(each.severity == "problem" for _, _, found in sections for each in found) else OK


def _as_dict(name: str, url: str, findings: list[Finding]) -> dict[str, object]:
    return {"server": name if url else None, "url": url or None, "findings": [each.as_dict() for each in findings]}


def _show(sections: list[tuple[str, str, list[Finding]]], *, quiet: bool) -> None:
    from rich.text import Text

    from interlock.cli import output

    console = output.console(width=160, soft_wrap=True)
    for name, url, findings in sections:
        if quiet and all(each.severity == "ok" for each in findings):
            continue
        console.print(Text(name if name == url or not url else f"{name} ({url})", "bold"))
        for each in findings:
            if not quiet or each.severity != "ok":
                line(console, each)
        console.print()
    console.print(summary([each for _, _, found in sections for each in found]))
    if len(sections) == 1:
        console.print("No remote server is known here: name one, `interlock doctor bridge URL`.")
