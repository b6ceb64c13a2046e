"""Trying a host's Interlock entry: started as the host would start it, until every server's tools are listed."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from interlock.catalog.naming import exposed_name, profile_for
from interlock.model.names import CanonicalName

LEAVE_SECONDS = 5.0
_REVISION = "2025-06-18"


@dataclass(frozen=True, slots=True)
class Tried:
    tools: Mapping[str, int]
    """How many tools each expected server shows; one that shows none is missing."""
    trouble: str | None = None
    """Why the entry as a whole does not work."""
    said: str = ""
    """What it wrote on standard error."""


def attempt(
    command: Sequence[str], environ: Mapping[str, str], folder: str, host: str, servers: Sequence[str],
    seconds: float,
) -> Tried:  # fmt: skip
    """Start it, and list until each of these servers has shown a tool or the time is over. Never raises."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            cwd=folder,
        )
    except OSError as error:
        return Tried({}, f"{command[0]}: {error.strerror or error}")
    talk = _Talk(process, time.monotonic() + seconds)
    try:
        return talk.until_all(host, servers)
    finally:
        talk.leave()


def shows_tools(command: Sequence[str], environ: Mapping[str, str], folder: str, seconds: float) -> bool:
    """Start a server by itself: whether it lists a tool in that time. Never raises."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            cwd=folder,
        )
    except (OSError, ValueError):
        return False
    talk = _Talk(process, time.monotonic() + seconds)
    try:
        return talk.lists_something()
    finally:
        talk.leave()


class _Talk:
    """Reading in threads, because Windows cannot wait for several pipes at once."""

    def __init__(self, process: subprocess.Popen[bytes], until: float) -> None:
        self._process = process
        self._until = until
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._errors: list[bytes] = []
        self._threads = [
            threading.Thread(target=self._read_answers, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def until_all(self, host: str, servers: Sequence[str]) -> Tried:
        client = {"name": f"interlock-adopt-{host}", "version": "1"}
        begun = self._ask(1, "initialize", {"protocolVersion": _REVISION, "capabilities": {}, "clientInfo": client})
        if begun is None or "result" not in begun:
            return Tried({}, "it gave no answer to `initialize`", self._said())
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        counted: Mapping[str, int] = {}
        number = 2
        while True:
            listed = self._ask(number, "tools/list", {})
            if listed is None:
                return Tried(counted, None if counted else "it gave no answer to `tools/list`", self._said())
            counted = _counted(listed, host, servers)
            if all(counted.get(server) for server in servers) or not self._changed():
                return Tried(counted, None, self._said())
            number += 1

    def lists_something(self) -> bool:
        client = {"name": "interlock-adopt", "version": "1"}
        begun = self._ask(1, "initialize", {"protocolVersion": _REVISION, "capabilities": {}, "clientInfo": client})
        if begun is None or "result" not in begun:
            return False
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = self._ask(2, "tools/list", {})
        result = listed.get("result") if listed is not None else None
        return isinstance(result, dict) and bool(result.get("tools"))

    def leave(self) -> None:
        """Close its input, as a host does at the end."""
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
        except OSError:
            pass
        try:
            self._process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            try:
                self._process.wait(LEAVE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _ask(self, id: int, method: str, params: Mapping[str, object]) -> dict[str, object] | None:
        if not self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": params}):
            return None
        return self._wait(lambda message: message.get("id") == id and "method" not in message)

    def _changed(self) -> bool:
        """Wait until it says that its list is another one; False where it never does."""
        wanted = "notifications/tools/list_changed"
        return self._wait(lambda message: message.get("method") == wanted) is not None

    def _wait(self, fits: Callable[[dict[str, object]], bool]) -> dict[str, object] | None:
        while (left := self._until - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=left)
            except queue.Empty:
                return None
            if line is None:
                self._lines.put(None)
                return None
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and fits(message):
                return message
        return None

    def _send(self, message: Mapping[str, object]) -> bool:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return False
        return True

    def _said(self) -> str:
        return b"".join(self._errors).decode("utf-8", "replace").strip()

    def _read_answers(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._errors.append(line)


def _counted(listed: Mapping[str, object], host: str, servers: Sequence[str]) -> dict[str, int]:
    """Tools of each server, told by the beginning of their names."""
    result = listed.get("result")
    tools = result.get("tools") if isinstance(result, dict) else None
    names = [str(tool["name"]) for tool in tools or () if isinstance(tool, dict) and "name" in tool]
    profile = profile_for(host)
    counted: dict[str, int] = {}
    for server in servers:
        key = exposed_name(CanonicalName(server, "x"), profile).partition(profile.separator)[0]
        counted[server] = sum(name.partition(profile.separator)[0] == key for name in names)
    return counted
