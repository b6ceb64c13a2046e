"""Streamable HTTP to one server: each message its own POST, answers as JSON or as a stream, both eras.

Legacy sessions also have an id header, a GET stream for what belongs to no request, and streams that may be resumed after
a break (2025-11-25, transports). Modern ones have none of these (2026-07-28, Streamable HTTP).
"""

from __future__ import annotations

import asyncio

from interlock.model.fault import Fault
from interlock.upstream import evidence
from interlock.upstream.authorization import Authorization
from interlock.upstream.contract import Reply
from interlock.upstream.http1 import Connection, Origin, Pool, Ticket, target_of
from interlock.upstream.secret_forms import without_secrets
from interlock.upstream.session import Call, Session, SessionLost
from interlock.upstream.told import Told
from interlock.wire import bounds, codes, messages, sse, translate
from interlock.wire.eras import Era
from interlock.wire.headers import encode_value

_ACCEPT = b"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
MAX_RESUMES = 8
"""How often one broken legacy stream is picked up again without anything new arriving."""
DEFAULT_RETRY_MS = 1000
LINGER_SECONDS = 2.0
"""How long a stream may stay open after its answer, before it is closed from here."""
MAX_HEADS = 1024
MAX_REFUSALS = 2
"""How often one request is sent again with a better credential: once for a new token, once for wider scopes."""


class HttpCarrier:
    """Moves one session's messages. The pool is the server's, shared by its sessions.

    `opening` are headers that go with the request that opens the session; with every one where there are no sessions.
    """

    def __init__(
        self,
        session: Session,
        pool: Pool,
        url: str,
        headers: list[tuple[str, str]],
        user_agent: str,
        auth: Authorization | None = None,
        opening: list[tuple[str, str]] | None = None,
    ) -> None:
        self.session = session
        self.pool = pool
        self.auth = auth
        self._opening = "".join(f"{name}: {value}\r\n" for name, value in opening or ()).encode("latin-1")
        target = target_of(url)
        extra = "".join(f"{name}: {value}\r\n" for name, value in headers)
        common = f"host: {pool.origin.authority}\r\nuser-agent: {user_agent}\r\n{extra}".encode("latin-1")
        self._post_head = f"POST {target} HTTP/1.1\r\n".encode() + common + _ACCEPT
        self._get_head = f"GET {target} HTTP/1.1\r\n".encode() + common + b"accept: text/event-stream\r\n"
        self._delete_head = f"DELETE {target} HTTP/1.1\r\n".encode() + common
        self.session_id: str | None = None
        self.negotiated = False
        """True once the handshake is over, so that the version header may be sent to a legacy server."""
        self._stream: _Stream | None = None
        self._heads: dict[tuple[str, str | None], bytes] = {}
        """Heads of modern requests by method and name: they repeat, and none of them ever changes."""

    def _modern_head(self, method: str, name: str | None) -> bytes:
        key = (method, name)
        head = self._heads.get(key)
        if head is None:
            head = (
                self._post_head
                + self._session_headers()
                + self._opening
                + b"mcp-method: "
                + method.encode("ascii", "replace")
                + b"\r\n"
            )
            if name is not None:
                head += b"mcp-name: " + encode_value(name).encode() + b"\r\n"
            if len(self._heads) >= MAX_HEADS:
                self._heads.clear()
            self._heads[key] = head
        return head

    def _session_headers(self) -> bytes:
        lines = b""
        if self.session.era is Era.MODERN or self.negotiated:
            lines = b"mcp-protocol-version: " + self.session.version.encode() + b"\r\n"
        if self.session_id is not None:
            lines += b"mcp-session-id: " + self.session_id.encode("latin-1") + b"\r\n"
        return lines

    def send(self, call: Call, message: bytes, name: str | None, params: list[tuple[str, str]]) -> None:
        if self.session.era is Era.LEGACY:
            head = self._post_head + self._session_headers()
            if call.method == "initialize":
                head += self._opening
        else:
            head = self._modern_head(call.method, name)
            for header, value in params:
                head += header.encode() + b": " + value.encode() + b"\r\n"
        post = _Post(self, call)
        call.context = post
        rest = b"content-length: %d\r\n\r\n" % len(message) + message
        if self.auth is None:
            post.ticket = self.pool.send(post, head + rest)
        else:
            post.send_authorized(head, rest)

    def tell(self, message: bytes) -> None:
        if self.pool.crowded:
            return
        rest = b"content-length: %d\r\n\r\n" % len(message) + message
        Told(self.session, self.pool, self.auth, self._post_head + self._session_headers(), rest).start()

    def _credential(self) -> bytes:
        """The header line for what nobody waits for; empty without a credential at hand, and then the request may be refused."""
        value = self.auth.current() if self.auth is not None else None
        return f"authorization: {value}\r\n".encode("latin-1") if value else b""

    def cancel(self, call: Call) -> None:
        post = call.context
        if isinstance(post, _Post):
            post.abandon()
        if self.session.era is Era.LEGACY and call.method != "initialize" and not self.session.closed:
            # A closed stream is no cancellation in the legacy era (2025-11-25, transports: Sending Messages).
            params = messages.encode({"requestId": call.id, "reason": "the caller gave up"})
            self.tell(messages.notification("notifications/cancelled", params))

    def sent(self, call: Call) -> bool:
        post = call.context
        if not isinstance(post, _Post):
            return True
        return not post.held and (post.ticket is None or post.ticket.connection is not None)

    def open_stream(self) -> None:
        """Listen for what belongs to no request (legacy GET stream). A server that has none answers 405; that is fine."""
        if self._stream is None and self.session.era is Era.LEGACY:
            self._stream = _Stream(self)
            self._stream.start(None)

    def get(self, handler: _Post | _Stream, last_id: str | None) -> Ticket:
        head = self._get_head + self._session_headers() + self._credential()
        if last_id is not None:
            head += b"last-event-id: " + last_id.encode("utf-8", "replace") + b"\r\n"
        return self.pool.send(handler, head + b"\r\n", lasting=isinstance(handler, _Stream))

    async def close(self) -> None:
        if self._stream is not None:
            self._stream.stop()
        if self.session_id is not None:
            # Tell the server that the session may go; nobody waits for the answer (405 is allowed).
            head = self._delete_head + self._session_headers() + self._credential()
            Told(self.session, self.pool, None, head, b"content-length: 0\r\n\r\n").start()


