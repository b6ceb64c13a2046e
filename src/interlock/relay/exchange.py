"""One request of a client while it is open: where its answer, its notifications and the server's questions go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from interlock.relay.client import Client
from interlock.upstream.contract import Caller
from interlock.wire import messages
from interlock.wire.eras import Era, RequestMeta
from interlock.wire.levels import at_least
from interlock.wire.messages import Id, RawMap


class Channel(Protocol):
    """The way back of one request. Each may be called after the client has gone; nothing happens then."""

    def notify(self, message: bytes) -> None:
        """A notification, or a question to a legacy client, ahead of the answer."""

    def interrupted(self) -> None:
        """The server closed the request's stream and wants to be asked for the rest later (2025-11-25, SSE polling)."""

    def answer(self, message: bytes, http_status: int = 200) -> None:
        """The one answer. It ends the exchange."""

    def dropped(self) -> None:
        """The client gave the request up: no answer will come, and nothing may be left waiting for one."""


class Exchange:
    """`params` has no `_meta`; `meta` is what it said."""

    __slots__ = (
        "abandoned",
        "abort",
        "caller",
        "channel",
        "client",
        "done",
        "era",
        "headers",
        "id",
        "meta",
        "method",
        "params",
        "size",
        "started",
        "task",
        "token",
    )

    def __init__(
        self,
        client: Client,
        id: Id,
        method: str,
        params: RawMap,
        meta: RequestMeta,
        era: Era,
        caller: Caller,
        channel: Channel,
        headers: dict[bytes, bytes] | None = None,
        size: int = 0,
    ) -> None:
        self.client = client
        self.id = id
        self.method = method
        self.params = params
        self.meta = meta
        self.era = era
        self.caller = caller
        self.channel = channel
        self.headers = headers
        """The HTTP headers of a modern request, which have to be compared with its body; None on stdio."""
        self.size = size
        self.token = meta.progress_token
        self.task: asyncio.Task[None] | None = None
        self.abort: Callable[[], None] | None = None
        """Ends the request where no task serves it (see `Pipeline.start`)."""
        self.started = False
        self.abandoned = False
        self.done = False

    def cancel(self) -> None:
        if self.done:
            return
        if self.abort is not None:
            self.abort()
            return
        if self.task is None:
            return
        if self.started:
            self.task.cancel()
        else:
            # A task that is cancelled before its first step never runs at all, and could not clean up after itself.
            self.abandoned = True

    # -- Sink: what the server says while the request is open
    def notification(self, method: str, params: RawMap) -> None:
        if self.done:
            return
        if method == "notifications/progress":
            if self.token is None:
                return
            params = {"progressToken": self.token, **params}
        elif method == "notifications/message":
            level = messages.try_str(params.get("level"))
            if self.era is Era.MODERN:
                # Only at or above the level that the request asked for; none where it named none (utilities/logging).
                if self.meta.log_level is None or not at_least(level, messages.try_str(self.meta.log_level)):
                    return
            elif not self.client.wants_log(level):
                return
        elif method == "notifications/elicitation/complete" and self.era is Era.MODERN:
            return  # the modern era has neither it nor the id that it names (2026-07-28, changelog, Minor 11)
        self.channel.notify(messages.notification(method, messages.write_map(params)))
