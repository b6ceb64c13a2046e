"""The scripted MCP server behind a token: the lab's engines of both eras, the gate in front of them, and mishaps."""

from __future__ import annotations

import json
import secrets
from typing import Literal
from urllib.parse import urlsplit

from interlock.lab.auth.behaviour import Behaviour
from interlock.lab.auth.gate import bearer_of, challenge
from interlock.lab.auth.metadata import resource_metadata, resource_metadata_url
from interlock.lab.auth.misfortune import carry_out, date_header
from interlock.lab.auth.tools import lab_content
from interlock.lab.auth.truth import Truth
from interlock.lab.auth.verifier import Holder, Verifier
from interlock.lab.http_server import Reply, Request
from interlock.lab.legacy_http import LegacyHttp
from interlock.lab.modern_engine import MODERN_VERSION, ModernServer
from interlock.lab.modern_http import ModernHttp

ServedEra = Literal["modern", "legacy", "both"]


class ResourceServer:
    """One MCP endpoint at `url`; `handle` serves one request."""

    def __init__(
        self, behaviour: Behaviour, truth: Truth, verifier: Verifier, url: str, issuer: str, era: ServedEra
    ) -> None:
        self.url = url
        self.personal_token = f"lab-personal-{secrets.token_urlsafe(24)}"
        self._behaviour = behaviour
        self._truth = truth
        self._verifier = verifier
        self._issuer = issuer
        self._era = era
        content = lab_content("interlock-lab-protected", truth, self._holder_of)
        self._modern = ModernHttp(ModernServer(content))
        self._legacy = LegacyHttp(content)
        self._path = urlsplit(url).path

    def forget_sessions(self) -> None:
        """Lose every legacy session; clients then get 404."""
        self._legacy.forget_sessions()

    def has(self, request: Request) -> bool:
        """Whether the request is for this server, where it shares an origin with the authorization server."""
        return request.path == self._path or request.path == self._metadata_path()

    async def handle(self, request: Request, reply: Reply) -> None:
        behaviour = self._behaviour
        reply.fields |= date_header(self._verifier.now() + behaviour.rs_date, behaviour.date_header)
        if behaviour.rs_silent:
            reply.started = True
            await reply.closed.wait()
        elif request.path == self._metadata_path():
            await self._metadata(reply)
        elif request.path != self._path:
            await reply.send(404)
        else:
            await self._mcp(request, reply)

    def _metadata_path(self) -> str | None:
        url = resource_metadata_url(self._behaviour, self.url)
        return None if url is None else urlsplit(url).path

    async def _metadata(self, reply: Reply) -> None:
        self._truth.counts["resource_metadata_requests"] += 1

        async def run(reply: Reply) -> None:
            await reply.send_json(200, resource_metadata(self._behaviour, self.url, self._issuer))

        mishap = self._behaviour.take("resource-metadata", "")
        await (run(reply) if mishap is None else carry_out(mishap, reply, run))

    async def _mcp(self, request: Request, reply: Reply) -> None:
        method, tool = _asked(request)
        asked = f"{method} {tool}" if tool else method

        def note(status: int) -> None:
            self._truth.statuses[status] += 1
            self._truth.calls.append((asked, status))

        async def run(reply: Reply) -> None:
            await self._guarded(request, reply, method, tool)

        reply.on_status = note
        mishap = self._behaviour.take("mcp", method)
        try:
            await (run(reply) if mishap is None else carry_out(mishap, reply, run))
        finally:
            if reply.status is None:
                note(0)

    async def _guarded(self, request: Request, reply: Reply, method: str, tool: str | None) -> None:
        """Ask for a token, then for its scopes, then serve."""
        behaviour = self._behaviour
        get_status = behaviour.get_status if request.method == "GET" else None
        if get_status is not None and behaviour.get_before_auth:
            await reply.send(get_status)
            return
        token = bearer_of(request.headers)
        personal = token == self.personal_token
        if personal:
            refusal = "personal token was rejected" if behaviour.refuse_personal else None
        else:
            refusal = None if token is None else self._verifier.refusal(token)
        if token is None or refusal is not None:
            await self._refuse(reply, refusal)
            return
        known = self._verifier.holder(token)
        needed = behaviour.tool_scopes.get(tool or "", "")
        if known is not None and not set(needed.split()) <= set(known.scope):
            params = [("error", "insufficient_scope"), ("scope", needed)]
            await reply.send(403, headers=self._challenge(params))
        elif behaviour.forbid:
            await reply.send(403)
        elif get_status is not None:
            await reply.send(get_status)
        else:
            await self._serve(request, reply, tool)

    async def _refuse(self, reply: Reply, refusal: str | None) -> None:
        # RFC 6750, section 3.1: no error code where there was no token at all.
        params = [] if refusal is None else [("error", "invalid_token"), ("error_description", refusal)]
        if self._behaviour.challenge_scope is not None:
            params.append(("scope", self._behaviour.challenge_scope))
        await reply.send(401, headers=self._challenge(params))

    def _challenge(self, params: list[tuple[str, str]]) -> dict[str, str]:
        return challenge(self._behaviour.challenge, resource_metadata_url(self._behaviour, self.url), params)

    async def _serve(self, request: Request, reply: Reply, tool: str | None) -> None:
        engine = self._modern.handle if self._is_modern(request) else self._legacy.handle
        if _asked(request)[0] == "initialize":
            self._truth.opened.append({name: text for name, text in request.headers.items() if name != "authorization"})
        mishap = None if tool is None else self._behaviour.take("call", tool)

        async def run(reply: Reply) -> None:
            await engine(request, reply)

        if mishap is None:
            await run(reply)
            return
        self._truth.counts["mishaps_of_calls"] += 1
        await carry_out(mishap, reply, run)

    def _is_modern(self, request: Request) -> bool:
        if self._era != "both":
            return self._era == "modern"
        return request.headers.get("mcp-protocol-version") == MODERN_VERSION or "mcp-method" in request.headers

    def _holder_of(self, authorization: str) -> Holder | None:
        token = bearer_of({"authorization": authorization})
        return None if token is None else self._verifier.holder(token)


def _asked(request: Request) -> tuple[str, str | None]:
    """Method of the message and, of a `tools/call`, the tool; the HTTP method where there is no message."""
    try:
        message = json.loads(request.body)
        method = message["method"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return request.method, None
    params = message.get("params")
    name = params.get("name") if method == "tools/call" and isinstance(params, dict) else None
    return str(method), name if isinstance(name, str) else None
