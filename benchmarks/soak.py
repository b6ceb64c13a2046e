"""A million tool calls through one gateway (`make soak`): does it grow, and does it leak?

    python benchmarks/soak.py                   a million calls at concurrency 16
    python benchmarks/soak.py --calls 100000    a short sample
    python benchmarks/soak.py --eras modern --upstreams stdio   to find what grows

One `interlock up` with an HTTP and a stdio upstream, called in turn; chunks of modern calls alternate with chunks of
legacy ones in a session that is opened and ended for each, so that connections and sessions come and go. After each
chunk the gateway's memory is read. Exit 0 when all three hold, otherwise 1:

- resident memory in the last quarter of the calls is within 5 % of the second quarter (medians);
- after the last call the gateway has as many descriptors (4 more at most) and exactly as many
  processes as after the warm-up;
- every answer was the right one.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness import gateway, wrk
from harness.mcp_http import Endpoint
from harness.processes import (
    BENCHMARKS,
    REPOSITORY,
    Program,
    anonymous_kib,
    descendants,
    descriptors,
    free_port,
    rss_kib,
)
from harness.report import machine_line, replace_figures
from harness.rivals import Rivals, default_cache
from setup_rivals import install_python

GROWTH_LIMIT = 0.05
SPARE_DESCRIPTORS = 4
_SETTLE_SECONDS = 40
_STEADY_SECONDS = 10
"""Longer than pooled connections may idle, so that what is still open then is held."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The gateway's own process after so many calls."""

    calls: int
    rss_kib: int
    anonymous_kib: int
    descriptors: int
    processes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the run found."""

    samples: tuple[Sample, ...]
    warm: Sample
    end: Sample
    seconds: float
    bad: int
    example: str
    store_mib: float

    def quarter(self, number: int) -> list[Sample]:
        """The samples of one quarter (1 to 4), by calls made."""
        total = self.samples[-1].calls
        return [s for s in self.samples if (number - 1) * total / 4 < s.calls <= number * total / 4]

    def growth(self) -> float:
        """Median resident memory of the last quarter over that of the second, minus 1."""
        second, last = (median(s.rss_kib for s in self.quarter(number)) for number in (2, 4))
        return last / second - 1

    def troubles(self) -> list[str]:
        """What did not hold, in words; empty when all did."""
        found = []
        if abs(self.growth()) > GROWTH_LIMIT:
            found.append(f"memory changed by {self.growth():+.1%} from the second to the last quarter")
        if self.end.descriptors > self.warm.descriptors + SPARE_DESCRIPTORS:
            found.append(f"{self.end.descriptors} descriptors at the end, {self.warm.descriptors} at the start")
        if self.end.processes != self.warm.processes:
            found.append(f"{self.end.processes} processes at the end, {self.warm.processes} at the start")
        if self.bad:
            found.append(f"{self.bad} wrong answers, one of them: {self.example}")
        return found


def sample(program: Program, calls: int) -> Sample:
    """Reads /proc now."""
    pid = program.pid
    return Sample(calls, rss_kib(pid), anonymous_kib(pid), descriptors(pid), len(descendants(pid)))


def settled(program: Program, calls: int) -> Sample:
    """Waits until descriptors and processes have not changed for ten seconds (forty at most), then reads."""
    end = time.monotonic() + _SETTLE_SECONDS
    readings = [sample(program, calls)]
    while time.monotonic() < end:
        time.sleep(1)
        readings.append(sample(program, calls))
        recent = readings[-_STEADY_SECONDS - 1 :]
        if len(recent) > _STEADY_SECONDS and len({(r.descriptors, r.processes) for r in recent}) == 1:
            break
    return readings[-1]


def run(
    python: str,
    calls: int,
    warm_up: int,
    concurrency: int,
    chunk_seconds: int,
    eras: Sequence[str],
    upstreams: Sequence[str],
) -> Outcome:
    """Starts everything, makes the calls, and ends everything."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-soak-")))
        upstream_port, port = free_port(), free_port()
        responders = BENCHMARKS / "responders"
        command = [python, str(responders / "fast_http.py"), "--port", str(upstream_port)]
        stack.enter_context(Program(command, folder / "upstream.log")).wait_for_port(upstream_port)
        home = folder / "home"
        home.mkdir(mode=0o700)
        manifest = folder / "interlock.yaml"
        pipe = gateway.Server("pipe", command=(python, str(responders / "fast_stdio.py")))
        gateway.write_manifest(manifest, [gateway.Server("web", url=f"http://127.0.0.1:{upstream_port}/mcp"), pipe])
        command = gateway.up_command(manifest, gateway.trusted_hash(manifest, home), home, port)
        program = stack.enter_context(Program(command, folder / "up.log", environment=gateway.environment()))
        program.wait_for_port(port)

        made, bad, example, chunks = 0, 0, "", 0
        samples: list[Sample] = []
        keys = {"http": "web", "stdio": "pipe"}
        names = Endpoint(port).wait_for_tools("echo", 2)
        tools = ",".join(name for name in names if name.startswith(tuple(keys[kind] for kind in upstreams)))

        def chunk() -> int:
            nonlocal bad, example, chunks
            endpoint = Endpoint(port, modern=eras[chunks % len(eras)] == wrk.MODERN)
            chunks += 1
            endpoint.open()
            cell = wrk.run(
                endpoint.url,
                concurrency=concurrency,
                seconds=chunk_seconds,
                tool=tools,
                era=wrk.MODERN if endpoint.modern else wrk.LEGACY,
                session=endpoint.session,
            )
            endpoint.close()
            bad += cell.bad
            example = example or cell.sample
            return cell.good

        # At least one chunk an era, however many calls that is.
        warmed, least = 0, len(eras)
        while warmed < warm_up or chunks < least:
            warmed += chunk()
        warm = settled(program, 0)
        begin = time.monotonic()
        while made < calls:
            good = chunk()
            if not good:
                raise RuntimeError(f"no call succeeded: {example}\n{program.tail()}")
            made += good
            samples.append(sample(program, made))
            print(f"{made:>9,} of {calls:,} calls, {samples[-1].rss_kib / 1024:.1f} MiB", file=sys.stderr, flush=True)
        seconds = time.monotonic() - begin
        end = settled(program, made)
        store = sum(file.stat().st_size for file in home.rglob("*") if file.is_file()) / 2**20
        return Outcome(tuple(samples), warm, end, seconds, bad, example, store)


