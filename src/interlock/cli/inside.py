"""Using the gateway from inside this process, as `tools` and `call` do: the same pipeline, with a person at the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from interlock.manifest.config import Gateway
from interlock.model.decision import Decision
from interlock.model.principal import Principal
from interlock.relay.client import Client
from interlock.relay.exchange import Exchange
from interlock.serve.runtime import Runtime
from interlock.upstream.contract import Caller
from interlock.wire import messages
from interlock.wire.eras import Era, RequestMeta
from interlock.wire.messages import EMPTY_OBJECT, Raw, RawMap

Approve = Callable[[str, Decision, Raw | None], Awaitable[bool | None]]


class Listener:
    """A channel whose notifications go to one function; the answer is what the call returns."""

    def __init__(self, heard: Callable[[str, RawMap], None]) -> None:
        self._heard = heard

    def notify(self, message: bytes) -> None:
        parsed = messages.parse(message)
        self._heard(parsed.method, messages.try_map(parsed.params) or {})

    def interrupted(self) -> None:
        return

    def answer(self, message: bytes, http_status: int = 200) -> None:
        return

    def dropped(self) -> None:
        return


class Inside:
    """One runtime and one client, for the length of a command."""

    def __init__(self, gateway: Gateway, home: Path, host: str | None = None) -> None:
        self.runtime = Runtime(gateway, home, sign_in="command")
        principal = Principal(f"host:{host}" if host is not None else "local", "local", host)
        self.client = Client("command-line", principal, Era.MODERN)
        self.runtime.registry.clients[self.client.id] = self.client
        self.caller = Caller(self.client.id, principal.id, EMPTY_OBJECT)

    def exchange(self, method: str, params: RawMap, heard: Callable[[str, RawMap], None] = lambda *_: None) -> Exchange:
        meta = RequestMeta(
            {}, capabilities=EMPTY_OBJECT, log_level=messages.raw("info"), progress_token=messages.raw(1)
        )
        return Exchange(
            self.client, 1, method, params, meta, Era.MODERN,
            Caller(self.client.id, self.caller.principal, EMPTY_OBJECT, meta.log_level),
            Listener(heard), size=len(messages.write_map(params)),
        )  # fmt: skip

    async def settled(self) -> None:
        """Give every server its chance to be listed."""
        await self.runtime.pipeline.catalogue.settle(self.caller)

    async def __aenter__(self) -> Inside:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(self.runtime.close(0))
