"""Reads a token endpoint's answer (RFC 6749 section 5), and what tokens say of themselves where they are readable (RFC 7519).

Nothing here verifies a signature: claims serve to schedule refreshes and to explain refusals, never to trust anybody.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from interlock.upstream.oauth import scopes
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Answer
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.grant_log import MAX_READ, mask
from interlock.upstream.secret_forms import MASK, masked

MAX_TOKEN: Final = 32 * 1024
MAX_DESCRIPTION: Final = 200
_MAX_LIFETIME: Final = 10 * 366 * 86400.0
_MAX_MOMENT: Final = 1e11
"""Numbers above it are milliseconds or nonsense, not seconds since the epoch."""
_TOKEN = re.compile(r"[!-~]+")
_JWT = re.compile(r"eyJ[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*){1,4}")


@dataclass(frozen=True, slots=True)
class Tokens:
    """A successful answer. Moments are seconds since the epoch by the issuer's clock, from the tokens' own claims."""

    access_token: str = field(repr=False)
    token_type: str = "Bearer"
    scope: tuple[str, ...] | None = None
    """None: the answer says nothing, which means what was asked for (RFC 6749 section 5.1)."""
    expires_in: float | None = None
    refresh_token: str | None = field(default=None, repr=False)
    access_exp: float | None = None
    access_nbf: float | None = None
    refresh_exp: float | None = None
    refresh_nbf: float | None = None
    audience: tuple[str, ...] | None = None
    refresh_expires_in: float | None = None
    """Of providers that say it beside the token, where the token itself is opaque."""


class TokenRefused(Exception):
    """A well-formed OAuth error. Texts are the server's own, cut, without control characters and tokens."""

    def __init__(self, status: int, error: str, description: str) -> None:
        super().__init__(f"{error} (HTTP {status}){': ' if description else ''}{description}")
        self.status = status
        self.error = error
        self.description = description


class BadTokenAnswer(Exception):
    """Neither tokens nor an OAuth error. The message says what is wrong and quotes nothing of the body."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(f"{what} (HTTP {status})")
        self.status = status
        self.what = what


def read_answer(answer: Answer, secrets: Iterable[str] = ()) -> Tokens:
    """The tokens in an answer. Raises TokenRefused, or BadTokenAnswer.

    `secrets`: what was sent with the request and must not come back in an error text.
    """
    fields = _fields(answer)
    if fields is None:
        raise BadTokenAnswer(answer.status, "the token endpoint's answer is not a JSON object")
    error = fields.get("error")
    if isinstance(error, str) and error.strip() and (answer.status >= 400 or "access_token" not in fields):
        description = fields.get("error_description")
        raise TokenRefused(
            answer.status,
            cleaned(error, secrets, 64),
            cleaned(mask(description, secrets), secrets) if isinstance(description, str) else "",
        )
    if not 200 <= answer.status < 300:
        raise BadTokenAnswer(answer.status, "the token endpoint refused and gave no OAuth error")
    return _tokens(answer.status, fields)


def _fields(answer: Answer) -> dict[str, object] | None:
    parsed = answer.json()
    if parsed is not None:
        return parsed
    # Some providers answer with a form, and not all of them say so.
    try:
        text = answer.body.decode("ascii")
        pairs = dict(parse_qsl(text, strict_parsing=True, max_num_fields=100))
    except ValueError:
        return None
    return dict(pairs.items()) if "access_token" in pairs or "error" in pairs else None


def _tokens(status: int, fields: dict[str, object]) -> Tokens:
    access = fields.get("access_token")
    if not isinstance(access, str) or not access:
        raise BadTokenAnswer(status, "the answer has no access_token")
    if not _sendable(access):
        raise BadTokenAnswer(status, "the access_token cannot be sent in a header")
    kind = fields.get("token_type")
    if kind is not None and (not isinstance(kind, str) or kind.strip().lower() not in ("bearer", "")):
        raise BadTokenAnswer(status, "the token is of a type other than Bearer, and cannot be used here")
    refresh = fields.get("refresh_token")
    if not isinstance(refresh, str) or not refresh or len(refresh) > MAX_TOKEN:
        refresh = None
    of_access = claims(access) or {}
    of_refresh = (claims(refresh) if refresh else None) or {}
    access_exp, access_nbf = _window(of_access)
    refresh_exp, refresh_nbf = _window(of_refresh)
    beside = fields.get("refresh_expires_in", fields.get("refresh_token_expires_in"))
    return Tokens(
        access_token=access,
        scope=_scope(fields.get("scope")),
        expires_in=_duration(fields.get("expires_in")),
        refresh_token=refresh,
        access_exp=access_exp,
        access_nbf=access_nbf,
        refresh_exp=refresh_exp,
        refresh_nbf=refresh_nbf,
        audience=_audience(of_access),
        refresh_expires_in=_duration(beside) if refresh else None,
    )


def claims(token: str) -> dict[str, object] | None:
    """The payload of a signed JWT, not verified; None for an opaque, encrypted or damaged token."""
    parts = token.split(".") if len(token) <= MAX_TOKEN else []
    if len(parts) != 3:
        return None
    header, payload = _part(parts[0]), _part(parts[1])
    return payload if header is not None and "alg" in header else None


def _part(text: str) -> dict[str, object] | None:
    try:
        raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        value = msgspec.json.decode(raw)
    except (ValueError, binascii.Error, RecursionError):  # msgspec's errors are ValueErrors
        return None
    return value if isinstance(value, dict) else None


def grant_from(
    tokens: Tokens,
    *,
    found: Discovered,
    registration: Registration,
    asked_scope: tuple[str, ...],
    now: float,
    skew: float,
    previous: Grant | None,
) -> Grant:
    """The grant that an answer makes. `now` is this machine's clock; all moments of the grant are on the server's.

    Where no refresh token came, that of `previous` stays in use (RFC 6749 section 6), unless it is another issuer's or
    another resource's.
    """
    server_now = now + skew
    if previous is not None and (previous.issuer, previous.resource) != (found.issuer, found.resource):
        previous = None
    refresh, refresh_nbf, refresh_exp = tokens.refresh_token, tokens.refresh_nbf, tokens.refresh_exp
    if refresh is None and previous is not None:
        refresh = previous.refresh_token
        refresh_nbf, refresh_exp = previous.refresh_not_before, previous.refresh_expires_at
    elif refresh_exp is None and tokens.refresh_expires_in is not None:
        refresh_exp = server_now + tokens.refresh_expires_in
    return Grant(
        server_url=found.server_url,
        resource=found.resource,
        issuer=found.issuer,
        registration=registration,
        generation=previous.generation if previous is not None else 0,
        access_token=tokens.access_token,
        scope=tokens.scope if tokens.scope is not None else asked_scope or (previous.scope if previous else ()),
        obtained_at=server_now,
        expires_at=_access_end(tokens, server_now),
        not_before=tokens.access_nbf,
        refresh_token=refresh,
        refresh_not_before=refresh_nbf,
        refresh_expires_at=refresh_exp,
        skew=skew,
    )


def _access_end(tokens: Tokens, server_now: float) -> float | None:
    """The token's own `exp` before `expires_in`. An `exp` that is past at the hour of issue shows a wrong clock, not a dead token."""
    if tokens.access_exp is not None and tokens.access_exp > server_now:
        return tokens.access_exp
    return None if tokens.expires_in is None else server_now + tokens.expires_in


