"""`interlock hosts`: which AI hosts are known, and of each what is known, how, and what is not. Reads only."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from interlock.cli.exit_codes import OK, USAGE
from interlock.cli.output import complain, print_json

if TYPE_CHECKING:
    from interlock.hosts.adapter import Adapter
    from interlock.hosts.describing import Told
    from interlock.hosts.machine import Machine

WIDTH = 80


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "hosts",
        help="what is known of each AI host, and how",
        description="List the AI hosts that are known, and which of their files are here. `show HOST` prints every fact about one, "
        "with how it is known, and what nobody has established yet, with the test that would tell.",
    )
    parser.add_argument("what", nargs="*", metavar="show HOST", help="every fact about these hosts")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.hosts import registry
    from interlock.hosts.machine import here

    machine = here()
    if not args.what:
        adapters = list(registry.every())
        if args.json:
            print_json([_row(each, machine) for each in adapters])
        else:
            sys.stdout.write("\n".join(_table(adapters, machine)) + "\n")
        return OK
    if args.what[0] != "show" or len(args.what) < 2:
        complain("write `interlock hosts`, or `interlock hosts show HOST`.")
        return USAGE
    unknown = [name for name in args.what[1:] if registry.resolve(name) is None]
    if unknown:
        complain(f"no host is called {', '.join(unknown)}. Known are {', '.join(registry.IDS)}.")
        return USAGE
    shown = [adapter for name in args.what[1:] if (adapter := registry.find(name)) is not None]
    if args.json:
        described = [_described(each, machine) for each in shown]
        print_json(described[0] if len(described) == 1 else described)
    else:
        lines = [line for each in shown for line in _page(each, machine)]
        sys.stdout.write("\n".join(lines) + "\n")
    return OK


def _files(adapter: Adapter, machine: Machine) -> list[str]:
    from interlock.hosts.reading import exists

    paths = [path for place in adapter.places for path in place.find(machine)]
    return [path for path in dict.fromkeys(paths) if exists(machine, path)]


def _row(adapter: Adapter, machine: Machine) -> dict[str, object]:
    return {
        "id": adapter.id,
        "label": adapter.label,
        "aliases": list(adapter.aliases),
        "seen": adapter.seen,
        "verified": adapter.verified,
        "files": _files(adapter, machine),
    }


def _table(adapters: list[Adapter], machine: Machine) -> Iterator[str]:
    from interlock.cli.inventory_text import short_path

    names = max(len(each.id) for each in adapters)
    labels = 26
    rest = WIDTH - names - labels - 16
    for adapter in adapters:
        label, seen = textwrap.wrap(adapter.label, labels), textwrap.wrap(adapter.seen, rest)
        for number, (left, right) in enumerate(zip_longest(label, seen, fillvalue="")):
            id, day = (adapter.id, adapter.verified) if number == 0 else ("", "")
            yield f"{id:<{names}}  {left:<{labels}}  {day:<10}  {right}".rstrip()
        for path in _files(adapter, machine):
            yield f"{'':<{names}}  {short_path(path, machine)}"
    yield ""
    yield "The day is that of the last look; behind it stands what was looked at, below it"
    yield "the files that are here. `interlock hosts show HOST` prints every fact."


def _described(adapter: Adapter, machine: Machine) -> dict[str, object]:
    from interlock.hosts.describing import describe

    return {
        **_row(adapter, machine),
        "facts": [
            {
                "topic": each.topic, "name": each.name, "value": each.value, "evidence": each.evidence,
                "how": list(each.how), "note": each.note or None, "source": each.source or None,
            }
            for each in describe(adapter)
        ],
        "sources": list(adapter.sources),
        "unknowns": list(adapter.unknowns),
    }  # fmt: skip


def _page(adapter: Adapter, machine: Machine) -> Iterator[str]:
    from interlock.hosts.describing import describe

    yield f"{adapter.label} ({adapter.id})"
    yield from _wrapped(f"Seen: {adapter.seen}. Last look: {adapter.verified}.", 2)
    if adapter.aliases:
        yield f"  Also called {', '.join(adapter.aliases)}."
    told = list(describe(adapter))
    topic = ""
    for each in told:
        if each.value is None:
            continue
        if each.topic != topic:
            topic = each.topic
            yield ""
            yield topic
        yield from _fact(each)
    unknown = [each for each in told if each.value is None]
    if unknown or adapter.unknowns:
        yield ""
        yield "Not known"
        for each in unknown:
            conflict = " (sources conflict)" if "X" in each.evidence else ""
            yield from _wrapped(
                f"{each.topic.lower()}, {each.name}{conflict}{f': {each.note}' if each.note else ''}", 2
            )
        for text in adapter.unknowns:
            yield from _wrapped(text, 2)
    if adapter.sources:
        yield ""
        yield "Sources"
        for source in adapter.sources:
            yield from _wrapped(source, 2)
    yield ""


def _fact(told: Told) -> Iterator[str]:
    yield from _wrapped(f"{told.name}: {told.value}", 2)
    how = f"[{' and '.join(told.how)}]"
    rest = [how, *([told.note] if told.note else []), *([f"({told.source})"] if told.source else [])]
    yield from _wrapped(" ".join(rest), 6)


def _wrapped(text: str, indent: int) -> Iterator[str]:
    for number, line in enumerate(
        textwrap.wrap(text, WIDTH - indent - 2, break_long_words=False, break_on_hyphens=False)
    ):
        yield " " * (indent if number == 0 else indent + 2) + line
