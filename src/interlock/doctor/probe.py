"""Asks a server what it speaks, the way a bridge would begin, and leaves nothing behind: a session that it opens is ended."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from interlock.manifest.config import HttpTransport
from interlock.upstream import secret_file
from interlock.upstream.oauth import network_words
from interlock.upstream.oauth.clock import skew_of_answer
from interlock.wire.revisions import (
    CAPABILITIES_KEY,
    LATEST_LEGACY,
    LEGACY_VERSIONS,
    MODERN_VERSION,
    MODERN_VERSIONS,
    VERSION_KEY,
)

if TYPE_CHECKING:
    import httpx2

MAX_BODY = 4 * 1024 * 1024
_UNSUPPORTED_VERSION = -32022
_MODERN_ERRORS = frozenset({-32020, -32021, -32022})
_CLIENT = {"name": "interlock-doctor", "version": "1"}


class Unreached(Exception):
    """There is no answer. The text is for people."""

    def __init__(self, why: str, kind: network_words.Kind = "other") -> None:
        super().__init__(why)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer. `repr` shows no body."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; several of one name joined with `, `."""
    message: Mapping[str, object] | None = field(repr=False)
    """The JSON-RPC response in it, where there is one."""
    seconds: float
    skew: float | None
    """Seconds to add to this machine's clock to get the server's."""

    @property
    def result(self) -> Mapping[str, object] | None:
        return _table((self.message or {}).get("result"))

    @property
    def nothing_there(self) -> bool:
        """A 404 of the address: it is no JSON-RPC, which would speak of the method, and asks for no sign-in."""
        if self.status != 404 or "www-authenticate" in self.headers:
            return False
        return (self.message or {}).get("jsonrpc") is None

    @property
    def error_code(self) -> int | None:
        code = (_table((self.message or {}).get("error")) or {}).get("code")
        return code if isinstance(code, int) else None


@dataclass(frozen=True, slots=True)
class Spoken:
    """How the server answered the beginning of a conversation."""

    era: Literal["modern", "legacy", "unsettled"]
    version: str | None
    heard: Heard
    """The answer that settled it, or did not."""
    server: str = ""
    """What the server calls itself."""
    offers: tuple[str, ...] = ()
    """The revisions that it named, where it refused all of ours."""
    kept_session: bool = False
    """True where a session had to be opened and the server refused to end it."""


def sent_headers(transport: HttpTransport, environ: Mapping[str, str]) -> dict[str, str]:
    """The manifest's headers for every request, as far as their variables are set and their files can be read. Names in lower case."""
    made: dict[str, str] = {}
    for header in transport.headers:
        value = header.literal if header.source is None else environ.get(header.source)
        if header.file is not None:
            try:
                value = secret_file.value(header.file).strip()
            except secret_file.Unreadable:
                continue
        if value is not None:
            made[header.name.lower()] = f"{header.prefix if header.literal is None else ''}{value}"
    return made


