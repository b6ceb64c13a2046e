"""Codex: its app-server says what the layers come to (`config/read`) and which servers answer (`mcpServerStatus/list`).

Where the app-server does not answer, `codex mcp list --json` does; it only reads files.

It writes: on its first start Codex lays its own skills, databases and logs into CODEX_HOME; it never changes config.toml for
this. Servers of a project are tried in a thread that is not kept, and only where the project is trusted already.
Observed with 0.171.0.
"""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Iterable

from interlock.hosts.oracles.asked import Asked, OracleSays
from interlock.hosts.oracles.running import CannotRun, Output, end, program, run, shown, start
from interlock.hosts.plugins.files import inner, text_of
from interlock.hosts.reading import Reading

MOST_OUTPUT = 16 * 1024 * 1024
"""Bytes that the app-server may print in all."""


class _Refused(Exception):
    """The app-server answered with an error."""


class _AppServer:
    """JSON-RPC, one message a line."""

    def __init__(self, words: list[str], reading: Reading, seconds: float) -> None:
        self.process = start(words, reading.machine, stdin=subprocess.PIPE)
        self.until = time.monotonic() + seconds
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.number = 0
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._drain, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        read = 0
        while line := self.process.stdout.readline(MOST_OUTPUT):
            read += len(line)
            if read > MOST_OUTPUT:
                break  # the pipe is left full: whoever prints so much waits until it is ended
            self.lines.put(line)
        self.lines.put(b"")

    def _drain(self) -> None:
        assert self.process.stderr is not None
        while self.process.stderr.read(65536):
            pass

    def send(self, message: dict[str, object]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise CannotRun("the app-server has ended") from None

    def ask(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """Raises _Refused, CannotRun."""
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            left = self.until - time.monotonic()
            try:
                if left <= 0:
                    raise queue.Empty
                line = self.lines.get(timeout=left)
            except queue.Empty:
                raise CannotRun(f"the app-server did not answer `{method}` in time") from None
            if not line:
                raise CannotRun("the app-server has ended")
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict) and message.get("id") == self.number and "method" not in message:
                if "error" in message:
                    raise _Refused(text_of(inner(message, "error").get("message")))
                return inner(message, "result")


def ask(reading: Reading, seconds: float, known: Iterable[str]) -> Asked:
    codex = program(reading.machine, "codex")
    until = time.monotonic() + seconds
    asked = Asked(host="codex", command=("codex", "app-server"), live=True)
    try:
        server = _AppServer([codex, "app-server"], reading, seconds)
    except CannotRun:
        return _list(codex, reading, seconds, known)
    silent: CannotRun | None = None
    try:
        _converse(server, reading, asked, known)
    except _Refused as error:
        asked.refuses, asked.trouble = True, shown(str(error), known)
    except CannotRun as error:
        asked.trouble = str(error)
        silent = error
    finally:
        end(server.process)
    left = until - time.monotonic()
    if silent is None or asked.servers or left <= 0:
        return asked
    return _list(codex, reading, left, known)  # it only reads files, and is soon done


def _converse(server: _AppServer, reading: Reading, asked: Asked, known: Iterable[str]) -> None:
    server.ask("initialize", {"clientInfo": {"name": "interlock", "version": "1"}})
    server.send({"method": "initialized"})
    read = server.ask("config/read", {"includeLayers": True, "cwd": reading.machine.folder})
    origins = {name: _file(value) for name, value in inner(read, "origins").items()}
    for name, raw in inner(read, "config", "mcp_servers").items():
        asked.servers[name] = _of_config(name, inner(raw), origins, known)
    project = False
    layers = read.get("layers")
    for layer in layers if isinstance(layers, list) else []:
        reason = text_of(inner(layer).get("disabledReason"))
        if reason:
            asked.notes.append(shown(reason, known))
        elif inner(layer, "name").get("type") == "project":
            project = True
    params: dict[str, object] = {}
    if project:
        thread = server.ask("thread/start", {"cwd": reading.machine.folder, "ephemeral": True})
        params = {"threadId": inner(thread, "thread").get("id")}
    for _ in range(100):
        page = server.ask("mcpServerStatus/list", params)
        listed = page.get("data")
        for each in listed if isinstance(listed, list) else []:
            _of_status(inner(each), asked, known)
        if not page.get("nextCursor"):
            break
        params = {**params, "cursor": page["nextCursor"]}


def _file(origin: object) -> str:
    name = inner(origin, "name")
    return text_of(name.get("file")) or text_of(name.get("dotCodexFolder")) or text_of(name.get("type"))


def _of_config(name: str, raw: dict[str, object], origins: dict[str, str], known: Iterable[str]) -> OracleSays:
    start_of = f"mcp_servers.{name}."
    return OracleSays(
        state="disabled" if raw.get("enabled") is False else "enabled",
        detail=shown(text_of(raw.get("disabled_reason")), known),
        runs=_runs(raw, known),
        origins={key.removeprefix(start_of): file for key, file in origins.items() if key.startswith(start_of)},
    )


def _runs(raw: dict[str, object], known: Iterable[str]) -> str:
    args = raw.get("args")
    words = [text_of(raw.get("command")), *(map(str, args) if isinstance(args, list) else ())]
    return shown(text_of(raw.get("url")) or " ".join(words), known)


def _of_status(status: dict[str, object], asked: Asked, known: Iterable[str]) -> None:
    name = text_of(status.get("name"))
    before = asked.servers.get(name)
    if before is not None and before.state == "disabled":
        return
    error, tools = text_of(status.get("toolsError")), tuple(inner(status, "tools"))
    if error:
        state, detail = "failed", shown(error, known)
        if status.get("authStatus") == "notLoggedIn":
            state = "needs-login"
    elif status.get("serverInfo") is None and not tools:
        return  # not tried
    else:
        state, detail = "connected", ""
    asked.servers[name] = OracleSays(
        state="needs-login" if state == "needs-login" else "failed" if state == "failed" else "connected",
        scope="plugin" if status.get("pluginId") else "",
        detail=detail,
        runs=before.runs if before else "",
        tools=tools,
        origins=before.origins if before else {},
    )


def _list(codex: str, reading: Reading, seconds: float, known: Iterable[str]) -> Asked:
    output = run([codex, "mcp", "list", "--json"], reading.machine, seconds)
    asked = Asked(host="codex", command=("codex", "mcp", "list", "--json"))
    parsed(output, asked, known)
    return asked


def parsed(output: Output, asked: Asked, known: Iterable[str]) -> None:
    """`codex mcp list --json`: a list, or an error on the other stream."""
    try:
        listed = json.loads(output.out)
    except ValueError:
        asked.refuses = output.refused
        late = output.code is None
        asked.trouble = "it did not answer in time" if late else shown(output.err, known) or "it printed no list"
        return
    for each in listed if isinstance(listed, list) else []:
        raw = inner(each)
        asked.servers[text_of(raw.get("name"))] = OracleSays(
            state="disabled" if raw.get("enabled") is False else "enabled",
            detail=shown(text_of(raw.get("disabled_reason")), known),
            runs=_runs(inner(raw, "transport"), known),
        )
