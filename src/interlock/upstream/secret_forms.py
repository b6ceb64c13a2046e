"""Takes known secrets out of a server's words in every form in which a server is likely to repeat them.

As they are, percent-encoded (of either case, `+` for a space, also twice), escaped for JSON or HTML, in base64 (a refused
`Basic` header, whoever's client id stands in it), and cut: servers like to repeat a part of the request that they refused.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

import msgspec

MASK: Final = "[redacted]"
MIN_LENGTH: Final = 6
"""Shorter values (a port, `true`, `prod`) would take ordinary words out of messages."""
PIECE: Final = 16
"""So many characters in a row of a longer secret are masked too."""

_ESCAPED = re.compile(
    rb"%(?:25)*(?P<percent>[0-9A-Fa-f]{2})"
    rb"|\\+u(?P<unicode>[dD][89abAB][0-9A-Fa-f]{2}\\+u[dD][c-fC-F][0-9A-Fa-f]{2}|[0-9A-Fa-f]{4})"
    rb"|\\+(?P<json>[\"/\\])"
    rb"|(?P<html>&(?:amp|lt|gt|quot|apos|#[0-9]{2,3}|#[xX][0-9A-Fa-f]{2});)|(?P<plus>\+)"
)
_UNIT = re.compile(rb"[0-9A-Fa-f]{4}")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}(?:=|%3[Dd]){0,2}")


def masked(text: str, secrets: Iterable[str], least: int = MIN_LENGTH) -> str:
    """The text with `[redacted]` in place of the secrets. Those shorter than `least` are left alone. Never raises.

    Whoever cuts a text cuts it afterwards: of half a secret not all may be known for one.
    """
    known = sorted({each for each in secrets if each and len(each) >= least}, key=len, reverse=True)
    if not known or not text:
        return text
    for secret in known:
        for form in (
            secret,
            quote(secret, safe="", errors="surrogatepass"),
            quote_plus(secret, errors="surrogatepass"),
        ):
            if form in text:
                text = text.replace(form, MASK)
    long = [each for each in known if len(each) >= MIN_LENGTH]
    return _without_base64(_without_pieces(text, long), long)


def without_secrets(body: bytes, secrets: Sequence[str]) -> bytes:
    """JSON with the secrets masked in its strings; the very same bytes where none occurs, and outside those strings."""
    if not _holds(body, secrets):
        return body

    def shown(found: re.Match[bytes]) -> bytes:
        try:
            before = msgspec.json.decode(found[0], type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return found[0]
        after = masked(before, secrets)
        return found[0] if after == before else msgspec.json.encode(after)

    return _STRING.sub(shown, body)


def _holds(data: bytes, secrets: Sequence[str]) -> bool:
    """Cheap: whether one of them stands there as it is, encoded for a URL, or escaped for JSON."""
    for secret in secrets:
        if len(secret) >= MIN_LENGTH:
            escaped = json.dumps(secret, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
            urls = (
                quote(secret, safe="", errors="surrogatepass").encode("ascii"),
                quote_plus(secret, errors="surrogatepass").encode("ascii"),
            )
            if escaped in data or any(each in data for each in (escaped.replace(b"/", b"\\/"), *urls)):
                return True
    return False


def _without_pieces(text: str, secrets: Sequence[str]) -> str:
    """Masks the secrets and long pieces of them where they stand with escapes between."""
    plain, places = _unescaped(text.encode("utf-8", "surrogatepass"))
    hits: list[tuple[int, int]] = []
    for secret in secrets:
        wanted = secret.encode("utf-8", "surrogatepass").replace(b"+", b" ")
        size = min(len(wanted), PIECE)
        pieces = {wanted[at : at + size] for at in range(len(wanted) - size + 1)}
        # A window can only begin where one of its pieces does, so most of the text is passed over.
        hits += [(at, at + size) for at in range(len(plain) - size + 1) if plain[at : at + size] in pieces]
    if not hits:
        return text
    raw, made, done = text.encode("utf-8", "surrogatepass"), bytearray(), 0
    for start, end in _joined(hits):
        first, last = places[start], places[end]
        made += raw[done:first] + MASK.encode()
        done = last
    return (bytes(made) + raw[done:]).decode("utf-8", "replace")


def _unescaped(raw: bytes) -> tuple[bytes, list[int]]:
    """The bytes without escapes, `+` as a space, and where in `raw` each of them (and the end) begins."""
    plain, places, done = bytearray(), list[int](), 0
    for found in _ESCAPED.finditer(raw):
        plain += raw[done : found.start()]
        places += range(done, found.start())
        plain += _meant(found)
        places += [found.start()] * (len(plain) - len(places))
        done = found.end()
    plain += raw[done:]
    places += range(done, len(raw) + 1)
    return bytes(plain), places


def _meant(found: re.Match[bytes]) -> bytes:
    if found["percent"] is not None:
        return bytes([int(found["percent"], 16)]).replace(b"+", b" ")
    if found["unicode"] is not None:
        units = b"".join(bytes.fromhex(each.decode("ascii")) for each in _UNIT.findall(found["unicode"]))
        return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass").replace(b"+", b" ")
    if found["plus"] is not None:
        return b" "
    if found["json"] is not None:
        return found["json"]
    return html.unescape(found["html"].decode("ascii")).encode("utf-8").replace(b"+", b" ")


def _joined(hits: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping spans as one, in order."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(hits):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _without_base64(text: str, secrets: Sequence[str]) -> str:
    wanted = [each.encode("utf-8", "surrogatepass") for each in secrets]
    wanted += [
        quote_plus(each, errors="surrogatepass").encode("ascii") for each in secrets
    ]  # RFC 6749 section 2.3.1: as it stands in `Basic`

    def judged(run: re.Match[str]) -> str:
        body = run[0].partition("=")[0].partition("%")[0]
        # A run may begin with what is no part of it: the path before it, say.
        parts = (body, *body.split("/")) if "/" in body else (body,)
        return MASK if any(each in inside for inside in map(_decoded, parts) for each in wanted) else run[0]

    return _BASE64.sub(judged, text)


def _decoded(body: str) -> bytes:
    body = body.replace("-", "+").replace("_", "/")
    body = body[: len(body) - (len(body) % 4 == 1)]
    try:
        return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (ValueError, binascii.Error):
        return b""
