"""`interlock tools`: every tool of every server, under its names, with what it costs a model's context."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, OK
from interlock.cli.output import complain, console, print_json
from interlock.cli.starting import load, report_problems, run_loop

if TYPE_CHECKING:
    from interlock.manifest.loading import Loaded
    from interlock.upstream.server import Server


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("tools", help="list all tools with their names and context cost", description=__doc__)
    parser.add_argument("--host", default=None, metavar="NAME", help="show the names that this AI host will see")
    parser.add_argument("--all", action="store_true", help="also show tools that are denied")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    loaded = load(args)
    if report_problems(loaded) and not loaded.gateway.servers:
        return CONFIGURATION
    if not loaded.gateway.servers:
        complain("no manifest declares a server here: `interlock check` shows a first one")
    rows, faults, problems = run_loop(_rows(args, loaded, home_from(args)))
    for line in [*faults, *problems]:
        complain(line)
    if args.json:
        print_json(rows)
    else:
        _table(rows)
    return OK


Row = dict[str, object]


async def _rows(args: argparse.Namespace, loaded: Loaded, home: Path) -> tuple[list[Row], list[str], list[str]]:
    from interlock.catalog.cost import tokens
    from interlock.cli.inside import Inside

    async with Inside(loaded.gateway, home, args.host) as inside:
        import contextlib

        with contextlib.ExitStack() as stack:
            if not args.json:
                stack.enter_context(console(stderr=True).status("asking the servers for their tools"))
            await inside.settled()
        pipeline = inside.runtime.pipeline
        view = pipeline.view(inside.exchange("tools/list", {}))
        shown = list(view.routes["tools"].items())
        if args.all:
            shown += list(view.hidden["tools"].items())
        rows: list[Row] = []
        published = dict(zip(view.routes["tools"], view.lists["tools"].items, strict=True))
        for exposed, route in shown:
            decision = route.decision
            rows.append(
                {
                    "canonical": str(route.entry.canonical),
                    "exposed": exposed,
                    "server": route.server,
                    "state": {"allow": "allowed", "ask": "asks", "deny": "denied"}[decision.answer.word],
                    "reason": decision.reason,
                    "rule": decision.rule,
                    "tokens": tokens(published.get(exposed, route.entry.raw)),
                }
            )
        faults = [
            _why_not(server)
            for server in inside.runtime.servers.values()
            if pipeline.catalogue.snapshot(server, inside.caller) is None
        ]
        problems = [
            problem for snapshot in pipeline.catalogue.snapshots(inside.caller) for problem in snapshot.problems
        ]
        problems += view.collisions
        return rows, faults, problems


def _why_not(server: Server) -> str:
    """Why this server has no list. Some of the reasons begin with its name already."""
    why = server.config.blocked or (server.last_fault.message if server.last_fault else server.state)
    return why if why.startswith(f"{server.key}: ") else f"{server.key}: {why}"


def _table(rows: list[Row]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("canonical name", "exposed as", "calls"):
        table.add_column(column, overflow="fold")
    table.add_column("tokens", justify="right")
    for row in rows:
        table.add_row(str(row["canonical"]), str(row["exposed"]), str(row["state"]), str(row["tokens"]))
    out = console()
    out.print(table)
    total = sum(int(str(row["tokens"])) for row in rows)
    servers = len({row["server"] for row in rows})
    count = f"{len(rows)} tool{'s' * (len(rows) != 1)} of {servers} server{'s' * (servers != 1)}"
    out.print(f"{count}, about {total} tokens of context (an estimate: docs/names.md)")
