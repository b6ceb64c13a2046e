"""Asks who listens on a loopback port: the bound port decides who owns a login, and this is how others see that it lives.

`/interlock` is answered at once. `/interlock/watch` is never finished: the kernel ends it when the owner dies, so those
who wait learn of it without asking again and again.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

import msgspec

from interlock.upstream.oauth.callback import Reply

ASK_SECONDS = 2.0
_MAX_ANSWER = 8 * 1024
PATH = "/interlock"
WATCH_PATH = "/interlock/watch"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """No secret: anybody on this machine may ask."""

    flow: str
    grant: str
    build: str
    pid: int
    open: bool
    """False once the login has ended; the port is then let go after this very answer."""


@dataclass(frozen=True, slots=True)
class Stranger:
    """Something listens there that is no login of ours. `silent`: it took the connection, and said nothing in time."""

    silent: bool


def reply(identity: Identity, *, held: bool) -> Reply:
    """The answer of the listener that has this identity."""
    headers = (("Content-Type", "application/json"), ("Cache-Control", "no-store"))
    return Reply(200, msgspec.json.encode(identity) + b"\n", headers, held=held)


async def ask(port: int, seconds: float = ASK_SECONDS) -> Identity | Stranger | None:
    """Who owns the port; None where nobody listens. Never raises but for cancellation."""
    connected = False
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            connected = True
            try:
                return await _identity(reader, writer, port, PATH) or Stranger(silent=False)
            finally:
                writer.close()
    except TimeoutError:
        return Stranger(silent=True)
    except OSError:
        return Stranger(silent=False) if connected else None


async def watch(port: int, flow: str) -> bool:
    """Return once the owner of this login has died or let the port go. False where the port was not (or not any more) its."""
    try:
        async with asyncio.timeout(ASK_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_MAX_ANSWER)
            identity = await _identity(reader, writer, port, WATCH_PATH)
    except OSError:  # TimeoutError is one
        return False
    try:
        if identity is None or identity.flow != flow:
            return False
        with contextlib.suppress(OSError):
            while await reader.read(1024):
                pass
        return True
    finally:
        writer.close()


async def _identity(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, path: str
) -> Identity | None:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode("ascii"))
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readline() if head.startswith(b"HTTP/1.1 200 ") else b""
        return msgspec.json.decode(body, type=Identity) if body else None
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        return None