_PLAIN_TYPES = frozenset({b"application/json", b"text/event-stream"})


def _media_type(headers: dict[bytes, bytes]) -> bytes:
    given = headers.get(b"content-type", b"")
    return given if given in _PLAIN_TYPES else given.partition(b";")[0].strip().lower()


class _Post:
    """The response to one request: an answer, or a stream that ends in one."""

    __slots__ = (
        "_authorizing",
        "_body",
        "_carrier",
        "_head",
        "_headers",
        "_refusals",
        "_rest",
        "_resumes",
        "_size",
        "_sse",
        "_status",
        "_timer",
        "_used",
        "call",
        "held",
        "ticket",
    )  # fmt: skip

    def __init__(self, carrier: HttpCarrier, call: Call) -> None:
        self._carrier = carrier
        self.call = call
        self.ticket: Ticket | None = None
        self.held = False
        """True while it waits for a credential: nothing of it is at the server, or what was there was refused unread."""
        self._head = self._rest = b""
        self._used = ""
        self._refusals = 0
        self._authorizing: asyncio.Task[None] | None = None
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._size = 0
        self._sse: sse.SseDecoder | None = None
        self._resumes = 0
        self._timer: asyncio.TimerHandle | None = None

    def abandon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.ticket is not None:
            self.ticket.abandon()
        if self._authorizing is not None:
            self._authorizing.cancel()

    # -- with a credential: `head` and `rest` go out around it

    def send_authorized(self, head: bytes, rest: bytes) -> None:
        self._head, self._rest = head, rest
        auth = self._carrier.auth
        assert auth is not None
        value = auth.current()
        if value is not None:
            self._send_with(value)
        else:
            self.held = True
            self._authorizing = self._carrier.session.spawn(self._authorize(None))

    def _send_with(self, value: str) -> None:
        self.held = False
        self._used = value
        line = f"authorization: {value}\r\n".encode("latin-1") if value else b""
        self.ticket = self._carrier.pool.send(self, self._head + line + self._rest)

    async def _authorize(self, refused: tuple[int, dict[bytes, bytes]] | None) -> None:
        """Get a credential that may do, and send the request with it."""
        auth = self._carrier.auth
        assert auth is not None
        loop = asyncio.get_running_loop()
        seconds = max(self.call.expires - loop.time(), 0.1) if self.call.expires else self.call.seconds or 30.0
        try:
            if refused is None:
                value = await auth.ready(seconds)
            else:
                value = await auth.refused(self._used, *refused, seconds)
        except Fault as fault:
            self.call.fail(fault)
            return
        except Exception as error:  # a fault of ours must not leave the caller without an answer
            self.call.fail(evidence.authorization_broke(self._carrier.session.server, error))
            raise
        self._authorizing = None
        if not self.call.settled:
            self._status, self._headers, self._body, self._size, self._sse = 0, {}, [], 0, None
            self._send_with(value)

    def _was_refused(self) -> bool:
        """True where the request was refused for its credential and goes out again with another, if there is one."""
        carrier = self._carrier
        if carrier.auth is None or self._refusals >= MAX_REFUSALS:
            return False
        if not evidence.asks_for_credential(self._status, self._headers, self.call.method):
            if self._status == 401:
                carrier.auth.doubted(self._used)
            return False
        self._refusals += 1
        self.held = True
        self._authorizing = carrier.session.spawn(self._authorize((self._status, self._headers)))
        return True

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status = status
        self._headers = headers
        carrier = self._carrier
        if carrier.auth is not None:
            carrier.auth.heard(headers)
            if status < 300:
                carrier.auth.accepted(self._used)
        if carrier.session_id is None and carrier.session.era is Era.LEGACY and self.call.method == "initialize":
            given = headers.get(b"mcp-session-id")
            if given:
                carrier.session_id = given.decode("latin-1")
        if status == 200 and _media_type(headers) == b"text/event-stream":
            if self._sse is None:
                self._sse = sse.SseDecoder()
            else:  # resumed: a new stream that goes on where the last one ended
                fresh = sse.SseDecoder()
                fresh.last_id, fresh.retry_ms = self._sse.last_id, self._sse.retry_ms
                self._sse = fresh

    def on_body(self, data: bytes) -> None:
        if self._sse is None or self._status != 200:
            self._size += len(data)
            if self._size > bounds.MAX_MESSAGE_BYTES:
                self.call.fail(evidence.bad_answer(self._carrier.session.server, "the answer is larger than the limit"))
                self.abandon()
                return
            self._body.append(data)
            return
        try:
            events = self._sse.feed(data)
        except sse.EventTooLarge as error:
            self.call.fail(evidence.bad_answer(self._carrier.session.server, str(error)))
            self.abandon()
            return
        for event in events:
            self._resumes = 0
            if event.event == "message" and event.data:
                self._carrier.session.received(event.data, self.call)
        if self.call.settled and self._timer is None:
            # The answer ends the stream, usually with the same bytes. One that stays open costs us a connection.
            self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self.abandon)

    def on_end(self) -> None:
        self._over()
        call = self.call
        if call.settled:
            return
        session = self._carrier.session
        if self._status in (401, 403) and self._was_refused():
            return
        if self._sse is not None:
            if self._status == 200 or self._status >= 500 or self._status == 429:
                self._broken("the stream ended", in_order=True)
            else:
                call.fail(
                    evidence.lost(session.server, f"the stream ended and could not be resumed (HTTP {self._status})")
                )
            return
        body = b"".join(self._body)
        if (self._status == 200 or self._status >= 400) and body and self._answered(body):
            return
        if self._status == 200:
            call.fail(evidence.bad_answer(session.server, "the answer is not a JSON-RPC message"))
        elif self._status == 202:
            call.fail(evidence.bad_answer(session.server, "the server accepted the request as if it needed no answer"))
        elif self._carrier.session_id is not None and _session_gone(self._status, body, call.id):
            session.retire()
            call.fail(SessionLost())
        elif self._carrier.session_id is not None and _names_session(self._status, body):
            # Words prove nothing: what changes nothing is asked again in a new session, a call only the next time.
            session.retire()
            harmless = call.method in evidence.ACTS_ON_NOTHING
            refusal = evidence.http_refusal(session.server, self._status, self._headers, session.mask)
            call.fail(SessionLost() if harmless else refusal)
        else:
            if session.era is Era.MODERN and 400 <= self._status < 500 and self._status not in (401, 403, 408, 429):
                session.retire()  # no modern server says that: the next request finds out anew what it speaks
            call.fail(evidence.http_refusal(session.server, self._status, self._headers, session.mask))

    def _answered(self, body: bytes) -> bool:
        """Deliver a JSON body. An error body counts on any status, but only where it is about this request."""
        session = self._carrier.session
        if self._status != 200:
            if self._carrier.session_id is not None and (
                _session_gone(self._status, body, self.call.id)
                or (_names_session(self._status, body) and not _is_for(body, self.call.id))
            ):
                return False
            if self._status in (401, 403, 429):
                return False
            members = messages.try_map(body)
            error = members.get("error") if members is not None else None
            if error is None or not translate.well_formed_error(bytes(error)):
                return False
            id = messages.try_json(members.get("id")) if members is not None else None
            # Without an id it may be a gateway's word about anything, once the server has begun to act.
            if id != self.call.id and (id is not None or self._status >= 500):
                return False
            if session.era is Era.MODERN:
                code = translate.error_code(bytes(error))
                if code == codes.UNSUPPORTED_VERSION:
                    session.retire()
                    self.call.fail(SessionLost())
                    return True
                if code not in _MODERN_REFUSALS and self._status < 500:
                    session.retire()
            self.call.succeed(Reply(without_secrets(bytes(error), session.secrets()), True, session.era))
            return True
        return session.received(body, self.call) and self.call.settled

    def _over(self) -> None:
        self.ticket = None  # it holds this handler: nothing but the garbage collector would free the two
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def on_lost(self, error: BaseException | None, sent: bool) -> None:
        self._over()
        if self.call.settled:
            return
        carrier = self._carrier
        if not sent and self._sse is None:
            if error is None:
                self.call.fail(evidence.not_sent(carrier.session.server, "the connection was closed"))
            else:
                self.call.fail(evidence.connect_failed(carrier.session.server, carrier.pool.origin.where, error))
            return
        self._broken("the connection ended")

    def _broken(self, how: str, *, in_order: bool = False) -> None:
        """The stream is over without the answer; `in_order` where the server itself ended it, to be asked again later."""
        carrier = self._carrier
        session = carrier.session
        decoder = self._sse
        resumable = session.era is Era.LEGACY and decoder is not None and decoder.last_id is not None
        if not resumable or session.closed or self._resumes >= MAX_RESUMES:
            self.call.fail(evidence.lost(session.server, how))
            return
        assert decoder is not None
        self._resumes += 1
        if in_order and self.call.outgoing is not None and self.call.outgoing.sink is not None:
            self.call.outgoing.sink.on_interrupted()
        delay = (decoder.retry_ms if decoder.retry_ms is not None else DEFAULT_RETRY_MS) / 1000
        self._timer = asyncio.get_running_loop().call_later(min(delay, 30.0), self._resume)

    def _resume(self) -> None:
        assert self._sse is not None
        self._body = []
        if not self.call.settled:
            self.ticket = self._carrier.get(self, self._sse.last_id)


