"""A short talk with a stdio server, line by line, as the simplest host would hold it: for trying what was written.

Reading is in threads, because Windows cannot wait for several pipes at once.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence

LEAVE_SECONDS = 3.0
"""How long the process gets to end by itself after its input was closed."""
REVISION = "2025-06-18"
_LINES = 20
"""Of standard error, the last ones."""

Message = dict[str, object]


def start(command: Sequence[str], environ: Mapping[str, str], folder: str | None = None) -> subprocess.Popen[bytes]:
    """Raises OSError. In a session of its own: a sign-in that is under way outlives the command that started it."""
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environ),
        cwd=folder,
        start_new_session=True,
    )


class Talk:
    """With one process, until a time of `time.monotonic`. Call `leave` at the end."""

    def __init__(self, process: subprocess.Popen[bytes], until: float) -> None:
        self.process = process
        self.until = until
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._errors: list[bytes] = []
        self._threads = [
            threading.Thread(target=self._read_answers, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def begin(self, client: str) -> Message | None:
        """`initialize`, and the notification that follows a result. The answer; None where none came."""
        about = {"name": client, "version": "1"}
        begun = self.ask(1, "initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": about})
        if begun is not None and "error" not in begun:
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return begun

    def ask(self, id: int, method: str, params: Mapping[str, object]) -> Message | None:
        """The answer to this request; None where none came in time or the process ended."""
        if not self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params}):
            return None
        return self.wait(lambda message: message.get("id") == id and "method" not in message)

    def wait(self, fits: Callable[[Message], bool]) -> Message | None:
        """The next message that fits; None where none comes in time."""
        while (left := self.until - time.monotonic()) > 0:
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

    def send(self, message: Mapping[str, object]) -> bool:
        """False where the process does not take it."""
        if self.process.stdin is None:
            return False
        try:
            self.process.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            return False
        return True

    def ended(self) -> int | None:
        """Its exit code, also where its output ended just before it did; None where it runs."""
        code = self.process.poll()
        if code is None and time.monotonic() < self.until:
            try:
                code = self.process.wait(LEAVE_SECONDS)
            except subprocess.TimeoutExpired:
                code = None
        if code is not None:
            self._threads[1].join(LEAVE_SECONDS)
        return code

    def said(self) -> str:
        """The last lines that it wrote on standard error."""
        return b"".join(self._errors).decode("utf-8", "replace").strip()

    def leave(self, *, stay: bool = False) -> None:
        """Close its input, as a host does at the end. With `stay` a process that keeps a sign-in open is left alone."""
        try:
            if self.process.stdin is not None:
                self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            if stay:
                return
            self.process.terminate()
            try:
                self.process.wait(LEAVE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _read_answers(self) -> None:
        if self.process.stdout is not None:
            for line in self.process.stdout:
                self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self) -> None:
        if self.process.stderr is not None:
            for line in self.process.stderr:
                self._errors = [*self._errors[-_LINES:], line]


def tool_names(listed: Message) -> tuple[str, ...]:
    """The names in an answer to `tools/list`."""
    result = listed.get("result")
    tools = result.get("tools") if isinstance(result, dict) else None
    return tuple(str(tool["name"]) for tool in tools or () if isinstance(tool, dict) and "name" in tool)
