"""npm's oidc-provider as authorization server (as.mjs), and the lab's MCP server behind tokens that it really signs."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import jwt
from tests.conformance import programs

from interlock.lab.auth.behaviour import Behaviour
from interlock.lab.auth.lab import Listener
from interlock.lab.auth.resource_server import ResourceServer, ServedEra
from interlock.lab.auth.truth import Truth
from interlock.lab.auth.verifier import Holder
from interlock.lab.http_server import Reply, Request

SCRIPT = Path(__file__).with_name("as.mjs")
START_SECONDS = 30.0
STOP_SECONDS = 5.0
SCOPES = ("mcp", "admin")


class JwksVerifier:
    """Checks signature, issuer, expiry and exact audience of access tokens against the issuer's published keys."""

    def __init__(self, issuer: str, keys: dict[str, Any], audience: str) -> None:
        self._issuer = issuer
        self._keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(keys).keys}
        self._audience = audience
        self._seen: set[str] = set()
        self._revoked: set[str] = set()
        self._revoked_before = 0

    def now(self) -> float:
        return time.time()

    def refusal(self, token: str) -> str | None:
        try:
            claims = self._claims(token)
        except jwt.ExpiredSignatureError:
            return "token has expired"
        except jwt.InvalidAudienceError:
            return "token is for another audience"
        except (jwt.InvalidTokenError, KeyError) as error:
            return f"bad token: {type(error).__name__}"
        if claims["jti"] in self._revoked or claims["iat"] < self._revoked_before:
            return "token was revoked"
        self._seen.add(claims["jti"])
        return None

    def holder(self, token: str) -> Holder | None:
        try:
            claims = self._claims(token)
        except (jwt.InvalidTokenError, KeyError):
            return None
        return Holder(claims["client_id"], tuple(claims.get("scope", "").split()), claims["aud"])

    def revoke_access(self) -> None:
        """Refuse every token that was used so far, or was issued before this second, though it is good: an early 401."""
        self._revoked |= self._seen
        self._revoked_before = int(time.time())

    def _claims(self, token: str) -> dict[str, Any]:
        key = self._keys[jwt.get_unverified_header(token)["kid"]]
        claims: dict[str, Any] = jwt.decode(
            token, key, algorithms=["ES256"], audience=self._audience, issuer=self._issuer
        )
        return claims


@dataclass(slots=True)
class OidcLab:
    """Both servers. `behave` and `truth` are those of the MCP server; the authorization server is honest."""

    url: str
    issuer: str
    machine_secret: str
    behave: Behaviour
    truth: Truth
    resource: ResourceServer
    listener: Listener
    verifier: JwksVerifier
    preset_client: str = "preset-client"
    device_client: str = "device-client"
    machine_client: str = "machine-client"

    async def counts(self) -> dict[str, Any]:
        """What happened at the authorization server, as as.mjs counts it."""
        async with httpx2.AsyncClient(trust_env=False) as client:
            counted: dict[str, Any] = (await client.get(f"{self.issuer}/lab/counts")).json()
            return counted


@asynccontextmanager
async def oidc_lab(
    *,
    era: ServedEra = "modern",
    access_seconds: int = 60,
    refresh_seconds: int = 3600,
    device_seconds: int = 120,
    registration: bool = True,
    scopes_in_registration: bool = True,
    other_resources: tuple[str, ...] = (),
) -> AsyncIterator[OidcLab]:
    """Run both. Raises `programs.Missing` where Node.js or the package is not installed.

    `scopes_in_registration=False`: a registration that names the resource's scopes is refused.
    """
    node, package = programs.node(), provider_package()
    behave, truth, server = Behaviour(scopes_supported=("mcp",)), Truth(), None

    async def handle(request: Request, reply: Reply) -> None:
        assert server is not None
        await server.handle(request, reply)

    listener = Listener(handle)
    await listener.up(0)
    url = f"http://127.0.0.1:{listener.port}/mcp"
    settings = {
        "package": package.as_uri(),
        "resources": [url, *other_resources],
        "scopes": SCOPES,
        "accessSeconds": access_seconds,
        "refreshSeconds": refresh_seconds,
        "deviceSeconds": device_seconds,
        "registration": registration,
        "scopesInRegistration": scopes_in_registration,
        "machineSecret": secrets.token_urlsafe(24),
    }
    process = await asyncio.create_subprocess_exec(
        node, SCRIPT, json.dumps(settings), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        if not line:
            raise RuntimeError(f"oidc-provider ended with {await process.wait()} before it was ready")
        issuer = json.loads(line)["issuer"]
        async with httpx2.AsyncClient(trust_env=False) as client:
            keys = (await client.get(f"{issuer}/jwks")).json()
        verifier = JwksVerifier(issuer, keys, url)
        server = ResourceServer(behave, truth, verifier, url, issuer, era)
        yield OidcLab(url, issuer, str(settings["machineSecret"]), behave, truth, server, listener, verifier)
    finally:
        await listener.down()
        assert process.stdin is not None
        process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        if process.returncode is None:
            process.kill()
            await process.wait()


def provider_package() -> Path:
    """The entry point of oidc-provider. Raises `programs.Missing`."""
    found = programs.NPM / "node_modules/oidc-provider/lib/index.js"
    if not found.exists():
        raise programs.Missing(f"tests/npm/node_modules/oidc-provider is not installed: {programs.HOW}")
    return found