_MODERN_REFUSALS = frozenset(
    {codes.METHOD_NOT_FOUND, codes.INVALID_PARAMS, codes.HEADER_MISMATCH, codes.MISSING_CLIENT_CAPABILITY}
)
"""What a modern server answers with a 4xx. Anything else may come from a legacy one that has taken its place."""
_SESSION_CODES = frozenset({-32000, -32001, codes.INVALID_REQUEST})


def _session_gone(status: int, body: bytes, id: int) -> bool:
    """404 for a known session (2025-11-25, Session Management): the request was refused and goes out again in a new session.

    So does a 400 in the transport's own form: an error about sessions with no id, made before the request was looked at (the
    way of widely used SDKs). An answer to the request itself, by its id, is no word about the session: it may have been acted on.
    """
    if status == 404:
        return not _is_for(body, id)
    members = messages.try_map(body) or {}
    return (
        status == 400
        and "error" in members
        and messages.try_json(members.get("id")) is None
        and _names_session(status, body)
    )


def _names_session(status: int, body: bytes) -> bool:
    """Some servers say 400 and name the session in place of a 404. That may also be a tool's own word about its own sessions."""
    if status != 400:
        return False
    error = (messages.try_map(body) or {}).get("error")
    if error is None:
        return b"session" in body.lower()
    return translate.error_code(bytes(error)) in _SESSION_CODES and b"session" in bytes(error).lower()


