"""The HTTP+SSE transport of 2024-11-05: one GET stream for everything that the server says, POSTs for what we say."""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin

from interlock.model.fault import Fault
from interlock.upstream import evidence
from interlock.upstream.authorization import Authorization
from interlock.upstream.http1 import Origin, Pool, Ticket, target_of
from interlock.upstream.session import Call, Session, SessionLost
from interlock.wire import sse
from interlock.wire.eras import Era

MAX_REFUSALS = 2
"""How often one message is sent again with a better credential."""


class SseCarrier:
    """Ready once `connect` has returned: the server has then named the address for our POSTs."""

    def __init__(
        self,
        session: Session,
        pool: Pool,
        url: str,
        headers: list[tuple[str, str]],
        user_agent: str,
        auth: Authorization | None = None,
    ) -> None:
        self.session = session
        self.pool = pool
        self.auth = auth
        self.url = url
        extra = "".join(f"{name}: {value}\r\n" for name, value in headers)
        self._common = f"host: {pool.origin.authority}\r\nuser-agent: {user_agent}\r\n{extra}".encode("latin-1")
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._target = b""
        self._decoder = sse.SseDecoder()
        self._ticket: Ticket | None = None
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self.negotiated = False

    async def connect(self, seconds: float) -> None:
        """Open the stream and wait for its `endpoint` event. Raises Fault."""
        try:
            async with asyncio.timeout(seconds):
                endpoint = await self._opened(seconds)
        except TimeoutError:
            raise evidence.not_sent(self.session.server, "no endpoint event came on the SSE stream") from None
        # A server may only name its own origin: anything else would send our credentials elsewhere.
        try:
            address = urljoin(self.url, endpoint)
            own = Origin.of(address) == self.pool.origin
        except ValueError:
            own = False
        if not own:
            raise evidence.not_sent(self.session.server, "the server named another origin for POSTs")
        self._target = target_of(address).encode()

    async def _opened(self, seconds: float) -> str:
        """The address that the server names, after as many tries as it takes to bring the right credential."""
        value = await self.auth.ready(seconds) if self.auth is not None else ""
        for attempt in range(MAX_REFUSALS + 1):
            head = f"GET {target_of(self.url)} HTTP/1.1\r\n".encode() + self._common + _line(value)
            self._ticket = self.pool.send(self, head + b"accept: text/event-stream\r\n\r\n", lasting=True)
            try:
                return await self._endpoint
            except Fault:
                wanted = evidence.asks_for_credential(self._status, self._headers, "initialize")
                if self.auth is None or not wanted or attempt == MAX_REFUSALS:
                    raise
                self._ticket.abandon()
                self._endpoint = asyncio.get_running_loop().create_future()
                value = await self.auth.refused(value, self._status, self._headers, seconds)
                self._status = 0
        raise AssertionError("the last attempt returns or raises")

    # -- Handler of the GET stream
    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status = status
        self._headers = headers
        if self.auth is not None:
            self.auth.heard(headers)
        if status != 200 or not headers.get(b"content-type", b"").lower().startswith(b"text/event-stream"):
            self._refused(evidence.http_refusal(self.session.server, status, headers, self.session.mask))

    def on_body(self, data: bytes) -> None:
        if self._status != 200:
            return
        try:
            events = self._decoder.feed(data)
        except sse.EventTooLarge as error:
            self.session.lost(str(error))
            if self._ticket is not None:
                self._ticket.abandon()
            return
        for event in events:
            if event.event == "endpoint":
                if not self._endpoint.done():
                    self._endpoint.set_result(event.data.decode("utf-8", "replace"))
            elif event.event == "message":
                self.session.received(event.data)

    def on_end(self) -> None:
        if self._status in (0, 200):  # else it was refused, and another try may be under way
            self._gone("the SSE stream ended")

    def on_lost(self, error: BaseException | None, sent: bool) -> None:
        if not sent and error is not None:
            self._refused(evidence.connect_failed(self.session.server, self.pool.origin.where, error))
        if self._status in (0, 200):
            self._gone("the SSE stream was lost")

    def _refused(self, fault: Fault) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(fault)

    def _gone(self, how: str) -> None:
        self._refused(evidence.not_sent(self.session.server, how))
        self.session.lost(how)

    # -- Carrier
    def post(self, message: bytes, credential: str) -> bytes:
        """One POST, whole."""
        version = b""
        if self.negotiated:
            version = b"mcp-protocol-version: " + self.session.version.encode() + b"\r\n"
        return (
            b"POST " + self._target + b" HTTP/1.1\r\n" + self._common + _line(credential) + version
            + b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
            + b"content-length: %d\r\n\r\n" % len(message) + message
        )  # fmt: skip

    def send(self, call: Call, message: bytes, name: str | None, params: list[tuple[str, str]]) -> None:
        posted = _Posted(self, call, message)
        call.context = posted
        posted.start()

    def sent(self, call: Call) -> bool:
        posted = call.context
        return not isinstance(posted, _Posted) or not posted.held

    def tell(self, message: bytes) -> None:
        if self.pool.crowded:
            return
        _Posted(self, None, message).start()

    def cancel(self, call: Call) -> None:
        from interlock.wire import messages

        if self.session.era is Era.LEGACY and call.method != "initialize":
            params = messages.encode({"requestId": call.id, "reason": "the caller gave up"})
            self.tell(messages.notification("notifications/cancelled", params))

    async def close(self) -> None:
        if self._ticket is not None:
            self._ticket.abandon()
        if not self._endpoint.done():
            self._endpoint.cancel()
        elif not self._endpoint.cancelled():
            self._endpoint.exception()  # nobody may be waiting for it any more


