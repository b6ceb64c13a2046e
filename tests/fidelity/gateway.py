"""A running `interlock up`, and clients that see every byte of its answers."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .peer import SECONDS, Era

ROOT = Path(__file__).resolve().parents[2]
VERSIONS: dict[Era, str] = {"modern": "2026-07-28", "legacy": "2025-11-25"}
CAPABILITIES = b'{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}}'
META = (
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"f","version":"1"},'
    b'"io.modelcontextprotocol/clientCapabilities":' + CAPABILITIES
)
_LISTENING = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)/")


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "INTERLOCK_HOME": str(home), "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1"}


def trusted_hash(manifest: Path, home: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "trust", "--home", str(home), "--hash", str(manifest)],
        env=environment(home), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.split()[-1]


@dataclass(slots=True)
class Gateway:
    """`up` with one manifest of its own, trusted by its hash."""

    process: subprocess.Popen[bytes]
    port: int
    said: list[bytes] = field(default_factory=list)

    @classmethod
    def start(
        cls, folder: Path, entries: Sequence[Mapping[str, object]], env: Mapping[str, str] | None = None
    ) -> Gateway:
        home = folder / "home"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        manifest = folder / "interlock.yaml"
        manifest.write_text("\n---\n".join(json.dumps(entry) for entry in entries) + "\n", "utf-8")
        trust = trusted_hash(manifest, home)
        common = ["--manifest", str(manifest), "--trusted-hash", trust, "--home", str(home)]
        process = subprocess.Popen(
            [sys.executable, "-m", "interlock", "up", *common, "--port", "0", "--no-credential", "--no-socket"],
            env={**environment(home), **(env or {})}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            cwd=folder,
        )  # fmt: skip
        gateway = cls(process, 0)
        listening = threading.Event()

        def hear() -> None:
            assert process.stderr is not None
            for line in process.stderr:
                gateway.said.append(line)
                found = _LISTENING.search(line)
                if found is not None:
                    gateway.port = int(found[1])
                    listening.set()
            listening.set()

        threading.Thread(target=hear, daemon=True).start()
        listening.wait(60)
        if not gateway.port:
            process.kill()
            raise RuntimeError(b"".join(gateway.said).decode(errors="replace"))
        return gateway

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(slots=True)
class Response:
    """One HTTP response: its messages in order, as bytes."""

    status: int
    headers: dict[str, str]
    messages: list[bytes]

    @property
    def last(self) -> bytes:
        return self.messages[-1]


class HttpClient:
    """A client of one era; each request on a connection of its own, so that streams may stay open."""

    def __init__(self, port: int, era: Era) -> None:
        self.port = port
        self.era = era
        self.session: str | None = None
        self.hello = b""
        if era == "legacy":
            first = self.post(
                b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":'
                + CAPABILITIES + b',"clientInfo":{"name":"f","version":"1"}}}'
            )  # fmt: skip
            self.session = first.headers["mcp-session-id"]
            self.hello = first.last
            self.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        else:
            self.hello = self.request("server/discover").last

    def request(
        self, method: str, params: bytes = b"{}", *, meta: bytes = b"", id: bytes = b"1", name: str | None = None
    ) -> Response:
        """`params` is an object without `_meta`; `meta` are members of `_meta`."""
        return self.post(self.message(method, params, meta, id), method=method, name=name)

    def message(self, method: str, params: bytes, meta: bytes, id: bytes) -> bytes:
        parts = [part for part in (META if self.era == "modern" else b"", meta) if part]
        if parts:
            inner = params.strip()[1:-1].strip()
            params = b"{" + inner + (b"," if inner else b"") + b'"_meta":{' + b",".join(parts) + b"}}"
        return b'{"jsonrpc":"2.0","id":' + id + b',"method":"' + method.encode() + b'","params":' + params + b"}"

    def headers(self, method: str | None, name: str | None) -> dict[str, str]:
        made = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if self.era == "modern" and method is not None:
            made |= {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
            if name is not None:
                made["mcp-name"] = name
        if self.session is not None:
            made |= {"mcp-session-id": self.session, "mcp-protocol-version": "2025-11-25"}
        return made

    def post(self, body: bytes, *, method: str | None = None, name: str | None = None) -> Response:
        with self.open("POST", body, self.headers(method, name)) as response:
            messages = list(messages_of(response))
            return Response(response.status, {key.lower(): value for key, value in response.getheaders()}, messages)

    @contextlib.contextmanager
    def open(self, verb: str, body: bytes | None, headers: Mapping[str, str]) -> Iterator[http.client.HTTPResponse]:
        """The response while it still may grow: for streams."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(verb, "/mcp", body, dict(headers))
            yield connection.getresponse()
        finally:
            connection.close()


def messages_of(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """The messages of a response as they come. One event is one line of data here: the gateway writes no other."""
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        body = response.read()
        if body:
            yield body
        return
    while line := response.readline():
        if line.startswith(b"data: ") and line.strip() != b"data:":
            yield line[6:].rstrip(b"\n")


class StdioClient:
    """A client of `interlock connect`, which serves by itself: what a host sees."""

    def __init__(self, folder: Path, era: Era, env: Mapping[str, str] | None = None) -> None:
        self.era = era
        home = folder / "home"
        manifest = folder / "interlock.yaml"
        common = ["--manifest", str(manifest), "--trusted-hash", trusted_hash(manifest, home), "--home", str(home)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "interlock", "connect", "--alone", *common],
            env={**environment(home), **(env or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, cwd=folder,
        )  # fmt: skip
        self.hello = b""
        if era == "legacy":
            self._send(
                b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":'
                + CAPABILITIES + b',"clientInfo":{"name":"f","version":"1"}}}'
            )  # fmt: skip
            self.hello = self._until(b'"hello"').last
            self._send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        else:
            self.hello = self.request("server/discover").last

    def request(
        self, method: str, params: bytes = b"{}", *, meta: bytes = b"", id: bytes = b"1", name: str | None = None
    ) -> Response:
        del name
        self._send(HttpClient.message(self, method, params, meta, id))  # type: ignore[arg-type]
        return self._until(id)

    def _send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def _until(self, id: bytes) -> Response:
        """Everything up to the answer. The whole test has a deadline, so reading needs none of its own."""
        assert self._process.stdout is not None
        messages: list[bytes] = []
        while line := self._process.stdout.readline():
            messages.append(line.rstrip(b"\n"))
            message = json.loads(line)
            if "method" not in message and json.dumps(message.get("id")).encode() == id:
                return Response(200, {}, messages)
        raise AssertionError(f"connect ended without an answer: {messages}")

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
