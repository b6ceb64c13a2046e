"""Runs everything and reports: `python -m tests.conformance.run [LEG...] [--json FILE] [--markdown FILE]`.

Exit code 0: every difference is a named exclusion. 1: something differs. 2: a program is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from . import inspector, programs, suite
from .checks import Difference, Outcome, compare, faults_of
from .exclusions import Exclusion, judge
from .legs import LEGACY, LEGS, MODERN, SCENARIOS, Leg, Revision, Server, through, upstream
from .processes import StartFailed


@dataclass(slots=True)
class Report:
    """One run, judged. `scenarios` and `checks` count those that equal the direct run, and all of them."""

    name: str
    scenarios: tuple[int, int] = (0, 0)
    checks: tuple[int, int] = (0, 0)
    excused: list[tuple[Difference, Exclusion]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return not self.problems


@cache
def direct_run(server: Server, revision: Revision, scenarios: tuple[str, ...] = ()) -> Outcome:
    """The baseline: the suite against the server itself, once for each server and revision."""
    with upstream(server, "http") as url:
        return suite.run_server_scenarios(url, revision, scenarios)


def run_leg(leg: Leg) -> Report:
    """Run the server scenarios of a leg and compare them with its baseline."""

    def work(report: Report) -> None:
        expected = leg.scenarios or SCENARIOS[leg.revision]
        direct = direct_run(leg.baseline, leg.revision, leg.scenarios)
        report.problems += [f"the direct run is no baseline: {fault}" for fault in faults_of(direct, expected)]
        with through(leg) as url:
            judge_run(report, direct, suite.run_server_scenarios(url, leg.revision, leg.scenarios))

    return _timed(leg.name, work)


def run_clients(revision: Revision) -> Report:
    """Run the client scenarios with Interlock between client and suite, and compare with the client alone."""

    def work(report: Report) -> None:
        direct = suite.run_client_scenarios(revision, wrapped=False)
        expected = [name for of, name in suite.CLIENT_SCENARIOS if of == revision]
        # The SDK's client itself fails to exit cleanly in one scenario; only what it did on the wire is a baseline.
        broken = [fault for fault in faults_of(direct, expected) if suite.CLIENT_EXIT not in fault]
        report.problems += [f"the direct run is no baseline: {fault}" for fault in broken]
        judge_run(report, direct, suite.run_client_scenarios(revision, wrapped=True))

    return _timed(f"clients@{revision}", work)


def run_inspector(visit: inspector.Visit) -> Report:
    """Ask the inspector's questions with and without Interlock."""

    def work(report: Report) -> None:
        report.problems += inspector.run_visit(visit)
        total = len(inspector.questions_of(visit))
        report.checks = (total - len(report.problems), total)

    return _timed(visit.name, work)


def judge_run(report: Report, direct: Outcome, tested: Outcome) -> None:
    """Fill `report` with how `tested` compares with `direct`."""
    differences = compare(direct, tested)
    verdict = judge(report.name, differences)
    report.excused = verdict.excused
    report.problems += [
        f"{one.check.scenario}: {one.check.check} {one.kind} x{one.count} {one.message}" for one in verdict.unexplained
    ]
    report.problems += [f"exclusion not needed: {stale.scenario}: {stale.check}" for stale in verdict.stale]
    different = {difference.check.scenario for difference in differences}
    report.scenarios = (len(direct.scenarios - different), len(direct.scenarios))
    lost = sum(difference.count for difference in differences if difference.kind == "lost")
    report.checks = (direct.total("SUCCESS") - lost, direct.total("SUCCESS"))


def _timed(name: str, work: Callable[[Report], None]) -> Report:
    report = Report(name)
    started = time.monotonic()
    try:
        work(report)
    except (StartFailed, suite.SuiteFailed) as failure:
        report.problems.append(str(failure))
    report.seconds = round(time.monotonic() - started, 1)
    return report


def all_runs() -> Iterator[tuple[str, Callable[[], Report]]]:
    """Every run by name, in the order of the table."""
    for leg in LEGS:
        yield leg.name, lambda leg=leg: run_leg(leg)  # type: ignore[misc]
    for revision in (LEGACY, MODERN):
        yield f"clients@{revision}", lambda revision=revision: run_clients(revision)  # type: ignore[misc]
    for visit in inspector.VISITS:
        yield visit.name, lambda visit=visit: run_inspector(visit)  # type: ignore[misc]


def markdown(reports: list[Report]) -> str:
    """The table for the documentation, and the exclusions that were used."""
    lines = [
        "| run | scenarios equal | checks equal | excluded | other differences |",
        "| --- | --- | --- | --- | --- |",
    ]
    for report in reports:
        scenarios = f"{report.scenarios[0]}/{report.scenarios[1]}" if report.scenarios[1] else ""
        checks = f"{report.checks[0]}/{report.checks[1]}"
        excluded = len({exclusion for _, exclusion in report.excused})
        lines.append(f"| {report.name} | {scenarios} | {checks} | {excluded} | {len(report.problems)} |")
    used = {
        (exclusion.leg, exclusion.scenario, exclusion.check): exclusion
        for one in reports
        for _, exclusion in one.excused
    }
    if used:
        lines += ["", "Excluded, because no bridge could pass them:", ""]
        lines += [f"- `{one.leg}`, {one.scenario}, `{one.check}`: {one.reason}" for one in used.values()]
    return "\n".join(lines) + "\n"


def as_json(reports: list[Report]) -> dict[str, object]:
    """The whole result as plain data."""
    return {
        "suite": "@modelcontextprotocol/conformance",
        "ok": all(report.ok for report in reports),
        "runs": [
            {
                "name": report.name,
                "scenarios": {"equal": report.scenarios[0], "total": report.scenarios[1]},
                "checks": {"equal": report.checks[0], "total": report.checks[1]},
                "excused": [
                    {**asdict(difference), "reason": exclusion.reason} for difference, exclusion in report.excused
                ],
                "problems": report.problems,
                "seconds": report.seconds,
            }
            for report in reports
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.run", description=__doc__)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="names or globs of runs; default: all")
    parser.add_argument("--list", action="store_true", help="list the runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table as Markdown")
    arguments = parser.parse_args()
    chosen = [
        (name, run)
        for name, run in all_runs()
        if not arguments.runs or any(fnmatchcase(name, glob) for glob in arguments.runs)
    ]
    if arguments.list:
        print("\n".join(name for name, _ in chosen))
        return 0
    reports = []
    try:
        for name, run in chosen:
            report = run()
            reports.append(report)
            scenarios = f"{report.scenarios[0]}/{report.scenarios[1]} scenarios, " if report.scenarios[1] else ""
            checks = f"{report.checks[0]}/{report.checks[1]} checks"
            print(f"{'ok  ' if report.ok else 'FAIL'} {name}: {scenarios}{checks}, {report.seconds} s", flush=True)
            for exclusion in dict.fromkeys(exclusion for _, exclusion in report.excused):
                print(f"       excluded: {exclusion.scenario}: {exclusion.check}: {exclusion.reason}")
            for problem in report.problems:
                print(f"       {problem}")
    except programs.Missing as missing:
        print(missing, file=sys.stderr)
        return 2
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(as_json(reports), indent=1) + "\n", encoding="utf-8")
    if arguments.markdown is not None:
        arguments.markdown.write_text(markdown(reports), encoding="utf-8")
    failed = sum(not report.ok for report in reports)
    print(
        f"{len(reports) - failed} of {len(reports)} runs as expected, {sum(report.seconds for report in reports):.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
