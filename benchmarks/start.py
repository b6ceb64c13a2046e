"""How soon a host gets its first answer, and what an idle gateway costs.

    python benchmarks/start.py [--runs 15] [--servers 20] [--cache DIR] [--no-setup] [--write-docs]

Time: from the start of the process until its answer to `initialize` has been read, with the request already waiting on
its stdin. Programs are run in turn, after one run each that is not counted, so that all find a warm disk.
Memory: `interlock up` with that many stdio servers declared and none used, when it has stopped changing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from harness import gateway
from harness.processes import (
    BENCHMARKS,
    REPOSITORY,
    Program,
    descendants,
    free_port,
    precise_cpu_seconds,
    pss_kib,
    rss_kib,
)
from harness.report import machine_line, replace_figures
from harness.rivals import Rivals, default_cache
from setup_rivals import install_all

START_GOAL_MS = 150
MEMORY_GOAL_MIB = 60
_LIMIT_SECONDS = 60

_CLIENT = {"name": "bench", "version": "1.0.0"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT},
}
DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": _CLIENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}


@dataclass(slots=True)
class Subject:
    """A program that a host would start, and the first request it gets."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    request: Mapping[str, object] | None = field(default_factory=lambda: INITIALIZE)
    times_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    """CPU time that the process itself had used when its answer came; noise of the machine touches it less."""
    trouble: str = ""


def first_answer_ms(subject: Subject, log: Path) -> tuple[float, float]:
    """Milliseconds until the answer, and of CPU time; without a request until the end. Raises TimeoutError."""
    begin = time.perf_counter()
    program = Program(
        subject.command, log, environment=subject.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with program:
        assert program.process.stdin is not None
        assert program.process.stdout is not None
        if subject.request is None:
            program.process.wait(_LIMIT_SECONDS)
            return (time.perf_counter() - begin) * 1000, 0.0
        program.process.stdin.write(json.dumps(subject.request).encode() + b"\n")
        program.process.stdin.flush()
        output = program.process.stdout.fileno()
        pending = b""
        while (left := begin + _LIMIT_SECONDS - time.perf_counter()) > 0 and select.select([output], [], [], left)[0]:
            data = os.read(output, 1 << 16)
            if not data:
                break
            pending += data
            *lines, pending = pending.split(b"\n")
            for line in lines:
                if _is_answer(line):
                    taken = (time.perf_counter() - begin) * 1000
                    return taken, precise_cpu_seconds(program.pid) * 1000
        raise TimeoutError(f"{subject.name}: no answer: {program.tail(500)}")


def _is_answer(line: bytes) -> bool:
    with contextlib.suppress(ValueError):
        message = json.loads(line)
        return isinstance(message, dict) and message.get("id") == 1 and "result" in message
    return False


def subjects(folder: Path, rivals: Rivals, count: int, upstream_port: int) -> list[Subject]:
    """Interlock, the two rivals where they are installed, and what the interpreters alone take."""
    python = str(rivals.python("floor"))
    child = (python, str(BENCHMARKS / "responders" / "fast_stdio.py"))
    names = [f"server{number:02}" for number in range(1, count + 1)]
    found = [Subject("python -c pass (interpreter alone)", [sys.executable, "-c", "pass"], request=None)]
    manifest, home = _interlock_files(folder, names, child)
    try:
        command = gateway.connect_command(manifest, gateway.trusted_hash(manifest, home), home)
    except RuntimeError as error:
        print(f"left out: Interlock: {error}", file=sys.stderr)
    else:
        title = f"interlock connect, {count} servers declared"
        found.append(Subject(f"{title}: initialize", command, gateway.environment()))
        found.append(Subject(f"{title}: server/discover", command, gateway.environment(), DISCOVER))
    url = f"http://127.0.0.1:{upstream_port}/mcp"
    if rivals.node.exists():
        node = str(rivals.node)
        found.append(Subject("node -e 0 (interpreter alone)", [node, "-e", "0"], request=None))
        command = [node, str(rivals.entry("mcp-remote")), url, "--allow-http", "--transport", "http-only"]
        found.append(Subject("mcp-remote, 1 server", command, {"MCP_REMOTE_CONFIG_DIR": str(folder / "mcp-remote")}))
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


def table(found: Sequence[Subject], idle: Idle | None, count: int) -> str:
    """Markdown: times of all subjects, then memory, each with its goal."""
    lines = [machine_line(), ""]
    lines += ["| started | median ms | lowest | highest | CPU ms | runs |", "| --- | --- | --- | --- | --- | --- |"]
    for subject in found:
        times = subject.times_ms
        if times:
            figures = [f"{value:.0f}" for value in (median(times), min(times), max(times))]
            figures.append(f"{median(subject.cpu_ms):.0f}" if any(subject.cpu_ms) else "-")
            lines.append(f"| {subject.name} | {' | '.join(figures)} | {len(times)} |")
        else:
            lines.append(f"| {subject.name} | - | - | - | - | 0 |")
    ours = next((subject for subject in found if subject.name.endswith(": initialize") and subject.times_ms), None)
    if ours is not None:
        value = median(ours.times_ms)
        verdict = "met" if value <= START_GOAL_MS else "**missed**"
        lines += ["", f"Goal: `initialize` answered within {START_GOAL_MS} ms; measured {value:.0f} ms: {verdict}."]
    if idle is not None:
        verdict = "met" if idle.pss_mib < MEMORY_GOAL_MIB else "**missed**"
        lines += [
            "",
            f"Idle `interlock up` with {count} stdio servers declared and none used: {idle.pss_mib:.1f} MiB "
            f"proportional, {idle.rss_mib:.1f} MiB resident, {idle.processes} processes. "
            f"Goal: under {MEMORY_GOAL_MIB} MiB: {verdict}.",
        ]
    return "\n".join(lines) + "\n"


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
        upstream = stack.enter_context(Program(responder, folder / "upstream.log"))
        upstream.wait_for_port(port)
        found = subjects(folder, rivals, arguments.servers, port)
        for number in range(arguments.runs + 1):
            for subject in found:
                if subject.trouble:
                    continue
                try:
                    taken, cpu = first_answer_ms(subject, folder / "subject.log")
                except (OSError, TimeoutError, subprocess.TimeoutExpired) as error:
                    subject.trouble = str(error)
                    print(f"left out: {error}", file=sys.stderr)
                    continue
                if number:
                    subject.times_ms.append(taken)
                    subject.cpu_ms.append(cpu)
        idle = None
        try:
            idle = idle_memory(folder, python, arguments.servers)
        except RuntimeError as error:
            print(f"left out: idle memory: {error}", file=sys.stderr)
    fragment = table(found, idle, arguments.servers)
    print(fragment)
    if arguments.write_docs:
        replace_figures(REPOSITORY / "docs" / "speed.md", "start", fragment)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
