"""`interlock trace`: which calls went through, and the route of one of them."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from interlock.cli.common import CONFIGURATION, OK, USAGE, home_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.model.trace import RouteTrace
    from interlock.store.interface import Gap
    from interlock.store.sqlite import SqliteStore

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_DEFAULT_LAST = 20
_SHOWN_MATCHES = 10
_SHOWN_GAPS = 5
_COLOURS = {
    "ok": "green",
    "tool_error": "yellow",
    "input_required": "yellow",
    "needs_approval": "yellow",
    "wait": "yellow",
}


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "trace",
        help="show recent calls, or the route of one call through the seven stages",
        description="Show recent calls from the audit records, newest first, or with ID the route of one call: each "
        "stage's decision, reason, rule and time. Arguments and results are not recorded. Exit code 2 where no call "
        "has that ID.",
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="a call's id, or its beginning where that is enough")
    parser.add_argument(
        "--last", type=_count, default=None, metavar="N", help=f"how many calls (default {_DEFAULT_LAST})"
    )
    parser.add_argument("--server", default=None, metavar="S", help="only calls to this server")
    parser.add_argument(
        "--status",
        type=_status,
        default=None,
        metavar="S",
        help="only calls that ended so: ok, tool_error, error, denied, needs_approval, input_required, cancelled, "
        "never_reached, wait, outcome_unknown",
    )
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("write a number from 1 to 1000000")
    return int(text)


def _status(text: str) -> str:
    from interlock.journal.trace import STATUSES

    if text not in STATUSES:
        raise argparse.ArgumentTypeError(f"{text!r} is none; write one of {', '.join(STATUSES)}")
    return text


def run(args: argparse.Namespace) -> int:
    from interlock.store.interface import StoreError
    from interlock.store.sqlite import SqliteStore

    if args.id is not None and (args.last, args.server, args.status) != (None, None, None):
        print("interlock trace: give an ID, or --last, --server and --status, not both", file=sys.stderr)
        return USAGE
    store = SqliteStore.for_reading(home_from(args))
    try:
        return _show_one(store, args) if args.id is not None else _show_recent(store, args)
    except StoreError as error:
        print(f"interlock trace: {error.message}. See docs/audit.md.", file=sys.stderr)
        return CONFIGURATION
    finally:
        store.close()


def _show_one(store: SqliteStore, args: argparse.Namespace) -> int:
    from interlock.journal.printable import printable
    from interlock.journal.record import from_row
    from interlock.journal.trace import render, to_json

    wanted = args.id.strip().lower()
    rows = store.find_calls(wanted, _SHOWN_MATCHES) if wanted else []
    exact = [row for row in rows if row.id == wanted]
    if len(exact or rows) == 1:
        trace = from_row((exact or rows)[0])
        print(json.dumps(to_json(trace), indent=2) if args.json else render(trace))
        return OK
    if not rows:
        print(
            f"interlock trace: no call whose id starts with '{printable(wanted)}' is recorded in {store.where}. "
            "`interlock trace` lists recent calls; records are kept for 90 days by default.",
            file=sys.stderr,
        )
    else:
        more = " and perhaps more" if len(rows) == _SHOWN_MATCHES else ""
        ids = ", ".join(printable(row.id) for row in rows)
        print(f"interlock trace: '{printable(wanted)}' is the beginning of several ids: {ids}{more}", file=sys.stderr)
    return USAGE


def _show_recent(store: SqliteStore, args: argparse.Namespace) -> int:
    from interlock.journal.record import from_row
    from interlock.journal.trace import to_json

    limit = args.last or _DEFAULT_LAST
    traces = [from_row(row) for row in store.recent_calls(limit, args.server, args.status)]
    since_ns = traces[-1].at_ns if len(traces) == limit else 0
    gaps = store.recent_gaps(since_ns, _SHOWN_GAPS)
    if args.json:
        print(json.dumps([to_json(trace) for trace in traces], indent=2))
    elif traces:
        _print_table(traces)
    else:
        narrowed = " that fit" if args.server or args.status else ""
        print(f"No calls{narrowed} are recorded in {store.where}.")
    for gap in reversed(gaps):
        print(_gap_line(gap), file=sys.stderr)
    return OK


def _print_table(traces: Sequence[RouteTrace]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from interlock.cli import output
    from interlock.journal.printable import printable
    from interlock.journal.trace import local_time, seconds

    console = output.console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("at", "id", "status"):
        table.add_column(column, no_wrap=True)
    for column in ("what", "caller"):
        table.add_column(column, overflow="fold")
    table.add_column("took", no_wrap=True, justify="right")
    for trace in traces:
        what = trace.name or trace.server
        table.add_row(
            local_time(trace.at_ns)[:19],
            Text(printable(trace.id)),
            Text(printable(trace.status), _COLOURS.get(trace.status, "red")),
            Text(printable(f"{what} ({trace.method})" if what else trace.method)),
            Text(printable(trace.host or trace.client or trace.principal)),
            seconds(trace.micros),
        )
    console.print(table)


def _gap_line(gap: Gap) -> str:
    from interlock.journal.printable import printable
    from interlock.journal.trace import local_time

    until = local_time(gap.to_ns)[:19]
    when = f"before {until}" if gap.from_ns == 0 else f"between {local_time(gap.from_ns)[:19]} and {until}"
    number = "an unknown number of" if gap.lost is None else str(gap.lost)
    return f"Missing: {number} calls {when}: {printable(gap.reason)}."
