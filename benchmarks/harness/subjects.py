"""What one benchmark run measures: a list of rows for an HTTP upstream and one for a stdio upstream.

All programs of one upstream kind are started once and stay up; the rows are then measured in turn. A program that
does not start is reported and left out, so that one broken rival does not spoil a run.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness import contextforge, gateway, wrk
from harness.mcp_http import Endpoint, NotReadyError
from harness.processes import BENCHMARKS, Program, StartError, free_port
from harness.rivals import Rivals
from harness.wrk import LEGACY, MODERN, Cell

HTTP = "http"
STDIO = "stdio"

DIRECT = "direct"
FLOOR = "floor"
INTERLOCK = "Interlock"
INTERLOCK_LEGACY = "Interlock, legacy client"
FASTMCP_SHARED = "FastMCP proxy, shared client"
FASTMCP_DEFAULT = "FastMCP proxy, default"
SUPERGATEWAY = "supergateway, stateful"
MCP_PROXY_PYPI = "mcp-proxy (PyPI)"
MCP_PROXY_NPM = "mcp-proxy (npm)"
MCP_PROXY_NPM_LEGACY = "mcp-proxy (npm), legacy client"
CONTEXTFORGE = "ContextForge"

_RESPONDERS = BENCHMARKS / "responders"
_STDIO_RESPONDER = "fast_stdio.py"


@dataclass(slots=True)
class Row:
    """One line of the table: how to load it, and which program's CPU time it costs (None: not told apart)."""

    name: str
    era: str
    measure: Callable[[int, float], Cell]
    program: Program | None = None

    def cell(self, concurrency: int, seconds: float) -> Cell:
        """One measurement, with the CPU time that the program (without the upstream's child) spent a good answer."""
        before = _cpu(self.program)
        cell = self.measure(concurrency, seconds)
        return replace(cell, cpu_us=(_cpu(self.program) - before) / cell.good * 1e6 if cell.good else 0.0)


@dataclass(slots=True)
class Stage:
    """The running programs of one upstream kind."""

    kind: str
    rows: list[Row] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def _cpu(program: Program | None) -> float:
    return program.usage(without=_STDIO_RESPONDER).cpu_seconds if program is not None else 0.0


