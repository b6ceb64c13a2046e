"""Turns measurements into the JSON file and the Markdown fragment."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from harness import subjects
from harness.goals import Goal, added_p50_ratio
from harness.medians import Measurements
from harness.subjects import Stage

_LOAD = os.getloadavg()[0]
"""Read when this module is imported, before the run makes load of its own: well above 0 means others were at work."""


def machine() -> dict[str, str]:
    """What a reader must know to compare; nothing that names the machine."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "load average when it began": f"{_LOAD:.1f}",
    }


def machine_line(settings: dict[str, object] | None = None) -> str:
    """The machine and the run's settings in one sentence."""
    return "; ".join(f"{name}: {value}" for name, value in {**machine(), **(settings or {})}.items()) + "."


def markdown(
    found: dict[str, Measurements],
    goals: Sequence[Goal],
    left_out: Sequence[str],
    versions: dict[str, str],
    settings: dict[str, object],
) -> str:
    """The whole fragment: machine, versions, one table an upstream kind, the goals, what was left out."""
    lines = [
        machine_line(settings),
        "",
        "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())) + ".",
        "",
    ]
    for kind, measurements in found.items():
        lines += [f"### {kind} upstream", "", *_rates(measurements), "", *_ratios(kind, measurements), ""]
    lines += ["### Goals", "", *_goals(goals)]
    if left_out:
        lines += ["", "Left out:", ""]
        lines += [f"- {text.splitlines()[0]}" for text in left_out]
    return "\n".join(lines) + "\n"


def _rates(measurements: Measurements) -> list[str]:
    concurrencies = measurements.concurrencies()
    head = [f"{c}: calls/s (p50, p99 ms)" for c in concurrencies]
    lines = _head(["row", *head, "CPU µs a call (own process)", "wrong answers"])
    for row in measurements.rows():
        cells, wrong, costs = [], 0, []
        for concurrency in concurrencies:
            summary = measurements.summary(row, concurrency)
            if summary is None:
                cells.append("-")
                continue
            wrong += summary.bad
            costs.append(summary.cpu_us)
            cells.append(f"{summary.rps:,.0f} ({summary.p50_ms:.2f}, {summary.p99_ms:.2f})")
        # The middle one: at 1 the loop idles between calls, at 64 slow rows have too few answers in a cell.
        cost = costs[len(costs) // 2] if costs else 0.0
        lines.append(_line([row, *cells, f"{cost:.0f}" if cost else "-", str(wrong)]))
    return lines


def _ratios(kind: str, measurements: Measurements) -> list[str]:
    """Interlock's calls/s over every other row's, both eras; and the added latency."""
    concurrencies = measurements.concurrencies()
    ours = [row for row in (subjects.INTERLOCK, subjects.INTERLOCK_LEGACY) if row in measurements.rows()]
    if not ours:
        return ["Interlock was not measured."]
    lines = _head(["calls/s divided by those of", *(f"{row}: {c}" for row in ours for c in concurrencies)])
    for other in measurements.rows():
        if other in ours:
            continue
        ratios = [measurements.ratio(row, other, c) for row in ours for c in concurrencies]
        lines.append(_line([other, *("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)]))
    added = added_p50_ratio(measurements)
    if added is not None:
        lines += ["", f"Added p50 at concurrency 1 with the {kind} upstream: {added:.2f} times what the floor adds."]
    floor = measurements.summary(subjects.FLOOR, concurrencies[-1])
    for row in ours:
        summary = measurements.summary(row, concurrencies[-1])
        if floor is not None and summary is not None and summary.cpu_us:
            share = floor.cpu_us / summary.cpu_us
            lines += ["", f"{row}: the floor's CPU time a call at {concurrencies[-1]} is {share:.2f} of its own."]
    return lines


def _goals(goals: Sequence[Goal]) -> list[str]:
    words = {True: "met", False: "**missed**", None: "not measured"}
    lines = _head(["goal", "target", "measured", ""])
    return lines + [_line([goal.text, goal.target, goal.measured, words[goal.met]]) for goal in goals]


def _head(names: list[str]) -> list[str]:
    return [_line(names), "|" + " --- |" * len(names)]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def document(
    found: dict[str, Measurements],
    goals: Sequence[Goal],
    stages: Sequence[Stage],
    versions: dict[str, str],
    settings: dict[str, object],
) -> bytes:
    """Every cell of every round, so that others can judge the spread."""
    whole = {
        "machine": machine(),
        "versions": versions,
        "settings": settings,
        "cells": [
            {"upstream": kind, "row": row, "concurrency": concurrency, "round": number, **asdict(cell)}
            for kind, measurements in found.items()
            for (row, concurrency), cells in measurements.cells.items()
            for number, cell in enumerate(cells, 1)
        ],
        "goals": [asdict(goal) for goal in goals],
        "left_out": [text for stage in stages for text in stage.left_out],
    }
    return json.dumps(whole, indent=1).encode() + b"\n"


def replace_figures(page: Path, name: str, fragment: str) -> None:
    """Puts the fragment between a documentation page's markers of that name; raises ValueError where it has none."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = page.read_text()
    if begin not in text or end not in text:
        raise ValueError(f"{page} has no {begin} and {end}")
    before, rest = text.split(begin, 1)
    after = rest.split(end, 1)[1]
    page.write_text(f"{before}{begin}\n\n{fragment}\n{end}{after}")
