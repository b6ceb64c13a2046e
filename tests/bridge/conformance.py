"""The official suite's client side through the driver: `python -m tests.bridge.conformance [--bridge NAME...]`.

The suite starts a resource server and an authorization server for each scenario, runs the driver with a bridge inside,
and judges what came over the wire. A scenario passes only where the suite says so: no failed check, no warning, no
timeout, and, unless it allows that, a session that ended well.

Exit code 0: Interlock passed all of them. 1: it did not. 2: a program is missing.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance import programs
from tests.conformance.checks import read_outcome
from tests.conformance.processes import environment

from . import bridges

JOBS = 4
"""More at a time, and scenarios fail for want of processor time."""
SCENARIO_MS = 30_000
RUN_SECONDS = 90
CLICKS = (1.5, 0.0)
"""A person who takes a while, and an identity provider that redirects at once."""
OURS = "interlock"
MODERN_HOST = ", modern host"
"""After a bridge's name: the host on its pipes speaks 2026-07-28. No other bridge takes that."""
RIVALS = ("mcp-remote", "mcp-remote-defaults")
SUBJECTS = (OURS, OURS + MODERN_HOST, *RIVALS)

_AUTH_2025 = """
auth/metadata-default auth/metadata-var1 auth/metadata-var2 auth/metadata-var3 auth/basic-cimd
auth/scope-from-www-authenticate auth/scope-from-scopes-supported auth/scope-omitted-when-undefined
auth/scope-step-up auth/scope-retry-limit auth/token-endpoint-auth-basic auth/token-endpoint-auth-post
auth/token-endpoint-auth-none auth/pre-registration
"""
_AUTH_2026 = """
auth/resource-mismatch auth/offline-access-scope auth/offline-access-not-supported
auth/authorization-server-migration auth/iss-supported auth/iss-not-advertised auth/iss-supported-missing
auth/iss-wrong-issuer auth/iss-unexpected auth/iss-normalized auth/metadata-issuer-mismatch
"""
_WIRE_2026 = """
tools_call request-metadata sep-2322-client-request-state http-standard-headers http-custom-headers
http-invalid-tool-headers json-schema-ref-no-deref
"""


@dataclass(frozen=True, slots=True)
class Suite:
    """A list of scenarios and the revision that they are run at."""

    name: str
    revision: str
    scenarios: tuple[str, ...]
    scored: bool = True
    """False: run and reported, as the suite's own requirement sets do with extensions."""


REQUIRED_2026 = Suite("2026-07-28", "2026-07-28", tuple(f"{_WIRE_2026} {_AUTH_2025} {_AUTH_2026}".split()))
REQUIRED_2025 = Suite(
    "2025-11-25",
    "2025-11-25",
    tuple(f"initialize tools_call elicitation-sep1034-client-defaults sse-retry {_AUTH_2025}".split()),
)
BACK_COMPATIBLE = Suite(
    "back-compatibility (2025-03-26)",
    "2025-03-26",
    ("auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"),
)
ADDED_2026 = Suite(
    "not scored (2026-07-28)",
    "2026-07-28",
    ("json-schema-2020-12-preservation", "auth/client-credentials-basic"),
    scored=False,
)
SUITES = (REQUIRED_2026, REQUIRED_2025, BACK_COMPATIBLE, ADDED_2026)


@dataclass(frozen=True, slots=True)
class Result:
    """One scenario. `why` is empty where it passed; `checks` are the successful ones and all that were judged."""

    scenario: str
    passed: bool
    checks: tuple[int, int]
    why: str
    seconds: float


@dataclass(slots=True)
class Score:
    """One bridge through one suite, with the click delayed so long."""

    bridge: str
    suite: str
    click_after: float
    results: list[Result] = field(default_factory=list)
    scored: bool = True

    @property
    def passed(self) -> int:
        return sum(result.passed for result in self.results)

    @property
    def failed(self) -> list[Result]:
        return [result for result in self.results if not result.passed]