class Builder:
    """Starts programs into an exit stack and appends their rows."""

    def __init__(self, stack: contextlib.ExitStack, folder: Path, rivals: Rivals, kind: str, wanted: set[str]) -> None:
        self.stack, self.folder, self.rivals, self.kind = stack, folder, rivals, kind
        self.stage = Stage(kind)
        self.wanted = wanted
        self.python = str(rivals.python("floor"))
        self.child = [self.python, str(_RESPONDERS / _STDIO_RESPONDER)]
        self.upstream_port = free_port()

    @property
    def upstream_url(self) -> str:
        return f"http://127.0.0.1:{self.upstream_port}/mcp"

    def wants(self, *names: str) -> bool:
        """Whether any of the rows was asked for; everything is, where no names were given."""
        return not self.wanted or any(name in self.wanted for name in names)

    def start(self, name: str, command: list[str], port: int, environment: dict[str, str] | None = None) -> Program:
        """Starts a program and waits for its port; raises StartError."""
        log = self.folder / f"{self.kind}-{''.join(c if c.isalnum() else '-' for c in name)}.log"
        program = self.stack.enter_context(Program(command, log, environment=environment))
        program.wait_for_port(port)
        return program

    def add(self, name: str, program: Program, endpoint: Endpoint, tool: str | None = None) -> None:
        """Finds the tool, warms the path up, and appends the row."""
        try:
            exposed = tool or endpoint.wait_for_tools("echo")[0]
        except NotReadyError as error:
            raise StartError(f"{error}\n{program.tail()}") from error
        era = MODERN if endpoint.modern else LEGACY

        def measure(concurrency: int, seconds: float) -> Cell:
            return wrk.run(
                endpoint.url,
                concurrency=concurrency,
                seconds=seconds,
                tool=exposed,
                era=era,
                session=endpoint.session,
                headers=endpoint.headers,
            )

        warm = measure(4, 1)
        if warm.good == 0:
            raise StartError(f"no good answer: {warm.sample}\n{program.tail()}")
        self.stage.rows.append(Row(name, era, measure, program))

    @contextlib.contextmanager
    def attempt(self, *names: str) -> Iterator[None]:
        """Reports a row that cannot be measured and goes on."""
        try:
            yield
        except (StartError, RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
            self.stage.left_out.append(f"{', '.join(names)}: {error}")


def build(stack: contextlib.ExitStack, folder: Path, rivals: Rivals, kind: str, wanted: set[str]) -> Stage:
    """Starts everything of one upstream kind. Raises StartError only where the upstream or the floor is missing."""
    builder = Builder(stack, folder, rivals, kind, wanted)
    if kind == HTTP:
        upstream = builder.start(
            "upstream",
            [builder.python, str(_RESPONDERS / "fast_http.py"), "--port", str(builder.upstream_port)],
            builder.upstream_port,
        )
        builder.add(DIRECT, upstream, Endpoint(builder.upstream_port), "echo")
    else:
        builder.stage.rows.append(Row(DIRECT, MODERN, lambda c, s: stdio_cell(builder.python, builder.child, c, s)))
    _floor(builder)
    if builder.wants(INTERLOCK, INTERLOCK_LEGACY):
        with builder.attempt(INTERLOCK):
            _interlock(builder)
    _fastmcp(builder)
    if kind == HTTP:
        if builder.wants(CONTEXTFORGE) and rivals.python("contextforge").exists():
            with builder.attempt(CONTEXTFORGE):
                _contextforge(builder)
    else:
        _stdio_rivals(builder)
    return builder.stage


def _floor(builder: Builder) -> None:
    port = free_port()
    command = [builder.python, str(BENCHMARKS / "floor.py"), builder.kind, "--port", str(port)]
    command += ["--upstream-port", str(builder.upstream_port)] if builder.kind == HTTP else ["--", *builder.child]
    builder.add(FLOOR, builder.start(FLOOR, command, port), Endpoint(port), "echo")


def _interlock(builder: Builder) -> None:
    home = builder.folder / f"home-{builder.kind}"
    home.mkdir(mode=0o700)
    manifest = builder.folder / f"interlock-{builder.kind}.yaml"
    server = gateway.Server("echo", url=builder.upstream_url) if builder.kind == HTTP else None
    gateway.write_manifest(manifest, [server or gateway.Server("echo", command=tuple(builder.child))])
    trusted = gateway.trusted_hash(manifest, home)
    port = free_port()
    command = gateway.up_command(manifest, trusted, home, port)
    program = builder.start(INTERLOCK, command, port, gateway.environment())
    if builder.wants(INTERLOCK):
        builder.add(INTERLOCK, program, Endpoint(port))
    if builder.wants(INTERLOCK_LEGACY):
        builder.add(INTERLOCK_LEGACY, program, Endpoint(port, modern=False))


def _fastmcp(builder: Builder) -> None:
    python = builder.rivals.python("fastmcp")
    for name, mode in ((FASTMCP_SHARED, "shared"), (FASTMCP_DEFAULT, "default")):
        if not python.exists() or not builder.wants(name):
            continue
        with builder.attempt(name):
            port = free_port()
            target = [builder.upstream_url] if builder.kind == HTTP else ["--", *builder.child]
            command = [str(python), str(BENCHMARKS / "launchers" / "fastmcp_proxy.py"), mode, "--port", str(port)]
            builder.add(name, builder.start(name, command + target, port), Endpoint(port))


def _contextforge(builder: Builder) -> None:
    port = free_port()
    folder = builder.folder / "contextforge"
    folder.mkdir()
    program, token = contextforge.start(builder.rivals, folder, port)
    builder.stack.enter_context(program)
    contextforge.register(port, token, builder.upstream_url)
    headers = {"Authorization": f"Bearer {token}"}
    builder.add(CONTEXTFORGE, program, Endpoint(port, path="/mcp/", modern=False, headers=headers))


def _stdio_rivals(builder: Builder) -> None:
    rivals, child = builder.rivals, builder.child
    pypi = rivals.program("mcp-proxy", "mcp-proxy")
    if pypi.exists() and builder.wants(MCP_PROXY_PYPI):
        with builder.attempt(MCP_PROXY_PYPI):
            port = free_port()
            command = [str(pypi), "--port", str(port), "--log-level", "ERROR", "--", *child]
            builder.add(MCP_PROXY_PYPI, builder.start(MCP_PROXY_PYPI, command, port), Endpoint(port, modern=False))
    if not rivals.node.exists():
        return
    node = str(rivals.node)
    for name, modern in ((MCP_PROXY_NPM, True), (MCP_PROXY_NPM_LEGACY, False)):
        if builder.wants(name):
            with builder.attempt(name):
                port = free_port()
                command = [node, str(rivals.entry("mcp-proxy")), "--port", str(port), "--host", "127.0.0.1"]
                command += ["--server", "stream", "--upstreamProtocol", "auto" if modern else "legacy", "--", *child]
                builder.add(name, builder.start(name, command, port), Endpoint(port, modern=modern))
    if builder.wants(SUPERGATEWAY):
        with builder.attempt(SUPERGATEWAY):
            port = free_port()
            command = [node, str(rivals.entry("supergateway")), "--port", str(port), "--stdio", shlex.join(child)]
            command += ["--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none"]
            builder.add(SUPERGATEWAY, builder.start(SUPERGATEWAY, command, port), Endpoint(port, modern=False))


def stdio_cell(python: str, command: list[str], concurrency: int, seconds: float, era: str = MODERN) -> Cell:
    """One measurement of a program that speaks on stdin and stdout, started for it."""
    client = [python, str(BENCHMARKS / "load" / "stdio_client.py"), "--concurrency", str(concurrency)]
    client += ["--seconds", str(seconds), "--era", era, "--", *command]
    done = subprocess.run(client, capture_output=True, text=True, check=False, timeout=seconds + 120)
    lines = [line for line in done.stdout.splitlines() if line.startswith("BENCH ")]
    if not lines:
        raise StartError(f"the stdio client said nothing usable: {done.stderr[-500:]}")
    return wrk.cell_from(json.loads(lines[-1].removeprefix("BENCH ")))
