"""`interlock inventory`: every MCP server in every host's files on this machine, and what becomes of it. Reads only."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from interlock.cli.exit_codes import OK, TOOL_ERROR, USAGE
from interlock.cli.output import complain, print_json

if TYPE_CHECKING:
    from interlock.hosts.inventory import Inventory
    from interlock.hosts.machine import Machine
    from interlock.manifest.loading import Loaded

SECONDS = 60.0
"""For each host that is asked: some connect to every server before they answer."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "inventory",
        help="every MCP server in every host's files on this machine, and what becomes of it",
        description="List every MCP server that the AI hosts of this machine and this project are told about: what each host "
        "makes of it and why, and what is wrong with it. Nothing is written. Exit code 0, also with problems, unless --check is given.",
        epilog="`interlock hosts` lists the hosts that are known, `interlock hosts show HOST` what is known of one.",
    )
    parser.add_argument(
        "hosts", nargs="*", metavar="HOST", help="only these, with the details (default: all, at a glance)"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="the details of every host: why, what to do, notes, and hosts that have no file here",
    )
    parser.add_argument(
        "--problems", action="store_true", help="only entries that something is wrong with, with the details"
    )
    parser.add_argument(
        "--ask-hosts",
        action="store_true",
        help="also ask the hosts' own list commands, where they are installed; some of them start the servers",
    )
    parser.add_argument("--plugins", action="store_true", help="also list plugins, skills, hooks and rules files")
    parser.add_argument(
        "--machine",
        action="append",
        default=None,
        metavar="NAME",
        help="only these of the machines that are reached from here, such as `windows:NAME` from a WSL (default: all)",
    )
    parser.add_argument(
        "--check", action="store_true", help="exit code 1 where there is a problem (not a warning or a note)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.hosts import registry
    from interlock.hosts.inventory import leave_out
    from interlock.hosts.machine import here

    unknown = [name for name in args.hosts if registry.resolve(name) is None]
    if unknown:
        complain(f"no host is called {', '.join(unknown)}. Known are {', '.join(registry.IDS)}.")
        return USAGE
    hosts = list(dict.fromkeys(id for name in args.hosts if (id := registry.resolve(name)) is not None)) or None
    machines = _machines(here(), args.machine)
    if machines is None:
        return USAGE
    inventories = [_take(each, hosts, number == 0, args) for number, each in enumerate(machines)]
    for each in inventories[1:]:
        leave_out(each, inventories[0])
    if args.json:
        from interlock.cli.inventory_json import objects

        listed: list[object] = [each for inventory in inventories for each in objects(inventory)]
        print_json({"entries": listed, "brought": [_brought(each) for each in inventories]} if args.plugins else listed)
    else:
        _show(inventories, hosts, args)
    return TOOL_ERROR if args.check and any(_severe(each) for each in inventories) else OK


def _machines(first: Machine, names: Sequence[str] | None) -> list[Machine] | None:
    from interlock.hosts.neighbours import machines, name

    found = machines(first)
    if names is None:
        return found
    by_name = {name(each): each for each in found} | {"here": first}
    unknown = [each for each in names if each not in by_name]
    if unknown:
        complain(f"no machine is called {', '.join(unknown)}. Reached from here: {', '.join(by_name)}.")
        return None
    return [by_name[each] for each in dict.fromkeys(names)]


def _take(machine: Machine, hosts: Sequence[str] | None, own: bool, args: argparse.Namespace) -> Inventory:
    from interlock.hosts.inventory import take

    inventory = take(machine, hosts)
    if own and args.ask_hosts:
        from interlock.hosts.asked import ask_all

        ask_all(inventory, SECONDS)
    if own:
        _served(inventory, args)
    return inventory


def _served(inventory: Inventory, args: argparse.Namespace) -> None:
    """Entries past Interlock, where Interlock is in a host's file at all: only then are the manifests read."""
    from interlock.hosts.inventory import past_interlock
    from interlock.hosts.ours import ours

    if not any((entry := each.runs) is not None and ours(entry) == "connect" for each in inventory.declarations):
        return
    from interlock.cli.common import load_from
    from interlock.hosts.entry import Entry
    from interlock.manifest.config import StdioTransport

    try:
        loaded = load_from(args)
    except OSError:
        return
    served: dict[str, Entry] = {}
    for key, config in loaded.gateway.servers.items():
        transport = config.transport
        if isinstance(transport, StdioTransport):
            served[key] = Entry(transport="stdio", command=tuple(transport.command))
        elif transport.endpoint is not None:
            served[key] = Entry(transport="http", url=transport.endpoint)
    past_interlock(inventory, served, _remembered(args, loaded))


def _remembered(args: argparse.Namespace, loaded: Loaded) -> dict[str, list[str]]:
    """The tools that Interlock last saw of its servers, where it has kept any."""
    from interlock.cli.common import home_from

    home = home_from(args)
    if not (home / "interlock.db").exists():
        return {}
    from interlock.doctor.remembered import recalled

    snapshots = recalled(home, list(loaded.gateway.servers.values()), None)
    return {key: list(each.tools) for key, each in snapshots.items()}


def _show(inventories: Sequence[Inventory], hosts: Sequence[str] | None, args: argparse.Namespace) -> None:
    from interlock.cli.inventory_text import Style, report, wrapped

    terminal = sys.stdout.isatty()
    width = 80
    if terminal:
        import shutil

        width = max(60, min(shutil.get_terminal_size((80, 24)).columns, 120))
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    style = Style(
        width=width,
        colour=terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
        plain="utf8" not in encoding,
        all=args.all,
        only_problems=args.problems,
        named=hosts is not None,
    )
    if not (args.all or args.problems or style.named):
        from interlock.cli.inventory_short import report
    lines = report(inventories, style)
    absent = [
        reading.adapter.id
        for reading in inventories[0].readings
        if any(each.code == "host-not-asked" and each.severity == "note" for each in reading.problems)
    ]
    if absent:
        lines += wrapped(f"Not asked, because their programs are not on the PATH: {', '.join(absent)}.", style, 0)
    if args.plugins:
        from interlock.hosts.plugins import showing

        found = [
            line
            for each in inventories
            for line in showing.lines(showing.take(each.machine, [read.adapter.id for read in each.readings]))
        ]
        lines += ["", *(found or ["No plugins, skills, hooks or rules files."])]
    sys.stdout.write("\n".join(lines) + "\n")


def _brought(inventory: Inventory) -> dict[str, object]:
    from interlock.cli.inventory_json import without_secrets
    from interlock.hosts.neighbours import name
    from interlock.hosts.plugins import showing

    brought = showing.take(inventory.machine, [read.adapter.id for read in inventory.readings])
    found = showing.as_dict(brought)
    return {"machine": name(inventory.machine), **{kind: without_secrets(each) for kind, each in found.items()}}


def _severe(inventory: Inventory) -> bool:
    found = [problem for each in inventory.declarations for problem in each.problems]
    found += [problem for each in inventory.readings for problem in each.problems]
    return any(each.severity == "problem" for each in [*found, *inventory.problems])