def _line(credential: str) -> bytes:
    return f"authorization: {credential}\r\n".encode("latin-1") if credential else b""


class _Posted:
    """One POST and its response, in which only a refusal matters: answers come on the stream."""

    __slots__ = ("_call", "_carrier", "_headers", "_message", "_refusals", "_status", "_ticket", "_used", "_waits")

    def __init__(self, carrier: SseCarrier, call: Call | None, message: bytes) -> None:
        self._carrier = carrier
        self._call = call
        self._message = message
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._ticket: Ticket | None = None
        self._used = ""
        self._refusals = 0
        self._waits = False

    @property
    def held(self) -> bool:
        """True while not one byte of it is at the server, or what was there was refused unread."""
        return self._waits or self._ticket is None or self._ticket.connection is None

    def start(self) -> None:
        auth = self._carrier.auth
        value = auth.current() if auth is not None else ""
        if value is not None:
            self._send_with(value)
        else:
            self._waits = True
            self._carrier.session.spawn(self._authorize(refused=False))

    def _send_with(self, value: str) -> None:
        self._waits = False
        self._used = value
        self._ticket = self._carrier.pool.send(self, self._carrier.post(self._message, value))

    async def _authorize(self, *, refused: bool) -> None:
        auth, call = self._carrier.auth, self._call
        assert auth is not None
        seconds = 30.0
        if call is not None and call.expires:
            seconds = max(call.expires - asyncio.get_running_loop().time(), 0.1)
        try:
            if refused:
                value = await auth.refused(self._used, self._status, self._headers, seconds)
            else:
                value = await auth.ready(seconds)
        except Fault as fault:
            if call is not None:
                call.fail(fault)
            return
        except Exception as error:
            if call is not None:
                call.fail(evidence.authorization_broke(self._carrier.session.server, error))
            raise
        if call is None or not call.settled:
            self._status, self._headers = 0, {}
            self._send_with(value)

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status = status
        self._headers = headers
        if self._carrier.auth is not None:
            self._carrier.auth.heard(headers)
            if status < 300:
                self._carrier.auth.accepted(self._used)

    def on_body(self, data: bytes) -> None:
        return

    def on_end(self) -> None:
        call, carrier = self._call, self._carrier
        wanted = evidence.asks_for_credential(self._status, self._headers, call.method if call is not None else "ping")
        if carrier.auth is not None and wanted and self._refusals < MAX_REFUSALS:
            self._refusals += 1
            self._waits = True
            carrier.session.spawn(self._authorize(refused=True))
            return
        if carrier.auth is not None and not wanted and self._status == 401:
            carrier.auth.doubted(self._used)
        if call is not None and self._status == 404:
            # The address for POSTs names the session, and the server knows it no longer.
            call.fail(SessionLost())
            carrier.session.lost("the server ended the session")
        elif call is not None and self._status >= 300:
            session = carrier.session
            call.fail(evidence.http_refusal(session.server, self._status, self._headers, session.mask))

    def on_lost(self, error: BaseException | None, sent: bool) -> None:
        if self._call is None:
            return
        server = self._carrier.session.server
        if sent or error is None:
            self._call.fail(evidence.lost(server, "the connection ended"))
        else:
            self._call.fail(evidence.connect_failed(server, self._carrier.pool.origin.where, error))
