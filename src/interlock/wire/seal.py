"""`requestState` under seal: bound to principal, server and request, with an expiry (2026-07-28, basic/patterns/mrtr).

The seal protects integrity, not secrecy: what it carries is either a random handle of ours or a server's own state,
which that server hands to the client anyway.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import json
from typing import Literal

import msgspec

from interlock.wire.messages import Raw

Purpose = Literal["park", "state", "retry", "approve"]
"""`park`: a handle of a call that stays open; `state`: a server's own requestState; `retry`: send the request anew;
`approve`: a person was asked whether the call may be made."""


class Sealed(msgspec.Struct, array_like=True):
    purpose: Purpose
    server: str
    data: str
    expires: int
    """Seconds since the epoch."""
    had_state: bool = True
    """False where the server sent no requestState of its own, so none may be sent back to it."""
    once: str = ""
    """Where a person's yes stands behind the request: a handle that may be used once."""


class BadSeal(Exception):
    """The text was not sealed by us for this principal and request, was changed, or has expired."""


_decoder = msgspec.json.Decoder(Sealed)


def request_digest(method: str, name: str, arguments: Raw | None) -> bytes:
    """What a retry must repeat: the method, the canonical name and the arguments.

    White space, the order of members and the spelling of strings do not count. Numbers count as they are spelled, and
    arguments that name a member twice as a whole: peers do not agree on what such a value means.
    """
    spelled = bytes(arguments or b"null")
    with contextlib.suppress(ValueError, RecursionError, OverflowError):  # else as it came
        spelled = msgspec.json.encode(_plain.decode(spelled.decode()), order="sorted")
    return hashlib.sha256(b"\0".join((method.encode(), name.encode("utf-8", "surrogatepass"), spelled))).digest()


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is named twice")
    return members


def _number(text: str) -> Raw:
    return Raw(text.encode())


_plain = json.JSONDecoder(object_pairs_hook=_members, parse_float=_number, parse_int=_number, parse_constant=_number)


def seal(key: bytes, content: Sealed, *, principal: str, digest: bytes) -> str:
    body = msgspec.json.encode(content)
    return _text(body) + "." + _text(_mac(key, body, principal, digest))


def unseal(key: bytes, text: str, *, principal: str, digest: bytes, now: float) -> Sealed:
    """Raises BadSeal. The principal and the request are not stored in the text: they are part of what the seal covers."""
    head, dot, tail = text.partition(".")
    if not dot:
        raise BadSeal
    try:
        body = _bytes(head)
        mac = _bytes(tail)
        if not hmac.compare_digest(mac, _mac(key, body, principal, digest)):
            raise BadSeal
        content = _decoder.decode(body)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise BadSeal from None
    # Base64 has several spellings of the same bytes; only the one that we wrote counts as untouched.
    if content.expires < now or text != seal(key, content, principal=principal, digest=digest):
        raise BadSeal
    return content


def _mac(key: bytes, body: bytes, principal: str, digest: bytes) -> bytes:
    return hmac.new(key, b"\0".join((body, principal.encode(), digest)), hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
