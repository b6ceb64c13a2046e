"""Which server stack and which HTTP client should the gateway's front be made of?

Measures every pair as a byte forwarder with one JSON parse a request, between wrk and the fast HTTP responder, in
interleaved rounds, and prints a Markdown table. What decides is the ratio inside one run, and what a call costs in CPU.

    python benchmarks/front_choice.py --rounds 3 --seconds 3
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path

from harness import wrk
from harness.medians import Measurements
from harness.processes import BENCHMARKS, REPOSITORY, Program, StartError, free_port
from harness.report import machine_line, replace_figures
from harness.rivals import Rivals, default_cache
from setup_rivals import install_python

SERVERS = ("protocol", "uvicorn", "granian")
CLIENTS = ("raw", "raw-httptools", "aiohttp", "httpx2")
DIRECT = "direct"


def measure(
    python: str, rounds: int, seconds: float, concurrencies: list[int], servers: list[str], clients: list[str]
) -> Measurements:
    """Starts every pair once, then measures them in turn, round after round."""
    found = Measurements()
    with contextlib.ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-bench-")))
        upstream_port = free_port()
        upstream = stack.enter_context(
            Program(
                [python, str(BENCHMARKS / "responders" / "fast_http.py"), "--port", str(upstream_port)],
                logs / "upstream.log",
            )
        )
        upstream.wait_for_port(upstream_port)
        rows: list[tuple[str, int, Program]] = [(DIRECT, upstream_port, upstream)]
        for server in servers:
            for client in clients:
                port = free_port()
                command = [python, str(BENCHMARKS / "floor.py"), "http", "--server", server, "--client", client]
                command += ["--port", str(port), "--upstream-port", str(upstream_port)]
                name = f"{server} + {client}"
                program = stack.enter_context(Program(command, logs / f"{server}-{client}.log"))
                try:
                    program.wait_for_port(port, 20)
                except StartError as error:
                    print(f"{name}: left out: {error}")
                    continue
                wrk.run(f"http://127.0.0.1:{port}/mcp", concurrency=16, seconds=1)
                rows.append((name, port, program))
        for _ in range(rounds):
            for concurrency in concurrencies:
                for name, port, program in rows:
                    before = program.usage().cpu_seconds
                    cell = wrk.run(f"http://127.0.0.1:{port}/mcp", concurrency=concurrency, seconds=seconds)
                    spent = program.usage().cpu_seconds - before
                    found.add(name, concurrency, replace(cell, cpu_us=spent / max(1, cell.good) * 1e6))
    return found


def table(found: Measurements) -> str:
    """One line a pair: calls/s and p50 at each concurrency, CPU a call at the highest, and the ratio to direct."""
    concurrencies = found.concurrencies()
    head = ["server + client", *(f"{c}: calls/s (p50, p99 ms)" for c in concurrencies), "CPU µs a call", "bad"]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for row in found.rows():
        cells = [row]
        bad, cpu = 0, 0.0
        for concurrency in concurrencies:
            summary = found.summary(row, concurrency)
            if summary is None:
                cells.append("-")
                continue
            bad, cpu = bad + summary.bad, summary.cpu_us
            cells.append(f"{summary.rps:,.0f} ({summary.p50_ms:.2f}, {summary.p99_ms:.2f})")
        lines.append("| " + " | ".join([*cells, f"{cpu:.0f}", str(bad)]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--servers", nargs="+", default=list(SERVERS), choices=SERVERS)
    parser.add_argument("--clients", nargs="+", default=list(CLIENTS), choices=CLIENTS)
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where the measured stacks are installed")
    parser.add_argument("--write-docs", action="store_true")
    arguments = parser.parse_args()
    rivals = Rivals(arguments.cache)
    install_python(rivals, "floor")
    found = measure(
        str(rivals.python("floor")),
        arguments.rounds,
        arguments.seconds,
        arguments.concurrency,
        arguments.servers,
        arguments.clients,
    )
    text = machine_line() + "\n\n" + table(found)
    print(text)
    if arguments.write_docs:
        replace_figures(REPOSITORY / "docs" / "speed.md", "front", text + "\n")


if __name__ == "__main__":
    main()
