"""One running bridge and a host's side of its pipes. Nothing a bridge does or leaves undone raises: it is recorded."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .urls import authorize_urls, urls_in

Json = dict[str, Any]
State = Literal["result", "error", "unanswered", "ended"]
"""`unanswered`: nothing within the time that the caller gave; `ended`: the bridge's output ended first."""
Surface = Literal["answer", "stderr"]
Answerer = Callable[[str, Json], Json | None]

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
_LINE_LIMIT = 1 << 26
_META = "io.modelcontextprotocol/"


@dataclass(slots=True)
class Reply:
    """What became of one request. Times are seconds since the bridge was started."""

    id: int
    method: str
    sent: float
    state: State = "unanswered"
    answered: float | None = None
    result: Json | None = None
    error: Json | None = None

    @property
    def seconds(self) -> float | None:
        return None if self.answered is None else self.answered - self.sent

    @property
    def failed(self) -> bool:
        """An error, no answer, or a tool result that is one."""
        return self.result is None or bool(self.result.get("isError"))

    @property
    def details(self) -> Json:
        """The bridge's own fields of an error: `data` of a JSON-RPC error, `_meta` of a tool result; or nothing."""
        found = (self.error or {}).get("data") if self.error is not None else (self.result or {}).get("_meta")
        return found if isinstance(found, dict) else {}

    @property
    def verdict(self) -> str | None:
        """What the bridge says may have happened (docs/errors.md), where it says so."""
        for details in (self.details, *self.details.values()):
            if isinstance(details, dict) and isinstance(details.get("verdict"), str):
                return str(details["verdict"])
        return None

    @property
    def text(self) -> str:
        """The words of an error or of a tool result."""
        if self.error is not None:
            return str(self.error.get("message", ""))
        content = (self.result or {}).get("content")
        parts = (
            [part.get("text", "") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        )
        return "\n".join(map(str, parts))

    @property
    def urls(self) -> list[str]:
        return urls_in(self.error if self.error is not None else self.result)


@dataclass(frozen=True, slots=True)
class Published:
    """An authorize URL, when it was first seen, and where."""

    url: str
    at: float
    surface: Surface


@dataclass(slots=True)
class Session:
    """A started bridge. `published` holds each URL once a surface; `replies` every request in the order sent."""

    process: asyncio.subprocess.Process
    began: float
    era: Literal["legacy", "modern"] = "legacy"
    answerer: Answerer | None = None
    """Answers the bridge's own requests (method, params); None where it returns None: method not found."""
    capabilities: Json = field(default_factory=dict)
    replies: list[Reply] = field(default_factory=list)
    published: list[Published] = field(default_factory=list)
    notices: list[tuple[float, str]] = field(default_factory=list)
    """Notifications from the bridge: time and method."""
    stderr: list[tuple[float, str]] = field(default_factory=list)
    noise: list[str] = field(default_factory=list)
    """Lines on standard output that are not JSON-RPC."""
    exit_code: int | None = None
    exit_seconds: float | None = None
    """From the end of its input to its end."""
    on_url: Callable[[Published], None] | None = None
    _waiting: dict[int, asyncio.Future[Json]] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: Path | None = None,
        era: Literal["legacy", "modern"] = "legacy",
        answerer: Answerer | None = None,
        capabilities: Json | None = None,
        on_url: Callable[[Published], None] | None = None,
    ) -> Session:
        """Start the bridge in a process group of its own. Raises OSError where there is no such program."""
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
            cwd=cwd,
            limit=_LINE_LIMIT,
            start_new_session=True,
        )
        session = cls(process, began, era, answerer, capabilities or {}, on_url=on_url)
        session._tasks = [asyncio.create_task(session._read_stdout()), asyncio.create_task(session._read_stderr())]
        return session

    def now(self) -> float:
        return time.monotonic() - self.began

    @property
    def urls(self) -> list[str]:
        """Distinct authorize URLs, in the order they were seen."""
        return list(dict.fromkeys(one.url for one in self.published))

    async def request(self, method: str, params: Json | None = None, *, seconds: float) -> Reply:
        """Send a request and wait so long for its answer; a late one is still written into the reply."""
        reply = Reply(len(self.replies) + 1, method, self.now())
        self.replies.append(reply)
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[reply.id] = answer
        sent = await self._send({"jsonrpc": "2.0", "id": reply.id, "method": method, "params": self._with_meta(params)})
        if not sent or self._ended:
            reply.state = "ended"
            return reply
        await asyncio.wait([answer], timeout=seconds)
        if not answer.done():
            return reply
        if answer.cancelled():
            reply.state = "ended"
        return reply

    async def notify(self, method: str, params: Json | None = None) -> None:
        await self._send({"jsonrpc": "2.0", "method": method, **({"params": params} if params is not None else {})})

    async def open(self, *, seconds: float) -> Reply:
        """The first request of the era: `initialize` and its notification, or `server/discover`."""
        if self.era == "modern":
            return await self.request("server/discover", seconds=seconds)
        params = {"protocolVersion": LEGACY, "capabilities": self.capabilities, "clientInfo": _client()}
        reply = await self.request("initialize", params, seconds=seconds)
        if reply.result is not None:
            await self.notify("notifications/initialized")
        return reply

    async def call(self, tool: str, arguments: Json | None = None, *, seconds: float) -> Reply:
        """One `tools/call`; in the modern era with the rounds of questions that the server asks."""
        params: Json = {"name": tool, "arguments": arguments or {}}
        reply = await self.request("tools/call", params, seconds=seconds)
        for _ in range(10):
            result = reply.result or {}
            if result.get("resultType") != "input_required" or self.answerer is None:
                break
            answers = {
                key: self.answerer(asked.get("method", ""), asked.get("params") or {})
                for key, asked in (result.get("inputRequests") or {}).items()
            }
            again = {**params, "inputResponses": answers}
            if "requestState" in result:
                again["requestState"] = result["requestState"]
            reply = await self.request("tools/call", again, seconds=seconds)
        return reply

    async def wait_for(self, condition: Callable[[], bool], *, seconds: float) -> bool:
        """Wait until something that the bridge says makes `condition` true."""
        end = time.monotonic() + seconds
        while not condition():
            self._changed.clear()
            left = end - time.monotonic()
            if left <= 0 or self._ended:
                return condition()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)
        return True

    async def close(self, *, seconds: float = 10.0) -> None:
        """End its input, wait so long for it to end, and make it. Every request still open is `ended`."""
        began = time.monotonic()
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), seconds)
            self.exit_seconds = time.monotonic() - began
        self.signal(signal.SIGKILL)
        self.exit_code = await self.process.wait()
        await asyncio.wait(self._tasks, timeout=5)
        for task in self._tasks:
            task.cancel()

    def signal(self, number: signal.Signals) -> None:
        """To the whole process group; nothing where it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def tail(self, lines: int = 30) -> str:
        return "\n".join(text for _, text in self.stderr[-lines:])

    def _with_meta(self, params: Json | None) -> Json:
        if self.era == "legacy":
            return params or {}
        own = {
            f"{_META}protocolVersion": MODERN,
            f"{_META}clientInfo": _client(),
            f"{_META}clientCapabilities": self.capabilities,
        }
        return {**(params or {}), "_meta": {**((params or {}).get("_meta") or {}), **own}}

    async def _send(self, message: Json) -> bool:
        stdin = self.process.stdin
        if stdin is None or stdin.is_closing():
            return False
        try:
            stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            await stdin.drain()
        except OSError:
            return False
        return True

    async def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
                await self._take(message)
            else:
                self.noise.append(line.decode(errors="replace").rstrip())
            self._changed.set()
        self._ended = True
        for answer in self._waiting.values():
            answer.cancel()
        self._changed.set()

    async def _take(self, message: Json) -> None:
        for url in urls_in(message):
            self._publish(url, "answer")
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str) and number is not None:
            await self._answer(method, message.get("params") or {}, number)
        elif isinstance(method, str):
            self.notices.append((self.now(), method))
        elif isinstance(number, int) and number in self._waiting:
            reply = self.replies[number - 1]
            reply.answered = self.now()
            reply.state = "error" if "error" in message else "result"
            reply.result, reply.error = message.get("result"), message.get("error")
            answer = self._waiting.pop(number)
            if not answer.done():
                answer.set_result(message)

    async def _answer(self, method: str, params: Json, number: object) -> None:
        result: Json | None = {} if method == "ping" else None
        if result is None and self.answerer is not None:
            result = self.answerer(method, params)
        said = {"result": result} if result is not None else {"error": {"code": -32601, "message": "not offered"}}
        await self._send({"jsonrpc": "2.0", "id": number, **said})

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            text = line.decode(errors="replace").rstrip()
            self.stderr.append((self.now(), text))
            for url in authorize_urls(text):
                self._publish(url, "stderr")
            self._changed.set()

    def _publish(self, url: str, surface: Surface) -> None:
        if any(one.url == url and one.surface == surface for one in self.published):
            return
        published = Published(url, self.now(), surface)
        self.published.append(published)
        if self.on_url is not None:
            self.on_url(published)


def _client() -> Json:
    return {"name": "bridge-driver", "version": "1.0.0"}