def run_scenario(subject: str, scenario: str, revision: str, click_after: float, cache: Path) -> Result:
    """One scenario with one bridge, in processes of their own."""
    bridge, modern, _ = subject.partition(MODERN_HOST)
    host = "modern" if modern else "legacy"
    client = [sys.executable, "-m", "tests.bridge.driver", "--bridge", bridge, "--click-after", f"{click_after:g}"]
    client += ["--era", host, "--cache", str(cache)]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="interlock-suite-") as folder:
        # The suite splits this command at blanks and knows no quotes.
        command = [str(programs.node()), str(programs.suite()), "client", "--command", " ".join(client)]
        command += ["--scenario", scenario, "--spec-version", revision, "--timeout", str(SCENARIO_MS), "-o", folder]
        # Extensions stand outside the revisions and are skipped without it.
        command.append("--force")
        try:
            done = subprocess.run(
                command,
                cwd=programs.ROOT,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=RUN_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Result(scenario, False, (0, 0), f"the suite did not end within {RUN_SECONDS} s", RUN_SECONDS)
        printed = done.stdout + done.stderr
        outcome = read_outcome(Path(folder))
        good, bad = outcome.total("SUCCESS"), outcome.total("FAILURE")
        whys = [
            f"{check.check} {status}: {outcome.messages.get((check, status), '')}".strip(": ")
            for (check, status), _ in sorted(outcome.counts.items())
            if status in ("FAILURE", "WARNING")
        ]
        if done.returncode != 0 or not outcome.scenarios:
            ended = re.search(r"Client timed out.*|Client exited with code \d+", printed)
            said = [
                file.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
                for file in Path(folder).glob("**/stderr.txt")
            ]
            whys += [f"{ended.group()}: {' '.join(said)[:400]}" if ended else "" if whys else printed[-400:]]
    passed = done.returncode == 0 and bool(outcome.scenarios)
    why = "; ".join(filter(None, whys)) if not passed else ""
    return Result(scenario, passed, (good, good + bad), why, round(time.monotonic() - began, 1))


def run_suite(bridge: str, suite: Suite, click_after: float, cache: Path, only: Iterable[str] = ()) -> Score:
    """All scenarios of a suite, or those named, four at a time."""
    named = set(only)
    chosen = [scenario for scenario in suite.scenarios if not named or scenario in named]
    with ThreadPoolExecutor(JOBS) as pool:
        runs = [pool.submit(run_scenario, bridge, name, suite.revision, click_after, cache) for name in chosen]
        return Score(bridge, suite.name, click_after, [run.result() for run in runs], suite.scored)


def markdown(scores: Sequence[Score]) -> str:
    """A table of one line a suite and one column a bridge, then what failed."""
    names = list(dict.fromkeys(score.bridge for score in scores))
    lines = ["| suite, click after | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    rows = list(dict.fromkeys((score.suite, score.click_after) for score in scores))
    found = {(score.suite, score.click_after, score.bridge): score for score in scores}
    for suite, click in rows:
        cells = [found.get((suite, click, name)) for name in names]
        shown = ["-" if cell is None else f"{cell.passed}/{len(cell.results)}" for cell in cells]
        lines.append(f"| {suite}, {f'{click:g} s' if click else 'at once'} | " + " | ".join(shown) + " |")
    failures = [(score, result) for score in scores for result in score.failed]
    if failures:
        lines += ["", "Failed:", ""]
        seen: dict[tuple[str, str], list[str]] = {}
        for score, result in failures:
            seen.setdefault((score.bridge, result.scenario), []).append(
                f"{score.suite}, {'delayed' if score.click_after else 'at once'}"
            )
        lines += [f"- {bridge}: `{scenario}` ({'; '.join(where)})" for (bridge, scenario), where in seen.items()]
    return "\n".join(lines) + "\n"


def as_json(scores: Sequence[Score]) -> dict[str, object]:
    """The whole result as plain data."""
    return {
        "suite": "@modelcontextprotocol/conformance",
        "scores": [
            {
                "bridge": score.bridge,
                "suite": score.suite,
                "click_after": score.click_after,
                "scored": score.scored,
                "passed": score.passed,
                "total": len(score.results),
                "scenarios": [
                    {
                        "name": result.scenario,
                        "passed": result.passed,
                        "checks": {"good": result.checks[0], "judged": result.checks[1]},
                        "why": result.why,
                        "seconds": result.seconds,
                    }
                    for result in score.results
                ],
            }
            for score in scores
        ],
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bridge.conformance", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--bridge", nargs="+", choices=SUBJECTS, default=[OURS, OURS + MODERN_HOST])
    parser.add_argument("--suite", nargs="+", choices=[suite.name for suite in SUITES], default=[], metavar="NAME")
    parser.add_argument("--scenario", nargs="+", default=[], help="only these")
    parser.add_argument("--click-after", nargs="+", type=float, default=list(CLICKS), metavar="S")
    parser.add_argument("--cache", type=Path, default=bridges.rival_cache(), help="where other bridges are installed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table as Markdown")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    missing = bridges.mcp_remote(arguments.cache) is None and set(arguments.bridge) & set(RIVALS)
    if missing:
        print(f"{', '.join(missing)} is not in {arguments.cache}: run benchmarks/setup_rivals.py", file=sys.stderr)
        return 2
    scores = []
    try:
        for bridge in arguments.bridge:
            for suite in SUITES:
                if arguments.suite and suite.name not in arguments.suite:
                    continue
                if bridge.endswith(MODERN_HOST) and suite.revision != REQUIRED_2026.revision:
                    continue
                for click_after in arguments.click_after:
                    began = time.monotonic()
                    score = run_suite(bridge, suite, click_after, arguments.cache, arguments.scenario)
                    if not score.results:
                        continue
                    scores.append(score)
                    took = time.monotonic() - began
                    word = "ok  " if not score.failed else "FAIL" if score.scored else "note"
                    print(
                        f"{word} {bridge}, {suite.name}, click after {click_after:g} s: "
                        f"{score.passed}/{len(score.results)} scenarios, {took:.0f} s",
                        flush=True,
                    )
                    for result in score.failed:
                        print(f"       {result.scenario}: {result.why[:700]}", flush=True)
    except programs.Missing as absent:
        print(absent, file=sys.stderr)
        return 2
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(as_json(scores), indent=1) + "\n", encoding="utf-8")
    if arguments.markdown is not None:
        arguments.markdown.write_text(markdown(scores), encoding="utf-8")
    return 1 if any(score.failed and score.scored for score in scores if score.bridge.startswith(OURS)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
