"""A child process as a carrier: one message a line each way (2026-07-28 and earlier, transports: stdio)."""

from __future__ import annotations

import asyncio
from collections import deque

from interlock.upstream import evidence
from interlock.upstream.exits import Exit, explain_exit
from interlock.upstream.process import ChildGone, ChildProcess
from interlock.upstream.session import Call, Session, SessionLost
from interlock.wire import messages
from interlock.wire.lines import LineSplitter, looks_like_message

MAX_UNSENT_BYTES = 16 * 1024 * 1024
"""What may wait for a server that does not read: enough for its largest request, and not all the memory."""
STOP_SECONDS = 2.0
"""How long a server gets to leave after its stdin is closed, before it is told and then made to."""


class StdioCarrier:
    """Moves one session's messages through one child. Lines that are no message are kept for diagnosis, never fatal."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.child: ChildProcess | None = None
        self.exit: Exit | None = None
        self.banner: deque[str] = deque(maxlen=20)
        """What the server printed on stdout that is no message."""
        self._lines = LineSplitter()
        self._out: list[bytes] = []
        self._sending: list[Call] = []
        """Calls whose lines are in `_out`."""
        self._loop = asyncio.get_running_loop()

    @property
    def too_long(self) -> bool:
        """The server printed a line that is longer than any message may be."""
        return self._lines.overflows > 0

    # -- callbacks of the child
    def on_data(self, data: bytes) -> None:
        session = self.session
        for line in self._lines.feed(data):
            if not session.received(line):
                if looks_like_message(line) and messages.is_batch(line):
                    self._batch(line)
                else:
                    self.banner.append(line[:200].decode("utf-8", "replace"))

    def _batch(self, line: bytes) -> None:
        try:
            for item in messages.split_batch(line):
                self.session.received(item)
        except messages.WireError:
            self.banner.append(line[:200].decode("utf-8", "replace"))

    def on_exit(self, exit: Exit) -> None:
        self.exit = exit
        if self._out:
            self._flush()  # what still waited for its turn never left: that is known, unlike the fate of the rest
        self.session.lost(f"the server's process ended ({explain_exit(exit)})")

    # -- Carrier
    def send(self, call: Call, message: bytes, name: str | None, params: list[tuple[str, str]]) -> None:
        if self._full():
            # Not at once: who sends does not expect the answer before it has the call.
            full = evidence.not_sent(self.session.server, "the server stopped taking its input")
            self._loop.call_soon(call.fail, full)
            return
        self._sending.append(call)
        self._say(message)

    def tell(self, message: bytes) -> None:
        # A server that asks and asks without reading the answers must not fill our memory with them.
        if not self._full():
            self._say(message)

    def _full(self) -> bool:
        return self.child is not None and self.child.unsent > MAX_UNSENT_BYTES

    def _say(self, message: bytes) -> None:
        # What one turn of the event loop has to say goes out in one write: the same bytes for a fraction of the calls.
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += (message, b"\n")

    def _flush(self) -> None:
        data, calls = b"".join(self._out), self._sending
        self._out, self._sending = [], []
        try:
            if self.child is None:
                raise ChildGone
            self.child.write(data)
        except ChildGone:
            self.session.retire()
            for call in calls:
                # It never reached the process, whose end is about to be told: another process may have it instead.
                ended = evidence.not_sent(self.session.server, "the server's process ended")
                call.fail(ended if call.outgoing is None else SessionLost())

    def cancel(self, call: Call) -> None:
        if call.method in ("initialize", "server/discover"):
            return  # may not be cancelled (2025-11-25, basic/utilities/cancellation)
        params = messages.encode({"requestId": call.id, "reason": "the caller gave up"})
        self.tell(messages.notification("notifications/cancelled", params))

    def sent(self, call: Call) -> bool:
        return call not in self._sending

    async def close(self) -> None:
        if self.child is not None:
            if self._out:
                self._flush()
            await self.child.stop(STOP_SECONDS)
