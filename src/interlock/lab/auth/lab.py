"""A scripted authorization server and the MCP server that it protects, in one process on loopback.

async with AuthLab(era="modern") as lab:
    ...                                    # a client works with lab.url
    lab.revoke_access()                    # early 401
    assert lab.counts["refreshes_ok"] == 1
"""

from __future__ import annotations

import asyncio
import weakref
from collections import Counter
from types import TracebackType

from interlock.lab.auth.authorization_server import AuthorizationServer
from interlock.lab.auth.behaviour import Behaviour, Kind, Mishap, Place
from interlock.lab.auth.clients import Clients
from interlock.lab.auth.control import Control
from interlock.lab.auth.families import Families
from interlock.lab.auth.resource_server import ResourceServer, ServedEra
from interlock.lab.auth.truth import Applied, Truth
from interlock.lab.http_server import Connection, HttpHandler, Reply, Request, listen
from interlock.lab.jsonrpc import JsonObject


class Listener:
    """One port that can go away, with every connection on it, and come back."""

    def __init__(self, handler: HttpHandler) -> None:
        self.port = 0
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()

    async def up(self, port: int | None = None) -> None:
        """Listen; by default where it listened before."""
        if self._server is None:
            self._server = await listen(self._handle, self.port if port is None else port, "", announce=False)
            self.port = int(self._server.sockets[0].getsockname()[1])

    async def down(self) -> None:
        """Refuse connections from now on, and drop those that are open."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            self.cut()
            await asyncio.sleep(0)

    def cut(self) -> None:
        """Drop every open connection; new ones are taken."""
        for connection in list(self._connections):
            connection.abort()

    async def _handle(self, request: Request, reply: Reply) -> None:
        self._connections.add(reply.connection)
        await self._handler(request, reply)


class AuthLab:
    """Both servers. `behave` holds the settings, `truth` what happened; both may be used at any time.

    `one_origin`: the authorization server lives at the MCP server's origin, as revision 2025-03-26 assumes.
    `issuer_path`: a path of the issuer, as `/tenant`.
    """

    def __init__(
        self,
        *,
        era: ServedEra = "modern",
        port: int = 0,
        issuer_path: str = "",
        one_origin: bool = False,
        behave: Behaviour | None = None,
    ) -> None:
        self.behave = Behaviour() if behave is None else behave
        self.truth = Truth()
        self.clients = Clients(self.behave, self.truth)
        self._era: ServedEra = era
        self._first_port = port
        self._issuer_path = issuer_path
        self._one_origin = one_origin
        self.mcp_listener = Listener(self._serve_mcp)
        self.auth_listener = self.mcp_listener if one_origin else Listener(self._serve_auth)
        self._control_listener = Listener(self._serve_control)
        self.url = self.issuer = self.control_url = ""
        self.families: Families
        self.authorization: AuthorizationServer
        self.resource: ResourceServer
        self._control = Control(self)

    async def __aenter__(self) -> AuthLab:
        await self.mcp_listener.up(self._first_port)
        await self.auth_listener.up()
        await self._control_listener.up()
        self.url = f"http://127.0.0.1:{self.mcp_listener.port}/mcp"
        self.issuer = f"http://127.0.0.1:{self.auth_listener.port}{self._issuer_path}"
        self.control_url = f"http://127.0.0.1:{self._control_listener.port}/control"
        self.families = Families(self.behave, self.truth, self.issuer, self.url)
        self.authorization = AuthorizationServer(self.behave, self.truth, self.clients, self.families, self.issuer)
        self.resource = ResourceServer(self.behave, self.truth, self.families, self.url, self.issuer, self._era)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._control.close()
        for listener in (self.mcp_listener, self.auth_listener, self._control_listener):
            await listener.down()

    @property
    def counts(self) -> Counter[str]:
        """Counters by name (truth.py); a name that never occurred counts 0."""
        return self.truth.counts

    @property
    def applied(self) -> list[Applied]:
        """The writes that took effect, in order."""
        return self.truth.applied

    @property
    def personal_token(self) -> str:
        """A token that the MCP server takes without any authorization server."""
        return self.resource.personal_token

    def mishap(
        self,
        at: Place,
        kind: Kind,
        *,
        times: int | None = None,
        only: tuple[str, ...] = (),
        status: int = 503,
        retry_after: float | None = None,
        seconds: float = 1.0,
        applied: bool | None = None,
        chance: float = 1.0,
        error: str | None = None,
    ) -> Mishap:
        """Let something go wrong from now on, `times` times (None: until it is removed from `behave.mishaps`)."""
        made = Mishap(at, kind, only, times, chance, applied, status, retry_after, seconds, error)
        self.behave.mishaps.append(made)
        return made

    def revoke_access(self) -> None:
        """Early 401: every access token so far is refused, though its `exp` lies ahead; refresh tokens stay good."""
        self.families.revoke_access()

    def kill_families(self) -> None:
        """End every grant: refresh tokens are refused as invalid_grant too."""
        self.families.kill_all()

    def forget_clients(self) -> None:
        """Lose every registration: invalid_client from then on."""
        self.clients.forget()

    def forget_sessions(self) -> None:
        """Lose every legacy MCP session: 404 from then on."""
        self.resource.forget_sessions()

    def described(self) -> JsonObject:
        """Where everything is, for whoever started this process."""
        return {
            "url": self.url,
            "issuer": self.issuer,
            "control": self.control_url,
            "personal_token": self.personal_token,
            "preset_client": self.clients.preset,
            "machine_client": self.clients.machine,
            "machine_secret": self.clients.machine_secret,
        }

    async def control(self, body: JsonObject) -> JsonObject:
        """The same as a POST to the control endpoint."""
        await self._control.act(body)
        return self._control.report()

    async def _serve_mcp(self, request: Request, reply: Reply) -> None:
        if self._one_origin and not self.resource.has(request):
            await self.authorization.handle(request, reply)
        else:
            await self.resource.handle(request, reply)

    async def _serve_auth(self, request: Request, reply: Reply) -> None:
        await self.authorization.handle(request, reply)

    async def _serve_control(self, request: Request, reply: Reply) -> None:
        await self._control.handle(request, reply)
