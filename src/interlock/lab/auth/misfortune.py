"""How a mishap of behaviour.py is carried out on a reply, and replies that look like the others and reach nobody."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from interlock.lab.auth.behaviour import Mishap
from interlock.lab.http_server import Reply, head


class Lost(Reply):
    """Takes an answer and keeps it from the client; the request runs to its end as if the client still listened."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.connection)
        self.closed = asyncio.Event()

    async def send(
        self, status: int, body: bytes = b"", content_type: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.started, self.status = True, status

    async def start_events(self, headers: Mapping[str, str] | None = None) -> None:
        self.started, self.status = True, 200

    async def write(self, data: bytes) -> None:
        return

    async def end(self) -> None:
        return

    def abort(self) -> None:
        return


async def carry_out(mishap: Mishap, reply: Reply, run: Callable[[Reply], Awaitable[None]]) -> None:
    """Let one request go wrong; `run` serves it in earnest, on the reply that it is given."""
    if mishap.kind == "delay":
        # The work is done at once and its answer is late, or both are late.
        if mishap.takes_effect:
            await run(Late(reply, mishap.seconds))
        else:
            await asyncio.sleep(mishap.seconds)
            await run(reply)
        return
    if mishap.takes_effect:
        await run(Lost(reply))
    if mishap.kind == "silent":
        reply.started = True
        await reply.closed.wait()
    elif mishap.kind == "drop":
        reply.abort()
    elif mishap.kind == "reset":
        reply.reset()
    elif mishap.kind == "cut":
        reply.started = True
        fields = {**reply.fields, "content-type": "application/json", "content-length": "4096"}
        await reply.connection.write(head(200, fields) + b'{"jsonrpc":"2.0",')
        reply.connection.close()
    elif mishap.kind == "garbage":
        await reply.send(200, b"<html><body>Welcome to the hotel network</body></html>", "text/html")
    else:
        headers = {} if mishap.retry_after is None else {"retry-after": f"{mishap.retry_after:g}"}
        if mishap.error is not None:
            await reply.send_json(mishap.status, {"error": mishap.error}, headers)
        else:
            await reply.send(mishap.status, b"told to fail\n", "text/plain", headers)


class Late(Reply):
    """Sends its answer, but only after a while."""

    def __init__(self, reply: Reply, seconds: float) -> None:
        super().__init__(reply.connection)
        self._reply = reply
        self._seconds = seconds

    async def send(
        self, status: int, body: bytes = b"", content_type: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        self.started, self.status = True, status
        await asyncio.sleep(self._seconds)
        await self._reply.send(status, body, content_type, headers)

    async def start_events(self, headers: Mapping[str, str] | None = None) -> None:
        self.started, self.status = True, 200
        await asyncio.sleep(self._seconds)
        await self._reply.start_events(headers)

    async def write(self, data: bytes) -> None:
        await self._reply.write(data)

    async def end(self) -> None:
        await self._reply.end()


def date_header(now: float, form: Literal["imf", "absent", "rfc850", "asctime", "garbage"]) -> dict[str, str]:
    """The `Date` of an answer at `now` (RFC 9110, section 5.6.7; the two old forms are to be read as well)."""
    if form == "absent":
        return {}
    parts = time.gmtime(now)
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    day, month, clock = days[parts.tm_wday], months[parts.tm_mon - 1], time.strftime("%H:%M:%S", parts)
    text = {
        "imf": email.utils.formatdate(now, usegmt=True),
        "rfc850": f"{day}, {parts.tm_mday:02}-{month}-{parts.tm_year % 100:02} {clock} GMT",
        "asctime": f"{day[:3]} {month} {parts.tm_mday:2} {clock} {parts.tm_year}",
        "garbage": "some time ago",
    }[form]
    return {"date": text}
