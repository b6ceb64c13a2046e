"""The ways back of one request: plain JSON where nothing precedes the answer, an event stream where something does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from interlock.serve.http1 import MAX_WRITE_BUFFER, Responder
from interlock.serve.streams import Stream, Streams
from interlock.wire.sse import KEEP_ALIVE, encode_event

KEEP_ALIVE_SECONDS = 15.0


class ModernHttpChannel:
    """A modern POST: its stream has no ids and cannot be resumed; the client's leaving cancels the request."""

    __slots__ = ("_responder", "_streams_ok", "_timer")

    def __init__(self, responder: Responder, streams_ok: bool) -> None:
        self._responder = responder
        self._streams_ok = streams_ok
        self._timer: asyncio.TimerHandle | None = None

    def notify(self, message: bytes) -> None:
        responder = self._responder
        if not self._streams_ok or responder.gone:
            return
        if not responder.started:
            responder.begin_stream()
            self._timer = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._keep_alive)
        if responder.backlog < MAX_WRITE_BUFFER:
            responder.write(encode_event(message))

    def _keep_alive(self) -> None:
        if self._responder.streaming and not self._responder.gone:
            self._responder.write(KEEP_ALIVE)
            self._timer = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._keep_alive)

    def interrupted(self) -> None:
        return

    def answer(self, message: bytes, http_status: int = 200) -> None:
        responder = self._responder
        if self._timer is not None:
            self._timer.cancel()
        if responder.streaming:
            responder.write(encode_event(message))
            responder.end_stream()
        else:
            responder.json(message, http_status)

    def dropped(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._responder.streaming:
            self._responder.end_stream()
        else:
            self._responder.empty(202)


class LegacyHttpChannel:
    """A legacy POST: the stream can be resumed, and a break is no cancellation."""

    __slots__ = ("_extra", "_prefers_stream", "_responder", "_stream", "_streams", "_streams_ok", "_timer")

    def __init__(
        self, responder: Responder, streams: Streams, extra: bytes, streams_ok: bool, prefers_stream: bool = False
    ) -> None:
        self._responder = responder
        self._streams = streams
        self._extra = extra
        self._streams_ok = streams_ok
        self._prefers_stream = prefers_stream
        self._stream: Stream | None = None
        self._timer: asyncio.TimerHandle | None = None

    def _open(self) -> Stream:
        if self._stream is None:
            self._stream = self._streams.new()
            self._responder.begin_stream(self._extra)
            self._stream.attach(self._responder, None)
            self._timer = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._keep_alive)
        return self._stream

    def _keep_alive(self) -> None:
        stream = self._stream
        if stream is not None and not stream.ended:
            if stream.responder is not None:
                stream.responder.write(KEEP_ALIVE)
            self._timer = asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, self._keep_alive)

    def notify(self, message: bytes) -> None:
        if self._streams_ok:
            self._open().send(message)

    def interrupted(self) -> None:
        """The server closed its own stream for a while (2025-11-25, SSE polling): so do we."""
        if self._streams_ok:
            self._open().interrupt()

    def answer(self, message: bytes, http_status: int = 200) -> None:
        if self._stream is not None or (self._prefers_stream and http_status == 200):
            stream = self._open()
            stream.send(message)
            stream.end()
        else:
            self._responder.json(message, http_status, self._extra)
        if self._timer is not None:
            self._timer.cancel()

    def dropped(self) -> None:
        """A cancelled request gets no answer (2025-11-25, cancellation), but its POST must end."""
        if self._stream is not None:
            self._stream.end()
        else:
            self._responder.empty(202, self._extra)
        if self._timer is not None:
            self._timer.cancel()


class LineChannel:
    """stdio: everything goes out as lines on the one stream."""

    __slots__ = ("_notify", "_write")

    def __init__(self, write: Callable[[bytes], None], notify: Callable[[bytes], None]) -> None:
        self._write = write
        self._notify = notify

    def notify(self, message: bytes) -> None:
        self._notify(message)

    def interrupted(self) -> None:
        return

    def answer(self, message: bytes, http_status: int = 200) -> None:
        self._write(message)

    def dropped(self) -> None:
        return