class Prober:
    """Belongs to one event loop. Trusts what the bridge trusts, follows no redirect, keeps no cookie."""

    def __init__(self, url: str, headers: Mapping[str, str], kind: Literal["http", "sse"], seconds: float) -> None:
        self._url = url
        self._headers = dict(headers)
        self._kind = kind
        self._seconds = seconds

    async def first(self, authorization: str | None = None) -> Heard:
        """The answer to the very first request. Raises Unreached."""
        async with self._client() as client:
            if self._kind == "sse":
                return await self._send(client, "GET", None, {"accept": "text/event-stream"}, authorization)
            return await self._discover(client, MODERN_VERSION, authorization)

    async def speak(self, authorization: str | None = None) -> Spoken:
        """The era, by `server/discover` and, where that fails, `initialize`. Raises Unreached."""
        async with self._client() as client:
            if self._kind == "sse":
                heard = await self._send(client, "GET", None, {"accept": "text/event-stream"}, authorization)
                stream = heard.status == 200 and "text/event-stream" in heard.headers.get("content-type", "")
                return Spoken("legacy" if stream else "unsettled", "2024-11-05" if stream else None, heard)
            heard = await self._discover(client, MODERN_VERSION, authorization)
            if heard.status in (401, 403) or heard.status >= 500:
                return Spoken("unsettled", None, heard)
            supported = _versions(heard)
            mutual = [version for version in MODERN_VERSIONS if version in supported]
            if heard.result is not None and mutual:
                return Spoken("modern", mutual[0], heard, _name(heard.result))
            if heard.error_code in _MODERN_ERRORS and (heard.error_code != _UNSUPPORTED_VERSION or mutual):
                return Spoken("modern", mutual[0] if mutual else None, heard)
            if heard.error_code == _UNSUPPORTED_VERSION and not set(supported) & set(LEGACY_VERSIONS):
                return Spoken("unsettled", None, heard, offers=tuple(version[:40] for version in supported[:8]))
            return await self._initialize(client, authorization)

    async def _discover(self, client: httpx2.AsyncClient, version: str, authorization: str | None) -> Heard:
        meta = {
            VERSION_KEY: version,
            "io.modelcontextprotocol/clientInfo": _CLIENT,
            CAPABILITIES_KEY: {},
        }
        headers = {"mcp-protocol-version": version, "mcp-method": "server/discover"}
        return await self._send(client, "POST", _request("server/discover", {"_meta": meta}), headers, authorization)

    async def _initialize(self, client: httpx2.AsyncClient, authorization: str | None) -> Spoken:
        params = {"protocolVersion": LATEST_LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
        heard = await self._send(client, "POST", _request("initialize", params), {}, authorization)
        version = (heard.result or {}).get("protocolVersion")
        if heard.status != 200 or not isinstance(version, str):
            return Spoken("unsettled", None, heard)
        kept = False
        session = heard.headers.get("mcp-session-id")
        if session is not None:
            # 2025-11-25, transports, Session Management: a client that leaves ends its session; 405 refuses that.
            ending = {"mcp-session-id": session, "mcp-protocol-version": version}
            try:
                kept = (await self._send(client, "DELETE", None, ending, authorization)).status >= 300
            except Unreached:
                kept = True
        return Spoken("legacy", version[:40], heard, _name(heard.result or {}), kept_session=kept)

    def _client(self) -> httpx2.AsyncClient:
        import httpx2

        return httpx2.AsyncClient(
            verify=ssl.create_default_context(), trust_env=False, follow_redirects=False, timeout=self._seconds
        )

    async def _send(
        self,
        client: httpx2.AsyncClient,
        method: str,
        body: bytes | None,
        headers: Mapping[str, str],
        authorization: str | None,
    ) -> Heard:
        import httpx2

        everything = {"accept": "application/json, text/event-stream", **self._headers, **headers}
        if body is not None:
            everything["content-type"] = "application/json"
        if authorization is not None:
            everything["authorization"] = authorization
        began = time.monotonic()
        kind: network_words.Kind
        try:
            async with (
                asyncio.timeout(self._seconds),
                client.stream(method, self._url, headers=everything, content=body) as response,
            ):
                answered = {name.lower(): value for name, value in response.headers.items()}
                skew = skew_of_answer(answered, time.time())
                message = await _message(response, answered) if method == "POST" else None
                return Heard(response.status_code, answered, message, time.monotonic() - began, skew)
        except (TimeoutError, httpx2.TimeoutException):
            kind, why = "time", f"no answer within {network_words.seconds(self._seconds)}"
        except (httpx2.ConnectError, OSError) as error:
            parts = urlsplit(self._url)
            kind, why = network_words.why(error, parts.hostname or "", port_of(self._url))
        except httpx2.TransportError:
            kind, why = "other", "the connection ended before an answer could be read; it may not speak HTTP"
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError):
            kind, why = "other", "no request can be made for this URL"
        raise Unreached(why, kind)  # out here: the library's error holds the request, and with it secrets


def port_of(url: str) -> int:
    """The port that a URL leads to, written out or not."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


async def _message(response: httpx2.Response, headers: Mapping[str, str]) -> Mapping[str, object] | None:
    """The first JSON-RPC response of the answer, from JSON or from a stream that may never end."""
    if "text/event-stream" in headers.get("content-type", ""):
        from interlock.wire.sse import EventTooLarge, SseDecoder

        decoder, size = SseDecoder(MAX_BODY), 0
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            try:
                events = decoder.feed(chunk)
            except EventTooLarge:
                return None
            for event in events:
                message = _parsed(event.data)
                if message is not None and ("result" in message or "error" in message):
                    return message
            if size > MAX_BODY:
                return None
        return None
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BODY:
            return None
    return _parsed(bytes(body))


def _parsed(data: bytes) -> Mapping[str, object] | None:
    try:
        return _table(json.loads(data))
    except (ValueError, RecursionError):
        return None


def _request(method: str, params: Mapping[str, object]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "doctor-1", "method": method, "params": params}).encode()


def _table(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, dict) else None


def _versions(heard: Heard) -> list[str]:
    """What the server says it supports, in a result or in the error that refuses our version."""
    error = _table((heard.message or {}).get("error")) or {}
    listed = (heard.result or {}).get("supportedVersions") or (_table(error.get("data")) or {}).get("supported")
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def _name(result: Mapping[str, object]) -> str:
    meta = _table(result.get("_meta")) or {}
    info = _table(result.get("serverInfo")) or _table(meta.get("io.modelcontextprotocol/serverInfo")) or {}
    return " ".join(part for part in (info.get("name"), info.get("version")) if isinstance(part, str))[:120]
