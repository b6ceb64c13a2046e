"""The sink of a call whose client can be asked at once: a legacy client, or a modern server that never asks by itself."""

from __future__ import annotations

from interlock.relay.exchange import Exchange
from interlock.relay.questions import ask, refusal, with_server_name
from interlock.upstream.contract import Progress, Reply
from interlock.wire import codes
from interlock.wire.eras import Era
from interlock.wire.messages import Raw, RawMap


class ExchangeSink:
    __slots__ = ("_exchange", "_name_server", "_server")

    def __init__(self, exchange: Exchange, server: str, name_server: bool) -> None:
        self._exchange = exchange
        self._server = server
        self._name_server = name_server

    @property
    def parked(self) -> bool:
        return False

    def on_notification(self, method: str, params: RawMap) -> None:
        self._exchange.notification(method, params)

    def on_interrupted(self) -> None:
        if not self._exchange.done:
            self._exchange.channel.interrupted()

    async def on_question(self, method: str, params: Raw | None, progress: Progress) -> Reply:
        exchange = self._exchange
        if exchange.era is Era.MODERN:
            return refusal(codes.METHOD_NOT_FOUND, f"{method} cannot be answered during {exchange.method}")
        shown = with_server_name(self._server, method, params) if self._name_server else params
        return await ask(exchange.client, exchange, method, shown, progress)
