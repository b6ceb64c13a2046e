"""A bare OAuth and MCP client for tests of the servers themselves; shares no code with Interlock's own."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx2

from .clicker import Seen, click

REDIRECT = "http://localhost:49999/callback"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
ACCEPT = {"accept": "application/json, text/event-stream"}


@dataclass(slots=True)
class BareClient:
    """Follows the protocol step by step, and shows each answer. Use as `async with BareClient(lab.url) as client`."""

    url: str
    http: httpx2.AsyncClient = field(default_factory=lambda: httpx2.AsyncClient(trust_env=False, timeout=10))
    resource: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    client_id: str = ""
    verifier: str = ""
    seen: Seen | None = None

    async def __aenter__(self) -> BareClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def discover(self) -> dict[str, Any]:
        """Challenge, resource metadata, server metadata: the happy path only."""
        challenge = (await self.call("echo", None)).headers["www-authenticate"]
        named = challenge.split('resource_metadata="')[1].split('"')[0]
        described = (await self.http.get(named)).json()
        self.resource = described["resource"]
        issuer = described["authorization_servers"][0]
        self.metadata = (await self.http.get(f"{issuer}/.well-known/oauth-authorization-server")).json()
        return self.metadata

    async def register(self, **changed: object) -> httpx2.Response:
        body = {
            "redirect_uris": [REDIRECT],
            "application_type": "native",
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            **changed,
        }
        answer = await self.http.post(self.metadata["registration_endpoint"], json=body)
        self.client_id = answer.json().get("client_id", "")
        return answer

    def authorize_url(self, **changed: str) -> str:
        self.verifier = secrets.token_urlsafe(40)
        digest = hashlib.sha256(self.verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "state": secrets.token_urlsafe(8),
            "resource": self.resource,
            "scope": "mcp",
            **changed,
        }
        return f"{self.metadata['authorization_endpoint']}?{urlencode(query)}"

    async def token(self, grant_type: str, auth: tuple[str, str] | None = None, **form: str) -> httpx2.Response:
        data = {"grant_type": grant_type, "client_id": self.client_id, "resource": self.resource, **form}
        if auth is not None:
            del data["client_id"]
        return await self.http.post(self.metadata["token_endpoint"], data=data, auth=auth)

    async def redeem(self, code: str) -> httpx2.Response:
        return await self.token("authorization_code", code=code, redirect_uri=REDIRECT, code_verifier=self.verifier)

    async def refresh(self, token: str) -> httpx2.Response:
        return await self.token("refresh_token", refresh_token=token)

    async def log_in(self, **changed: str) -> dict[str, Any]:
        """Everything up to the first pair of tokens."""
        if not self.metadata:
            await self.discover()
        if not self.client_id:
            await self.register()
        self.seen = await click(self.authorize_url(**changed), open_callback=False)
        code = self.seen.answer("code")
        assert code is not None, self.seen
        answer = await self.redeem(code)
        assert answer.status_code == 200, answer.text
        tokens: dict[str, Any] = answer.json()
        return tokens

    async def call(self, tool: str, token: str | None, **arguments: object) -> httpx2.Response:
        """A `tools/call` of the modern era."""
        headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": tool, **ACCEPT}
        params = {"name": tool, "arguments": arguments, "_meta": META}
        return await self.post("tools/call", params, token, headers)

    async def post(
        self, method: str, params: dict[str, Any], token: str | None, headers: dict[str, str]
    ) -> httpx2.Response:
        """One JSON-RPC request."""
        signed = {**headers, **ACCEPT} | ({"authorization": f"Bearer {token}"} if token else {})
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post(self.url, json=message, headers=signed)
