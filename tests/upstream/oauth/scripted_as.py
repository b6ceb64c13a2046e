"""A small authorization server on loopback that does as it is told, for the tests of logins. It keeps what it was asked."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlencode, urlsplit

from interlock.upstream.oauth.documents import Discovered, ServerMetadata

Answer = tuple[int, dict[str, object]] | None
"""None: the connection is cut without an answer."""


@dataclass
class Issued:
    """One code, and what it was asked for with."""

    request: dict[str, str]
    spent: bool = False


@dataclass
class ScriptedServer:
    """Behaves as RFC 6749, 7636, 7591 and 8628 say, unless `token_answers` or `applied_then_cut` say otherwise."""

    root: str = ""
    iss: bool = True
    registrations: list[dict[str, object]] = field(default_factory=list)
    token_requests: list[dict[str, str]] = field(default_factory=list)
    codes: dict[str, Issued] = field(default_factory=dict)
    code_replays: int = 0
    grants: int = 0
    token_answers: list[Answer] = field(default_factory=list)
    """Taken one by one before the real behaviour: nothing is applied with them."""
    cut_after_applying: int = 0
    """So many times, a grant is made and its answer does not arrive."""
    forgotten: set[str] = field(default_factory=set)
    device_codes: dict[str, str] = field(default_factory=dict)
    """device_code: state, one of pending, approved, denied, spent, or an error code."""
    device_requests: list[dict[str, str]] = field(default_factory=list)
    device_interval: float | str = 0.05
    device_expires: float = 600
    gate: asyncio.Event | None = None
    """Where set, the token endpoint waits for it before it looks at anything."""
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def found(self, **changes: object) -> Discovered:
        metadata: dict[str, object] = {
            "issuer": self.root,
            "authorization_endpoint": f"{self.root}/authorize",
            "token_endpoint": f"{self.root}/token",
            "registration_endpoint": f"{self.root}/register",
            "device_authorization_endpoint": f"{self.root}/device",
            "code_challenge_methods_supported": ("S256",),
            "authorization_response_iss_parameter_supported": self.iss,
            **changes,
        }
        return Discovered(
            server_url=f"{self.root}/mcp",
            resource=f"{self.root}/mcp",
            issuer=self.root,
            metadata=ServerMetadata(**metadata),  # type: ignore[arg-type]
        )

    def approve(self, url: str) -> str:
        """What a person's yes leads to: the redirect URL with a fresh code."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query, strict_parsing=True).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = Issued(asked)
        return self._back(asked, code=code)

    def deny(self, url: str, error: str = "access_denied") -> str:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        return self._back(asked, error=error, error_description="the person said no")

    def _back(self, asked: dict[str, str], **fields: str) -> str:
        query = {**fields, "state": asked["state"]} | ({"iss": self.root} if self.iss else {})
        return f"{asked['redirect_uri']}?{urlencode(query)}"

    # -- endpoints

    async def answer(self, path: str, body: bytes) -> Answer:
        if path == "/register":
            wanted = json.loads(body)
            self.registrations.append(wanted)
            return 201, {
                **wanted,
                "client_id": f"client-{len(self.registrations)}",
                "token_endpoint_auth_method": "none",
            }
        form = {name: values[0] for name, values in parse_qs(body.decode(), strict_parsing=True).items()}
        if path == "/device":
            self.device_requests.append(form)
            code = secrets.token_urlsafe(16)
            self.device_codes[code] = "pending"
            return 200, {
                "device_code": code,
                "user_code": "WDJB-MJHT",
                "verification_uri": f"{self.root}/go",
                "verification_uri_complete": f"{self.root}/go?user_code=WDJB-MJHT",
                "interval": self.device_interval,
                "expires_in": self.device_expires,
            }
        if path == "/token":
            self.token_requests.append(form)
            self.asked.set()
            if self.gate is not None:
                await self.gate.wait()
            return self.token_answers.pop(0) if self.token_answers else self.token(form)
        return 404, {}

    def token(self, form: dict[str, str]) -> Answer:
        if form.get("client_id") in self.forgotten:
            return 401, {"error": "invalid_client"}
        if form["grant_type"].endswith(":device_code"):
            state = self.device_codes.get(form["device_code"], "spent")
            if state == "pending":
                return 400, {"error": "authorization_pending"}
            if state != "approved":
                return 400, {"error": {"denied": "access_denied", "spent": "invalid_grant"}.get(state, state)}
            self.device_codes[form["device_code"]] = "spent"
            return self._granted()
        issued = self.codes.get(form.get("code", ""))
        if issued is None:
            return 400, {"error": "invalid_grant"}
        if issued.spent:
            self.code_replays += 1
            return 400, {"error": "invalid_grant", "error_description": "the code was used before"}
        issued.spent = True
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        same = base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == issued.request["code_challenge"]
        for name in ("redirect_uri", "client_id", "resource"):
            same = same and form[name] == issued.request[name]
        return self._granted() if same else (400, {"error": "invalid_grant", "error_description": "another request's"})

    def _granted(self) -> Answer:
        self.grants += 1
        if self.cut_after_applying:
            self.cut_after_applying -= 1
            return None
        tokens = {"access_token": secrets.token_urlsafe(16), "refresh_token": secrets.token_urlsafe(16)}
        return 200, {**tokens, "token_type": "Bearer", "expires_in": 3600}


@asynccontextmanager
async def scripted() -> AsyncIterator[ScriptedServer]:
    script = ScriptedServer()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = [line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length:")]
            body = await reader.readexactly(int(length[0]) if length else 0)
            answer = await script.answer(head.split(" ")[1], body)
            if answer is not None:
                content = json.dumps(answer[1]).encode()
                writer.write(
                    f"HTTP/1.1 {answer[0]} X\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n"
                    "Connection: close\r\n\r\n".encode()
                    + content
                )
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    script.root = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield script
    finally:
        if script.gate is not None:
            script.gate.set()
        server.close()


async def click(url: str, *, family: str = "127.0.0.1", host: str | None = None) -> tuple[int, str]:
    """GET as a browser would. Status and page. Raises OSError where nobody listens."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(family, parts.port)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        writer.write(f"GET {target} HTTP/1.1\r\nHost: {host or parts.netloc}\r\nAccept: text/html\r\n\r\n".encode())
        content = (await asyncio.wait_for(reader.read(), 20)).decode()
    finally:
        writer.close()
    if not content:
        raise ConnectionResetError("no answer")
    head, _, body = content.partition("\r\n\r\n")
    return int(head.split(" ")[1]), body


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait for something that another task or process does."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - it may happen in another process
            await asyncio.sleep(0.01)
