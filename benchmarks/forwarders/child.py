"""One persistent stdio child behind a forwarder: ids are re-issued on the way in and mapped back on the way out.

Both directions decode the envelope once, keep `params`, `result` and `error` as the bytes that came, and join.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec


class _Request(msgspec.Struct):
    method: str
    id: msgspec.Raw
    params: msgspec.Raw = msgspec.Raw(b"{}")


class _Answer(msgspec.Struct):
    id: int
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decode_request = msgspec.json.Decoder(_Request).decode
_decode_answer = msgspec.json.Decoder(_Answer).decode


class ChildForward(asyncio.SubprocessProtocol):
    """Forwards requests to the child's stdin; an answer goes to whoever waits for its id."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[_Answer]] = {}
        self._stdin: asyncio.WriteTransport | None = None
        self._pending = b""
        self._last_id = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport has the methods of asyncio.SubprocessTransport without being one.
        self._stdin = transport.get_pipe_transport(0)  # type: ignore[attr-defined]

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        lines = (self._pending + data).split(b"\n")
        self._pending = lines.pop()
        for line in lines:
            answer = _decode_answer(line)
            waiting = self._waiting.pop(answer.id, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)

    def process_exited(self) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("the child ended"))
        self._waiting.clear()

    async def forward(self, body: bytes) -> bytes:
        """The child's answer under the caller's id; raises ConnectionError when the child ends first."""
        request = _decode_request(body)
        self._last_id += 1
        identity = self._last_id
        self._waiting[identity] = waiting = asyncio.get_running_loop().create_future()
        assert self._stdin is not None
        self._stdin.write(
            b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":%b}\n'
            % (identity, request.method.encode(), bytes(request.params))
        )
        answer = await waiting
        result = bytes(answer.result)
        if result:
            return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (bytes(request.id), result)
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (bytes(request.id), bytes(answer.error))


async def start_child(command: Sequence[str]) -> ChildForward:
    """Starts the child inside the running loop; its stderr is inherited."""
    loop = asyncio.get_running_loop()
    _, protocol = await loop.subprocess_exec(ChildForward, *command, stderr=None)
    return protocol
