"""The speed measurement (`make bench`): Interlock between direct, the floor and other proxies, in one run.

    python benchmarks/run.py                        everything; about half an hour
    python benchmarks/run.py --quick                one round of one-second cells, no slow rivals
    python benchmarks/run.py --upstreams stdio --rows Interlock "supergateway, stateful"

Writes benchmarks/results/latest.json and latest.md; `--write-docs` also puts the latter into docs/speed.md. Exit 0
when it could measure, whatever the figures are; `--strict` makes a missed goal exit 1.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

from harness import report, subjects
from harness.goals import judge
from harness.medians import Measurements
from harness.processes import BENCHMARKS, REPOSITORY
from harness.rivals import Rivals, default_cache
from harness.subjects import Stage
from setup_rivals import install_all

QUICK_ROWS = (subjects.INTERLOCK, subjects.INTERLOCK_LEGACY)


def measure(stage: Stage, rounds: int, seconds: float, concurrencies: list[int]) -> Measurements:
    """Every row at every concurrency, round after round, so that drift of the machine hits all rows alike."""
    found = Measurements()
    for number in range(1, rounds + 1):
        for concurrency in concurrencies:
            for row in stage.rows:
                cell = row.cell(concurrency, seconds)
                found.add(row.name, concurrency, cell)
                _progress(
                    f"{stage.kind} {number}/{rounds} c={concurrency:<3} {row.name:32} {cell.rps:>10,.0f}/s", cell.bad
                )
    return found


def _progress(text: str, bad: int) -> None:
    print(text + (f"   {bad} wrong answers" if bad else ""), file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="length of one cell, whole seconds")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument(
        "--upstreams", nargs="+", choices=(subjects.HTTP, subjects.STDIO), default=[subjects.HTTP, subjects.STDIO]
    )
    parser.add_argument("--rows", nargs="+", default=[], help="only these rows, besides direct and the floor")
    parser.add_argument("--quick", action="store_true", help="one round, one second, Interlock only")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where the rivals are installed")
    parser.add_argument("--no-setup", action="store_true", help="use what the cache holds")
    parser.add_argument("--with-contextforge", action="store_true")
    parser.add_argument("--output", type=Path, default=BENCHMARKS / "results")
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--strict", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 1, 1
        arguments.rows = arguments.rows or list(QUICK_ROWS)
    return arguments


def main() -> int:
    arguments = parse()
    rivals = Rivals(arguments.cache)
    failures = [] if arguments.no_setup else install_all(rivals, arguments.with_contextforge)
    found: dict[str, Measurements] = {}
    stages: list[Stage] = []
    for kind in arguments.upstreams:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-bench-")))
            stage = subjects.build(stack, folder, rivals, kind, set(arguments.rows))
            for text in stage.left_out:
                print(f"left out: {text}", file=sys.stderr)
            found[kind] = measure(stage, arguments.rounds, arguments.seconds, sorted(set(arguments.concurrency)))
            stages.append(stage)
    goals = judge(found)
    versions = rivals.versions()
    settings: dict[str, object] = {"rounds": arguments.rounds, "seconds a cell": arguments.seconds}
    left_out = [*failures, *(text for stage in stages for text in stage.left_out)]
    fragment = report.markdown(found, goals, left_out, versions, settings)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "latest.md").write_text(fragment)
    (arguments.output / "latest.json").write_bytes(report.document(found, goals, stages, versions, settings))
    print(fragment)
    if arguments.write_docs:
        report.replace_figures(REPOSITORY / "docs" / "speed.md", "calls", fragment)
    return 1 if arguments.strict and any(goal.met is False for goal in goals) else 0


if __name__ == "__main__":
    raise SystemExit(main())
