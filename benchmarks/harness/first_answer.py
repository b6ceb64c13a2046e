"""Starts a stdio server as a host does, and takes the times until it answers and until it lists tools."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.processes import Program, precise_cpu_seconds

_LIMIT_SECONDS = 60
_ASK_AGAIN_SECONDS = 0.02

_CLIENT = {"name": "bench", "version": "1.0.0"}
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True, slots=True)
class Start:
    """Milliseconds of one start; `cpu` is what the process itself had used when its first answer came."""

    answer: float
    tools: float | None = None
    cpu: float | None = None


@dataclass(slots=True)
class Subject:
    """A program that a host would start. `modern`: its era; None: no server, only timed until it ends."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    modern: bool | None = False
    starts: list[Start] = field(default_factory=list)
    trouble: str = ""

    def start(self, log: Path) -> Start:
        """Starts it once and ends it again. Raises TimeoutError where an answer is missing after a minute."""
        begin = time.perf_counter()
        program = Program(
            self.command, log, environment=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with program:
            if self.modern is None:
                program.process.wait(_LIMIT_SECONDS)
                return Start(_since(begin))
            conversation = _Conversation(program, begin)
            if self.modern:
                conversation.ask("server/discover", {"_meta": _META})
            else:
                hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}
                conversation.ask("initialize", hello)
            answer, cpu = _since(begin), precise_cpu_seconds(program.pid) * 1000
            if not self.modern:
                conversation.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            while not conversation.ask("tools/list", {"_meta": _META} if self.modern else {}).get("tools"):
                time.sleep(_ASK_AGAIN_SECONDS)
            return Start(answer, _since(begin), cpu)


class _Conversation:
    """Requests over the program's pipes, one after the other."""

    def __init__(self, program: Program, begin: float) -> None:
        self._program = program
        self._end = begin + _LIMIT_SECONDS
        self._last = 0
        self._pending = b""

    def send(self, message: Mapping[str, object]) -> None:
        stdin = self._program.process.stdin
        assert stdin is not None
        stdin.write(json.dumps(message).encode() + b"\n")
        stdin.flush()

    def ask(self, method: str, params: Mapping[str, object]) -> dict[str, object]:
        """The result of one request, whatever else is said meanwhile."""
        self._last += 1
        self.send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        stdout = self._program.process.stdout
        assert stdout is not None
        while (left := self._end - time.perf_counter()) > 0 and select.select([stdout], [], [], left)[0]:
            data = os.read(stdout.fileno(), 1 << 16)
            if not data:
                break
            *lines, self._pending = (self._pending + data).split(b"\n")
            for line in lines:
                with contextlib.suppress(ValueError):
                    message = json.loads(line)
                    if isinstance(message, dict) and message.get("id") == self._last and "result" in message:
                        return message["result"]  # type: ignore[no-any-return]
        raise TimeoutError(f"no answer to {method}: {self._program.tail(500)}")


def _since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1000
