"""The situations in which bridges were seen to fail, with 1, 5 and 30 processes, beside another bridge.

    python benchmarks/bridge_situations.py [--processes 1 5 30] [--situations V1 V4] [--bridge NAME...]
                                           [--cache DIR] [--no-setup] [--write-docs]

What is counted, and what is right, is in tests/bridge/situations.py. Takes about a quarter of an hour for everything.
Exit 0 where Interlock met every goal, otherwise 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness.processes import BENCHMARKS, REPOSITORY
from harness.report import machine, machine_line, replace_figures
from harness.rivals import Rivals, default_cache
from setup_rivals import install_npm, install_python

sys.path.insert(0, str(REPOSITORY))
sys.path.insert(0, str(REPOSITORY / "src"))

from tests.bridge import bridges, situations
from tests.bridge.stage import Counts


@dataclass(slots=True)
class Cell:
    """One situation with one bridge and so many processes. `trouble`: it could not be played to its end."""

    situation: str
    bridge: str
    processes: int
    counts: Counts | None = None
    problems: list[str] = field(default_factory=list)
    trouble: str = ""
    seconds: float = 0.0

    @property
    def met(self) -> bool:
        return self.counts is not None and not self.problems


def install_bridges(rivals: Rivals) -> list[str]:
    """Installs the other bridges; returns what could not be, each with the reason."""
    failures = []
    for name, install in (("npm", install_npm), ("mcp-proxy", lambda found: install_python(found, "mcp-proxy"))):
        try:
            install(rivals)
        except (subprocess.SubprocessError, OSError) as error:
            failures.append(f"{name}: {error}")
    return failures


def run_cell(situation: situations.Situation, bridge: bridges.Bridge, processes: int) -> Cell:
    """One cell; nothing a bridge does raises."""
    cell = Cell(situation.id, bridge.name, processes)
    began = time.monotonic()
    try:
        with contextlib.redirect_stderr(None):
            cell.counts = asyncio.run(situations.play(situation, bridge, processes))
        cell.problems = situations.problems(situation, cell.counts)
    except (RuntimeError, OSError) as error:
        cell.trouble = str(error).partition("\n")[0]
    cell.seconds = round(time.monotonic() - began, 1)
    return cell


def table(cells: Sequence[Cell], names: Sequence[str]) -> str:
    """Markdown: a line for each situation and number of processes, five counts a bridge, then what was not met."""
    head = [f"{name}: refreshes, revoked, URLs, unanswered, applied twice" for name in names]
    lines = [machine_line(), "", "| situation | processes | " + " | ".join(head) + " |"]
    lines.append("| --- | --- |" + " --- |" * len(names))
    found = {(cell.situation, cell.processes, cell.bridge): cell for cell in cells}
    for situation, processes in dict.fromkeys((cell.situation, cell.processes) for cell in cells):
        texts = [_text(found.get((situation, processes, name))) for name in names]
        title = situations.BY_ID[situation].title
        lines.append(f"| {situation} {title} | {processes} | " + " | ".join(texts) + " |")
    for name in names:
        own = [cell for cell in cells if cell.bridge == name]
        lines += ["", f"{name}: {sum(cell.met for cell in own)} of {len(own)} as they should be."]
        lines += [""] if any(not cell.met for cell in own) else []
        lines += [
            f"- {cell.situation}, {cell.processes}: {cell.trouble or '; '.join(cell.problems)}"
            for cell in own
            if not cell.met
        ]
    return "\n".join(lines) + "\n"


def _text(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    if cell.counts is None:
        return "broke off"
    counts = cell.counts
    numbers = (counts.refreshes, counts.families_revoked, counts.urls, counts.unanswered, counts.applied_twice)
    return ", ".join(map(str, numbers)) + ("" if cell.met else " **!**")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 5, 30])
    parser.add_argument("--situations", nargs="+", choices=list(situations.BY_ID), default=list(situations.BY_ID))
    parser.add_argument("--bridge", nargs="+", choices=bridges.NAMES, default=list(bridges.NAMES))
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--no-setup", action="store_true", help="use what the cache holds")
    parser.add_argument("--output", type=Path, default=BENCHMARKS / "results")
    parser.add_argument("--write-docs", action="store_true")
    arguments = parser.parse_args()
    if not arguments.no_setup:
        for failure in install_bridges(Rivals(arguments.cache)):
            print(f"not installed: {failure}", file=sys.stderr)
    chosen: list[bridges.Bridge] = []
    for name in arguments.bridge:
        bridge = bridges.named(name, arguments.cache)
        if bridge is None:
            print(f"left out: {name} is not in {arguments.cache}", file=sys.stderr)
        else:
            chosen.append(bridge)
    cells = []
    for name in arguments.situations:
        for processes in arguments.processes:
            for bridge in chosen:
                if situations.BY_ID[name].signed_in and bridge.name in bridges.TOKEN_ONLY:
                    continue
                cell = run_cell(situations.BY_ID[name], bridge, processes)
                cells.append(cell)
                said = cell.trouble or "; ".join(cell.problems) or "as it should be"
                print(
                    f"{name:4} {processes:>2} {bridge.name:10} {cell.seconds:5.1f} s  {said}",
                    file=sys.stderr,
                    flush=True,
                )
    fragment = table(cells, [bridge.name for bridge in chosen])
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "bridge_situations.md").write_text(fragment)
    document = {"machine": machine(), "cells": [asdict(cell) for cell in cells]}
    (arguments.output / "bridge_situations.json").write_text(json.dumps(document, indent=1) + "\n")
    print(fragment)
    if arguments.write_docs:
        replace_figures(REPOSITORY / "docs" / "bridge.md", "bridge-situations", fragment)
    return 0 if all(cell.met for cell in cells if cell.bridge == "interlock") else 1


if __name__ == "__main__":
    raise SystemExit(main())
