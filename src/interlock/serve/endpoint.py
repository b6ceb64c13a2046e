"""The HTTP endpoint: `/mcp` for both eras, `/healthz` and `/readyz`; `Origin`, `Host` and the credential checked first."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Final

from interlock.model.principal import Principal
from interlock.relay.client import Client
from interlock.serve.channels import KEEP_ALIVE_SECONDS, LegacyHttpChannel, ModernHttpChannel
from interlock.serve.front import Front, http_status
from interlock.serve.http1 import Request, Responder
from interlock.serve.sessions import HttpSession, Sessions
from interlock.wire import codes, messages
from interlock.wire.eras import LEGACY_VERSIONS, MODERN_VERSIONS, Era, take_meta
from interlock.wire.messages import Kind, Message, WireError
from interlock.wire.sse import KEEP_ALIVE

ANONYMOUS: Final = Principal("anonymous", "anonymous")
_AUTHORITY: Final = re.compile(rb"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::[0-9]{0,5})?")
"""Host and port, and nothing else: no user name, path or second host may hide in it (RFC 9110, 7.2)."""
Authenticate = Callable[[bytes], Principal | None]
Ready = Callable[[], tuple[bool, str]]


class Endpoint:
    """`authenticate` is None with `--no-credential`; `hosts` are the values of `Host` and `Origin` that are ours."""

    def __init__(self, front: Front, *, authenticate: Authenticate | None, names: frozenset[str], ready: Ready) -> None:
        self._front = front
        self._authenticate = authenticate
        self._names = names
        self._ready = ready
        self._registry = front.pipeline.hub.registry
        self.sessions = Sessions(front.client_gone)
        self._last_host: bytes | None = None
        """The `Host` that was last found to be ours: nearly all requests repeat it."""
        self._modern: dict[str, Client] = {}
        self._loop = asyncio.get_running_loop()

    def handle(self, request: Request, respond: Responder) -> None:
        """Never raises; every request gets an answer."""
        try:
            self._handle(request, respond)
        except WireError as error:
            self._refuse(respond, error, 400)

    def _handle(self, request: Request, respond: Responder) -> None:
        headers = request.headers
        host = headers.get(b"host")
        if host != self._last_host and not self._own_host(host):
            respond.text("This Host is not served here.\n", 421)
            return
        self._last_host = host
        origin = headers.get(b"origin")
        if origin is not None and not self._own_origin(origin):
            # DNS rebinding: a page of another site must not reach a local server (2026-07-28, Streamable HTTP, Security).
            respond.json(messages.error(None, messages.error_body(codes.INVALID_REQUEST, "Origin not allowed")), 403)
            return
        path = request.path
        if path != "/mcp" and path != "/mcp/":
            self._elsewhere(path, respond)
            return
        principal = self._principal(headers)
        if principal is None:
            respond.json(
                messages.error(
                    None, messages.error_body(codes.INVALID_REQUEST, "A credential is needed: see docs/serve.md")
                ),
                401,
                b'www-authenticate: Bearer realm="interlock"\r\n',
            )
            return
        method = request.method
        if method == "POST":
            if origin is not None and not self._json_from_page(headers):
                respond.text("Content-Type must be application/json\n", 415)
                return
            self._post(request, respond, principal)
        elif method == "GET":
            self._get(request, respond, principal)
        elif method == "DELETE":
            self._delete(request, respond, principal)
        else:
            respond.empty(405, b"allow: POST, GET, DELETE\r\n")

    def _elsewhere(self, path: str, respond: Responder) -> None:
        if path == "/healthz":
            respond.text("ok\n")
        elif path == "/readyz":
            ok, text = self._ready()
            respond.text(text + "\n", 200 if ok else 503)
        else:
            respond.text("Not found. The MCP endpoint is /mcp.\n", 404)

    # -- who and whence ------------------------------------------------------------------------------------------------

    def _own_host(self, host: bytes | None) -> bool:
        return host is None or _hostname(host) in self._names

    def _own_origin(self, origin: bytes) -> bool:
        scheme, separator, authority = origin.strip().partition(b"://")
        return bool(separator) and scheme.lower() in (b"http", b"https") and _hostname(authority) in self._names

    def _json_from_page(self, headers: dict[bytes, bytes]) -> bool:
        """False where a page sends what browsers let any page send unasked: a form or plain text."""
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        return kind == b"application/json"

    def _principal(self, headers: dict[bytes, bytes]) -> Principal | None:
        if self._authenticate is None:
            return ANONYMOUS
        scheme, _, token = headers.get(b"authorization", b"").strip().partition(b" ")
        if scheme.lower() != b"bearer" or not token.strip():
            return None
        return self._authenticate(token.strip())

    # -- POST ----------------------------------------------------------------------------------------------------------

    def _post(self, request: Request, respond: Responder, principal: Principal) -> None:
        headers = request.headers
        version = headers.get(b"mcp-protocol-version", b"").strip().decode("latin-1")
        body = request.body
        if messages.is_batch(body):
            self._batch(body, respond, principal, headers, version)
            return
        message = self._read(body, principal, headers)
        if message.kind is not Kind.REQUEST:
            self._aside(message, respond, principal, headers)
            return
        try:
            params = messages.read_map(message.params)
            meta = take_meta(params)
        except WireError as error:
            error.id = message.id
            raise
        modern = (
            meta.version is not None
            or version in MODERN_VERSIONS
            or message.method in ("server/discover", "subscriptions/listen")
            or (version != "" and version not in LEGACY_VERSIONS and b"mcp-method" in headers)
        )
        size = len(body)
        try:
            if message.method == "initialize" and version == "" and b"mcp-method" not in headers:
                modern = False  # a handshake, whatever its `_meta` says
            if modern:
                channel = ModernHttpChannel(respond, _accepts_stream(headers))
                client = self._modern_client(principal)
                exchange = self._front.request(client, message, params, meta, Era.MODERN, channel, headers, size)
                if not exchange.done:
                    respond.on_gone = exchange.cancel
                return
            session = self._session_for(message, principal, headers, version, respond)
            if session is None:
                return
            extra = b"mcp-session-id: " + session.id.encode() + b"\r\n"
            # Clients that name the stream first get one; the usual order leaves the choice to us, and JSON is cheaper.
            prefers = headers.get(b"accept", b"").lstrip().startswith(b"text/event-stream")
            legacy = LegacyHttpChannel(respond, session.streams, extra, _accepts_stream(headers), prefers)
            exchange = self._front.request(session.client, message, params, meta, Era.LEGACY, legacy, headers, size)
            if message.method == "initialize" and exchange.task is not None:
                exchange.task.add_done_callback(lambda _: self._opened(session))
        except WireError as error:
            error.id = message.id
            era = Era.MODERN if modern else Era.LEGACY
            status = http_status(messages.error_body(error.code, ""), era)
            # A modern request without its required `_meta` is 400 (2026-07-28, basic/index, `_meta`).
            self._refuse(respond, error, 400 if status == 200 else status)

    def _read(self, body: bytes, principal: Principal, headers: dict[bytes, bytes]) -> Message:
        try:
            return messages.parse(body, strict=True)
        except WireError as error:
            given = headers.get(b"mcp-session-id")
            if error.response_id is not None and given is not None:
                session = self.sessions.find(given.decode("latin-1"), principal, self._loop.time())
                if session is not None:
                    self._front.answered_badly(session.client, error)
            raise

    def _modern_client(self, principal: Principal) -> Client:
        client = self._modern.get(principal.id)
        if client is None:
            client = self._modern[principal.id] = Client(principal.id, principal, Era.MODERN)
            self._registry.clients[client.id] = client
        return client

    def _session_for(
        self, message: Message, principal: Principal, headers: dict[bytes, bytes], version: str, respond: Responder
    ) -> HttpSession | None:
        """The legacy session of a request, a new one for `initialize`; None where the request was answered already."""
        now = self._loop.time()
        given = headers.get(b"mcp-session-id")
        if message.method == "initialize":
            session = self.sessions.open(principal, now)
            self._registry.clients[session.client.id] = session.client
            return session
        if given is None:
            raise WireError(codes.INVALID_REQUEST, "Bad Request: no Mcp-Session-Id; send initialize first", message.id)
        found = self.sessions.find(given.decode("latin-1"), principal, now)
        if found is None:
            body = messages.error_body(codes.INVALID_REQUEST, "Session not found: send initialize again")
            respond.json(messages.error(message.id, body), 404)
            return None
        if version and version not in LEGACY_VERSIONS:
            raise WireError(
                codes.INVALID_REQUEST, f"Bad Request: unsupported protocol version {version[:40]!r}", message.id
            )
        return found

    def _opened(self, session: HttpSession) -> None:
        """After `initialize`: where it was refused, there is no session."""
        if not session.client.ready:
            self.sessions.close(session.id)

    def end_revoked(self, valid: Callable[[Principal], bool]) -> None:
        """End what callers still have open whose credential no longer holds: sessions, streams and calls."""
        self.sessions.close_revoked(valid)
        for id in [each for each, client in self._modern.items() if not valid(client.principal)]:
            self._front.client_gone(self._modern.pop(id))

    def _aside(self, message: Message, respond: Responder, principal: Principal, headers: dict[bytes, bytes]) -> None:
        """A notification or a response: 202, and nothing more to say."""
        given = headers.get(b"mcp-session-id")
        if given is not None:
            session = self.sessions.find(given.decode("latin-1"), principal, self._loop.time())
            if session is None:
                respond.json(messages.error(None, messages.error_body(codes.INVALID_REQUEST, "Session not found")), 404)
                return
            self._front.aside(session.client, message)
        elif message.kind is not Kind.NOTIFICATION:
            raise WireError(codes.INVALID_REQUEST, "a response needs the session that asked")
        respond.empty(202)

    def _batch(
        self, body: bytes, respond: Responder, principal: Principal, headers: dict[bytes, bytes], version: str
    ) -> None:
        """Batches exist in revision 2025-03-26 only; there each member is served as if it had come alone."""
        given = headers.get(b"mcp-session-id")
        session = (
            self.sessions.find(given.decode("latin-1"), principal, self._loop.time()) if given is not None else None
        )
        if session is None or session.client.version != "2025-03-26":
            raise WireError(codes.INVALID_REQUEST, "batches are not part of this revision: send one message a request")
        parts = [messages.parse(item, strict=True) for item in messages.split_batch(body)]
        for message in parts:
            if message.kind is not Kind.REQUEST:
                self._front.aside(session.client, message)
        requests = [message for message in parts if message.kind is Kind.REQUEST]
        if not requests:
            respond.empty(202)
            return
        gather = _BatchChannel(respond, len(requests))
        for message in requests:
            try:
                params = messages.read_map(message.params)
                meta = take_meta(params)
                self._front.request(session.client, message, params, meta, Era.LEGACY, gather, headers, len(body))
            except WireError as error:
                gather.answer(messages.error(message.id, self._front.refusal(error)))

    def _refuse(self, respond: Responder, error: WireError, status: int) -> None:
        respond.json(messages.error(error.id, self._front.refusal(error)), status)

    # -- GET and DELETE (legacy) ---------------------------------------------------------------------------------------

    def _get(self, request: Request, respond: Responder, principal: Principal) -> None:
        headers = request.headers
        given = headers.get(b"mcp-session-id")
        version = headers.get(b"mcp-protocol-version", b"").strip().decode("latin-1")
        if given is None or version in MODERN_VERSIONS:
            respond.empty(405, b"allow: POST\r\n")
            return
        if not _accepts_stream(headers):
            respond.text("Not Acceptable: the client must accept text/event-stream\n", 406)
            return
        session = self.sessions.find(given.decode("latin-1"), principal, self._loop.time())
        if session is None:
            respond.json(messages.error(None, messages.error_body(codes.INVALID_REQUEST, "Session not found")), 404)
            return
        respond.begin_stream(b"mcp-session-id: " + session.id.encode() + b"\r\n")
        last = headers.get(b"last-event-id")
        found = session.streams.find(last.decode("latin-1")) if last is not None else None
        if found is not None:
            found[0].attach(respond, found[1])
        else:
            session.attach(respond)
        _keep_alive(respond)

    def _delete(self, request: Request, respond: Responder, principal: Principal) -> None:
        given = request.headers.get(b"mcp-session-id")
        if given is None:
            respond.empty(405, b"allow: POST\r\n")
            return
        session = self.sessions.find(given.decode("latin-1"), principal, self._loop.time())
        if session is None:
            respond.json(messages.error(None, messages.error_body(codes.INVALID_REQUEST, "Session not found")), 404)
            return
        self.sessions.close(session.id)
        respond.empty(200)


class _BatchChannel:
    """Collects the answers of one batch into one array. Notifications ahead of them have no place in plain JSON."""

    def __init__(self, respond: Responder, expected: int) -> None:
        self._respond = respond
        self._expected = expected
        self._answers: list[bytes] = []

    def notify(self, message: bytes) -> None:
        return

    def interrupted(self) -> None:
        return

    def answer(self, message: bytes, http_status: int = 200) -> None:
        self._answers.append(message)
        self._finish()

    def dropped(self) -> None:
        self._expected -= 1
        self._finish()

    def _finish(self) -> None:
        if len(self._answers) < self._expected:
            return
        if self._answers:
            self._respond.json(b"[" + b",".join(self._answers) + b"]")
        else:
            self._respond.empty(202)


def _keep_alive(respond: Responder) -> None:
    def beat() -> None:
        if respond.streaming and not respond.gone:
            respond.write(KEEP_ALIVE)
            asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, beat)

    asyncio.get_running_loop().call_later(KEEP_ALIVE_SECONDS, beat)


def _accepts_stream(headers: dict[bytes, bytes]) -> bool:
    accept = headers.get(b"accept")
    return accept is None or b"text/event-stream" in accept or b"*/*" in accept or b"text/*" in accept


def _hostname(authority: bytes) -> str:
    """The host of `host[:port]`, lower-case, brackets of IPv6 kept, without the dot that may end it; else nothing."""
    found = _AUTHORITY.fullmatch(authority.strip())
    return found[1].lower().decode("ascii").removesuffix(".") if found is not None else ""
