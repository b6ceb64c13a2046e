"""A whole gateway in the test's own process: one fixture server behind it, the HTTP endpoint in front of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from interlock.lab.content import tool
from interlock.lab.http_server import HttpHandler, listen
from interlock.lab.jsonrpc import JsonObject
from interlock.lab.legacy_http import LegacyHttp
from interlock.lab.modern_engine import ModernServer
from interlock.lab.modern_http import ModernHttp
from interlock.lab.registry import Call, Content, elicit_form, text_result
from interlock.manifest.config import Gateway, HttpTransport, Origin, Policy, Rule, ServerConfig
from interlock.serve.credentials import Credentials
from interlock.serve.endpoint import Endpoint
from interlock.serve.http1 import HttpServer
from interlock.serve.runtime import Runtime

from .wire import SECONDS, Answer, Wire, request, wire

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
AUTO = Policy(default_approval="auto")
FILE = Origin(Path("/manifests/interlock.yaml"), 3)


@dataclass
class Tools:
    """What the fixture's tools did, and when they may go on."""

    calls: list[str] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    def content(self) -> Content:
        content = Content(name="fixture", cache_scope="public", ttl_ms=1000)

        async def echo(call: Call) -> JsonObject:
            self.calls.append("echo")
            arguments = call.params.get("arguments")
            return text_result(json.dumps(arguments))

        async def hold(call: Call) -> JsonObject:
            self.calls.append("hold")
            self.started.set()
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return text_result("let go")

        async def steps(call: Call) -> JsonObject:
            self.calls.append("steps")
            await call.progress(1, 2, "first")
            self.started.set()
            await self.go_on.wait()
            await call.progress(2, 2, "second")
            return text_result("stepped")

        async def asks(call: Call) -> JsonObject:
            answer = await call.ask({"q": elicit_form("Which?", {"value": {"type": "string"}})})
            self.calls.append("asks")
            return text_result(json.dumps(answer["q"]))

        async def secret(_: Call) -> JsonObject:
            self.calls.append("secret")
            return text_result("nobody should see this")

        for name, run in (("echo", echo), ("hold", hold), ("steps", steps), ("asks", asks), ("secret", secret)):
            content.add_tools(tool(name, f"The tool {name}.", run))
        return content


@dataclass
class Desk:
    """The running gateway. `token` is the first host's."""

    runtime: Runtime
    endpoint: Endpoint
    credentials: Credentials
    port: int
    tools: Tools
    content: Content
    token: str = ""

    @asynccontextmanager
    async def wire(self) -> AsyncIterator[Wire]:
        async with wire(self.port) as client:
            yield client

    def head(self, token: str | None = None) -> dict[str, str]:
        given = self.token if token is None else token
        return {"authorization": f"Bearer {given}"} if given else {}

    async def send(self, sent: bytes) -> Answer:
        """One request on a connection of its own."""
        async with self.wire() as client:
            client.send(sent)
            return await client.answer()

    async def modern(self, method: str, params: JsonObject | None = None, **more: str) -> Answer:
        return await self.send(self.modern_request(method, params, **more))

    def modern_request(
        self,
        method: str,
        params: JsonObject | None = None,
        id: object = 1,
        token: str | None = None,
        capabilities: JsonObject | None = None,
        **more: str,
    ) -> bytes:
        params = dict(params or {})
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": capabilities or {},
            **(params.get("_meta") or {}),  # type: ignore[dict-item]
        }
        headers = {"content-type": "application/json", "mcp-protocol-version": MODERN, "mcp-method": method}
        name = params.get("name", params.get("uri"))
        if name is not None:
            headers["mcp-name"] = str(name)
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
        return request("POST", "/mcp", body, headers | self.head(token), **more)

    def legacy_request(
        self,
        method: str,
        params: JsonObject | None = None,
        id: object = 1,
        session: str = "",
        token: str | None = None,
        **more: str,
    ) -> bytes:
        message: JsonObject = {"jsonrpc": "2.0", "method": method}
        if id is not None:
            message["id"] = id
        if params is not None:
            message["params"] = params
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if session:
            headers |= {"mcp-session-id": session, "mcp-protocol-version": LEGACY}
        return request("POST", "/mcp", json.dumps(message).encode(), headers | self.head(token), **more)

    async def open_session(
        self, token: str | None = None, capabilities: JsonObject | None = None, version: str = LEGACY
    ) -> str:
        """A legacy session, ready for use."""
        params: JsonObject = {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        answer = await self.send(self.legacy_request("initialize", params, token=token))
        assert answer.status == 200, answer
        session = answer.headers["mcp-session-id"]
        told = await self.send(self.legacy_request("notifications/initialized", id=None, session=session, token=token))
        assert told.status == 202
        return session

    async def legacy(self, session: str, method: str, params: JsonObject | None = None, **more: object) -> Answer:
        return await self.send(self.legacy_request(method, params, session=session, **more))  # type: ignore[arg-type]


def config(key: str, port: int, policy: Policy = AUTO, deny: tuple[str, ...] = (), **more: object) -> ServerConfig:
    made = ServerConfig(
        key,
        f"test.{key}",
        "user",
        FILE,
        HttpTransport("http", f"http://127.0.0.1:{port}/mcp"),
        policy,
        deny=tuple(Rule(glob, FILE) for glob in deny),
    )
    return replace(made, **more)  # type: ignore[arg-type]


@asynccontextmanager
async def running(
    home: Path,
    *,
    era: Literal["modern", "legacy"] = "modern",
    credential: bool = True,
    own_names: frozenset[str] = frozenset(),
    configs: Mapping[str, ServerConfig] | None = None,
    **more: object,
) -> AsyncIterator[Desk]:
    """A gateway with one server `lab`, unless `configs` says which; `more` goes into the server's configuration."""
    tools = Tools()
    content = tools.content()
    handler: HttpHandler = ModernHttp(ModernServer(content)).handle if era == "modern" else LegacyHttp(content).handle
    upstream = await listen(handler, 0, "/mcp")
    port = upstream.sockets[0].getsockname()[1]
    servers = dict(configs or {"lab": config("lab", port, **more)})  # type: ignore[arg-type]
    runtime = Runtime(Gateway(servers, (), "digest"), home)
    credentials = Credentials(home)
    token = credentials.token("first") if credential else ""
    endpoint = Endpoint(
        runtime.front,
        authenticate=credentials.principal if credential else None,
        names=frozenset({"127.0.0.1", "localhost", "[::1]"}) | own_names,
        ready=lambda: (True, "ready"),
    )
    server = HttpServer(endpoint.handle)
    desk = Desk(runtime, endpoint, credentials, await server.start("127.0.0.1", 0), tools, content, token)
    try:
        yield desk
    finally:
        tools.go_on.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SECONDS):
                await server.close(0.2)
                endpoint.sessions.close_all()
                await runtime.close(0)
        upstream.close()
