"""How soon a host gets its first answer from a bridge, and what an idle bridge costs, beside another one.

    python benchmarks/bridge_start.py [--runs 15] [--cache DIR] [--no-setup] [--write-docs]

Time: from the start of the process until its answer to `initialize`, and to `tools/list`, has been read. Once with a
server that asks for no authorization, once with a protected one for which the machine has a grant. Bridges are started
in turn, after one start each that is not counted, so that all find a warm disk and what their last run left.
Memory: all processes of the bridge together, idle after its first call.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from harness.processes import BENCHMARKS, REPOSITORY, descendants, pss_kib, rss_kib
from harness.report import machine, machine_line, replace_figures
from harness.rivals import Rivals, default_cache
from setup_rivals import install_npm

sys.path.insert(0, str(REPOSITORY))
sys.path.insert(0, str(REPOSITORY / "src"))

from tests.bridge import bridges
from tests.bridge.session import Session
from tests.bridge.stage import Stage
from tests.conformance.processes import serving

from interlock.lab.auth import AuthLab

START_GOAL_MS = 150
MEMORY_GOAL_MB = 45
_ANSWER_SECONDS = 60.0
_STEADY_READINGS = 5
_MOST_READINGS = 40
OPEN, PROTECTED = "no authorization", "protected, grant on disk"


@dataclass(frozen=True, slots=True)
class Run:
    """One start. Times in milliseconds; memory in MB (10^6 bytes) of the whole tree."""

    initialize: float
    tools: float
    rss_mb: float
    pss_mb: float
    processes: int


@dataclass(slots=True)
class Row:
    bridge: bridges.Bridge
    server: str
    url: str
    folder: Path
    tool: str
    runs: list[Run] = field(default_factory=list)
    trouble: str = ""

    async def once(self) -> Run:
        """One start, its first call, and its memory when it has come to rest. Raises RuntimeError where it does not answer."""
        launch = self.bridge.launch(self.url, self.folder / "state", bridges.Settings())
        environment = bridges.environment_of(launch, self.folder)
        session = await Session.start(launch.command, environment=environment, cwd=self.folder)
        try:
            first = await session.open(seconds=_ANSWER_SECONDS)
            listed = await session.request("tools/list", seconds=_ANSWER_SECONDS)
            called = await session.call(self.tool, {"value": "x", "text": "x"}, seconds=_ANSWER_SECONDS)
            if first.answered is None or listed.answered is None or called.failed:
                raise RuntimeError(f"{self.bridge.name}: {called.state} {called.text}\n{session.tail()}")
            rss, pss, count = await _at_rest(session.process.pid)
            return Run(first.answered * 1000, listed.answered * 1000, rss, pss, count)
        finally:
            await session.close()


async def _at_rest(pid: int) -> tuple[float, float, int]:
    """Resident and proportional memory in MB and the number of processes, once they have been steady, to 1 %, for a second."""
    readings: list[int] = []
    for _ in range(_MOST_READINGS):
        await asyncio.sleep(0.2)
        readings.append(sum(map(rss_kib, descendants(pid))))
        last = readings[-_STEADY_READINGS:]
        if len(last) == _STEADY_READINGS and max(last) <= min(last) * 1.01:
            break
    pids = descendants(pid)
    return sum(map(rss_kib, pids)) * 1.024e-3, sum(map(pss_kib, pids)) * 1.024e-3, len(pids)


async def measure(rows: Sequence[Row], runs: int) -> None:
    """One start each that is not counted, then `runs` in turn; a bridge that fails once is left out from then on."""
    for number in range(runs + 1):
        for row in rows:
            if row.trouble:
                continue
            try:
                run = await row.once()
            except (RuntimeError, OSError) as error:
                row.trouble = str(error).partition("\n")[0]
                continue
            if number:
                row.runs.append(run)


def table(rows: Sequence[Row], floors: dict[str, float]) -> str:
    """Markdown: one line a row, the interpreters alone below, then the goals."""
    lines = [machine_line({"starts each": max((len(row.runs) for row in rows), default=0)}), ""]
    lines += [
        "| bridge | server | `initialize` answered, ms (lowest to highest) | tools listed, ms | resident, MB | "
        "proportional, MB | processes |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if not row.runs:
            lines.append(f"| {row.bridge.name} | {row.server} | {row.trouble or 'not measured'} | - | - | - | - |")
            continue
        answers = [run.initialize for run in row.runs]
        lines.append(
            f"| {row.bridge.name} | {row.server} | {median(answers):.0f} ({min(answers):.0f} to {max(answers):.0f}) | "
            f"{median(run.tools for run in row.runs):.0f} | {median(run.rss_mb for run in row.runs):.1f} | "
            f"{median(run.pss_mb for run in row.runs):.1f} | {median(run.processes for run in row.runs):.0f} |"
        )
    lines += [
        "",
        "The interpreters alone: " + ", ".join(f"`{name}` {took:.0f} ms" for name, took in floors.items()) + ".",
    ]
    for text, value, goal, unit in goals(rows):
        lines += [
            "",
            f"Goal: {text} under {goal} {unit}; measured {value:.0f}: {'met' if value < goal else '**missed**'}.",
        ]
    return "\n".join(lines) + "\n"


def goals(rows: Sequence[Row]) -> list[tuple[str, float, int, str]]:
    """What was measured of each goal: the worst of Interlock's rows."""
    ours = [row for row in rows if row.bridge.name == "interlock" and row.runs]
    if not ours:
        return []
    slowest = max(median(run.initialize for run in row.runs) for row in ours)
    largest = max(median(run.rss_mb for run in row.runs) for row in ours)
    return [
        ("`initialize` answered", slowest, START_GOAL_MS, "ms"),
        ("resident memory", largest, MEMORY_GOAL_MB, "MB"),
    ]


