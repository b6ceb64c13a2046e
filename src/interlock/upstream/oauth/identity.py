"""Asks who listens on a loopback port: the bound port decides who owns a login, and this is how others see that it lives.

`/interlock` is answered at once. `/interlock/watch` is never finished: the kernel ends it when the owner dies, so those
who wait learn of it without asking again and again.

Any user of this machine may take a port that has become free, and say what the owner said. So each question has a number that
never was, and the owner proves with it that it knows the secret in the note, which only this user can read.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from interlock.upstream.oauth.callback import Reply

ASK_SECONDS = 2.0
_MAX_ANSWER = 8 * 1024
PATH = "/interlock"
WATCH_PATH = "/interlock/watch"
MAX_NONCE = 256

KeyOf = Callable[[str], "str | None"]
"""Given a grant's id: the secret in the note of its login; None where there is none."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """No secret: anybody on this machine may ask."""

    flow: str
    grant: str
    build: str
    pid: int
    open: bool
    """False once the login has ended; the port is then let go after this very answer."""
    proof: str = ""
    """That who answers knows the note's secret (`proof`). Empty where no question was put."""


@dataclass(frozen=True, slots=True)
class Stranger:
    """Something listens there that is no login of ours. `silent`: it took the connection, and said nothing in time."""

    silent: bool
    claims: Identity | None = None
    """What it says of itself without a proof: one whose login has ended (its note is gone), or another user's program."""


def reply(identity: Identity, *, held: bool) -> Reply:
    """The answer of the listener that has this identity."""
    headers = (("Content-Type", "application/json"), ("Cache-Control", "no-store"))
    return Reply(200, msgspec.json.encode(identity) + b"\n", headers, held=held)


def proof(key: str, path: str, nonce: str, port: int, flow: str) -> str:
    """What only who knows the note's secret can answer. The port is in it: nobody can pass the question on."""
    said = "\n".join((path, nonce, str(port), flow))
    return hmac.new(key.encode(), said.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


async def ask(port: int, key_of: KeyOf, seconds: float = ASK_SECONDS) -> Identity | Stranger | None:
    """Who owns the port; None where nobody listens. An Identity is proven. Never raises but for cancellation.

    `key_of` is asked after the answer has come, so that a note that was replaced meanwhile counts.
    """
    connected = False
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            connected = True
            try:
                found, proven = await _identity(reader, writer, port, PATH, key_of)
                return found if found is not None and proven else Stranger(silent=False, claims=found)
            finally:
                writer.close()
    except TimeoutError:
        return Stranger(silent=True)
    except OSError:
        return Stranger(silent=False) if connected else None


async def watch(port: int, flow: str, key_of: KeyOf) -> bool:
    """Return once the owner of this login has died or let the port go. False where the port was not (or not any more) its, or
    where it could not prove that."""
    try:
        async with asyncio.timeout(ASK_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_MAX_ANSWER)
            identity, proven = await _identity(reader, writer, port, WATCH_PATH, key_of)
    except OSError:  # TimeoutError is one
        return False
    try:
        if identity is None or not proven or identity.flow != flow:
            return False
        with contextlib.suppress(OSError):
            while await reader.read(1024):
                pass
        return True
    finally:
        writer.close()


async def _identity(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, path: str, key_of: KeyOf
) -> tuple[Identity | None, bool]:
    """What was said, and whether it was proven."""
    nonce = secrets.token_hex(32)
    writer.write(f"GET {path}?nonce={nonce} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode("ascii"))
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readline() if head.startswith(b"HTTP/1.1 200 ") else b""
        found = msgspec.json.decode(body, type=Identity) if body else None
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        return None, False
    key = key_of(found.grant) if found is not None else None
    if found is None or not key:
        return found, False
    expected = proof(key, path, nonce, port, found.flow)
    return found, hmac.compare_digest(expected.encode(), found.proof.encode("utf-8", "surrogatepass"))