def wrong_audience(token: str, expected: str) -> str | None:
    """A sentence where a readable token is meant for somebody else than `expected`; None where it fits or cannot be read."""
    named = _audience(claims(token) or {})
    if named is None or expected in named:
        return None
    listed = ", ".join(repr(cleaned(each, ())) for each in named[:5]) or "nobody"
    if any(each.rstrip("/") == expected.rstrip("/") for each in named):
        hint = "They differ in the slash at the end alone: set oauth.resource (--resource) to the form that the server accepts."
    else:
        hint = (
            "The authorization server may need this resource to be set up, or another name for it: set oauth.resource "
            "(--resource) to the audience that the server checks."
        )
    return f"The access token is meant for {listed} (its `aud`), and {expected!r} was asked for. {hint}"


def cleaned(text: str, secrets: Iterable[str], limit: int = MAX_DESCRIPTION) -> str:
    """A server's text for people: secrets (in all forms of secret_forms.py) and tokens masked, one line, cut to `limit` characters."""
    text = masked(text[:MAX_READ], secrets)
    text = _JWT.sub(MASK, text)
    text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _sendable(token: str) -> bool:
    return len(token) <= MAX_TOKEN and _TOKEN.fullmatch(token) is not None


def _scope(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list):
        value = " ".join(each for each in value if isinstance(each, str))
    return (scopes.split(value) or None) if isinstance(value, str) else None


def number(value: object) -> float | None:
    """A finite number, also one in a string: some servers quote them."""
    if isinstance(value, str) and len(value) < 32:
        try:
            value = float(value.strip())
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        read = float(value)
    except OverflowError:
        return None
    return read if math.isfinite(read) else None


def _duration(value: object) -> float | None:
    """Seconds of life. Nothing and less are said by servers that mean "unknown" or "no end": a refusal will tell."""
    seconds = number(value)
    return min(seconds, _MAX_LIFETIME) if seconds is not None and seconds > 0 else None


def _window(payload: dict[str, object]) -> tuple[float | None, float | None]:
    """`exp` and `nbf`, where they make sense (RFC 7519 section 4.1)."""
    moments = [number(payload.get(name)) for name in ("exp", "nbf")]
    end, start = (each if each is not None and 0 < each < _MAX_MOMENT else None for each in moments)
    if end is not None and start is not None and start >= end:
        start = None
    return end, start


def _audience(payload: dict[str, object]) -> tuple[str, ...] | None:
    value = payload.get("aud")
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        return tuple(each for each in value[:100] if isinstance(each, str))
    return None
