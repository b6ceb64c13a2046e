"""The HTTP+SSE transport of 2024-11-05: one GET stream for everything that the server says, POSTs for what we say."""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin

from interlock.model.fault import Fault
from interlock.upstream import evidence
from interlock.upstream.http1 import Origin, Pool, Ticket, target_of
from interlock.upstream.session import Call, Session, SessionLost
from interlock.wire import sse
from interlock.wire.eras import Era


class SseCarrier:
    """Ready once `connect` has returned: the server has then named the address for our POSTs."""

    def __init__(self, session: Session, pool: Pool, url: str, headers: list[tuple[str, str]], user_agent: str) -> None:
        self.session = session
        self.pool = pool
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
        head = f"GET {target_of(self.url)} HTTP/1.1\r\n".encode() + self._common + b"accept: text/event-stream\r\n\r\n"
        self._ticket = self.pool.send(self, head, lasting=True)
        try:
            async with asyncio.timeout(seconds):
                endpoint = await self._endpoint
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

    # -- Handler of the GET stream
    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status = status
        self._headers = headers
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
        self._gone("the SSE stream ended")

    def on_lost(self, error: BaseException | None, sent: bool) -> None:
        if not sent and error is not None:
            self._refused(evidence.connect_failed(self.session.server, self.pool.origin.where, error))
        self._gone("the SSE stream was lost")

    def _refused(self, fault: Fault) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(fault)

    def _gone(self, how: str) -> None:
        self._refused(evidence.not_sent(self.session.server, how))
        self.session.lost(how)

    # -- Carrier
    def _post(self, message: bytes) -> bytes:
        version = b""
        if self.negotiated:
            version = b"mcp-protocol-version: " + self.session.version.encode() + b"\r\n"
        return (
            b"POST " + self._target + b" HTTP/1.1\r\n" + self._common + version
            + b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
            + b"content-length: %d\r\n\r\n" % len(message) + message
        )  # fmt: skip

    def send(self, call: Call, message: bytes, name: str | None, params: list[tuple[str, str]]) -> None:
        call.context = self.pool.send(_Posted(self, call), self._post(message))

    def sent(self, call: Call) -> bool:
        return not isinstance(call.context, Ticket) or call.context.connection is not None

    def tell(self, message: bytes) -> None:
        if self.pool.crowded:
            return
        self.pool.send(_Posted(self, None), self._post(message))

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


class _Posted:
    """The response to a POST: only a refusal matters, since answers come on the stream."""

    __slots__ = ("_call", "_carrier", "_headers", "_status")

    def __init__(self, carrier: SseCarrier, call: Call | None) -> None:
        self._carrier = carrier
        self._call = call
        self._status = 0
        self._headers: dict[bytes, bytes] = {}

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self._status = status
        self._headers = headers

    def on_body(self, data: bytes) -> None:
        return

    def on_end(self) -> None:
        if self._call is not None and self._status == 404:
            # The address for POSTs names the session, and the server knows it no longer.
            self._call.fail(SessionLost())
            self._carrier.session.lost("the server ended the session")
        elif self._call is not None and self._status >= 300:
            session = self._carrier.session
            self._call.fail(evidence.http_refusal(session.server, self._status, self._headers, session.mask))

    def on_lost(self, error: BaseException | None, sent: bool) -> None:
        if self._call is None:
            return
        server = self._carrier.session.server
        if sent or error is None:
            self._call.fail(evidence.lost(server, "the connection ended"))
        else:
            self._call.fail(evidence.connect_failed(server, self._carrier.pool.origin.where, error))
