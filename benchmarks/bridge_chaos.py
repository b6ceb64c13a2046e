"""A thousand calls through a bridge while its servers are restarted, cut and slowed at random.

    python benchmarks/bridge_chaos.py [--calls 1000] [--seed 1] [--bridge interlock mcp-remote] [--cache DIR]

Each call must be answered within its deadline, and what is said of each write must be true of what the server applied
(tests/bridge/chaos.py). Exit 0 where Interlock kept that, otherwise 1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from harness.processes import BENCHMARKS, REPOSITORY
from harness.report import machine, machine_line, replace_figures
from harness.rivals import Rivals, default_cache
from setup_rivals import install_npm

sys.path.insert(0, str(REPOSITORY))
sys.path.insert(0, str(REPOSITORY / "src"))

from tests.bridge import bridges, chaos

from interlock.lab.auth.resource_server import ServedEra

ERAS: tuple[ServedEra, ...] = ("modern", "legacy")


def table(reports: list[chaos.Report]) -> str:
    """Markdown: one column a bridge."""
    rows = [
        ("calls", lambda r: f"{r.calls}"),
        ("good results", lambda r: f"{r.good}"),
        (
            "errors by verdict",
            lambda r: ", ".join(f"{name} {count}" for name, count in sorted(r.verdicts.items())) or "-",
        ),
        (f"unanswered within {chaos.PATIENCE_SECONDS:g} s", lambda r: f"{r.unanswered}"),
        (f"answered later than {chaos.DEADLINE_SECONDS:g} s and {chaos.SLACK_SECONDS:g} s", lambda r: f"{len(r.late)}"),
        ("slowest answer (median)", lambda r: f"{r.slowest:.1f} s ({r.middle * 1000:.1f} ms)"),
        ("what was said of a write was not true, or nothing was said", lambda r: f"{len(r.untrue)}"),
        ("writes of unknown outcome that were applied", lambda r: f"{r.applied_of_unknown}"),
        ("writes applied twice", lambda r: f"{r.applied_twice}"),
        ("the bridge died", lambda r: f"{r.deaths}"),
    ]
    lines = [machine_line({"seed": reports[0].seed}), ""]
    lines += [
        "| | " + " | ".join(f"{report.bridge}, {report.era} server" for report in reports) + " |",
        "| --- |" + " --- |" * len(reports),
    ]
    lines += [f"| {name} | " + " | ".join(cell(report) for report in reports) + " |" for name, cell in rows]
    acts = ", ".join(f"{name} {count}" for name, count in sorted(reports[0].acts.items()))
    lines += ["", f"Done to the servers in the first run: {acts}."]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bridge", nargs="+", choices=("interlock", "mcp-remote"), default=["interlock", "mcp-remote"])
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--no-setup", action="store_true", help="use what the cache holds")
    parser.add_argument("--output", type=Path, default=BENCHMARKS / "results")
    parser.add_argument("--write-docs", action="store_true")
    arguments = parser.parse_args()
    if not arguments.no_setup and "mcp-remote" in arguments.bridge:
        try:
            install_npm(Rivals(arguments.cache))
        except (subprocess.SubprocessError, OSError) as error:
            print(f"not installed: {error}", file=sys.stderr)
    reports = []
    for name in arguments.bridge:
        bridge = bridges.Interlock() if name == "interlock" else bridges.mcp_remote(arguments.cache)
        if bridge is None:
            print(f"left out: {name} is not in {arguments.cache}", file=sys.stderr)
            continue
        for era in ERAS:
            with contextlib.redirect_stderr(None):
                report = asyncio.run(chaos.run(bridge, calls=arguments.calls, seed=arguments.seed, era=era))
            reports.append(report)
            said = f"{report.good} good, {dict(report.verdicts)}, {report.seconds:.0f} s"
            print(f"{name}, {era} server: {said}", file=sys.stderr)
            for text in [*report.late, *report.untrue][:20] if name == "interlock" else ():
                print(f"  {text}", file=sys.stderr)
    fragment = table(reports)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "bridge_chaos.md").write_text(fragment)
    document = {"machine": machine(), "reports": [asdict(report) for report in reports]}
    (arguments.output / "bridge_chaos.json").write_text(json.dumps(document, indent=1) + "\n")
    print(fragment)
    if arguments.write_docs:
        replace_figures(REPOSITORY / "docs" / "bridge.md", "bridge-chaos", fragment)
    return 0 if all(report.kept for report in reports if report.bridge == "interlock") else 1


if __name__ == "__main__":
    raise SystemExit(main())
