"""Bad input from either side against a real gateway: `python -m tests.badinput.run --count 100000`.

A gateway with a good and four bad servers gets generated bad messages from clients (HTTP, stdio) and servers (HTTP and SSE,
stdio), while a canary calls the good server. It must not crash, hang or grow; an error comes where one is due; the canary
notices nothing. Exit code 0 where all of that holds. `--only NUMBER` repeats one case and shows it.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .canary import Canary
from .cases import SIDES, Case, Side, case, sides
from .clients import Http, Stdio, Wrong, attack_http, call_bad
from .servers import Bad, serve_http, serve_pump

ROOT = Path(__file__).resolve().parents[2]
PUMP = ROOT / "tests" / "fidelity" / "pump.py"
WORKERS = {"client-http": 8, "client-stdio": 6, "server-http": 24, "server-stdio": 24}
QUIET_SECONDS = 1.5
"""Before memory is looked at: the last open things end with the deadlines of the calls that they belong to."""
ROOM = 8.0
"""MiB that memory may grow by, where a twentieth of it is less."""
TRIES = 3
_LISTENING = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)/")


@dataclass(slots=True)
class Report:
    """What a run found. Sizes in MiB, times in seconds."""

    count: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    repeated: int = 0
    """Calls to bad servers that were made once more before they were judged."""
    canary_calls: int = 0
    canary_longest: float = 0.0
    samples: list[tuple[int, float]] = field(default_factory=list)
    """Cases done and MiB resident, ten times a second."""
    end: float = 0.0
    descriptors: tuple[int, int] = (0, 0)
    exit_code: int | None = None
    said: str = ""

    def memory(self, start: float, end: float) -> float:
        """The least that was resident while this stretch of the cases was done (0 to 1).

        The least, because what the C library keeps of large messages comes and goes; what is kept for good stays.
        """
        return min((size for done, size in self.samples if start * self.count <= done <= end * self.count), default=0.0)

    @property
    def growth(self) -> float:
        """From the second quarter, when what is needed is there, to the second half."""
        return self.memory(0.5, 1.0) - self.memory(0.25, 0.5)

    @property
    def peak(self) -> float:
        return max((size for _, size in self.samples), default=0.0)


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "INTERLOCK_HOME": str(home), "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"}


def entry(key: str, transport: dict[str, object]) -> dict[str, object]:
    policy = {"defaultApproval": "auto", "toolTimeoutSeconds": 1 if key != "good" else 30}
    made = {
        "schemaVersion": "agent-routing/v1",
        "integrationId": f"test.{key}",
        "key": key,
        "transports": transport,
        "policy": policy,
    }
    return made | ({"processes": "shared"} if "stdio" in transport else {})


class Gateway:
    """`interlock up`, measured from outside."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.port = 0
        self.said = bytearray()
        self._hearing: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, manifest: Path, home: Path, trust: str) -> Gateway:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "interlock", "up", "--manifest", str(manifest), "--trusted-hash", trust, "--home", str(home),
            "--port", "0", "--no-credential", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE, env=environment(home), cwd=home,
        )  # fmt: skip
        gateway = cls(process)
        listening = asyncio.Event()

        async def hear() -> None:
            assert process.stderr is not None
            while line := await process.stderr.readline():
                if len(gateway.said) < 1_000_000:
                    gateway.said += line
                if found := _LISTENING.search(line):
                    gateway.port = int(found[1])
                    listening.set()
            listening.set()

        gateway._hearing = asyncio.ensure_future(hear())
        async with asyncio.timeout(60):
            await listening.wait()
        if not gateway.port:
            raise RuntimeError(gateway.said.decode(errors="replace"))
        return gateway

    def memory(self) -> float:
        """MiB that are resident now."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    async def watch(self, report: Report) -> None:
        while True:
            report.samples.append((report.count, self.memory()))
            await asyncio.sleep(0.1)

    async def stop(self) -> int:
        if self.process.returncode is None:
            self.process.terminate()
            try:
                async with asyncio.timeout(30):
                    await self.process.wait()
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
                return -1
        assert self.process.returncode is not None
        return self.process.returncode


@dataclass(slots=True)
class Stage:
    """Everything that runs."""

    gateway: Gateway
    home: Path
    options: list[str]
    bad: dict[str, Bad]
    canary: Canary


@asynccontextmanager
async def stage(folder: Path, seed: int) -> AsyncIterator[Stage]:
    bad = {
        f"bad_{transport}_{'modern' if modern else 'legacy'}": Bad(seed, f"server-{transport}", modern)  # type: ignore[arg-type]
        for transport in ("http", "stdio")
        for modern in (True, False)
    }
    bad["bad_stdio_huge"] = Bad(seed, "server-stdio", True)
    canary = await Canary.start(environment(folder))
    servers: list[asyncio.Server] = []
    entries = [entry("good", http(canary.good))]
    for key, reply in bad.items():
        modern = not key.endswith("legacy")
        if "_http_" in key:
            server = await serve_http(key, modern, False, reply)
            entries.append(entry(key, http(port_of(server))))
        else:
            server = await serve_pump(key, modern, reply)
            entries.append(entry(key, {"stdio": {"command": [sys.executable, "-S", str(PUMP), str(port_of(server))]}}))
        servers.append(server)
    home = folder / "home"
    home.mkdir(mode=0o700)
    manifest = folder / "interlock.yaml"
    manifest.write_text("\n---\n".join(json.dumps(each) for each in entries) + "\n", "utf-8")
    asked = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "interlock", "trust", "--home", str(home), "--hash", str(manifest),
        stdout=asyncio.subprocess.PIPE, env=environment(home),
    )  # fmt: skip
    trust = (await asked.communicate())[0].decode().split()[-1]
    gateway = await Gateway.start(manifest, home, trust)
    options = ["--manifest", str(manifest), "--trusted-hash", trust, "--home", str(home)]
    try:
        yield Stage(gateway, home, options, bad, canary)
    finally:
        await gateway.stop()
        await canary.kill()
        for server in servers:
            server.close()


def port_of(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])


def http(port: int) -> dict[str, object]:
    return {"http": {"endpoint": f"http://127.0.0.1:{port}/mcp"}}


async def settle(port: int) -> None:
    """Wait until every server has been listed, with each kind of client."""
    for modern in (True, False):
        client = Http(port, modern)
        await client.start()
        for _ in range(50):
            answer = await client.request("tools/list", {}, 1)
            if len(answer.messages[-1]["result"]["tools"]) == 6:
                break
            await asyncio.sleep(0.2)
        else:
            raise RuntimeError("the servers did not all appear")
        await client.close()


class Work:
    """Hands the cases of one side to its workers, in order."""

    def __init__(self, seed: int, side: Side, numbers: Sequence[int], report: Report) -> None:
        self._seed = seed
        self._side: Side = side
        self._numbers = iter(numbers)
        self._report = report

    async def each(self) -> AsyncIterator[Case]:
        for number in self._numbers:
            found = case(self._seed, number, self._side)
            self._report.kinds[f"{self._side}: {found.kind.partition('+')[0]}"] += 1
            yield found
            self._report.count += 1

    def repeat(self) -> None:
        self._report.repeated += 1

    def failed(self, found: Case, error: BaseException) -> None:
        text = str(error) or type(error).__name__
        self._report.failures.append(
            f"case {found.number} ({found.side}, {found.kind}): {text}; sent {found.data[:200]!r}"
        )


async def worker(work: Work, side: Side, where: Stage, index: int) -> None:
    port = where.gateway.port
    if side == "client-http":
        session = Http(port, False)
        await session.start()
        async for found in work.each():
            try:
                await attack_http(port, session.session, found)
            except (Wrong, TimeoutError, OSError, ValueError, asyncio.IncompleteReadError) as error:
                work.failed(found, error)
    elif side == "client-stdio":
        client = await Stdio.start(where.options, environment(where.home), where.home)
        async for found in work.each():
            try:
                await client.attack(found)
            except (Wrong, TimeoutError, OSError, ValueError) as error:
                work.failed(found, error)
                client = await Stdio.start(where.options, environment(where.home), where.home)
        await client.close()
    else:
        http_client = Http(port, modern=index % 2 == 0)
        await http_client.start()
        async for found in work.each():
            key = f"bad_{side.partition('-')[2]}_{'modern' if found.modern else 'legacy'}"
            if found.kind == "oversized" and side == "server-stdio":
                key = "bad_stdio_huge"  # it keeps its pipe busy for a while
            for left in reversed(range(TRIES)):
                try:
                    await call_bad(http_client, key, found, where.bad[key].sound)
                    break
                except (Wrong, TimeoutError, OSError, ValueError, LookupError, asyncio.IncompleteReadError) as error:
                    # What a bad server did to a connection or a pipe can cost the call after it, and a busy machine the
                    # short deadline: what is wrong with a case is so every time.
                    if left:
                        work.repeat()
                    else:
                        work.failed(found, error)
                    await http_client.close()
                    http_client = Http(port, modern=index % 2 == 0)
                    await http_client.start()
        await http_client.close()


async def attack(where: Stage, seed: int, numbers: dict[Side, list[int]], report: Report) -> None:
    """All cases, every side at once."""
    async with asyncio.TaskGroup() as group:
        for side in SIDES:
            work = Work(seed, side, numbers[side], report)
            for index in range(min(WORKERS[side], len(numbers[side]))):
                group.create_task(worker(work, side, where, index))


async def run(folder: Path, *, count: int, seed: int, only: int | None = None) -> Report:
    report = Report()
    chosen = sides(seed, max(count, (only or 0) + 1))
    numbers: dict[Side, list[int]] = {side: [] for side in SIDES}
    for number, side in enumerate(chosen):
        if only is None or number == only:
            numbers[side].append(number)
    began = time.monotonic()
    async with stage(folder, seed) as where:
        gateway = where.gateway
        await settle(gateway.port)
        where.canary.sing(gateway.port)
        watching = asyncio.ensure_future(gateway.watch(report))
        if only is None:
            # The first of each side is huge. They go first, so that what the allocator keeps of them is there early.
            await attack(where, seed, {side: found[:1] for side, found in numbers.items()}, report)
            numbers = {side: found[1:] for side, found in numbers.items()}
        descriptors = gateway.descriptors()
        await attack(where, seed, numbers, report)
        try:
            report.canary_calls, report.canary_longest = await where.canary.stop()
        except (Wrong, TimeoutError) as error:
            report.failures.append(f"canary: {error or type(error).__name__}")
        watching.cancel()
        await asyncio.sleep(QUIET_SECONDS)
        report.end = gateway.memory()
        report.descriptors = (descriptors, gateway.descriptors())
        if gateway.process.returncode is not None:
            report.failures.append(f"the gateway ended by itself with {gateway.process.returncode}")
        report.exit_code = await gateway.stop()
        report.said = gateway.said.decode(errors="replace")
    if "Traceback" in report.said:
        report.failures.append("the gateway had a fault of its own; see what it said")
    report.seconds = time.monotonic() - began
    return report


def show(report: Report) -> None:
    for kind, number in sorted(report.kinds.items()):
        print(f"{number:8}  {kind}")
    print(f"{report.count} cases in {report.seconds:.0f} s")
    print(f"{report.repeated} calls to bad servers were made once more")
    print(f"canary: {report.canary_calls} calls, the longest took {report.canary_longest * 1000:.0f} ms")
    quarters = ", ".join(f"{report.memory(at, at + 0.25):.1f}" for at in (0.0, 0.25, 0.5, 0.75))
    print(
        f"memory in MiB, the least in each quarter: {quarters}; {report.end:.1f} at the end, {report.peak:.1f} at most"
    )
    print(f"descriptors: {report.descriptors[0]} at the start, {report.descriptors[1]} at the end")
    print(f"exit code of the gateway: {report.exit_code}")
    for failure in report.failures[:50]:
        print(f"FAILED {failure}")
    if "Traceback" in report.said:
        print(report.said[-5000:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="the report as one line of JSON, last")
    parser.add_argument("--only", type=int, help="repeat this case alone")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = asyncio.run(run(Path(folder), count=args.count, seed=args.seed, only=args.only))
    if args.only is not None:
        print(case(args.seed, args.only, sides(args.seed, max(args.count, args.only + 1))[args.only]))
    if args.only is None and report.growth > max(ROOM, report.memory(0.25, 0.5) * 0.05):
        report.failures.append(f"memory grew by {report.growth:.1f} MiB")
    if report.exit_code != 0:
        report.failures.append(f"the gateway ended with {report.exit_code}")
    show(report)
    if args.json:
        values = {each.name: getattr(report, each.name) for each in dataclasses.fields(report)}
        del values["samples"]
        print(json.dumps({**values, "growth": report.growth, "peak": report.peak}))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
