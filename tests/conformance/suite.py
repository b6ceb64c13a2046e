"""Runs the suite's scenarios and reads what they found."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import programs
from .checks import CheckId, Outcome, read_outcome
from .legs import LEGACY, MODERN, Revision
from .processes import environment

SCENARIO_MS = 30_000
RUN_SECONDS = 240
JOBS = 2
CLIENT_SCENARIOS: tuple[tuple[Revision, str], ...] = (
    *((LEGACY, name) for name in ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry")),
    (LEGACY, "json-schema-2020-12-preservation"),
    *((MODERN, name) for name in ("tools_call", "request-metadata", "sep-2322-client-request-state")),
    *((MODERN, f"http-{name}") for name in ("standard-headers", "custom-headers", "invalid-tool-headers")),
    *((MODERN, f"json-schema-{name}") for name in ("ref-no-deref", "2020-12-preservation")),
)
CLIENT_EXIT = "client-exit-code"
"""Not a check of the suite: whether it counted the client's own exit as a failure."""


class SuiteFailed(Exception):
    """The suite itself did not run."""


def run_server_scenarios(url: str, revision: Revision, scenarios: Iterable[str] = ()) -> Outcome:
    """Run scenarios (none named: all of the revision) against a server."""
    named = list(scenarios)
    if named:
        outcome = Outcome()
        for scenario in named:
            outcome.merge(_server_run(url, revision, ["--scenario", scenario]))
        return outcome
    return _server_run(url, revision, ["--suite", "all"])


def _server_run(url: str, revision: Revision, selection: list[str]) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="interlock-suite-") as folder:
        # The suite sends `Host: localhost` in one scenario; a server that is reached by that name is what it expects.
        target = url.replace("127.0.0.1", "localhost")
        arguments = ["server", "--url", target, *selection, "--spec-version", revision, "--timeout", str(SCENARIO_MS)]
        printed = _run([*arguments, "-o", folder])
        outcome = read_outcome(Path(folder), "server-")
        if not outcome.scenarios:
            raise SuiteFailed(f"the suite left no results:\n{printed[-2000:]}")
        return outcome


def run_client_scenarios(revision: Revision, *, wrapped: bool) -> Outcome:
    """Run the SDK's conformance client against the suite's servers, directly or with Interlock in between."""
    direct = [sys.executable, str(programs.sdist().client)]
    command = [sys.executable, "-m", "tests.conformance.wrapped_client", *direct] if wrapped else direct
    outcome = Outcome()
    with ThreadPoolExecutor(JOBS) as pool:
        for run in [pool.submit(_client_run, command, of, name) for of, name in CLIENT_SCENARIOS if of == revision]:
            outcome.merge(run.result())
    return outcome


def _client_run(command: list[str], revision: Revision, scenario: str) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="interlock-suite-") as folder:
        arguments = ["client", "--command", shlex.join(command), "--scenario", scenario, "--spec-version", revision]
        printed = _run([*arguments, "--timeout", str(SCENARIO_MS), "-o", folder])
        outcome = read_outcome(Path(folder))
        if not outcome.scenarios:
            raise SuiteFailed(f"{scenario} left no results:\n{printed[-2000:]}")
        errors = "\n".join(
            file.read_text(encoding="utf-8", errors="replace") for file in Path(folder).glob("**/stderr.txt")
        )
        failed = "Client exited with code" in printed or "timed out" in printed
        exit_check = CheckId(scenario, CLIENT_EXIT)
        outcome.add(exit_check, "FAILURE" if failed else "SUCCESS", errors[-1500:] if failed else "")
        return outcome


def _run(arguments: list[str]) -> str:
    """Run the suite and give what it printed; its exit code says less than its files."""
    command = [str(programs.node()), str(programs.suite()), *arguments]
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
    except subprocess.TimeoutExpired as late:
        raise SuiteFailed(f"the suite did not end within {RUN_SECONDS} s: {' '.join(arguments)}") from late
    return done.stdout + done.stderr
