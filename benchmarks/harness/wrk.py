"""Runs wrk with load/call.lua against one URL and reads its last line back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass

from harness.processes import BENCHMARKS

MODERN = "modern"
LEGACY = "legacy"


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement. Rates are good answers per second; times are milliseconds."""

    rps: float
    p50_ms: float
    p99_ms: float
    good: int
    bad: int
    sample: str
    cpu_us: float = 0.0
    """CPU microseconds a good answer cost the program under test; 0 when it was not measured."""


class LoadError(RuntimeError):
    """wrk is missing, or printed no result."""


def run(
    url: str,
    *,
    concurrency: int,
    seconds: float,
    tool: str = "echo",
    era: str = MODERN,
    session: str = "",
    headers: dict[str, str] | None = None,
) -> Cell:
    """Loads `url` for about `seconds`; an answer counts only if its text belongs to its id (see call.lua)."""
    program = shutil.which("wrk")
    if program is None:
        raise LoadError("wrk is not installed: apt-get install wrk")
    environment = {
        **os.environ,
        "BENCH_TOOL": tool,
        "BENCH_ERA": era,
        "BENCH_SESSION": session,
        "BENCH_HEADERS": "\n".join(f"{name}: {value}" for name, value in (headers or {}).items()),
    }
    command = [program, "-t1", f"-c{concurrency}", f"-d{max(1, round(seconds))}s", "--timeout", "20s"]
    command += ["-s", str(BENCHMARKS / "load" / "call.lua"), url]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("BENCH ")]
    if not lines:
        raise LoadError(f"wrk said nothing usable: {done.stdout[-500:]} {done.stderr[-500:]}")
    return cell_from(json.loads(lines[-1].removeprefix("BENCH ")))


def cell_from(found: dict[str, object]) -> Cell:
    """A cell out of the JSON that call.lua and stdio_client.py print."""

    def number(name: str) -> float:
        value = found[name]
        assert isinstance(value, int | float)
        return value

    return Cell(
        rps=number("good") / number("seconds"),
        p50_ms=number("p50_us") / 1000,
        p99_ms=number("p99_us") / 1000,
        good=int(number("good")),
        bad=int(sum(number(name) for name in ("bad", "connect", "read", "write", "timeout"))),
        sample=str(found["sample"]),
    )