def table(outcome: Outcome, concurrency: int, eras: Sequence[str], upstreams: Sequence[str]) -> str:
    """Markdown: memory by quarter, descriptors and processes, and the verdict."""
    calls = outcome.samples[-1].calls
    lines = [machine_line(), ""]
    lines += [
        f"{calls:,} calls at concurrency {concurrency} in {outcome.seconds:.0f} s, chunks of eras in turn: "
        f"{', '.join(eras)}; calls to upstreams in turn: {', '.join(upstreams)}; "
        f"{outcome.store_mib:.0f} MiB on disk afterwards.",
        "",
        "| quarter of the calls | resident MiB (median) | of it anonymous | descriptors under load | processes |",
        "| --- | --- | --- | --- | --- |",
    ]
    for number in (1, 2, 3, 4):
        samples = outcome.quarter(number)
        resident, anonymous = (
            median(values) / 1024 for values in ([s.rss_kib for s in samples], [s.anonymous_kib for s in samples])
        )
        count, processes = max(s.descriptors for s in samples), max(s.processes for s in samples)
        lines.append(f"| {number} | {resident:.1f} | {anonymous:.1f} | {count} | {processes} |")
    warm, end = outcome.warm, outcome.end
    lines += [
        "",
        f"Last quarter against second: {outcome.growth():+.2%} (goal: within {GROWTH_LIMIT:.0%}). At rest before and "
        f"after: {warm.descriptors} and {end.descriptors} descriptors, {warm.processes} and {end.processes} processes. "
        f"Wrong answers: {outcome.bad}.",
    ]
    return "\n".join(lines) + "\n"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--warm-up", type=int, default=50_000, help="calls before the first reading")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--chunk-seconds", type=int, default=1, help="length of one chunk, whole seconds")
    parser.add_argument("--eras", nargs="+", choices=(wrk.MODERN, wrk.LEGACY), default=[wrk.MODERN, wrk.LEGACY])
    parser.add_argument("--upstreams", nargs="+", choices=("http", "stdio"), default=["http", "stdio"])
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where the upstreams' Python is installed")
    parser.add_argument("--write-docs", action="store_true")
    arguments = parser.parse_args(words)
    rivals = Rivals(arguments.cache)
    install_python(rivals, "floor")
    outcome = run(
        str(rivals.python("floor")),
        arguments.calls,
        arguments.warm_up,
        arguments.concurrency,
        arguments.chunk_seconds,
        arguments.eras,
        arguments.upstreams,
    )
    if not all(outcome.quarter(number) for number in (1, 2, 3, 4)):
        print("too few chunks for quarters: make more calls", file=sys.stderr)
        return 2
    fragment = table(outcome, arguments.concurrency, arguments.eras, arguments.upstreams)
    print(fragment)
    for trouble in outcome.troubles():
        print(f"FAILED: {trouble}")
    if arguments.write_docs:
        replace_figures(REPOSITORY / "docs" / "speed.md", "soak", fragment)
    return 1 if outcome.troubles() else 0


if __name__ == "__main__":
    raise SystemExit(main())
