"""How soon a host gets its first answer, and what an idle gateway costs.

    python benchmarks/start.py [--runs 15] [--servers 20] [--cache DIR] [--no-setup] [--write-docs]

Time: from the start of the process until its answer to `initialize` (or `server/discover`) has been read, and until it
has listed tools. Programs are run in turn, after one run each that is not counted, so that all find a warm disk, and
Interlock the catalogue of its last run.
Memory: `interlock up` with that many stdio servers declared and none used, when it has stopped changing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness import gateway
from harness.first_answer import Start, Subject
from harness.processes import BENCHMARKS, REPOSITORY, Program, descendants, free_port, pss_kib, rss_kib
from harness.report import machine_line, replace_figures
from harness.rivals import Rivals, default_cache
from setup_rivals import install_all

START_GOAL_MS = 150
MEMORY_GOAL_MIB = 60
_OURS = "interlock connect, initialize"


def subjects(folder: Path, rivals: Rivals, count: int, upstream_port: int) -> list[Subject]:
    """Interlock, the two rivals where they are installed, and what the interpreters alone take."""
    python = str(rivals.python("floor"))
    child = (python, str(BENCHMARKS / "responders" / "fast_stdio.py"))
    names = [f"server{number:02}" for number in range(1, count + 1)]
    found = [Subject("python -c pass, to its end", [sys.executable, "-c", "pass"], modern=None)]
    manifest, home = _interlock_files(folder, names, child)
    command = gateway.connect_command(manifest, gateway.trusted_hash(manifest, home), home)
    found.append(Subject(f"{_OURS}, {count} servers", command, gateway.environment()))
    found.append(Subject(f"interlock connect, server/discover, {count} servers", command, gateway.environment(), True))
    url = f"http://127.0.0.1:{upstream_port}/mcp"
    if rivals.node.exists():
        node = str(rivals.node)
        found.append(Subject("node -e 0, to its end", [node, "-e", "0"], modern=None))
        remote = [node, str(rivals.entry("mcp-remote")), url, "--allow-http", "--transport", "http-only"]
        found.append(Subject("mcp-remote, 1 server", remote, {"MCP_REMOTE_CONFIG_DIR": str(folder / "mcp-remote")}))
    fastmcp = rivals.program("fastmcp", "fastmcp")
    if fastmcp.exists():
        servers = {name: {"command": child[0], "args": list(child[1:])} for name in names}
        config = folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": servers}))
        found.append(Subject("fastmcp run, 1 server", [str(fastmcp), "run", url, "--no-banner"]))
        found.append(Subject(f"fastmcp run, {count} servers", [str(fastmcp), "run", str(config), "--no-banner"]))
    return found


def _interlock_files(folder: Path, names: Sequence[str], child: tuple[str, ...]) -> tuple[Path, Path]:
    home = folder / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    manifest = folder / "interlock.yaml"
    gateway.write_manifest(manifest, [gateway.Server(name, command=child) for name in names])
    return manifest, home


@dataclass(frozen=True, slots=True)
class Idle:
    """Memory of an idle gateway in MiB, over all its processes."""

    pss_mib: float
    rss_mib: float
    processes: int


def idle_memory(folder: Path, python: str, count: int) -> Idle:
    """Starts `up` and reads its memory once it has been the same, to 1 %, for three seconds (30 s at most)."""
    child = (python, str(BENCHMARKS / "responders" / "fast_stdio.py"))
    manifest, home = _interlock_files(folder, [f"server{n:02}" for n in range(1, count + 1)], child)
    port = free_port()
    command = gateway.up_command(manifest, gateway.trusted_hash(manifest, home), home, port)
    with Program(command, folder / "up.log", environment=gateway.environment()) as program:
        program.wait_for_port(port)
        readings: list[int] = []
        for _ in range(60):
            time.sleep(0.5)
            readings.append(program.usage().pss_kib)
            if len(readings) >= 7 and max(readings[-7:]) <= min(readings[-7:]) * 1.01:
                break
        pids = descendants(program.pid)
        return Idle(sum(map(pss_kib, pids)) / 1024, sum(map(rss_kib, pids)) / 1024, len(pids))


def table(found: Sequence[Subject], idle: Idle, count: int) -> str:
    """Markdown: times of all subjects, then memory, each with its goal."""
    lines = [machine_line(), ""]
    lines += ["| started | first answer, ms (lowest to highest) | CPU until then, ms | tools listed, ms | runs |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for subject in found:
        starts = subject.starts
        first = _median(starts, lambda start: start.answer)
        if starts:
            answers = [start.answer for start in starts]
            first += f" ({min(answers):.0f} to {max(answers):.0f})"
        cpu, tools = _median(starts, lambda start: start.cpu), _median(starts, lambda start: start.tools)
        lines.append(f"| {subject.name} | {first} | {cpu} | {tools} | {len(starts)} |")
    for subject in found:
        if subject.name.startswith(_OURS) and subject.starts:
            value = median(start.answer for start in subject.starts)
            verdict = "met" if value <= START_GOAL_MS else "**missed**"
            lines += ["", f"Goal: `initialize` answered within {START_GOAL_MS} ms; measured {value:.0f} ms: {verdict}."]
    verdict = "met" if idle.pss_mib < MEMORY_GOAL_MIB else "**missed**"
    lines += [
        "",
        f"Idle `interlock up` with {count} stdio servers declared and none used: {idle.pss_mib:.1f} MiB "
        f"proportional, {idle.rss_mib:.1f} MiB resident, {idle.processes} processes. "
        f"Goal: under {MEMORY_GOAL_MIB} MiB: {verdict}.",
    ]
    return "\n".join(lines) + "\n"


def _median(starts: Sequence[Start], value: Callable[[Start], float | None]) -> str:
    values = [found for found in map(value, starts) if found is not None]
    return f"{median(values):.0f}" if values else "-"


def measure(found: Sequence[Subject], runs: int, log: Path) -> None:
    """One run each that is not counted, then `runs` in turn; a program that fails once is left out from then on."""
    for number in range(runs + 1):
        for subject in found:
            if subject.trouble:
                continue
            try:
                start = subject.start(log)
            except (OSError, subprocess.TimeoutExpired) as error:
                subject.trouble = str(error)
                print(f"left out: {subject.name}: {error}", file=sys.stderr)
                continue
            if number:
                subject.starts.append(start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--no-setup", action="store_true", help="use what the cache holds")
    parser.add_argument("--write-docs", action="store_true")
    arguments = parser.parse_args()
    rivals = Rivals(arguments.cache)
    if not arguments.no_setup:
        for failure in install_all(rivals, contextforge=False):
            print(f"not installed: {failure}", file=sys.stderr)
    python = str(rivals.python("floor"))
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-bench-")))
        port = free_port()
        responder = [python, str(BENCHMARKS / "responders" / "fast_http.py"), "--port", str(port)]
        stack.enter_context(Program(responder, folder / "upstream.log")).wait_for_port(port)
        found = subjects(folder, rivals, arguments.servers, port)
        measure(found, arguments.runs, folder / "subject.log")
        idle = idle_memory(folder, python, arguments.servers)
    fragment = table(found, idle, arguments.servers)
    print(fragment)
    if arguments.write_docs:
        replace_figures(REPOSITORY / "docs" / "speed.md", "start", fragment)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