def interpreters(node: Path) -> dict[str, float]:
    """Milliseconds that the interpreters take to start and end, medians of nine."""
    found = {}
    commands = {"python -c pass": [sys.executable, "-c", "pass"]}
    if node.exists():
        commands["node -e 0"] = [str(node), "-e", "0"]
    for name, command in commands.items():
        times = []
        for _ in range(9):
            began = time.perf_counter()
            subprocess.run(command, check=False)
            times.append((time.perf_counter() - began) * 1000)
        found[name] = median(times)
    return found


async def run(arguments: argparse.Namespace, folder: Path) -> list[Row]:
    """Measures every bridge that is here with both servers."""
    chosen: list[bridges.Bridge] = [bridges.Interlock()]
    rival = bridges.mcp_remote(arguments.cache)
    if rival is not None:
        chosen.append(rival)
    rows: list[Row] = []
    with serving([sys.executable, "-m", "interlock.lab.modern_server", "--http", "0"]) as running:
        async with AuthLab(era="modern") as lab:
            for bridge in chosen:
                signed = folder / f"{bridge.name}-protected"
                stage = Stage(bridge, lab, signed)
                stage.home.mkdir(parents=True, mode=0o700)
                stage.browser.install()
                trouble = ""
                try:
                    await stage.sign_in()
                except RuntimeError as error:
                    trouble = str(error).partition("\n")[0]
                rows.append(Row(bridge, PROTECTED, lab.url, signed, "echo", trouble=trouble))
                plain = folder / f"{bridge.name}-open"
                (plain / "state").mkdir(parents=True, mode=0o700)
                rows.append(Row(bridge, OPEN, running.url, plain, "test_simple_text"))
            await measure(rows, arguments.runs)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--no-setup", action="store_true", help="use what the cache holds")
    parser.add_argument("--output", type=Path, default=BENCHMARKS / "results")
    parser.add_argument("--write-docs", action="store_true")
    arguments = parser.parse_args()
    rivals = Rivals(arguments.cache)
    if not arguments.no_setup:
        try:
            install_npm(rivals)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"not installed: {error}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="interlock-bench-") as folder, contextlib.redirect_stderr(None):
        rows = asyncio.run(run(arguments, Path(folder)))
    fragment = table(rows, interpreters(rivals.node))
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "bridge_start.md").write_text(fragment)
    document = {
        "machine": machine(),
        "rows": [
            {
                "bridge": row.bridge.name,
                "server": row.server,
                "trouble": row.trouble,
                "runs": list(map(asdict, row.runs)),
            }
            for row in rows
        ],
    }
    (arguments.output / "bridge_start.json").write_text(json.dumps(document, indent=1) + "\n")
    print(fragment)
    if arguments.write_docs:
        replace_figures(REPOSITORY / "docs" / "bridge.md", "bridge-start", fragment)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
