"""The clients: the canary that must never notice anything, and those that send a case and look at what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .cases import Case
from .client_cases import META
from .oracle import Due
from .server_cases import answer_text

SECONDS = 20.0
"""How long anything may take. The gateway's own deadline for the bad servers is one second."""
Message = dict[str, Any]


class Wrong(Exception):
    """Something was not as it has to be."""


@dataclass(slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    messages: list[Message] = field(default_factory=list)


async def read_answer(reader: asyncio.StreamReader) -> Answer | None:
    """One HTTP response; None where the gateway hung up instead. Raises Wrong for what is no response."""
    while True:
        line = await reader.readline()
        if not line:
            return None
        parts = line.split()
        if len(parts) < 2 or not line.startswith(b"HTTP/1.1 ") or not parts[1].isdigit():
            raise Wrong(f"no HTTP response: {line[:100]!r}")
        answer = Answer(int(parts[1]), {})
        while (line := await reader.readline()) not in (b"\r\n", b""):
            name, _, value = line.decode("latin-1").partition(":")
            answer.headers[name.lower()] = value.strip()
        if answer.status >= 200:
            break
    kind = answer.headers.get("content-type", "")
    if answer.headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int((await reader.readline()).strip() or b"0", 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readline()
    else:
        body = await reader.readexactly(int(answer.headers.get("content-length", "0")))
    if kind.startswith("text/event-stream"):
        answer.messages = [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: {")]
    elif kind.startswith("application/json"):
        found = json.loads(body)
        answer.messages = found if isinstance(found, list) else [found]
    return answer


@dataclass(slots=True)
class Http:
    """Requests in order, on one connection that is made anew when it has to be."""

    port: int
    modern: bool
    session: str = ""
    _reader: asyncio.StreamReader | None = None
    _writer: asyncio.StreamWriter | None = None

    async def start(self) -> None:
        if not self.modern:
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
            answer = await self.request("initialize", params, 0)
            self.session = answer.headers["mcp-session-id"]

    async def request(self, method: str, params: Message, id: int, name: str | None = None) -> Answer:
        headers = ["Host: localhost", "Content-Type: application/json", "Accept: application/json, text/event-stream"]
        if self.modern:
            params = {**params, "_meta": META}
            headers += ["MCP-Protocol-Version: 2026-07-28", f"Mcp-Method: {method}"]
            if name is not None:
                headers.append(f"Mcp-Name: {name}")
        elif self.session:
            headers += [f"Mcp-Session-Id: {self.session}"]
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
        head = "\r\n".join(["POST /mcp HTTP/1.1", *headers, f"Content-Length: {len(body)}", "", ""]).encode()
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        assert self._reader is not None
        self._writer.write(head + body)
        async with asyncio.timeout(SECONDS):
            answer = await read_answer(self._reader)
        if answer is None:
            raise Wrong(f"the gateway hung up on a request in order ({method})")
        return answer

    async def call(self, name: str, arguments: Message, id: int) -> Message:
        """A tool call; the whole answering message."""
        answer = await self.request("tools/call", {"name": name, "arguments": arguments}, id, name)
        found = [message for message in answer.messages if "method" not in message]
        if len(found) != 1 or found[0].get("id") != id:
            raise Wrong(f"{name}: {len(found)} answers instead of one: {str(found)[:300]}")
        return found[0]

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def refused(answer: Answer) -> bool:
    return answer.status >= 400 or any("error" in message for message in answer.messages)


async def attack_http(port: int, session: str, case: Case) -> None:
    """One case on a connection of its own. Raises Wrong."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    try:
        async with asyncio.timeout(SECONDS):
            try:
                for part in case.parts:
                    writer.write(part.replace(b"$SESSION", session.encode()))
                    await writer.drain()
                if case.due is Due.NOTHING and case.kind == "http":
                    # It may be unfinished: say that no more will come, and take what there is.
                    writer.write_eof()
                    while await reader.read(65536):
                        pass
                    return
                answer = await read_answer(reader)
            except ConnectionError:
                answer = None
        if answer is None:
            if case.kind != "oversized":
                raise Wrong("the gateway hung up without an answer")
            return
        if case.due is Due.ERROR and not refused(answer):
            raise Wrong(f"an error is due, and this came: {answer.status} {str(answer.messages)[:300]}")
        if case.due is Due.ANSWER and answer.status < 400:
            ids = [message.get("id") for message in answer.messages if "method" not in message]
            if ids != [case.id]:
                raise Wrong(
                    f"an answer to {case.id!r} is due, and this came: {answer.status} {str(answer.messages)[:300]}"
                )
    finally:
        writer.close()


class Stdio:
    """A `connect` process that has joined the gateway. One case at a time: sent, then a ping that shows that it was dealt with."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._pings = itertools.count(1)

    @classmethod
    async def start(cls, options: Sequence[str], environment: dict[str, str], folder: Path) -> Stdio:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "interlock", "connect", *options, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, env=environment, cwd=folder, limit=1 << 26,
        )  # fmt: skip
        made = cls(process)
        params = b'{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"b","version":"1"}}'
        await made._send([b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":' + params + b"}\n"])
        while (await made._message()).get("id") != "hello":
            pass
        return made

    async def _send(self, parts: Sequence[bytes]) -> None:
        assert self._process.stdin is not None
        for part in parts:
            self._process.stdin.write(part)
            await self._process.stdin.drain()

    async def _message(self) -> Message:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise Wrong("connect has ended")
        found: Message = json.loads(line)
        return found

    async def attack(self, case: Case) -> None:
        """Raises Wrong."""
        mark = f"ping-{next(self._pings)}"
        got: list[Message] = []
        wanted = case.due is Due.ANSWER and case.id != mark
        ponged = False
        async with asyncio.timeout(SECONDS):
            await self._send([*case.parts, b'{"jsonrpc":"2.0","id":"' + mark.encode() + b'","method":"ping"}\n'])
            # A large message may be refused after the ping: errors are waited for too.
            while not ponged or (wanted and not any(each.get("id") == case.id for each in got)):
                message = await self._message()
                if message.get("id") == mark:
                    ponged = True
                else:
                    got.append(message)
        if case.due is Due.ERROR and not any("error" in message for message in got):
            raise Wrong(f"an error is due, and this came: {str(got)[:300]}")

    async def close(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        async with asyncio.timeout(SECONDS):
            await self._process.wait()


async def call_bad(http: Http, server: str, case: Case, sound: dict[int, bool | None]) -> None:
    """A call in order to a bad server, which answers it with the case. Raises Wrong."""
    name = f"{server}__echo"
    message = await http.call(name, {"case": case.number}, case.number)
    result = message.get("result", {})
    failed = "error" in message or result.get("isError") is True
    expected = sound.pop(case.number, case.sound) if case.sound is None else case.sound
    if expected is False and not failed:
        raise Wrong(f"a fault is due, and this came: {str(message)[:300]}")
    if case.sound is True and (failed or result["content"][0]["text"] != answer_text(case.number)):
        raise Wrong(f"the answer was sound, and this came: {str(message)[:500]}")
    if expected is True and failed and result.get("_meta", {}).get("interlock") is not None:
        raise Wrong(f"the server's own answer was sound, and this came: {str(message)[:500]}")
