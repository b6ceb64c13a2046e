"""A call that stays open at a legacy server while a modern client collects the answers to the server's questions.

The client gets `input_required` with a sealed handle; its retry is matched to the open call. At most 16 for a principal,
5 minutes each (docs/eras.md); then the call is cancelled, and its outcome is unknown.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field

from interlock.relay.exchange import Exchange
from interlock.relay.questions import refusal, with_server_name
from interlock.upstream.contract import Progress, Reply
from interlock.wire import codes
from interlock.wire.eras import QUESTIONS, Era, has_capability
from interlock.wire.messages import Raw, RawMap, try_map

MAX_PARKED = 16
PARK_SECONDS = 300.0
GATHER_SECONDS = 0.03
"""After a first question, how long others that the server asks at once are waited for, so that they go out together."""


@dataclass(slots=True)
class Question:
    method: str
    params: Raw | None
    future: asyncio.Future[Reply]


class OpenCall:
    """The server's side of one call, which one exchange after another attends to. It is the call's sink."""

    def __init__(self, exchange: Exchange, server: str, name_server: bool) -> None:
        self.exchange: Exchange | None = exchange
        self.principal = exchange.client.principal.id
        self.server = server
        self._capabilities = exchange.meta.capabilities
        self.work: asyncio.Task[Reply] | None = None
        self.questions: dict[str, Question] = {}
        self.asked = asyncio.Event()
        self.timer: asyncio.TimerHandle | None = None
        self._name_server = name_server
        self._count = 0

    # -- Sink
    @property
    def parked(self) -> bool:
        """True while the client has to answer: whatever else its server asks then is hardly about this call."""
        return self.exchange is None

    def on_notification(self, method: str, params: RawMap) -> None:
        if self.exchange is not None:
            self.exchange.notification(method, params)

    def on_interrupted(self) -> None:
        return  # modern streams cannot be resumed, so the client's stays open

    async def on_question(self, method: str, params: Raw | None, progress: Progress) -> Reply:
        exchange = self.exchange
        if method not in QUESTIONS:
            return refusal(codes.METHOD_NOT_FOUND, f"Method not found: {method}")
        capabilities = exchange.meta.capabilities if exchange is not None else self._capabilities
        if not has_capability(capabilities, method):
            return refusal(codes.METHOD_NOT_FOUND, f"The client does not support {method}")
        if len(self.questions) >= 32:
            return refusal(codes.INTERNAL_ERROR, "Too many questions of this call are open")
        self._count += 1
        key = f"{method.partition('/')[0]}_{self._count}"
        shown = with_server_name(self.server, method, params) if self._name_server else params
        question = Question(
            method, Raw(bytes(shown)) if shown is not None else None, asyncio.get_running_loop().create_future()
        )
        self.questions[key] = question
        self.asked.set()
        try:
            return await question.future
        finally:
            self.questions.pop(key, None)

    def answer(self, responses: RawMap) -> None:
        """Hand the client's answers to the server. Keys that were not asked for are ignored; the missing stay open."""
        for key, value in responses.items():
            question = self.questions.get(key)
            if question is not None and not question.future.done() and try_map(value) is not None:
                question.future.set_result(Reply(bytes(value), False, Era.LEGACY))

    async def next(self) -> Reply | None:
        """The server's answer, or None where it asks something that the client has to answer first."""
        assert self.work is not None
        # Answers that were just handed over leave `questions` when their tasks run; let them.
        await asyncio.sleep(0)
        while True:
            open_questions = [each for each in self.questions.values() if not each.future.done()]
            if self.work.done():
                return self.work.result()
            if open_questions:
                await asyncio.wait([self.work], timeout=GATHER_SECONDS)
                if self.work.done():
                    return self.work.result()
                return None
            self.asked.clear()
            waiter = asyncio.ensure_future(self.asked.wait())
            try:
                await asyncio.wait([self.work, waiter], return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiter.cancel()

    def asks(self) -> list[tuple[str, str, Raw | None]]:
        """Key, method and parameters of what is open."""
        return [
            (key, question.method, question.params)
            for key, question in self.questions.items()
            if not question.future.done()
        ]

    def abandon(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.work is not None:
            self.work.cancel()


@dataclass(slots=True)
class Lot:
    """The parked calls of all principals, by handle."""

    calls: dict[str, OpenCall] = field(default_factory=dict)

    def count(self, principal: str) -> int:
        return sum(1 for call in self.calls.values() if call.principal == principal)

    def park(self, call: OpenCall) -> str:
        """Put a call aside under a new handle. The caller has checked `count`."""
        handle = secrets.token_urlsafe(18)
        call.exchange = None
        self.calls[handle] = call
        call.timer = asyncio.get_running_loop().call_later(PARK_SECONDS, self._expire, handle)
        return handle

    def _expire(self, handle: str) -> None:
        call = self.calls.pop(handle, None)
        if call is not None:
            call.abandon()

    def take(self, handle: str, principal: str) -> OpenCall | None:
        """The parked call, once, and only for the principal that it was parked for."""
        call = self.calls.get(handle)
        if call is None or call.principal != principal:
            return None
        del self.calls[handle]
        if call.timer is not None:
            call.timer.cancel()
            call.timer = None
        return call

    def close(self) -> None:
        for call in self.calls.values():
            call.abandon()
        self.calls.clear()
