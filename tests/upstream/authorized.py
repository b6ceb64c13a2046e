"""A `Server` whose requests are authorized for real: the lab, a machine with a grant for it, and one process of Interlock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.upstream.oauth.machine import Machine, Process, machine
from tests.upstream.reaching import ANN, Heard

from interlock.manifest.config import HttpTransport, Origin, Policy, ServerConfig, TokenSource
from interlock.model.fault import Fault
from interlock.upstream.authorization import Authorization
from interlock.upstream.contract import Caller, Outgoing, Reply
from interlock.upstream.oauth.static_token import StaticToken
from interlock.upstream.server import Server
from interlock.wire import messages


@dataclass
class Reached:
    """One process that reaches the lab's server."""

    one: Machine
    process: Process
    server: Server

    async def call(self, tool: str = "echo", seconds: float = 20.0, caller: Caller = ANN, **arguments: object) -> Reply:
        """One `tools/call`. Raises Fault."""
        params = {"name": messages.raw(tool), "arguments": messages.raw(arguments)}
        return await self.server.request(Outgoing("tools/call", params, caller, seconds, name=tool))

    async def listed(self, seconds: float = 20.0, caller: Caller = ANN) -> Reply:
        return await self.server.request(Outgoing("tools/list", {}, caller, seconds))

    async def fault(
        self, tool: str = "echo", seconds: float = 20.0, caller: Caller = ANN, **arguments: object
    ) -> Fault:
        try:
            reply = await self.call(tool, seconds, caller, **arguments)
        except Fault as fault:
            return fault
        raise AssertionError(f"it was answered: {reply}")

    def statuses(self, call: str) -> list[int]:
        """What the server answered to calls of that name."""
        return [status for name, status in self.one.lab.truth.calls if name == call]


@asynccontextmanager
async def reaching(
    one: Machine, *, url: str | None = None, kind: Any = "http", token: TokenSource | None = None, **more: Any
) -> AsyncIterator[Reached]:
    """`more` goes into the transport; `environ` and `startup` are the server's."""
    environ, startup = more.pop("environ", {}), more.pop("startup", 20.0)
    address = url or one.lab.url
    transport = HttpTransport(kind, address, oauth=None if token else one.settings, token=token, **more)
    config = ServerConfig(
        "srv", "test.srv", "user", Origin(Path("/m.yaml"), 1), transport, Policy(startup_timeout_seconds=startup)
    )
    process = one.process()

    def authorize(key: str, declared: HttpTransport, where: str) -> Authorization:
        return process.auth if declared.token is None else StaticToken(key, declared.token, environ)

    server = Server(
        config, environ=environ, events=Heard(), client_info=b'{"name":"interlock","version":"0"}', user_agent="interlock/0",
        redact=str, authorize=authorize,
    )  # fmt: skip
    try:
        yield Reached(one, process, server)
    finally:
        async with asyncio.timeout(20):
            await server.close()


@asynccontextmanager
async def authorized(home: Path, *, transport: dict[str, Any] | None = None, **more: Any) -> AsyncIterator[Reached]:
    """A machine, its lab, and one process; `more` are settings of the machine and of the lab."""
    async with machine(home, **more) as one, reaching(one, **(transport or {})) as reached:
        yield reached