def _is_for(body: bytes, id: int) -> bool:
    """True for a JSON-RPC error with the id of our request."""
    members = messages.try_map(body) or {}
    return "error" in members and messages.try_json(members.get("id")) == id


class _Stream:
    """The legacy GET stream, kept open with back-off for as long as the session lives."""

    def __init__(self, carrier: HttpCarrier) -> None:
        self._carrier = carrier
        self._decoder = sse.SseDecoder()
        self._ticket: Ticket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._status = 0
        self._failures = 0
        self._stopped = False

    def start(self, last_id: str | None) -> None:
        self._timer = None
        if not self._stopped and not self._carrier.session.closed:
            self._ticket = self._carrier.get(self, last_id)

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._ticket is not None:
            self._ticket.abandon()

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status = status
        fresh = sse.SseDecoder()
        fresh.last_id, fresh.retry_ms = self._decoder.last_id, self._decoder.retry_ms
        self._decoder = fresh
        if status != 200 or _media_type(headers) != b"text/event-stream":
            later = status >= 500 or status == 429 or (status == 401 and self._carrier.auth is not None)
            self._stopped = status != 200 and not later

    def on_body(self, data: bytes) -> None:
        if self._status != 200:
            return
        try:
            events = self._decoder.feed(data)
        except sse.EventTooLarge:
            if self._ticket is not None:
                self._ticket.abandon()
            self._again()
            return
        for event in events:
            self._failures = 0
            if event.event == "message" and event.data:
                self._carrier.session.received(event.data)

    def on_end(self) -> None:
        self._again()

    def on_lost(self, error: BaseException | None, sent: bool) -> None:
        self._again()

    def _again(self) -> None:
        if self._stopped or self._carrier.session.closed:
            return
        named = self._decoder.retry_ms
        delay = named / 1000 if named is not None and not self._failures else min(0.5 * 2**self._failures, 60.0)
        self._failures = min(self._failures + 1, 10)
        self._timer = asyncio.get_running_loop().call_later(min(delay, 60.0), self.start, self._decoder.last_id)


__all__ = ["Connection", "HttpCarrier", "Origin"]
